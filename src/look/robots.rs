//! Asks for a `robots.txt` that the frontier doesn't know, outside of all queues.

use tracing::info;

use super::ask::Asker;
use crate::canonical_url::CanonicalUrl;
use crate::robots::{UnreachableRow, Verdict, Verdicts, unreachable};
use crate::run::RunError;
use crate::site::RobotsPolicy;
use crate::task::{RobotsFetch, RobotsRecord};
use crate::work::{RobotsFound, robots_found};

/// The verdict on a URL; its host's `robots.txt` is asked for if it isn't known.
pub(super) async fn verdict(
    asker: &mut Asker<'_>,
    verdicts: &Verdicts,
    url: &CanonicalUrl,
) -> Result<Verdict, RunError> {
    let obeyed = asker.site.pace.robots == RobotsPolicy::Obey;
    if obeyed && verdicts.record(&url.origin()).await?.is_none() {
        info!(url = url.robots_txt().as_str(), "asking for robots.txt when its turn comes");
        let record = ask(asker, url.robots_txt()).await?;
        asker.crawl_delay = asker.crawl_delay.max(record.crawl_delay.unwrap_or_default());
        verdicts.learn(url.origin(), record);
    }
    Ok(verdicts.explain(asker.site, url).await?)
}

/// Asks for a `robots.txt`, also where it is elsewhere.
async fn ask(asker: &mut Asker<'_>, url: CanonicalUrl) -> Result<RobotsRecord, RunError> {
    let mut errand = RobotsFetch { fetch: url, failures: 0 };
    let mut hops = 0;
    loop {
        let asked = errand.fetch.clone();
        let exchange = match asker.exchange(&asked, true).await? {
            Ok(exchange) => exchange,
            Err(why) => return Ok(unreachable(&why, UnreachableRow { failures: 0, random: 0.0 })),
        };
        match robots_found(asker.site, hops, &errand, &exchange) {
            RobotsFound::Record(record) => return Ok(record),
            RobotsFound::Moved(to) => errand.fetch = to,
        }
        hops += 1;
    }
}
