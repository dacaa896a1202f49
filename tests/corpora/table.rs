//! Where the tables are, how a row is read, and how a share is judged.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The path of a file or folder of the corpora; none, said loudly, where it is absent on a laptop.
pub fn corpus(path: &str) -> Option<PathBuf> {
    let root =
        std::env::var_os("PACED_CORPORA").map_or_else(|| PathBuf::from("../shared/corpora"), PathBuf::from);
    let whole = root.join(path);
    if whole.exists() {
        return Some(whole);
    }
    let hint = format!("no {}: set PACED_CORPORA to the folder of the corpora", whole.display());
    assert!(std::env::var_os("CI").is_none(), "{hint}");
    eprintln!("SKIPPED, nothing was checked: {hint}");
    None
}

/// The rows of a JSON Lines file.
pub fn rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a table that can be read");
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect()
}

/// A shop's files, unpacked.
pub fn unpacked(shop: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = shop.join("site.tar.zst");
    let mut tar = Command::new("tar");
    tar.args(["-I", "zstd --long=27", "-xf"]).arg(archive).arg("-C").arg(folder.path());
    let done = tar.status().expect("tar starts");
    assert!(done.success(), "tar and zstd unpack {}", shop.display());
    folder
}

/// Counts the rows that agree, and keeps the first that don't.
pub struct Share {
    what: &'static str,
    good: usize,
    all: usize,
    bad: Vec<String>,
}

impl Share {
    /// Nothing counted yet.
    pub fn of(what: &'static str) -> Self {
        Self { what, good: 0, all: 0, bad: Vec::new() }
    }

    /// Counts one row, shown as `row` if it disagrees.
    pub fn count(&mut self, agrees: bool, row: impl Display) {
        self.all += 1;
        self.good += usize::from(agrees);
        if !agrees {
            self.bad.push(row.to_string());
        }
    }

    /// How many rows were counted.
    pub fn rows(&self) -> usize {
        self.all
    }

    /// Prints the share; fails below `floor` (in tenths of a percent) or below `rows` rows.
    pub fn reaches(&self, floor: usize, rows: usize) {
        let share = format!("{}: {} of {} agree", self.what, self.good, self.all);
        println!("{share}");
        let shown = self.bad.iter().take(40).map(|row| format!("\n  {row}")).collect::<Vec<_>>().concat();
        if std::env::var_os("PACED_CORPORA_SHOW").is_some() {
            println!("{shown}");
        }
        assert!(self.all >= rows, "{share}, but at least {rows} rows were expected");
        assert!(self.good * 1000 >= floor * self.all, "{share}, below {floor} in a thousand:{shown}");
    }
}
