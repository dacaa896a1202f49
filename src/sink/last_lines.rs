//! `LastLines`: the items of a site as they stand in its files, found by page, in flat memory: an index of where each line
//! stands is kept in a temporary file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::latest::{item, lines};
use super::{SinkError, items_files, key};
use crate::item::Item;

/// Stands for a file among those that were read: what is written now comes after all of them.
const WRITTEN_NOW: i64 = -1;

/// The last line of every page and of every key.
///
/// Within a file the last line wins, among files that of the page fetched last; where two are of one fetch, that of the
/// file named last.
#[derive(Debug)]
pub struct LastLines {
    files: Vec<PathBuf>,
    index: Connection,
}

/// The files that writers of a fleet have for a site, in order: `<site>-<writer>.jsonl`. Those of a site whose name begins in
/// the same way look alike.
pub fn files_of_writers(folder: &Path, site: &str) -> Result<Vec<PathBuf>, SinkError> {
    let mut files = if folder.is_dir() { items_files(folder)? } else { Vec::new() };
    files.retain(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        name.strip_prefix(site).is_some_and(|writer| writer.starts_with('-'))
    });
    files.sort();
    Ok(files)
}

impl LastLines {
    /// Reads the files of a site in a folder of items: `<site>-<writer>.jsonl` of each writer, then `<site>.jsonl`.
    pub fn of_site(folder: &Path, site: &str) -> Result<Self, SinkError> {
        let mut files = files_of_writers(folder, site)?;
        files.push(folder.join(format!("{site}.jsonl")));
        Self::of_files(files, site)
    }

    /// Reads files of items; those that are missing have none, and items of other sites are passed over.
    pub fn of_files(files: Vec<PathBuf>, site: &str) -> Result<Self, SinkError> {
        let index = index().map_err(|e| unusable(&e))?;
        let mut lines = Self { files, index };
        for number in 0..lines.files.len() {
            lines.read(number, site)?;
        }
        Ok(lines)
    }

    fn read(&mut self, number: usize, site: &str) -> Result<(), SinkError> {
        let path = &self.files[number];
        if !path.try_exists().map_err(|e| SinkError::io("open", path, e))? {
            return Ok(());
        }
        self.execute("BEGIN", [])?;
        for line in lines(path)? {
            let (at, item) = line?;
            if item.site == site {
                self.note(&item, number, at)?;
            }
        }
        self.execute("COMMIT", [])
    }

    fn note(&self, item: &Item, file: usize, at: u64) -> Result<(), SinkError> {
        let (file, at) = (i64::try_from(file).unwrap_or(i64::MAX), at.cast_signed());
        let page = "INSERT INTO page VALUES (?1, ?2, ?3, ?4) ON CONFLICT (url) DO UPDATE
             SET file = ?2, at = ?3, fetched = ?4 WHERE ?2 = file OR ?4 >= fetched";
        self.execute(page, params![item.url, file, at, item.fetched_at.as_millis()])?;
        self.note_key(item, file)
    }

    fn note_key(&self, item: &Item, file: i64) -> Result<(), SinkError> {
        let key_of = "INSERT INTO key VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key) DO UPDATE
             SET url = ?2, file = ?3, fetched = ?4 WHERE ?3 IN (file, -1) OR ?4 >= fetched";
        self.execute(key_of, params![key(item), item.url, file, item.fetched_at.as_millis()])
    }

    /// The item that a page gave last.
    pub fn of_page(&self, url: &str) -> Result<Option<Item>, SinkError> {
        let place = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let found = self.row("SELECT file, at FROM page WHERE url = ?1", [url], place)?;
        let Some((file, at)) = found else { return Ok(None) };
        let path = &self.files[usize::try_from(file).unwrap_or_default()];
        let line = line_at(path, at.cast_unsigned()).map_err(|e| SinkError::io("read", path, e))?;
        item(&line, path, 0).map(Some)
    }

