//! A text as a site file.

use paced::internals::site::{Site, parse, warnings};

/// A file is a site whose seeds its own rules take, or errors that each name a place in the file and what to do.
pub fn hold(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse(text, "fuzz.toml") {
        Ok(site) => sound(&site, text),
        Err(wrong) => {
            assert!(!wrong.errors.is_empty());
            for error in &wrong.errors {
                let lines = text.split('\n').count();
                assert!((1..=lines).contains(&error.line) && error.column >= 1, "{error}");
                assert!(!error.what.is_empty() && !error.what_to_do.is_empty(), "{error}");
            }
        }
    }
}

fn sound(site: &Site, text: &str) {
    assert_eq!(site.text, text, "a fleet reads the same text");
    let again = parse(&site.text, "fuzz.toml").expect("what was a site is one again");
    assert_eq!((&again.name, &again.seeds, &again.pace), (&site.name, &site.seeds, &site.pace));
    assert!(!site.name.contains([':', '/', '\0']) && !site.name.starts_with('.'), "{:?}", site.name);
    assert!(site.pace.parallel > 0 && site.fetch.attempts > 0);
    for seed in &site.seeds {
        assert_eq!(site.canonical(seed.url().clone()).as_ref(), Ok(seed), "a seed is stored as it is put");
        assert!(site.rule_for(seed).is_some(), "{seed} is taken by no rule");
    }
    for warning in warnings(site, "fuzz.toml") {
        assert!(warning.line >= 1 && warning.column >= 1, "{warning}");
    }
}
