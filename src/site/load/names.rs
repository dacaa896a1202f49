//! Names that go into file names and queue keys.

use std::path::Path;

use crate::site::read::{Entry, Section};
use crate::task::{LANE, NOW};

const WHAT_TO_DO: &str =
    "use up to 100 of a-z, A-Z, 0-9, `-`, `_` and `.`, beginning with a letter or a digit";

/// The site's name, by default the stem of its file's.
pub(super) fn site_name(top: &Section<'_>, file: &str) -> String {
    if let Some(entry) = top.get("name") {
        return plain(&entry).unwrap_or_default();
    }
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if is_plain(stem) {
        return stem.to_owned();
    }
    top.missing::<()>(
        format!("the site has no `name`, and the file's, `{stem}`, can't be one"),
        format!("write name = \"…\" at the top of the file; {WHAT_TO_DO}"),
    );
    String::new()
}

/// A name of plain characters.
pub(super) fn plain(entry: &Entry<'_>) -> Option<String> {
    let name = entry.text()?;
    if is_plain(name) {
        return Some(name.to_owned());
    }
    entry.refuse(format!("`{name}` can't be a {}", entry.key), WHAT_TO_DO)
}

/// The same, of a `kind`, as the key of a table whose keys are names.
pub(crate) fn plain_key(entry: &Entry<'_>, kind: &str) -> Option<String> {
    if is_plain(entry.key) {
        return Some(entry.key.to_owned());
    }
    entry.refuse(format!("`{}` can't be a {kind}", entry.key), WHAT_TO_DO)
}

/// The lane that a site names; none where it is the one that is always there.
pub(super) fn lane(entry: &Entry<'_>) -> Option<String> {
    match plain(entry)?.as_str() {
        LANE => None,
        NOW => entry.refuse(
            format!("`lane` can't be `{NOW}`, which goes before all others"),
            "name a lane of [lanes] in paced.toml; `paced put --lane now` is for single pages",
        ),
        lane => Some(lane.to_owned()),
    }
}

/// Whether a name can be part of a file's name and of a queue's key.
pub(crate) fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= 100 && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)
}
