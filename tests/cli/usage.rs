//! `--help` of every verb, and what a mistyped command is told.

use crate::expected::assert_text;
use crate::support::*;

#[test]
fn every_verb_tells_what_it_does_with_an_example() {
    for verb in [
        "",
        "demo",
        "check",
        "crawl",
        "seed",
        "work",
        "put",
        "try",
        "reparse",
        "status",
        "dead",
        "dead list",
        "dead show",
        "dead revive",
        "dead drop",
        "explain",
        "tune",
        "pause",
        "resume",
        "queue",
        "queue list",
        "queue drop",
        "queue raise",
        "queue lower",
        "queue move",
        "drain",
        "campaign",
        "campaign start",
        "campaign list",
        "campaign tune",
        "campaign pause",
        "campaign resume",
        "campaign stop",
        "log",
        "notify",
        "forget",
        "plan",
        "key",
        "key new",
        "key show",
        "audit",
        "backup",
        "completions",
        "man",
    ] {
        let words = verb.split_whitespace().chain(["--help"]);
        let run = Paced::new(words).run().expect_code(0);
        assert!(run.stdout.contains("Example") && run.stderr.is_empty(), "{run:?}");
        let name = format!("help {verb}").trim_end().replace(' ', "_");
        assert_text(&format!("{name}.txt"), &run.stdout);
    }
}

#[test]
fn without_a_verb_the_help_is_shown_as_wrong_usage() {
    let run = Paced::new([""; 0]).run().expect_code(2);
    assert!(run.stderr.contains("Usage: paced") && run.stdout.is_empty(), "{run:?}");
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_to_write() {
    for (words, told) in [
        ("fly", "unrecognized subcommand 'fly'"),
        ("crawl", "the following required arguments were not provided"),
        ("crawl x.toml --frehs", "a similar argument exists: '--fresh'"),
        ("crawl x.toml --workers 0", "write auto, a number from 1 to 10000, or MIN..MAX"),
        ("crawl x.toml --max-rate fast", "`fast` is no rate; write it as 50/s"),
        ("crawl x.toml --max-rate 0", "`0` is no rate; write it as 50/s"),
        ("crawl x.toml --deadline soon", "invalid value 'soon' for '--deadline <TIME>'"),
        ("crawl x.toml --connect-to a:b", "write HOST:PORT:ADDR:PORT"),
        ("crawl x.toml -q -v", "cannot be used with"),
        ("seed", "<SITE>..."),
        ("seed x.toml --items -", "unexpected argument '--items'"),
        ("work x.toml", "unexpected argument 'x.toml'"),
        ("work --role boss", "[possible values: download, parse, both]"),
        ("work --name ..", "`..` is no name; write letters and digits"),
        ("work --workers 9..3", "write auto, a number from 1 to 10000, or MIN..MAX"),
        ("work --fail-on-dead", "--until-empty"),
        ("work --sites nowhere", "--sites nowhere: No such file or directory (os error 2); name a folder"),
        ("put shop", "<URL>..."),
        ("put shop / --priority boss", "write operator, user or system"),
        ("put shop / --at tomorrow", "`tomorrow` is no time; write it as 2026-11-20T09:00:00Z"),
        ("put shop / --at 2026-11-20T09:00:00Z --again", "cannot be used with"),
        ("queue shop fly", "unexpected argument 'fly' found"),
        ("queue shop move --yes", "--lane <LANE>"),
        ("queue shop list --most 0", "0 is not in 1.."),
        ("queue shop drop --match old", "start it with `/`, or with `re:` for a regular expression"),
        ("queue shop raise boss", "write operator, user or system"),
        ("status --log-format xml", "[possible values: text, json]"),
        ("status --color blue", "[possible values: auto, always, never]"),
        ("check", "<SITE>..."),
    ] {
        let run = Paced::new(words.split(' ')).run().expect_code(2);
        assert!(run.stderr.contains(told), "{words}: no `{told}` in\n{}", run.stderr);
        assert_eq!(run.stdout, "", "{words}");
    }
}
