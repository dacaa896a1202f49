//! What `robots.txt` says of a URL, and by which of its lines: from the record that all processes share, or asked for.

use std::collections::HashMap;

use tracing::info;
use url::Url;

use super::ask::Asker;
use crate::canonical_url::CanonicalUrl;
use crate::frontier::Frontier;
use crate::robots::{Row, deciding_line, rules_of, unreachable};
use crate::run::RunError;
use crate::site::{RobotsPolicy, Site};
use crate::task::{RobotsAccess, RobotsErrand, RobotsRecord};
use crate::work::{RobotsFound, robots_found};

/// What `robots.txt` says of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether a crawl may ask for it; where nothing is known, it may until something is.
    pub allowed: bool,
    /// The line that decides, counted from 1, as it stands.
    pub line: Option<(usize, String)>,
    /// The verdict in words.
    pub why: String,
}

impl Verdict {
    fn new(allowed: bool, why: impl Into<String>) -> Self {
        Self { allowed, line: None, why: why.into() }
    }

    /// The verdict of a record.
    pub fn of(record: &RobotsRecord, url: &Url) -> Self {
        if let Some(why) = &record.refuses {
            return Self::new(false, format!("forbidden: {why}"));
        }
        match &record.access {
            RobotsAccess::Absent => Self::new(true, "allowed: the host has no robots.txt"),
            RobotsAccess::Unreachable(why) => {
                Self::new(false, format!("forbidden: robots.txt can't be had ({why})"))
            }
            RobotsAccess::Rules(text) => {
                let allowed = rules_of(&record.access).allows(url);
                let word = if allowed { "allowed" } else { "forbidden" };
                match deciding_line(text.as_bytes(), url) {
                    Some((number, line)) => {
                        let why = format!("{word} by line {number} of robots.txt: {line}");
                        Self { allowed, line: Some((number, line)), why }
                    }
                    None => Self::new(allowed, format!("{word}: no line of robots.txt speaks of it")),
                }
            }
        }
    }
}

/// The records of a site's origins, each looked up once.
#[derive(Debug)]
pub struct Verdicts {
    frontier: Option<Frontier>,
    ignored: bool,
    records: HashMap<String, Option<RobotsRecord>>,
}

impl Verdicts {
    /// For a site; without a frontier nothing is known.
    pub fn new(site: &Site, frontier: Option<&Frontier>) -> Self {
        let ignored = site.pace.robots == RobotsPolicy::Ignore;
        Self { frontier: frontier.cloned(), ignored, records: HashMap::new() }
    }

    /// The verdict on a URL by what is known, nothing being asked for.
    pub async fn known(&mut self, url: &CanonicalUrl) -> Result<Verdict, RunError> {
        if self.ignored {
            return Ok(Verdict::new(true, "ignored, as the site's file says"));
        }
        Ok(match self.record(url).await? {
            Some(record) => Verdict::of(&record, url.url()),
            None => Verdict::new(true, "not known here: the host's robots.txt was not asked for"),
        })
    }

    /// The verdict on a URL; its host's `robots.txt` is asked for where it isn't known.
    pub(super) async fn asked(
        &mut self,
        asker: &mut Asker<'_>,
        url: &CanonicalUrl,
    ) -> Result<Verdict, RunError> {
        if !self.ignored && self.record(url).await?.is_none() {
            info!(url = url.robots_txt().as_str(), "asking for robots.txt when its turn comes");
            let record = ask(asker, url.robots_txt()).await?;
            asker.crawl_delay = asker.crawl_delay.max(record.crawl_delay.unwrap_or_default());
            self.records.insert(url.origin(), Some(record));
        }
        self.known(url).await
    }

    async fn record(&mut self, url: &CanonicalUrl) -> Result<Option<RobotsRecord>, RunError> {
        let origin = url.origin();
        if let Some(record) = self.records.get(&origin) {
            return Ok(record.clone());
        }
        let record = match &self.frontier {
            Some(frontier) => {
                let now = frontier.clock().now();
                frontier.robots(&origin).await?.filter(|known| known.until > now).map(|known| known.record)
            }
            None => None,
        };
        self.records.insert(origin, record.clone());
        Ok(record)
    }
}

/// Asks for a `robots.txt`, also where it is elsewhere on the site.
async fn ask(asker: &mut Asker<'_>, url: CanonicalUrl) -> Result<RobotsRecord, RunError> {
    let mut errand = RobotsErrand { fetch: url, failures: 0 };
    let mut hops = 0;
    loop {
        let asked = errand.fetch.clone();
        let exchange = match asker.exchange(&asked, true).await? {
            Ok(exchange) => exchange,
            Err(why) => return Ok(unreachable(&why, Row { failures: 0, random: 0.0 })),
        };
        match robots_found(asker.site, hops, &errand, &exchange) {
            RobotsFound::Record(record) => return Ok(record),
            RobotsFound::Moved(to) => errand.fetch = to,
        }
        hops += 1;
    }
}
