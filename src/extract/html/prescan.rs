//! What a page's first bytes say of their own encoding in `<meta>` (WHATWG HTML section 13.2.3.2).

use std::collections::HashSet;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// The encoding that the first `<meta charset>` or `<meta http-equiv=content-type>` in `bytes` names.
pub fn meta(bytes: &[u8]) -> Option<&'static Encoding> {
    first_meta(bytes, &[])
}

/// The same, in a whole page: what looks like a tag in a script or the like is none there.
pub fn late_meta(bytes: &[u8]) -> Option<&'static Encoding> {
    first_meta(bytes, &[b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noframes"])
}

fn first_meta(bytes: &[u8], raw: &[&[u8]]) -> Option<&'static Encoding> {
    let mut scan = Scan { rest: bytes };
    while !scan.rest.is_empty() {
        if scan.rest.starts_with(b"<!--") {
            // `<!-->` is a whole comment: its end may share the dashes of its start.
            scan.skip(2);
            scan.skip_past(b"-->");
        } else if scan.starts_tag(b"<meta") {
            scan.skip(5);
            if let Some(encoding) = scan.meta() {
                return Some(encoding);
            }
        } else if scan.starts_element() {
            let name = scan.skip_name();
            while scan.attribute().is_some() {}
            if let Some(raw) = raw.iter().find(|raw| name.eq_ignore_ascii_case(raw)) {
                scan.skip_raw(raw);
            }
        } else if [&b"<!"[..], b"</", b"<?"].iter().any(|start| scan.rest.starts_with(start)) {
            scan.skip_past(b">");
        } else {
            scan.skip(1);
        }
    }
    None
}

struct Scan<'a> {
    rest: &'a [u8],
}

type Attribute = (Vec<u8>, Vec<u8>);

impl<'a> Scan<'a> {
    fn skip(&mut self, count: usize) {
        self.rest = &self.rest[count.min(self.rest.len())..];
    }

    fn skip_past(&mut self, end: &[u8]) {
        let at = self.rest.windows(end.len()).position(|w| w == end);
        self.skip(at.map_or(self.rest.len(), |at| at + end.len()));
    }

    fn starts_tag(&self, tag: &[u8]) -> bool {
        let end = self.rest.get(tag.len());
        self.rest.len() > tag.len()
            && self.rest[..tag.len()].eq_ignore_ascii_case(tag)
            && end.is_some_and(|b| is_space(*b) || *b == b'/')
    }

    fn starts_element(&self) -> bool {
        let name = self.rest.strip_prefix(b"</").or_else(|| self.rest.strip_prefix(b"<"));
        name.and_then(|name| name.first()).is_some_and(u8::is_ascii_alphabetic)
    }

    /// Steps over `<` and the name after it, or `</` and the name, which then has a slash.
    fn skip_name(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|b| is_space(*b) || *b == b'>').unwrap_or(self.rest.len());
        let name = &self.rest[1..end];
        self.rest = &self.rest[end..];
        name
    }

    /// Steps up to the end tag of an element that holds nothing but text.
    fn skip_raw(&mut self, name: &[u8]) {
        let ends = |at: &usize| {
            self.rest.get(at + 2..at + 2 + name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name))
        };
        let tags = self.rest.windows(2).enumerate().filter(|(_, two)| *two == b"</").map(|(at, _)| at);
        let end = { tags }.find(ends).unwrap_or(self.rest.len());
        self.skip(end);
    }

    fn meta(&mut self) -> Option<&'static Encoding> {
        let mut seen = HashSet::new();
        let (mut pragma, mut charset, mut content) = (false, None, None);
        while let Some((name, value)) = self.attribute() {
            if seen.contains(&name) {
                continue;
            }
            match name.as_slice() {
                b"http-equiv" => pragma = value == b"content-type",
                b"content" => content = content.or_else(|| known(charset_in(&value)?)),
                b"charset" => charset = Some(known(&value)),
                _ => {}
            }
            seen.insert(name);
        }
        let encoding = charset.unwrap_or_else(|| content.filter(|_| pragma))?;
        Some(if encoding.name() == "x-user-defined" { WINDOWS_1252 } else { readable_so_far(encoding) })
    }

    /// The next attribute of a tag, in lower case; none at the tag's end.
    fn attribute(&mut self) -> Option<Attribute> {
        while self.rest.first().is_some_and(|b| is_space(*b) || *b == b'/') {
            self.skip(1);
        }
        let mut name = Vec::new();
        loop {
            match *self.rest.first()? {
                b'=' if !name.is_empty() => break,
                b'>' if name.is_empty() => {
                    self.skip(1);
                    return None;
                }
                b'/' | b'>' => return Some((name, Vec::new())),
                b if is_space(b) => break,
                b => name.push(b.to_ascii_lowercase()),
            }
            self.skip(1);
        }
        self.rest = self.rest.trim_ascii_start();
        if self.rest.first() != Some(&b'=') {
            return Some((name, Vec::new()));
        }
        self.skip(1);
        self.rest = self.rest.trim_ascii_start();
        Some((name, self.value()?))
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let quote = *self.rest.first()?;
        let end = if matches!(quote, b'"' | b'\'') {
            self.skip(1);
            self.rest.iter().position(|b| *b == quote)?
        } else {
            self.rest.iter().position(|b| is_space(*b) || *b == b'>')?
        };
        let value = self.rest[..end].to_ascii_lowercase();
        self.skip(if matches!(quote, b'"' | b'\'') { end + 1 } else { end });
        Some(value)
    }
}

