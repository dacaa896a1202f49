//! Options of every verb that sends requests: how many at once, how often, and where to.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::{Globals, Trouble};
use crate::fetch::ConnectTo;
use crate::quantity::{read_duration, read_rate};
use crate::run::RunParts;
use crate::work::Workers;

/// Options of a verb that sends requests.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct EquipmentOptions {
    /// Downloads at once: auto, N, or MIN..MAX
    #[arg(long, default_value = "auto", value_name = "N")]
    workers: Workers,
    /// The most request starts a second of this process, such as 50/s
    #[arg(long, value_name = "RATE", value_parser = max_rate)]
    max_rate: Option<NonZeroU32>,
    #[command(flatten)]
    elsewhere: StorageOptions,
}

/// Options to try a real site's file against a copy.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct StorageOptions {
    /// Lead requests elsewhere: HOST:PORT:ADDR:PORT, as curl does; that address may be private
    #[arg(long, value_name = "HOST:PORT:ADDR:PORT")]
    pub connect_to: Vec<ConnectTo>,
    /// Trust the certificates of this PEM file besides the system's
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

impl StorageOptions {
    /// The certificates, as they stand in the file.
    pub(in crate::cli) fn certificates(&self) -> Result<Option<Vec<u8>>, Trouble> {
        certificates(self.cacert.as_deref())
    }
}

impl EquipmentOptions {
    /// What a process is equipped with by these and by the options that every verb takes.
    pub(in crate::cli) fn equipment(self, globals: &Globals) -> Result<RunParts, Trouble> {
        Ok(RunParts {
            settings: globals.settings()?,
            workers: self.workers,
            max_rate: self.max_rate,
            cacert: self.elsewhere.certificates()?,
            connect_to: self.elsewhere.connect_to,
            places: globals.places()?,
            first_probe: RunParts::FIRST_PROBE,
        })
    }
}

/// The certificates of a file, as they stand in it.
pub(in crate::cli) fn certificates(file: Option<&Path>) -> Result<Option<Vec<u8>>, Trouble> {
    let read = |file: &Path| {
        std::fs::read(file).map_err(|e| Trouble::usage(format!("--cacert {}: {e}", file.display())))
    };
    file.map(read).transpose()
}

fn max_rate(text: &str) -> Result<NonZeroU32, String> {
    let rate = read_rate(text).or_else(|| read_rate(&format!("{text}/s")));
    rate.and_then(NonZeroU32::new).ok_or_else(|| format!("`{text}` is no rate; write it as 50/s"))
}

/// Reads a duration with its unit from the command line.
pub(in crate::cli) fn duration_option(text: &str) -> Result<Duration, String> {
    read_duration(text).ok_or_else(|| "write a number and a unit, such as 30s or 10m".to_owned())
}
