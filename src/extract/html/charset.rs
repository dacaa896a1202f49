//! Bytes to text: which encoding a page is in, and the page decoded. Content codings such as gzip are undone before.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

use super::content_type;
use super::prescan::{self, known, readable_so_far};
use crate::budget::Budget;

/// How far into a page its own declarations are looked for, in bytes (WHATWG HTML, "prescan a byte stream").
const DECLARED_WITHIN: usize = 1024;

/// Bytes between two looks at the budget.
const PIECE: usize = 64 << 10;

/// The page as text, and the encoding it was read in.
///
/// The first that names an encoding is believed: the byte order mark, the `Content-Type`, the XML declaration,
/// `<meta>`, a `<meta>` further on, where browsers start again when they meet it, and last what the bytes look like on a host of the top-level domain `tld`.
pub fn text<'a>(
    body: &'a [u8],
    content_type: Option<&str>,
    tld: Option<&str>,
) -> (Cow<'a, str>, &'static Encoding) {
    text_within(&Budget::without_end(), body, content_type, tld)
}

/// The same, within that budget; where it is spent the text means nothing.
pub fn text_within<'a>(
    budget: &Budget,
    body: &'a [u8],
    content_type: Option<&str>,
    tld: Option<&str>,
) -> (Cow<'a, str>, &'static Encoding) {
    // It is decoded in one go.
    budget.reads(body.len());
    if let Some((encoding, mark)) = Encoding::for_bom(body) {
        return (encoding.decode_without_bom_handling(&body[mark..]).0, encoding);
    }
    let start = &body[..body.len().min(DECLARED_WITHIN)];
    let encoding = content_type
        .and_then(named_in_header)
        .or_else(|| named_in_xml(start))
        .or_else(|| prescan::meta(start))
        .or_else(|| prescan::late_meta(body).filter(|_| budget.reads(4 * body.len().min(prescan::LATEST))))
        .unwrap_or_else(|| detected(body, tld, budget));
    (encoding.decode_without_bom_handling(body).0, encoding)
}

/// The encoding that a `Content-Type` names, if it is one of WHATWG's.
pub fn named_in_header(content_type: &str) -> Option<&'static Encoding> {
    known(content_type::charset(content_type)?.as_bytes())
}

fn named_in_xml(start: &[u8]) -> Option<&'static Encoding> {
    if start.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if start.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    let start = start.trim_ascii_start().strip_prefix(b"<?xml")?;
    let declaration = &start[..start.iter().position(|b| *b == b'>')?];
    let at = declaration.windows(8).position(|w| w.eq_ignore_ascii_case(b"encoding"))?;
    let value = declaration[at + 8..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, value) = value.split_first().filter(|(quote, _)| matches!(quote, b'"' | b'\''))?;
    let end = value.iter().position(|b| b == quote)?;
    known(&value[..end]).map(readable_so_far)
}

fn detected(body: &[u8], tld: Option<&str>, budget: &Budget) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    for piece in body.chunks(PIECE).take_while(|piece| budget.reads(4 * piece.len())) {
        detector.feed(piece, false);
    }
    detector.feed(&[], true);
    let plain =
        |tld: &&str| tld.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') || tld.starts_with("xn--");
    detector.guess(tld.filter(plain).map(str::as_bytes), Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use encoding_rs::{EUC_JP, ISO_2022_JP, SHIFT_JIS, UTF_8, WINDOWS_1252};

    use super::*;

    const JAPANESE: &str = "商品の価格は税込みです。送料は無料になります。カートに入れる";

    #[test]
    fn the_first_declaration_in_order_is_believed() {
        let xml = r#"<?xml version="1.0" encoding="EUC-JP"?><meta charset="shift_jis">"#;
        let meta = r#"<meta charset="shift_jis">"#;
        for (body, header, encoding) in [
            (format!("\u{feff}{xml}"), Some("text/html; charset=iso-8859-1"), "UTF-8"),
            (xml.to_owned(), Some("text/html; charset=iso-8859-1"), "windows-1252"),
            (xml.to_owned(), Some("text/html; Charset=\"UTF-8\""), "UTF-8"),
            (xml.to_owned(), Some("text/html; charset = utf-8"), "EUC-JP"),
            (xml.to_owned(), Some("text/html; charset=no-such"), "EUC-JP"),
            (xml.to_owned(), Some("text/html"), "EUC-JP"),
            (meta.to_owned(), None, "Shift_JIS"),
            ("plain".to_owned(), None, "UTF-8"),
            (r"<?xml encoding='utf-16'?>".to_owned(), None, "UTF-8"),
            (r#"<?xml encoding="iso-2022-kr"?>"#.to_owned(), None, "UTF-8"),
            (String::new(), None, "UTF-8"),
        ] {
            assert_eq!(text(body.as_bytes(), header, None).1.name(), encoding, "{body} {header:?}");
        }
    }

    #[test]
    fn a_page_that_declares_nothing_is_recognised() {
        for encoding in [UTF_8, SHIFT_JIS, EUC_JP, ISO_2022_JP] {
            let (body, ..) = encoding.encode(JAPANESE);
            let (got, used) = text(&body, Some("text/html"), Some("jp"));
            assert_eq!((got.as_ref(), used.name()), (JAPANESE, encoding.name()));
        }
        let (got, used) = text(b"caf\xe9 \x80 5", None, Some("fr"));
        assert_eq!((got.as_ref(), used), ("café € 5", WINDOWS_1252));
    }

    #[test]
    fn utf_16_is_known_by_its_mark_or_by_its_xml_declaration() {
        let wide = |mark: &str| -> Vec<u8> {
            format!("{mark}<?xml version='1.0'?><p>é").encode_utf16().flat_map(u16::to_le_bytes).collect()
        };
        for body in [wide("\u{feff}"), wide("")] {
            let (got, used) = text(&body, None, None);
            assert_eq!((got.as_ref(), used), ("<?xml version='1.0'?><p>é", UTF_16LE));
        }
    }

    #[test]
    fn no_top_level_domain_is_too_odd() {
        for tld in ["", "JP", "1", "xn--p1ai", "ü", "a.b"] {
            assert_eq!(text(b"caf\xe9", None, Some(tld)).0, "café", "{tld}");
        }
    }
}
