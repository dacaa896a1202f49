//! How a page stands in its row: numbers of as many bytes as each needs, then what few pages have as a small JSON record.

use rusqlite::{Result, Row};
use serde::{Deserialize, Serialize};

use super::columns::{from_json, unreadable};
use crate::clock::Timestamp;
use crate::frontier::state::{EPOCH, PageState};
use crate::page::Validators;
use crate::task::StoredPage;

/// A page as it is written.
pub(super) struct PageRow<'a> {
    /// The segment that it lies in, which stands in a table of its own.
    pub(super) segment: Option<&'a str>,
    /// All else but its URL.
    pub(super) packed: Vec<u8>,
}

/// What few pages have.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct RarePageFields {
    /// Where it is kept, if that is no place in a segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(rename = "e", skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(rename = "m", skip_serializing_if = "Option::is_none")]
    last_modified: Option<String>,
}

impl<'a> PageRow<'a> {
    pub(super) fn of(page: &'a PageState) -> Self {
        let StoredPage { place, fetched_at, validators } = &page.stored;
        let parts = parts_of(place);
        let (segment, offset, length) = parts.unzip3();
        let rare = RarePageFields {
            place: parts.is_none().then(|| place.clone()),
            etag: validators.etag.clone(),
            last_modified: validators.last_modified.clone(),
        };
        let mut packed = Vec::with_capacity(24);
        for number in [
            folded(page.fence - EPOCH),
            folded(fetched_at.as_millis() - page.fence),
            offset,
            length,
            page.depth.into(),
            page.recrawl.map_or(0, |period| folded(period) + 1),
        ] {
            write(&mut packed, number);
        }
        if page.recrawl.is_some() {
            write(&mut packed, folded(page.recrawl_at.unwrap_or_default() - EPOCH));
        }
        if rare != RarePageFields::default() {
            // A record of texts is always one of JSON.
            packed.extend(serde_json::to_vec(&rare).unwrap_or_default());
        }
        Self { segment, packed }
    }

    /// The page of a row, and the name of its segment behind it.
    pub(super) fn read(row: &Row<'_>, column: usize) -> Result<PageState> {
        let segment = row.get_ref(column + 1)?.as_str_or_null()?;
        let packed = row.get_ref(column)?.as_blob()?;
        read(packed, segment).ok_or_else(|| unreadable(column, Cut))?.map_err(|text| {
            from_json::<RarePageFields>(&text, column).err().unwrap_or_else(|| unreadable(column, Cut))
        })
    }
}

/// The page; none if the row is cut, and its last part if that is no JSON.
fn read(packed: &[u8], segment: Option<&str>) -> Option<std::result::Result<PageState, String>> {
    let mut rest = packed;
    let mut next = || read_number(&mut rest);
    let fence = EPOCH + unfolded(next()?);
    let fetched_at = fence + unfolded(next()?);
    let (offset, length) = (next()?, next()?);
    let depth = u32::try_from(next()?).ok()?;
    let recrawl = next()?.checked_sub(1).map(unfolded);
    let recrawl_at = match recrawl {
        Some(_) => Some(EPOCH + unfolded(next()?)),
        None => None,
    };
    let rare: RarePageFields = if rest.is_empty() {
        RarePageFields::default()
    } else {
        match serde_json::from_slice(rest) {
            Ok(rare) => rare,
            Err(_) => return Some(Err(String::from_utf8_lossy(rest).into_owned())),
        }
    };
    let place = match (rare.place, segment) {
        (Some(place), _) => place,
        (None, segment) => format!("{}:{offset}:{length}", segment?),
    };
    let validators = Validators { etag: rare.etag, last_modified: rare.last_modified };
    let stored = StoredPage { place, fetched_at: Timestamp::from_millis(fetched_at), validators };
    Some(Ok(PageState { stored, fence, depth, recrawl, recrawl_at }))
}

/// A row that ends too early.
#[derive(Debug, thiserror::Error)]
#[error("a page's row is cut")]
struct Cut;

/// `NAME:OFFSET:LENGTH` as its parts, where these make the same text again.
fn parts_of(place: &str) -> Option<(&str, u64, u64)> {
    let (rest, length) = place.rsplit_once(':')?;
    let (name, offset) = rest.rsplit_once(':')?;
    let (from, long) = (offset.parse::<u64>().ok()?, length.parse::<u64>().ok()?);
    (!name.is_empty() && from.to_string() == offset && long.to_string() == length)
        .then_some((name, from, long))
}

trait Parts<'a> {
    fn unzip3(self) -> (Option<&'a str>, u64, u64);
}

impl<'a> Parts<'a> for Option<(&'a str, u64, u64)> {
    fn unzip3(self) -> (Option<&'a str>, u64, u64) {
        self.map_or((None, 0, 0), |(name, offset, length)| (Some(name), offset, length))
    }
}

/// Small where the number is near zero, be it below or above.
fn folded(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unfolded(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Seven bits a byte, the lowest first; another byte follows one from 128 on.
fn write(packed: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        packed.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    packed.push((number & 0x7f) as u8);
}

fn read_number(packed: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = packed.split_first()?;
        *packed = rest;
        number |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(place: &str, fetched_at: i64, fence: i64) -> PageState {
        let stored = StoredPage {
            place: place.to_owned(),
            fetched_at: Timestamp::from_millis(fetched_at),
            validators: Validators::default(),
        };
        PageState { stored, fence, depth: 3, recrawl: None, recrawl_at: None }
    }

    fn is_read_as_it_was(page: &PageState) -> usize {
        let row = PageRow::of(page);
        let read = read(&row.packed, row.segment).and_then(Result::ok);
        assert_eq!(read.as_ref(), Some(page));
        row.packed.len()
    }

    #[test]
    fn a_page_takes_some_twenty_bytes_and_is_read_as_it_was_written() {
        let now = EPOCH + 30_000_000_000;
        let usual = page("20270115T080000Z-host-1-abcdef-00001.warc.gz:123456789:4321", now + 800, now);
        assert!(is_read_as_it_was(&usual) <= 20);
        let again =
            PageState { recrawl: Some(604_800_000), recrawl_at: Some(now + 604_800_000), ..usual.clone() };
        assert!(is_read_as_it_was(&again) <= 32);
        for place in ["", "warc/1", ":1:2", "a:01:2", "a:1:+2", "a:b:1:2", "a:99999999999999999999:1"] {
            is_read_as_it_was(&page(place, now, now));
        }
        for (fetched_at, fence) in [(0, now), (now, 0), (i64::MAX / 4, -5)] {
            is_read_as_it_was(&page("a:1:2", fetched_at, fence));
        }
        let mut known = again;
        known.stored.validators =
            Validators { etag: Some("W/\"1\"".to_owned()), last_modified: Some("today".to_owned()) };
        is_read_as_it_was(&known);
        known.recrawl = Some(0);
        is_read_as_it_was(&known);
    }

    #[test]
    fn a_row_that_is_cut_is_no_page() {
        let row = PageRow::of(&page("a:1000:2000", EPOCH + 1_000_000, EPOCH + 900_000)).packed;
        for end in 0..row.len() {
            assert!(read(&row[..end], Some("a")).is_none(), "{end} of {} bytes", row.len());
        }
    }
}
