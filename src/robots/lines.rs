//! A `robots.txt` as lines of known keys, written as people write them: misspelt, without a colon, with a byte order
//! mark. Which lines are for us is decided by the rules.

/// One line that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotsLine<'a> {
    /// The product token whose group this begins or joins; `*` is everybody's.
    Agent(&'a [u8]),
    /// A path that may be asked for.
    Allow(&'a [u8]),
    /// A path that may not.
    Disallow(&'a [u8]),
    /// Seconds between two requests, as written.
    CrawlDelay(&'a [u8]),
}

/// The lines that mean something, each with its number, counted from 1.
pub fn lines(text: &[u8]) -> impl Iterator<Item = (usize, RobotsLine<'_>)> {
    split(text).enumerate().filter_map(|(at, line)| Some((at + 1, meaning(line)?)))
}

/// Every line as it stands, for whoever wants many of them by their number.
pub fn all(text: &[u8]) -> Vec<&[u8]> {
    split(text).collect()
}

/// The line of that number, as it stands.
pub fn nth(text: &[u8], number: usize) -> Option<&[u8]> {
    split(text).nth(number.checked_sub(1)?)
}

/// The first `bytes` of the text, without a line that they cut.
pub fn at_most(text: &[u8], bytes: usize) -> &[u8] {
    let Some(window) = text.get(..=bytes) else { return text };
    let end = window.iter().rposition(|b| matches!(b, b'\n' | b'\r')).unwrap_or(0);
    &text[..end]
}

/// Lines end at LF, CR or CR LF (RFC 9309 section 2.2).
fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
        let (line, tail) = rest.split_at(end);
        rest = tail.strip_prefix(b"\r\n").unwrap_or(tail.get(1..).unwrap_or_default());
        Some(line)
    })
}

/// Keys are known by how they begin, misspelt ones too.
fn meaning(line: &[u8]) -> Option<RobotsLine<'_>> {
    let line = line.split(|b| *b == b'#').next().unwrap_or_default().trim_ascii();
    let (key, value) = key_and_value(line)?;
    let is = |names: &[&str]| {
        let begins =
            |name: &&str| key.get(..name.len()).is_some_and(|key| key.eq_ignore_ascii_case(name.as_bytes()));
        names.iter().any(begins)
    };
    match () {
        () if is(&["user-agent", "useragent", "user agent"]) => Some(RobotsLine::Agent(product_token(value))),
        () if is(&["allow"]) => Some(RobotsLine::Allow(value)),
        () if is(&["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"]) => {
            Some(RobotsLine::Disallow(value))
        }
        () if is(&["crawl-delay", "crawldelay"]) => Some(RobotsLine::CrawlDelay(value)),
        () => None,
    }
}

/// Parted at the colon; where it was forgotten, at the space between the only two words.
fn key_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let parted = |at: usize| (line[..at].trim_ascii(), line[at + 1..].trim_ascii());
    if let Some(colon) = line.iter().position(|b| *b == b':') {
        return Some(parted(colon));
    }
    let (key, value) = parted(line.iter().position(u8::is_ascii_whitespace)?);
    (!value.iter().any(u8::is_ascii_whitespace)).then_some((key, value))
}

/// The letters, `-` and `_` that a value begins with: `bot/1.0` and `bot test` both speak to `bot` (RFC 9309 section
/// 2.2.1). A star alone, or with words after it, is everybody.
fn product_token(value: &[u8]) -> &[u8] {
    if value.first() == Some(&b'*') && value.get(1).is_none_or(u8::is_ascii_whitespace) {
        return b"*";
    }
    let end = value.iter().position(|b| !(b.is_ascii_alphabetic() || matches!(b, b'-' | b'_')));
    &value[..end.unwrap_or(value.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_understood_however_it_is_written() {
        for (text, meant) in [
            ("User-agent: bot/1.0", Some(RobotsLine::Agent(b"bot"))),
            ("useragent:BOT test", Some(RobotsLine::Agent(b"BOT"))),
            ("user-agent: * # all", Some(RobotsLine::Agent(b"*"))),
            ("user-agent: *bot", Some(RobotsLine::Agent(b""))),
            ("Disallow /a", Some(RobotsLine::Disallow(b"/a"))),
            ("Disallow /a /b", None),
            ("disalow: /a b ", Some(RobotsLine::Disallow(b"/a b"))),
            ("Disallow:", Some(RobotsLine::Disallow(b""))),
            ("Allow: /a#b", Some(RobotsLine::Allow(b"/a"))),
            ("Crawl-delay: 1.5", Some(RobotsLine::CrawlDelay(b"1.5"))),
            ("Host: x", None),
            ("# Disallow: /", None),
        ] {
            assert_eq!(lines(text.as_bytes()).next().map(|(_, line)| line), meant, "{text}");
        }
    }

    #[test]
    fn lines_end_at_cr_lf_or_both_and_a_byte_order_mark_is_no_part_of_the_first() {
        let text = b"\xef\xbb\xbfAllow: /a\rAllow: /b\r\nAllow: /c\n\nAllow: /d";
        let numbers: Vec<_> = lines(text).collect();
        let allow = |path: &'static [u8]| RobotsLine::Allow(path);
        assert_eq!(numbers, [(1, allow(b"/a")), (2, allow(b"/b")), (3, allow(b"/c")), (5, allow(b"/d"))]);
    }
}
