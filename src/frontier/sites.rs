//! What a person's verbs ask of sites: their rules, values, views, letters and names.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;

use super::table::{Reply, Step};
use super::{
    Act, DatedAct, Forgotten, Freshness, Frontier, FrontierError, Inspection, LetterPlace, Registered,
    Registration, Renamed, TuneReply, Tuning, UrlStatus, View,
};
use crate::canonical_url::CanonicalUrl;
use crate::task::{DeadLetter, Stage};

/// Views asked for at once: few, as a start that comes up meanwhile waits for them.
pub(super) const VIEWS: usize = 32;

impl Frontier {
    /// Puts a site's rules in force.
    pub async fn register(&self, registration: Registration) -> Result<Registered, FrontierError> {
        ask!(self, Register { new: registration })
    }

    /// Sets a value of a running site, in force for the very next claim. False: there is no such site, or it can't be set so.
    pub async fn tune(&self, site: &str, tuning: Tuning) -> Result<bool, FrontierError> {
        let set: Result<TuneReply, FrontierError> =
            ask!(self, Tune { site: site.to_owned(), tunings: vec![tuning], act: None });
        Ok(set? == TuneReply::Done)
    }

    /// The same, by somebody and for a reason that are kept with it: all of the values or, where one can't be, none.
    pub async fn tune_by(
        &self,
        act: Act,
        site: &str,
        tunings: Vec<Tuning>,
    ) -> Result<TuneReply, FrontierError> {
        ask!(self, Tune { site: site.to_owned(), tunings, act: Some(act) })
    }

    /// Keeps what was done to a site, or under no name what concerns none that is there. False: there is no such site.
    pub async fn note(&self, site: &str, act: Act) -> Result<bool, FrontierError> {
        ask!(self, Note { site: site.to_owned(), act })
    }

    /// What people did to a site, the latest first: 1,000 acts and 400 days at most.
    pub async fn acts(&self, site: &str) -> Result<Vec<DatedAct>, FrontierError> {
        ask!(self, Acts { site: site.to_owned() })
    }

    /// The names of all sites, in order. They are read in portions, each at a moment of its own.
    pub async fn sites(&self) -> Result<Vec<String>, FrontierError> {
        let (mut names, mut from) = (BTreeSet::new(), Some(String::new()));
        while let Some(place) = from {
            let portion = ask!(self, Sites { from: place })?;
            names.extend(portion.names);
            from = portion.next;
        }
        Ok(names.into_iter().collect())
    }

    /// How a site stands; none if there is no such site.
    pub async fn view(&self, site: &str) -> Result<Option<View>, FrontierError> {
        Ok(ask!(self, View { site: site.to_owned() })?.map(|view| *view))
    }

    /// How these sites stand, in their order; those that are not there are left out. Each is read at a moment of its own,
    /// but several travel together.
    pub async fn views(&self, sites: &[String]) -> Result<Vec<View>, FrontierError> {
        let mut views = Vec::with_capacity(sites.len());
        for portion in sites.chunks(VIEWS) {
            let read = try_join_all(portion.iter().map(|site| self.view(site))).await?;
            views.extend(read.into_iter().flatten());
        }
        Ok(views)
    }

    /// The text of a site's file as registered.
    pub async fn text(&self, site: &str) -> Result<Option<String>, FrontierError> {
        ask!(self, Text { site: site.to_owned() })
    }

    /// How many pages of a site are younger than their `recrawl`, and how old the oldest is.
    pub async fn freshness(&self, site: &str) -> Result<Freshness, FrontierError> {
        ask!(self, Freshness { site: site.to_owned() })
    }

    /// Where a URL stands in a site: its tasks, dead letters, page.
    pub async fn whereabouts(&self, site: &str, url: &CanonicalUrl) -> Result<UrlStatus, FrontierError> {
        Ok(*ask!(self, UrlStatus { site: site.to_owned(), url: url.clone() })?)
    }

    /// Forgets a site that has no tasks and no dead letters, a bounded number of pages a step; how far that is.
    pub async fn forget(&self, site: &str) -> Result<Forgotten, FrontierError> {
        ask!(self, Forget { site: site.to_owned() })
    }

    /// Gives a site that nobody works on another name; all it has stays, its pace too.
    pub async fn rename(&self, site: &str, to: &str) -> Result<Renamed, FrontierError> {
        loop {
            match self.rename_step(site, to).await? {
                Renamed::Partly => {}
                renamed => return Ok(renamed),
            }
        }
    }

    /// One step of it.
    pub async fn rename_step(&self, site: &str, to: &str) -> Result<Renamed, FrontierError> {
        ask!(self, Rename { site: site.to_owned(), to: to.to_owned() })
    }

    /// A site's first dead letters, oldest first.
    pub async fn dead_letters(&self, site: &str, most: u64) -> Result<Vec<DeadLetter>, FrontierError> {
        self.dead_letters_after(site, None, most).await
    }

    /// A site's next dead letters after that one, which may be gone meanwhile; oldest first.
    pub async fn dead_letters_after(
        &self,
        site: &str,
        after: Option<LetterPlace>,
        most: u64,
    ) -> Result<Vec<DeadLetter>, FrontierError> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        ask!(self, DeadLetters { site: site.to_owned(), most, after })
    }

    /// Removes dead letters for good; which of them were there.
    pub async fn drop_letters(
        &self,
        site: &str,
        letters: Vec<(Stage, CanonicalUrl)>,
    ) -> Result<Vec<bool>, FrontierError> {
        ask!(self, DropLetters { site: site.to_owned(), letters })
    }

    /// Everything in it: for tests of small frontiers.
    pub async fn inspect(&self) -> Result<Inspection, FrontierError> {
        Ok(*ask!(self, Inspect {})?)
    }
}
