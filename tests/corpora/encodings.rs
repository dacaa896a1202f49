//! Real files in many encodings, as they declare themselves, declared otherwise, and not declared at all.

use std::borrow::Cow;
use std::fs;

use data_encoding::BASE64;
use encoding_rs::{EUC_JP, Encoding, ISO_2022_JP, SHIFT_JIS, UTF_8};
use paced::internals::extract::html::charset;
use serde_json::Value;

use super::table::{Share, corpus, rows};

/// One file, and the encoding that people know it to be in.
struct File {
    name: String,
    body: Vec<u8>,
    truth: &'static Encoding,
    declared: bool,
}

impl File {
    fn text(&self) -> Cow<'_, str> {
        self.truth.decode_with_bom_removal(&self.body).0
    }

    /// Its bytes without what they say of their encoding.
    fn bare(&self) -> Vec<u8> {
        let Some(at) = position(&self.body[..self.body.len().min(200)], b"encoding=") else {
            return self.body.clone();
        };
        let end = at + position(&self.body[at..], b"?>").unwrap_or(0);
        [&self.body[..at], &self.body[end..]].concat()
    }

    /// Whether it is read as it is meant: pages that differ in nothing but the name of their encoding are read the same.
    fn reads(&self, body: &[u8], content_type: Option<&str>, tld: Option<&str>, share: &mut Share) {
        let (text, encoding) = charset::text(body, content_type, tld);
        let agrees = text == self.truth.decode_with_bom_removal(body).0;
        share.count(agrees, format!("{}: {}, not {}", self.name, encoding.name(), self.truth.name()));
    }
}

/// The files in WHATWG's encodings.
fn files() -> Option<Vec<File>> {
    let table = corpus("encodings/chardet_expected.public.jsonl")?;
    let mut files = Vec::new();
    for row in rows(&table) {
        let name = row["file"].as_str().expect("a file's name").to_owned();
        let truth = row["actual_encoding"].as_str().unwrap_or_default();
        // Python knows the Mac's Cyrillic by another name.
        let label = if truth == "MacCyrillic" { "x-mac-cyrillic" } else { truth };
        let Some(truth) = Encoding::for_label_no_replacement(label.as_bytes()) else { continue };
        let body = fs::read(corpus(&format!("encodings/{name}"))?).expect("a file");
        let truth = Encoding::for_bom(&body).map_or(truth, |(marked, _)| marked);
        let label = row["declared_in_document"].as_str().unwrap_or_default();
        let named = Encoding::for_label_no_replacement(label.as_bytes()).is_some();
        let declared = named && row["mislabelled"] != Value::Bool(true);
        files.push(File { name, body, truth, declared });
    }
    Some(files)
}

#[test]
fn pages_that_declare_their_encoding_are_read_in_it() {
    let Some(files) = files() else { return };
    let mut declared = Share::of("encodings named in the XML declaration");
    for file in files.iter().filter(|file| file.declared) {
        file.reads(&file.body, None, None, &mut declared);
    }
    declared.reaches(1000, 159);
}

#[test]
fn what_a_header_or_a_meta_names_is_believed() {
    let Some(files) = files() else { return };
    let mut header = Share::of("encodings named in the Content-Type");
    let mut meta = Share::of("encodings named in a meta");
    for file in files.iter().filter(|file| Encoding::for_bom(&file.body).is_none()) {
        let (bare, name) = (file.bare(), file.truth.name());
        file.reads(&bare, Some(&format!("text/html; charset={name}")), None, &mut header);
        if file.truth.is_ascii_compatible() {
            let page = [format!("<meta charset='{name}'>").as_bytes(), &bare].concat();
            file.reads(&page, Some("text/html"), None, &mut meta);
        }
    }
    header.reaches(1000, 221);
    meta.reaches(1000, 216);
}

#[test]
fn a_byte_order_mark_is_believed_before_everything_else() {
    let Some(files) = files() else { return };
    let mut marks = Share::of("byte order marks");
    for file in &files {
        let (text, lie) = (file.text(), Some("text/html; charset=koi8-r"));
        let utf_8 = [b"\xef\xbb\xbf", text.as_bytes()].concat();
        let wide = |order: fn(u16) -> [u8; 2]| -> Vec<u8> {
            std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(order).collect()
        };
        for body in [utf_8, wide(u16::to_le_bytes), wide(u16::to_be_bytes)] {
            let (read, encoding) = charset::text(&body, lie, Some("ru"));
            marks.count(read == text, format!("{}: {}", file.name, encoding.name()));
        }
    }
    marks.reaches(1000, 666);
}

