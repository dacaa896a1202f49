//! Options that every verb takes: where the data is, and how the log looks.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ColorChoice};
use indicatif::{MultiProgress, ProgressDrawTarget};

use super::{Trouble, frontier_url};
use crate::archive::{Archive, Location, writer_name};
use crate::clock::Clock;
use crate::frontier::{Frontier, without_password};
use crate::monitor::Shown;
use crate::monitor::log::{self, Format};
use crate::run::Outputs;
use crate::settings::Settings;
use crate::signature::KeyFolder;

const FRONTIER: &str = "The frontier [env: PACED_FRONTIER, or a file that has it: PACED_FRONTIER_FILE] [default: \
                        sqlite:DIR/frontier.db]";
const PAGES: &str = "The pages: a folder, or s3://BUCKET/PREFIX [default: DIR/pages]";

/// Options that every verb takes. Not to be printed: a frontier's URL may have a password.
#[derive(Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Globals {
    /// The folder of frontier, pages and items
    #[arg(long, global = true, env = "PACED_DATA", default_value = "paced-data", value_name = "DIR")]
    pub data: PathBuf,
    #[arg(long, global = true, value_name = "URL", help = FRONTIER)]
    frontier: Option<String>,
    /// Looked for once: its file may be one that can be read once.
    #[arg(skip)]
    found: OnceLock<String>,
    #[arg(long, global = true, value_name = "URL", help = PAGES)]
    pages: Option<String>,
    /// The folder of keys to sign requests with [default: DIR/keys]
    #[arg(long, global = true, env = "PACED_KEYS", value_name = "DIR")]
    keys: Option<PathBuf>,
    /// Settings for all sites [default: paced.toml beside the data folder, if there is one]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How log lines look
    #[arg(long, global = true, value_parser = format(), default_value = "text", value_name = "FORMAT")]
    log_format: Format,
    /// More log: a line for each request
    #[arg(short, long, global = true)]
    verbose: bool,
    /// Less log: warnings and errors alone, no progress bars
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Colour in the log
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    color: ColorChoice,
}

fn format() -> impl TypedValueParser<Value = Format> {
    let parse = |text: String| if text == "json" { Format::Json } else { Format::Text };
    PossibleValuesParser::new(["text", "json"]).map(parse)
}

impl Globals {
    /// Starts the log; how the pulse of a verb is shown: as bars on a terminal, if they may be drawn there.
    pub(in crate::cli) fn start_log(&self, may_draw: bool) -> Shown {
        let bars = MultiProgress::new();
        let is_json = self.log_format == Format::Json;
        let on_terminal = std::io::stderr().is_terminal();
        let draws = may_draw && on_terminal && !self.quiet && !is_json;
        if !draws {
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
        let level = match (self.verbose, self.quiet) {
            (true, _) => "paced=debug,warn",
            (_, true) => "warn",
            _ => "paced=info,warn",
        };
        let color = match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => on_terminal && std::env::var_os("NO_COLOR").is_none(),
        };
        log::start(self.log_format, level, color, bars.clone());
        match (draws, self.verbose || is_json) {
            (true, _) => Shown::Bars(bars),
            (false, true) => Shown::AllLines,
            (false, false) => Shown::Lines,
        }
    }

    /// Where everything is kept.
    pub(in crate::cli) fn places(&self) -> Result<Outputs, Trouble> {
        let (frontier, pages, keys) = (self.frontier_url()?, self.pages()?, self.key_folder());
        Ok(Outputs { frontier, pages, keys, ..Outputs::below(&self.data) })
    }

    /// The keys to sign requests with.
    pub(in crate::cli) fn keys(&self) -> KeyFolder {
        KeyFolder::new(&self.key_folder())
    }

    fn key_folder(&self) -> PathBuf {
        self.keys.clone().unwrap_or_else(|| self.data.join("keys"))
    }

    /// The frontier's URL: the option's, else a variable's, else that of the file in the data folder.
    pub(in crate::cli) fn frontier_url(&self) -> Result<String, Trouble> {
        if let Some(found) = self.frontier.as_ref().or(self.found.get()) {
            return Ok(found.clone());
        }
        let default = || format!("sqlite:{}", self.data.join("frontier.db").display());
        let url = frontier_url::of_variables()?.unwrap_or_else(default);
        Ok(self.found.get_or_init(|| url).clone())
    }

    /// The frontier's URL as it may be shown.
    pub(in crate::cli) fn shown_frontier(&self) -> Result<String, Trouble> {
        self.frontier_url().map(|url| without_password(&url))
    }

    /// Where the pages are.
    pub(in crate::cli) fn pages(&self) -> Result<Location, Trouble> {
        match &self.pages {
            None => Ok(Location::Folder(self.data.join("pages"))),
            Some(named) => named.parse().map_err(|error| Trouble::usage(format!("--pages {error}"))),
        }
    }

    /// Opens the frontier of a verb that only makes sense where something was crawled before.
    pub(in crate::cli) fn open_existing(&self) -> Result<Frontier, Trouble> {
        let url = self.frontier_url()?;
        if let Some(path) = url.strip_prefix("sqlite:").filter(|path| !path.is_empty())
            && !Path::new(path).exists()
        {
            return Err(Trouble::failed(format!(
                "{path}: there is no frontier yet; start with `paced crawl SITE.toml`, or name the data folder with --data"
            )));
        }
        Ok(Frontier::open_existing(&url)?)
    }

    /// Where the pages are, for a verb that only makes sense where some were kept.
    pub(in crate::cli) fn existing_pages(&self) -> Result<Location, Trouble> {
        let pages = self.pages()?;
        match pages.folder().filter(|folder| !folder.exists()) {
            None => Ok(pages),
            Some(folder) => Err(Trouble::failed(format!(
                "{}: no pages are kept there; name the data folder with --data, or the pages with --pages",
                folder.display()
            ))),
        }
    }

    /// The pages as they were kept.
    pub(in crate::cli) async fn stored_pages(&self, clock: Clock) -> Result<Archive, Trouble> {
        Ok(Archive::open_at(&self.existing_pages()?, &writer_name(), clock).await?)
    }

    /// The settings for all sites.
    pub(in crate::cli) fn settings(&self) -> Result<Settings, Trouble> {
        let beside = self.data.parent().unwrap_or(Path::new("")).join("paced.toml");
        let file = match &self.config {
            Some(file) => file,
            None if beside.exists() => &beside,
            None => return Ok(Settings::default()),
        };
        Settings::load(file).map_err(Trouble::usage)
    }
}
