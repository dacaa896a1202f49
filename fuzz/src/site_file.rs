//! A text as a site file.

use paced::internals::site::{Site, parse, warnings};

use super::cost::Linear;

/// What is said of a file. A key may be wrong in a letter, and what is said of it names those that it may stand for.
const SAID: Linear = Linear { least: 16 << 10, each: 512 };

/// A file is a site whose seeds its own rules take, or errors that each name a place in the file and what to do; and no more is
/// said of it than its length allows.
pub fn hold(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse(text, "fuzz.toml") {
        Ok(site) => sound(&site, text),
        Err(wrong) => {
            assert!(!wrong.errors.is_empty());
            SAID.holds(wrong.to_string().len(), bytes.len(), "bytes of errors");
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
    let warnings = warnings(site, "fuzz.toml");
    SAID.holds(
        warnings.iter().map(|warning| warning.to_string().len()).sum(),
        text.len(),
        "bytes of warnings",
    );
    for warning in warnings {
        assert!(warning.line >= 1 && warning.column >= 1, "{warning}");
    }
}
