//! Each verb once, on a frontier on Redis.

use std::collections::BTreeSet;

use crate::expected::*;
use crate::support::*;

/// It serves shops and a frontier of its own: `tests/cli/demo.rs`. It only prints what others say of themselves. It makes a key,
/// or tells a test event: `tests/cli/notify.rs`.
const ELSEWHERE: [&str; 4] = ["demo", "help", "key", "notify"];

/// A verb with its arguments, its exit code, and what it prints.
type Step<'a> = (&'a [&'a str], i32, &'a str);

#[test]
fn each_verb_does_its_work_on_a_frontier_on_redis() {
    let Some(redis) = redis_or_skip() else { return };
    let (data, site) = (TempData::new(), small_site());
    site.remove("/p/3");
    let file = site_file(&data, &site).display().to_string();
    let (put, dead, stored) = (site.url("/p/9"), site.url("/p/3"), site.url("/p/1"));
    let steps: &[Step] = &[
        (&["check", &file], 0, "shop"),
        (&["seed", &file], 0, "shop"),
        (&["plan", "shop"], 0, "shop"),
        (&["work", "--name", "w", "--until-empty"], 0, "done dead=1"),
        (&["put", "shop", &put, "--batch", "spring"], 0, "created"),
        (&["queue", "shop", "list"], 0, &put),
        (&["queue", "shop", "lower", "--yes"], 0, "shop: 1 of 1 waiting pages lowered"),
        (&["crawl", &file], 0, "crawled site=shop"),
        (&["status"], 0, "shop"),
        (&["status", "--batch", "spring", "--wait"], 0, "1 done"),
        (&["explain", "shop"], 0, "shop"),
        (&["explain", &dead], 0, "404"),
        (&["tune", "shop", "interval=20s"], 0, "interval 20 s"),
        (&["pause", "shop", "--until", "2h"], 0, "paused until"),
        (&["pause", "--all", "--parse"], 0, "all sites: parses are paused"),
        (&["resume", "shop"], 0, "its own pause is over; a pause of all sites holds"),
        (&["resume", "--all"], 0, "the pause is over"),
        (&["drain", "--all"], 0, "no process works on this frontier"),
        (&["status", "--fleet"], 0, "no process works on this frontier"),
        (&["backup", "copy.db"], 1, "a server keeps it"),
        (&["campaign", "list"], 0, "there are no campaigns"),
        (&["log", "shop"], 0, "tune interval=20s"),
        (&["dead", "list", "shop"], 0, &dead),
        (&["dead", "show", &dead], 0, "404"),
        (&["dead", "revive", "shop"], 0, ""),
        (&["dead", "drop", "shop"], 0, ""),
        (&["try", &stored, "--site", &file], 0, "Thing 1"),
        (&["reparse", &file], 0, "shop"),
        (&["audit", "shop"], 0, "shop"),
        (&["completions", "bash"], 0, "paced"),
        (&["man"], 0, "paced"),
        (&["forget", "shop", "--yes"], 0, "shop"),
    ];
    for (words, code, told) in steps {
        let run = Paced::new(*words).data(&data).env("PACED_FRONTIER", redis.url(0)).run();
        assert!(run.code == Some(*code), "{words:?}: {run:?}");
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(said.contains(told), "{words:?}: no `{told}` in\n{said}");
        assert!(words[0] == "check" || redis.cli(&["DBSIZE"]) != "0", "{words:?}: nothing is on Redis");
    }
    assert!(!data.file("frontier.db").exists(), "a frontier was made in the data folder");
    assert_eq!(site.count("/p/9"), 1);

    let help = Paced::new(["--help"]).run().expect_code(0).stdout;
    let listed =
        help.split_once("Commands:\n").and_then(|(_, rest)| rest.split_once("\n\n")).expect("verbs").0;
    let verbs = listed
        .lines()
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    let walked = steps.iter().map(|(words, ..)| words[0]).chain(ELSEWHERE).collect::<BTreeSet<_>>();
    assert_eq!(
        verbs.collect::<BTreeSet<_>>(),
        walked,
        "a verb stands in the table or ELSEWHERE, and nowhere else"
    );
}
