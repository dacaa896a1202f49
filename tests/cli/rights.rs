//! Who may read what a crawl leaves behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::expected::*;
use crate::support::*;

/// The program under a umask that lets all others read.
fn under_umask(umask: &str, data: &Path, words: &str) -> std::process::Command {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("umask {umask}; exec \"$0\" --data \"$1\" {words}")]).arg(paced()).arg(data);
    shell
}

/// Every file and folder below a folder, with its rights.
fn below(folder: &Path) -> Vec<(PathBuf, u32)> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| {
            let own = (path.clone(), mode(&path));
            let inside = if path.is_dir() { below(&path) } else { Vec::new() };
            std::iter::once(own).chain(inside)
        })
        .collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[track_caller]
fn assert_rights(data: &Path, expected: &[&str]) {
    let found = below(data);
    for (path, mode) in &found {
        let name = path.strip_prefix(data).expect("below it").display().to_string();
        let due = match (name.starts_with("items"), path.is_dir()) {
            (true, true) => 0o755,
            (true, false) => 0o644,
            (false, true) => 0o700,
            (false, false) => 0o600,
        };
        assert_eq!(format!("{mode:o}"), format!("{due:o}"), "{name}");
    }
    for part in expected {
        assert!(
            found.iter().any(|(path, _)| path.display().to_string().contains(part)),
            "no {part}: {found:?}"
        );
    }
}

#[test]
fn frontier_and_pages_are_their_owners_alone_and_items_keep_the_umask() {
    let (home, site) = (TempData::new(), TestSite::builder().page("/p/1", "<h1>1</h1>"));
    let slow = std::time::Duration::from_secs(30);
    let silent = Reply::html("late").after(slow);
    let site = site.page("/", "<a href=\"/p/1\">1</a><a href=\"/p/2\">2</a>").reply("/p/2", silent).serve();
    let data = home.file("above/data");
    let shop = site_file(&home, &site).display().to_string();
    let mut crawl = under_umask("022", &data, &format!("crawl {shop}")).spawn().expect("a crawl");
    // While it works its owner file, its log and the marker of its segment are there too.
    eventually("an item", || fs::metadata(data.join("items/shop.jsonl")).ok().filter(|file| file.len() > 0));
    assert_rights(
        &data,
        &["frontier.db-wal", "frontier.db-shm", "frontier.db.owners/", ".warc.gz.open", "items/"],
    );
    assert_eq!((mode(&data), mode(&home.file("above"))), (0o700, 0o755));
    crawl.kill().expect("it runs");
    crawl.wait().expect("a child");

    site.put("/p/2", Reply::html("<h1>2</h1>"));
    let ended = under_umask("022", &data, &format!("crawl {shop}")).status().expect("a crawl");
    assert_eq!(ended.code(), Some(0));
    let reparsed = under_umask("022", &data, &format!("reparse {shop}")).status().expect("a reparse");
    assert_eq!(reparsed.code(), Some(0));
    let mut erase = under_umask("022", &data, "forget shop --stored-pages");
    let erased = erase.stdin(std::process::Stdio::null()).status().expect("it ends");
    assert_eq!(erased.code(), Some(0));
    assert_rights(&data, &["frontier.db", "items/shop.jsonl"]);
}

#[test]
fn a_folder_and_files_that_are_there_keep_the_rights_they_were_given() {
    let (home, site) = (TempData::new(), small_site());
    let (data, shop) = (home.file("data"), site_file(&home, &site).display().to_string());
    for folder in ["", "pages", "items"] {
        fs::create_dir_all(data.join(folder)).expect("a folder");
        fs::set_permissions(data.join(folder), fs::Permissions::from_mode(0o750)).expect("its own folder");
    }
    let crawl =
        || under_umask("027", &data, &format!("crawl {shop} --fresh")).status().expect("a crawl").code();
    assert_eq!(crawl(), Some(0));
    fs::set_permissions(data.join("frontier.db"), fs::Permissions::from_mode(0o640)).expect("its own file");
    assert_eq!(crawl(), Some(0));
    assert_eq!(mode(&data.join("frontier.db")), 0o640);
    assert_eq!([mode(&data), mode(&data.join("pages")), mode(&data.join("items"))], [0o750; 3]);
    assert_eq!(mode(&data.join("items/shop.jsonl")), 0o640);
}
