//! What a page's first bytes say of their own encoding in `<meta>` (WHATWG HTML section 13.2.3.2).

use std::mem::take;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, State, Tokenizer};

/// No later `<meta>` is looked for: the names of a tag's attributes are kept until it ends, and may be as many as bytes.
pub const LATEST: usize = 1 << 20;

/// The encoding that the first `<meta charset>` or `<meta http-equiv=content-type>` in `bytes` names.
pub fn meta(bytes: &[u8]) -> Option<&'static Encoding> {
    first_meta(bytes, &[])
}

/// The same, in a whole page: what looks like a tag in a script or the like is none there.
pub fn late_meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let bytes = &bytes[..bytes.len().min(LATEST)];
    first_meta(bytes, &[b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noframes"])
}

fn first_meta(bytes: &[u8], raw: &[&[u8]]) -> Option<&'static Encoding> {
    let mut tag = OpenTag::default();
    // What the tokenizer finds wrong isn't kept: a binary page has an error a byte.
    let emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| tag.read(&event, raw));
    let mut tokens = Tokenizer::new_with_emitter(bytes, emitter);
    while let Some(Ok(ended)) = tokens.next() {
        match ended {
            Ended::Naming(encoding) => return Some(encoding),
            Ended::Raw => tokens.set_state(State::RawText),
        }
    }
    None
}

/// A tag that ended, where that matters.
enum Ended {
    /// It names an encoding.
    Naming(&'static Encoding),
    /// What follows is text, up to the tag that closes it.
    Raw,
}

/// The tag that is being read, and of a `<meta>` the attributes that may name an encoding.
#[derive(Default)]
struct OpenTag {
    is_meta: bool,
    is_raw: bool,
    attribute: Option<usize>,
    values: [Option<Vec<u8>>; NAMING.len()],
}

/// Attributes that an encoding is named by.
const NAMING: [&[u8]; 3] = [b"charset", b"http-equiv", b"content"];

impl OpenTag {
    fn read(&mut self, event: &CallbackEvent<'_>, raw: &[&[u8]]) -> Option<Ended> {
        match *event {
            CallbackEvent::OpenStartTag { name } => {
                *self = Self { is_meta: name == b"meta", is_raw: raw.contains(&name), ..Self::default() };
            }
            CallbackEvent::AttributeName { name } => {
                let nth = NAMING.iter().position(|known| *known == name).filter(|_| self.is_meta);
                // Of two with one name the first counts.
                self.attribute = nth.filter(|nth| self.values[*nth].is_none());
                if let Some(nth) = self.attribute {
                    self.values[nth] = Some(Vec::new());
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(nth) = self.attribute.take() {
                    self.values[nth] = Some(value.to_ascii_lowercase());
                }
            }
            CallbackEvent::CloseStartTag { .. } => {
                let Self { is_meta, is_raw, values, .. } = take(self);
                let named = named_by(&values).filter(|_| is_meta).map(Ended::Naming);
                return named.or(is_raw.then_some(Ended::Raw));
            }
            _ => {}
        }
        None
    }
}

/// The encoding that the attributes of a `<meta>` name.
fn named_by([charset, pragma, content]: &[Option<Vec<u8>>; NAMING.len()]) -> Option<&'static Encoding> {
    let encoding = if let Some(charset) = charset {
        known(charset)?
    } else {
        pragma.as_ref().filter(|pragma| *pragma == b"content-type")?;
        known(charset_in(content.as_ref()?)?)?
    };
    Some(if encoding.name() == "x-user-defined" { WINDOWS_1252 } else { readable_so_far(encoding) })
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
    fn errors_of_a_binary_page_are_not_kept() {
        assert_eq!(
            size_of::<Ended>(),
            size_of::<usize>(),
            "what may wait is small, and none of it is an error"
        );
        assert_eq!(late_meta(&vec![0; LATEST]).map(Encoding::name), None);
    }

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
    fn no_meta_is_looked_for_beyond_a_mebibyte() {
        let found =
            |before: usize| late_meta(format!("{}<meta charset=\"gbk\">", " ".repeat(before)).as_bytes());
        assert_eq!(found(LATEST - 100).map(Encoding::name), Some("GBK"));
        assert_eq!(found(LATEST), None);
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
