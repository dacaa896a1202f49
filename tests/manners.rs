//! Tables of `Retry-After` values and dates, from the projects that other clients test themselves with.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use paced::internals::clock::Timestamp;
use paced::internals::manners::retry_after;
use serde_json::Value;

#[test]
fn retry_after_is_read_as_urllib3_reads_it() {
    let Some(text) = table("http/urllib3_retry_after.jsonl") else { return };
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a row is JSON"));
    let rows: Vec<_> = rows.filter(|row| row["value"].is_string()).collect();
    assert!(rows.len() > 5, "only {} rows", rows.len());
    for row in rows {
        let value = row["value"].as_str().expect("a text");
        let read = retry_after(value, Timestamp::from_millis(0));
        assert_eq!(read, row["expected"].as_u64().map(Duration::from_secs), "{row}");
    }
}

#[test]
fn a_date_that_is_read_is_read_rightly() {
    let Some(text) = table("http/http-state-dates/examples.json") else { return };
    let rows: Vec<Value> = serde_json::from_str(&text).expect("the table is JSON");
    let mut read = 0;
    for row in rows {
        let value = row["test"].as_str().expect("a text");
        let Some(wait) = retry_after(value, Timestamp::from_millis(0)) else { continue };
        let date = row["expected"].as_str().expect("a date that is read is one");
        let date = httpdate::parse_http_date(date).expect("an HTTP date");
        assert_eq!(SystemTime::UNIX_EPOCH + wait, date, "{row}");
        read += 1;
    }
    assert!(read > 0, "no row was read");
}

/// A table; none, said loudly, where the tables aren't on this machine. In CI they must be.
fn table(name: &str) -> Option<String> {
    let corpora = std::env::var_os("PACED_CORPORA").map(PathBuf::from);
    let corpora = corpora.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora"));
    let file = corpora.join(name);
    let Ok(text) = std::fs::read_to_string(&file) else {
        assert!(std::env::var_os("CI").is_none(), "{} is missing; set PACED_CORPORA", file.display());
        eprintln!("SKIPPED: {} is missing; set PACED_CORPORA to the folder of tables", file.display());
        return None;
    };
    Some(text)
}