#[test]
fn japanese_pages_that_say_nothing_are_recognised() {
    let Some(mut files) = files() else { return };
    files.retain(|file| [SHIFT_JIS, EUC_JP, ISO_2022_JP].contains(&file.truth));
    for tld in [None, Some("jp"), Some("com")] {
        let mut bare = Share::of("Japanese files without a declaration");
        let mut spelled = Share::of("Japanese texts in each of Japan's encodings");
        for file in &files {
            let body = file.bare();
            file.reads(&body, Some("text/html"), tld, &mut bare);
            let text = file.truth.decode(&body).0;
            for encoding in [UTF_8, SHIFT_JIS, EUC_JP, ISO_2022_JP] {
                let (body, _, unfit) = encoding.encode(&text);
                if !unfit {
                    let (read, found) = charset::text(&body, None, tld);
                    let line = format!("{} in {}: {}", file.name, encoding.name(), found.name());
                    spelled.count(read == encoding.decode(&body).0, line);
                }
            }
        }
        bare.reaches(1000, 31);
        spelled.reaches(950, 100);
    }
}

#[test]
fn of_all_files_declared_or_not_few_are_misread() {
    let Some(files) = files() else { return };
    let mut all = Share::of("all files");
    for file in &files {
        file.reads(&file.body, None, None, &mut all);
    }
    all.reaches(930, 222);
}

#[test]
fn encodings_are_prescanned_as_browsers_do() {
    let mut share = Share::of("html5lib encoding tests");
    for name in ["tests1.dat", "tests2.dat", "test-yahoo-jp.dat"] {
        let Some(path) = corpus(&format!("html/html5lib-tests/encoding/{name}")) else { return };
        let table = fs::read(path).expect("a table");
        for case in split(&table, b"#data\n").into_iter().skip(1) {
            let parts = split(case, b"\n#encoding\n");
            let [data, label] = parts.as_slice() else { continue };
            let label = label.split(|b| *b == b'\n').next().unwrap_or_default();
            let truth = Encoding::for_label(label).expect("an encoding");
            let (text, encoding) = charset::text(data, None, None);
            let agrees = encoding == truth || text == truth.decode(data).0;
            let start: String = text.chars().take(200).collect();
            share.count(agrees, format!("{start:?}: {}, not {}", encoding.name(), truth.name()));
        }
    }
    share.reaches(1000, 82);
}

const QUOTED: [&str; 2] = [r#"="utf-8"#, r#""utf-8"extra"#];

#[test]
fn a_content_type_names_what_whatwg_reads_in_it() {
    let Some(table) = corpus("encodings/w3lib_encoding.public.jsonl") else { return };
    let mut share = Share::of("w3lib's content types and declarations");
    for row in rows(&table) {
        let truth = row["expected"].as_str().map(|name| match name {
            "cp1252" => "windows-1252",
            "iso8859-4" => "ISO-8859-4",
            "utf-8" => "UTF-8",
            other => other,
        });
        let argument = &row["args"][0];
        let read = match row["func"].as_str() {
            Some("http_content_type_encoding") => {
                charset::named_in_header(argument.as_str().expect("a text"))
            }
            Some("html_body_declared_encoding") if truth.is_some() => {
                let bytes = argument["bytes_b64"].as_str().map(|text| BASE64.decode(text.as_bytes()));
                let text = || argument.as_str().unwrap_or_default().as_bytes().to_vec();
                Some(charset::text(&bytes.map_or_else(text, |bytes| bytes.expect("base 64")), None, None).1)
            }
            _ => continue,
        };
        // WHATWG reads a quoted label up to its quote, and without one up to the end; w3lib reads neither.
        let truth = if QUOTED.iter().any(|end| argument.as_str().is_some_and(|text| text.ends_with(end))) {
            Some("UTF-8")
        } else if argument.as_str().is_some_and(|text| text.contains("charset=\"\"")) {
            // An empty label is the first one all the same.
            None
        } else {
            truth
        };
        share.count(read.map(Encoding::name) == truth, format!("{argument}: {read:?}, not {truth:?}"));
    }
    share.reaches(1000, 12);
}

fn position(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

fn split<'a>(bytes: &'a [u8], mark: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let Some(at) = position(rest, mark) {
        parts.push(&rest[..at]);
        rest = &rest[at + mark.len()..];
    }
    parts.push(rest);
    parts
}
