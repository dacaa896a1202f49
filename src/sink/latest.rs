//! Reading items back: every line, or the last line of each key.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::SinkError;
use crate::item::Item;

/// The newest item of every key in a file of items: the last line of a key wins.
pub fn latest(path: &Path) -> Result<BTreeMap<String, Item>, SinkError> {
    read(path)?.map(|item| item.map(|item| (key(&item).to_owned(), item))).collect()
}

/// Every item of a file, line by line. A last line without its end is still being written, and left out.
pub fn read(path: &Path) -> Result<impl Iterator<Item = Result<Item, SinkError>>, SinkError> {
    Ok(lines(path)?.map(|line| line.map(|(_, item)| item)))
}

/// The same, each item with the place in the file at which its line begins, in bytes.
pub(super) fn lines(path: &Path) -> Result<impl Iterator<Item = Result<(u64, Item), SinkError>>, SinkError> {
    let path = path.to_owned();
    let file = File::open(&path).map_err(|e| SinkError::io("open", &path, e))?;
    let (mut file, mut text, mut line, mut end) = (BufReader::new(file), Vec::new(), 0, 0);
    Ok(std::iter::from_fn(move || {
        text.clear();
        let read = file.read_until(b'\n', &mut text);
        let at = end;
        (line, end) = (line + 1, end + text.len() as u64);
        match read {
            Ok(_) if !text.ends_with(b"\n") => None,
            Ok(_) => Some(item(&text, &path, line).map(|item| (at, item))),
            Err(e) => Some(Err(SinkError::io("read", &path, e))),
        }
    }))
}

/// The item that a line is.
pub(super) fn item(text: &[u8], path: &Path, line: u64) -> Result<Item, SinkError> {
    let why = |e: serde_json::Error| SinkError::Line { path: path.to_owned(), line, why: e.to_string() };
    serde_json::from_slice(text).map_err(why)
}

/// What makes two items one: its key, or its page's URL.
pub fn key(item: &Item) -> &str {
    item.key.as_deref().unwrap_or(&item.url)
}
