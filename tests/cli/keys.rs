//! `paced key`: keys are made once, are their owner's alone, and show what is to be published.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::expected::*;
use crate::support::*;

#[test]
fn a_key_is_made_once_is_its_owners_alone_and_its_public_half_is_shown() {
    let home = TempData::new();
    let data = home.file("new");
    let key = |args: &[&str]| Paced::new(["key"]).args(args).data_at(&data).run();
    let made = key(&["new", "crawler"]).expect_code(0).stdout;
    let file = data.join("keys/crawler.pem");
    let pem = fs::read_to_string(&file).expect("a file");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&data.join("keys")), mode(&data)), (0o600, 0o700, 0o700));
    let shown = key(&["show", "crawler"]).expect_code(0);
    let directory: serde_json::Value =
        serde_json::from_str(&shown.stdout).expect("JSON alone, to be published");
    let entry = &directory["keys"][0];
    let thumbprint = entry["kid"].as_str().expect("a text");
    assert!(made.contains(thumbprint) && made.contains("signature = { key = \"crawler\""), "{made}");
    assert!(shown.stderr.contains("/.well-known/http-message-signatures-directory"), "{}", shown.stderr);
    assert!(entry.get("d").is_none(), "{entry}");
    let again = key(&["new", "crawler"]).expect_code(1).stderr;
    assert!(again.contains("it is there"), "{again}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), pem);
    key(&["new", "next", "--json"]).expect_code(0);
    let both = key(&["show", "crawler", "next", "--json"]).expect_code(0).stdout;
    assert_eq!(json_lines_of(&both)[0]["keys"].as_array().map(Vec::len), Some(2), "{both}");
}

#[test]
fn what_is_no_keys_name_and_a_key_that_is_not_there_say_what_to_do() {
    let data = TempData::new();
    let key = |args: &[&str]| Paced::new(["key"]).args(args).data(&data).run();
    for name in ["../crawler", "", "a/b", "a b"] {
        let run = key(&["new", name]).expect_code(2);
        assert!(run.stderr.contains("can't be a key's name"), "{}", run.stderr);
    }
    let run = key(&["show", "none"]).expect_code(1);
    assert!(run.stderr.contains("none.pem") && run.stderr.contains("paced key new none"), "{}", run.stderr);
    assert!(!data.file("keys").exists());
}
