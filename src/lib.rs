//! `paced` crawls shops politely: request *starts* on a site keep one steady interval, whatever the site's response
//! time and however many workers and processes there are; nothing that was accepted is lost.
//!
//! The program `paced` is run from a shell. This library is for programs that crawl themselves, bring URLs into a queue, or
//! share a site's pace with a crawl:
//!
//! * [`Site`] is one file of `sites/` as a checked value, and [`crawl`] crawls sites until nothing is left.
//! * [`Frontier`] is the handle on the queues: [`Frontier::put`] asks for pages.
//! * [`TimedMutex`] is the per-site mutex that expires by itself; other programs may take it as well.
//! * [`Item`] is a line of an items file.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use paced::{CrawlOptions, Outputs, Shown, Site, crawl};
//! use tokio_util::sync::CancellationToken;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let site = Site::load(Path::new("sites/books.toml"))?;
//! let options = CrawlOptions::new(Outputs::below(Path::new("paced-data")));
//! let report = crawl(options, vec![site], Shown::default(), CancellationToken::new()).await?;
//! println!("{} dead letters", report.dead());
//! # Ok(())
//! # }
//! ```
//!
//! Everything else is the program's own and may change with any version. `ARCHITECTURE.md` tells where things live.

mod archive;
mod audit;
mod batch;
mod budget;
mod canonical_url;
mod cli;
mod clock;
mod content_coding;
mod cores;
mod demo;
mod extract;
mod fetch;
mod forecast;
mod frontier;
mod item;
mod look;
mod manners;
mod monitor;
mod mutex;
mod notify;
mod owner_only;
mod page;
mod patience;
mod plain_text;
mod quantity;
mod recent;
mod robots;
mod run;
mod secret;
mod settings;
mod signature;
mod sink;
mod site;
mod task;
mod work;

pub use canonical_url::CanonicalUrl;
pub use clock::Timestamp;
pub use frontier::{Frontier, FrontierError};
pub use item::Item;
pub use monitor::Shown;
pub use mutex::{Held, TimedMutex};
pub use run::{CrawlOptions, CrawlReport, Ending, Outputs, RunError, crawl};
pub use site::{Site, SiteErrors};
pub use task::{Priority, Put, PutReply};

/// Opens the modules to the project's own tests, benches, fuzzing and program. Nothing else may use them.
macro_rules! internals {
    ($($module:ident)*) => {
        #[doc(hidden)]
        pub mod internals {
            $(pub mod $module {
                pub use crate::$module::*;
            })*
        }
    };
}

internals! {
    archive audit budget canonical_url cli clock content_coding demo extract fetch forecast frontier item look manners monitor mutex notify page robots run secret settings signature sink site task work
}
