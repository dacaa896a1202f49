//! Lists of URLs in files, plain or gzipped: every line is checked before anything is done with one.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::account::counted;
use super::lines::{Line, Lines};
use super::site_urls::page_of;
use super::{Trouble, say};
use crate::frontier::campaigns::UrlList;
use crate::quantity::spoken_count;
use crate::site::Site;

/// Bad lines that are told, each with its number.
const BAD_TOLD: usize = 20;
/// Bytes read at once.
const ROOM: usize = 256 << 10;
/// What a gzipped file begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What is in a file.
#[derive(Debug, Default)]
pub(in crate::cli) struct CheckedList {
    pub(in crate::cli) list: UrlList,
    /// Lines that name a page that a line before names as well.
    pub(in crate::cli) twice: u64,
    /// Lines that name no page of the site.
    pub(in crate::cli) bad: u64,
    /// The first of them, told.
    told: Vec<String>,
    seen: HashSet<i64>,
}

impl CheckedList {
    /// Reads a file, or stdin where it is `-`: a URL a line; blank lines and those that begin with `#` are passed over.
    pub(in crate::cli) fn read(file: &str, site: &Site) -> Result<Self, Trouble> {
        let failed = |why: io::Error| Trouble::usage(format!("{file}: it can't be read: {why}"));
        let mut checked = Self::default();
        let mut lines = Lines::new(open(file).map_err(failed)?);
        while let Some(line) = lines.next_line().map_err(failed)? {
            checked.take(&line, site);
        }
        Ok(checked)
    }

    fn take(&mut self, line: &Line<'_>, site: &Site) {
        let page = match line.text() {
            Ok(text) if text.is_empty() || text.starts_with('#') => return,
            Err(_) if line.shown().starts_with('#') => return,
            text => text.and_then(|text| page_of(site, text)),
        };
        match page {
            Ok((url, _)) if self.seen.insert(url.fingerprint()) => self.list.push(url),
            Ok(_) => self.twice += 1,
            Err(why) => {
                self.bad += 1;
                if self.told.len() < BAD_TOLD {
                    self.told.push(format!("line {}: {why}", line.number));
                }
            }
        }
    }

    /// Tells the first bad lines; without leave to skip them, or without a good one, nothing is to be done.
    pub(in crate::cli) fn tell_bad(&self, file: &str, skip_bad: bool) -> Result<(), Trouble> {
        for told in &self.told {
            say(format_args!("paced: {file}: {told}"));
        }
        let more = self.bad - self.told.len() as u64;
        if more > 0 {
            say(format_args!("paced: {file}: and {more} more"));
        }
        let bad = counted(self.bad, "line");
        if self.bad > 0 && !skip_bad {
            let what_to_do = "mend the list, or add --skip-bad to go without them: nothing was started";
            return Err(Trouble::usage(format!("{file}: {bad} can't be crawled; {what_to_do}")));
        }
        if self.list.key().total == 0 {
            return Err(Trouble::usage(format!("{file}: there is no URL in it: nothing was started")));
        }
        Ok(())
    }

    /// How many URLs it has, and what was passed over.
    pub(in crate::cli) fn told(&self) -> String {
        let passed = [(self.twice, "named twice"), (self.bad, "bad, passed over")];
        let passed = passed.iter().filter(|(count, _)| *count > 0);
        let passed: Vec<String> =
            passed.map(|(count, why)| format!(" ({} {why})", counted(*count, "line"))).collect();
        let passed = passed.concat();
        format!("{} URLs{passed}", spoken_count(self.list.key().total.into()))
    }
}

fn open(file: &str) -> io::Result<Box<dyn BufRead>> {
    let bytes: Box<dyn Read> =
        if file == "-" { Box::new(io::stdin().lock()) } else { Box::new(File::open(Path::new(file))?) };
    let mut bytes = BufReader::with_capacity(ROOM, bytes);
    if bytes.fill_buf()?.starts_with(&GZIP) {
        return Ok(Box::new(BufReader::with_capacity(ROOM, MultiGzDecoder::new(bytes))));
    }
    Ok(Box::new(bytes))
}
