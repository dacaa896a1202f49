//! Lines of lists and feeds, read one by one: no line takes more memory than a URL may need.

use std::io::{self, BufRead, BufReader, Read};

use crate::canonical_url::MOST_BYTES;

/// Bytes of a line that are looked at, at most.
const LONGEST_LINE: usize = 4 * MOST_BYTES;
/// What some programs write before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Characters that tell which line is meant.
const START: usize = 64;

/// Whoever reads lines.
pub(in crate::cli) struct Lines<R> {
    from: R,
    bytes: Vec<u8>,
    number: u64,
}

/// One line.
pub(in crate::cli) struct Line<'a> {
    /// Which it is, from 1 on.
    pub(in crate::cli) number: u64,
    bytes: &'a [u8],
    is_cut: bool,
}

impl<R: BufRead> Lines<R> {
    pub(in crate::cli) fn new(from: R) -> Self {
        Self { from, bytes: Vec::new(), number: 0 }
    }

    /// The next line; what is too long of it is passed over.
    pub(in crate::cli) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.bytes.clear();
        let read = (&mut self.from).take(LONGEST_LINE as u64).read_until(b'\n', &mut self.bytes)?;
        if read == 0 {
            return Ok(None);
        }
        let is_cut = read == LONGEST_LINE && !self.bytes.ends_with(b"\n");
        if is_cut {
            self.from.skip_until(b'\n')?;
        }
        self.number += 1;
        let mark = if self.number == 1 { BYTE_ORDER_MARK } else { b"" };
        let bytes = self.bytes.strip_prefix(mark).unwrap_or(&self.bytes);
        Ok(Some(Line { number: self.number, bytes, is_cut }))
    }
}

impl<R: Read> Lines<BufReader<R>> {
    /// Whether the next line may be waited for, as it isn't here yet or not whole.
    pub(in crate::cli) fn may_wait(&self) -> bool {
        !self.from.buffer().contains(&b'\n')
    }
}

impl Line<'_> {
    /// Its text without the white space around it; else what is wrong with it.
    pub(in crate::cli) fn text(&self) -> Result<&str, String> {
        let start = || self.shown().chars().take(START).collect::<String>();
        if self.is_cut {
            return Err(format!(
                "`{}…` is longer than {MOST_BYTES} bytes, and a URL may have no more; leave out what isn't needed",
                start()
            ));
        }
        let text = std::str::from_utf8(self.bytes);
        text.map(str::trim).map_err(|_| format!("`{}` is not UTF-8 text; percent-encode it", start()))
    }

    /// What of it can be shown.
    pub(in crate::cli) fn shown(&self) -> String {
        String::from_utf8_lossy(self.bytes).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line's number and text, or why it has none.
    fn read(bytes: &[u8]) -> Vec<String> {
        let (mut lines, mut read) = (Lines::new(bytes), Vec::new());
        while let Some(line) = lines.next_line().expect("in memory") {
            let text = line.text().map_or_else(|why| why, str::to_owned);
            read.push(format!("{} {}", line.number, text.rsplit_once('`').map_or(&*text, |(_, why)| why)));
        }
        read
    }

    #[test]
    fn a_mark_of_byte_order_is_none_of_the_first_line_and_stays_in_others() {
        assert_eq!(read(b"\xef\xbb\xbfone\r\n\xef\xbb\xbftwo"), ["1 one", "2 \u{feff}two"]);
        assert_eq!(read(b"\xef\xbb\xbf"), ["1 "]);
    }

    #[test]
    fn a_line_that_is_no_text_is_told_and_the_next_one_is_read() {
        let latin = b"https://a.example/caf\xe9\n two \n";
        assert_eq!(read(latin), ["1  is not UTF-8 text; percent-encode it", "2 two"]);
    }

    #[test]
    fn a_line_of_any_length_is_cut_told_and_counted_as_one() {
        let long = LONGEST_LINE;
        for (length, is_cut) in [(long - 1, false), (long, true), (long + 1, true), (1 << 20, true)] {
            let lines = read(&[&"é".repeat(length).into_bytes()[..length], b"\nnext\n"].concat());
            assert_eq!((lines.len(), &*lines[1]), (2, "2 next"), "{length}");
            assert_eq!(lines[0].contains("is longer than 8192 bytes"), is_cut, "{length}: {}", lines[0]);
        }
        assert_eq!(read(&b"x".repeat(long)).len(), 1);
    }

    #[test]
    fn no_more_of_a_long_line_is_held_than_may_be_a_url() {
        let mut lines = Lines::new(BufReader::with_capacity(64, io::repeat(b'x').take(1 << 22)));
        lines.next_line().expect("in memory").expect("a line");
        assert!(lines.bytes.capacity() <= 2 * LONGEST_LINE, "{}", lines.bytes.capacity());
        assert!(lines.next_line().expect("in memory").is_none());
    }
}
