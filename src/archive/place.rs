//! `RecordPlace`, the page store's own name for one record. What stands there is read elsewhere.

use std::fmt;
use std::str::FromStr;

/// Where one record is: `<segment file>:<offset>:<length>`, both in bytes of the compressed file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordPlace {
    segment: String,
    offset: u64,
    length: u64,
}

/// Why a text is no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no place in the page store; one looks like 20261120T090000Z-host-1-00001.warc.gz:1024:8192"
)]
pub struct PlaceError(String);

impl RecordPlace {
    pub(super) fn new(segment: &str, offset: u64, length: u64) -> Self {
        Self { segment: segment.to_owned(), offset, length }
    }

    /// The segment's file name.
    pub fn segment(&self) -> &str {
        &self.segment
    }

    /// Where in the segment the record begins, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How long the record is in the segment, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

impl fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.segment, self.offset, self.length)
    }
}

impl FromStr for RecordPlace {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let mut parts = text.rsplitn(3, ':');
        let length = parts.next().and_then(|p| p.parse().ok());
        let offset = parts.next().and_then(|p| p.parse().ok());
        let segment = parts.next().filter(|name| is_bare(name));
        match (segment, offset, length) {
            (Some(segment), Some(offset), Some(length)) => Ok(Self::new(segment, offset, length)),
            _ => Err(PlaceError(text.to_owned())),
        }
    }
}

/// A place comes from a database: it must not lead out of the folder.
fn is_bare(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_what_it_prints() {
        let place = RecordPlace::new("20261120T090000Z-a-00001.warc.gz", 7, 9);
        assert_eq!(place.to_string(), "20261120T090000Z-a-00001.warc.gz:7:9");
        assert_eq!(place.to_string().parse(), Ok(place));
    }

    #[test]
    fn a_place_never_leads_out_of_the_folder() {
        for text in [
            "",
            "a.warc.gz",
            "a.warc.gz:1",
            "a.warc.gz:x:1",
            "../a.warc.gz:1:2",
            "/etc/passwd:0:9",
            ":1:2",
            "..:1:2",
        ] {
            assert_eq!(text.parse::<RecordPlace>(), Err(PlaceError(text.to_owned())), "{text}");
        }
    }
}
