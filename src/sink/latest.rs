//! Reading items back: every line, or the last line of each key.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::SinkError;
use crate::item::Item;

/// Items by their key.
pub type Latest = BTreeMap<String, Item>;

/// The newest item of every key in a file of items: the last line of a key wins.
pub fn latest(path: &Path) -> Result<Latest, SinkError> {
    read(path)?.map(|item| item.map(|item| (key(&item).to_owned(), item))).collect()
}

/// Every item of a file, line by line. A last line without its end is still being written, and left out.
pub fn read(path: &Path) -> Result<impl Iterator<Item = Result<Item, SinkError>>, SinkError> {
    let path = path.to_owned();
    let file = File::open(&path).map_err(|e| SinkError::io("open", &path, e))?;
    let (mut file, mut text, mut line) = (BufReader::new(file), Vec::new(), 0);
    Ok(std::iter::from_fn(move || {
        text.clear();
        line += 1;
        match file.read_until(b'\n', &mut text) {
            Ok(_) if !text.ends_with(b"\n") => None,
            Ok(_) => Some(serde_json::from_slice(&text).map_err(|e| {
                let (path, why) = (path.clone(), e.to_string());
                SinkError::Line { path, line, why }
            })),
            Err(e) => Some(Err(SinkError::io("read", &path, e))),
        }
    }))
}

/// What makes two items one: its key, or its page's URL.
pub fn key(item: &Item) -> &str {
    item.key.as_deref().unwrap_or(&item.url)
}