/// The encoding of that label; those that WHATWG replaces, as they can't be read safely, count as unknown.
pub(super) fn known(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label)
}

/// A page that names UTF-16 in ASCII letters is not in UTF-16.
pub(super) fn readable_so_far(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding }
}

/// The label after `charset=` in the `content` of a `<meta>`.
fn charset_in(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    let value = loop {
        let at = rest.windows(7).position(|w| w == b"charset")?;
        rest = rest[at + 7..].trim_ascii_start();
        if let Some(value) = rest.strip_prefix(b"=") {
            break value.trim_ascii_start();
        }
    };
    match value.first()? {
        quote @ (b'"' | b'\'') => {
            let value = &value[1..];
            Some(&value[..value.iter().position(|b| b == quote)?])
        }
        _ => Some(&value[..value.iter().position(|b| is_space(*b) || *b == b';').unwrap_or(value.len())]),
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_meta_that_names_an_encoding_is_found() {
        for (page, name) in [
            (r#"<meta charset="euc-jp">"#, Some("EUC-JP")),
            ("<META CHARSET=shift_jis />", Some("Shift_JIS")),
            (r#"<meta content="text/html; charset=big5" http-equiv="Content-Type">"#, Some("Big5")),
            (r#"<meta http-equiv=content-type content='text/html; charset="gbk"'>"#, Some("GBK")),
            (r#"<meta content="text/html; charset=big5">"#, None),
            (r#"<!-- <meta charset="big5"> --><meta charset="gbk">"#, Some("GBK")),
            (r#"<!--><meta charset="gbk">"#, Some("GBK")),
            (r#"<p title='<meta charset="big5">'><meta charset="gbk">"#, Some("GBK")),
            (r#"</p a="<meta charset=big5>"><? x ?><!DOCTYPE html><meta charset="gbk">"#, Some("GBK")),
            (r#"<metadata charset="big5"><meta charset="gbk">"#, Some("GBK")),
            (r#"<meta charset="no-such"><meta charset="gbk">"#, Some("GBK")),
            (r#"<meta charset="gbk" charset="big5">"#, Some("GBK")),
            (r#"<meta charset="utf-16">"#, Some("UTF-8")),
            (r#"<meta charset="x-user-defined">"#, Some("windows-1252")),
            (r#"<meta charset="gbk"#, None),
            ("<", None),
            ("", None),
        ] {
            assert_eq!(meta(page.as_bytes()).map(Encoding::name), name, "{page}");
        }
    }
    #[test]
    fn a_late_meta_is_none_where_it_is_only_text() {
        for (page, name) in [
            (r#"<script>"<meta charset='big5'>"</script><meta charset="gbk">"#, Some("GBK")),
            (r#"<STYLE a=b>/*<meta charset=big5>*/</Style ><p></p><meta charset="gbk">"#, Some("GBK")),
            (r"<title><meta charset=big5>", None),
            (r"<scripts><meta charset=big5>", Some("Big5")),
            (r"</script><meta charset=big5>", Some("Big5")),
        ] {
            assert_eq!(late_meta(page.as_bytes()).map(Encoding::name), name, "{page}");
        }
    }
}