    /// Whether the line that counts for the item's key is of another page that was fetched after it.
    pub fn is_overtaken(&self, item: &Item) -> Result<bool, SinkError> {
        let select = "SELECT 1 FROM key WHERE key = ?1 AND url <> ?2 AND fetched > ?3";
        let values = params![key(item), item.url, item.fetched_at.as_millis()];
        Ok(self.row(select, values, |_| Ok(()))?.is_some())
    }

    /// Takes note that the item was written now.
    pub fn written(&self, item: &Item) -> Result<(), SinkError> {
        self.note_key(item, WRITTEN_NOW)
    }

    fn execute(&self, statement: &str, values: impl Params) -> Result<(), SinkError> {
        let executed = self.index.prepare_cached(statement).and_then(|mut ready| ready.execute(values));
        executed.map(drop).map_err(|e| unusable(&e))
    }

    fn row<T>(
        &self,
        select: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, SinkError> {
        let found = self.index.prepare_cached(select);
        found.and_then(|mut select| select.query_row(values, read).optional()).map_err(|e| unusable(&e))
    }
}

/// An empty index in a temporary file that goes with the connection.
fn index() -> rusqlite::Result<Connection> {
    let index = Connection::open("")?;
    index.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8192;
         CREATE TABLE page (url TEXT PRIMARY KEY, file INTEGER, at INTEGER, fetched INTEGER) WITHOUT ROWID;
         CREATE TABLE key (key TEXT PRIMARY KEY, url TEXT, file INTEGER, fetched INTEGER) WITHOUT ROWID;",
    )?;
    Ok(index)
}

fn unusable(error: &rusqlite::Error) -> SinkError {
    SinkError::io("use a temporary file in", &std::env::temp_dir(), io::Error::other(error.to_string()))
}

fn line_at(path: &Path, at: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    let mut line = Vec::new();
    BufReader::new(file).read_until(b'\n', &mut line)?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock::Timestamp;

    fn line(site: &str, url: &str, key: Option<&str>, second: i64, title: &str) -> String {
        let at = Timestamp::from_millis(second * 1000);
        let mut item = json!({"site": site, "page": "p", "url": url, "fetched_at": at, "fields": {"title": title}, "from": {}});
        if let Some(key) = key {
            item["key"] = json!(key);
        }
        format!("{item}\n")
    }

    fn title(lines: &LastLines, url: &str) -> Option<String> {
        let item = lines.of_page(url).expect("readable");
        item.map(|item| item.fields["title"].as_str().unwrap_or_default().to_owned())
    }

    #[test]
    fn the_last_line_counts_and_among_files_the_last_fetch() {
        let folder = tempfile::tempdir().expect("a folder");
        let write =
            |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("a file");
        write(
            "shop.jsonl",
            line("shop", "a", None, 9, "old")
                + &line("shop", "a", None, 5, "new")
                + &line("shop", "b", None, 5, "b"),
        );
        write(
            "shop-w1.jsonl",
            line("shop", "b", None, 6, "later") + &line("shop", "c", None, 1, "c") + "{\"torn",
        );
        write("shop-2.jsonl", line("shop-2", "a", None, 99, "of another site"));
        let lines = LastLines::of_site(folder.path(), "shop").expect("readable");
        let titles = ["a", "b", "c", "d"].map(|url| title(&lines, url));
        assert_eq!(titles, [Some("new".into()), Some("later".into()), Some("c".into()), None]);
        assert_eq!(
            title(&LastLines::of_site(&folder.path().join("none"), "shop").expect("empty"), "a"),
            None
        );
    }

    #[test]
    fn an_item_is_overtaken_by_a_later_page_of_its_key_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("shop.jsonl");
        std::fs::write(&file, line("shop", "b", Some("k"), 7, "b")).expect("a file");
        let lines = LastLines::of_files(vec![file], "shop").expect("readable");
        let item = |url, second| -> Item {
            serde_json::from_str(&line("shop", url, Some("k"), second, "x")).expect("an item")
        };
        let overtaken = |item: &Item| lines.is_overtaken(item).expect("readable");
        assert!(overtaken(&item("a", 6)) && !overtaken(&item("a", 7)) && !overtaken(&item("b", 1)));
        lines.written(&item("c", 9)).expect("written");
        assert!(overtaken(&item("b", 8)));
    }
}
