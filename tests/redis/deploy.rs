//! The files of `examples/deploy`: the Redis they set up is one that a frontier is content with, their commands are commands.

use std::path::{Path, PathBuf};

use crate::ground::{Ground, SiteFile, ms, star};
use crate::support::*;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/deploy").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).expect("a file of the project")
}

#[test]
fn a_redis_with_these_settings_and_this_user_keeps_a_frontier_without_a_warning() {
    let settings = RedisServer::builder().set("include", &file("redis.conf").display().to_string());
    let Some(redis) = settings.known_as("paced", "change-me").start() else { return };
    let site = star(10).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(20))]);
    let run = ground.crawl().env("PACED_FRONTIER", redis.url(0)).run().expect_code(0);
    assert!(!run.stderr.contains("WARN"), "{}", run.stderr);
    assert_eq!(ground.items("shop").len(), 11);
    let run = ground.verb("status").env("PACED_FRONTIER", redis.url(0)).run().expect_code(0);
    assert!(run.stdout.contains("shop"), "{}", run.stdout);
    let mut cli = redis.connect();
    for forbidden in [&["FLUSHALL"][..], &["SET", "another program's", "1"], &["CONFIG", "GET", "*"]] {
        let said = cli.say(forbidden).expect("an answer");
        assert!(matches!(&said, Said::Error(why) if why.starts_with("NOPERM")), "{forbidden:?}: {said:?}");
    }
}

/// The program takes these words; `--help` at their end keeps it from doing anything.
fn assert_taken(words: &[String]) {
    let run = Paced::new(words).arg("--help").run();
    assert_eq!(run.code, Some(0), "{words:?}: {}", run.stderr);
}

#[test]
fn the_commands_of_the_services_are_taken() {
    let compose = read("compose.yaml");
    let commands = compose.lines().filter_map(|line| line.trim().strip_prefix("command: "));
    let commands: Vec<Vec<String>> =
        commands.map(|words| serde_json::from_str(words).expect("a list of words")).collect();
    let of_ours: Vec<_> = commands.iter().filter(|words| words[0] != "redis-server").collect();
    assert_eq!(of_ours.len(), 3, "{commands:?}");
    for words in of_ours {
        assert_taken(words);
    }
}

#[test]
fn the_command_of_the_unit_is_taken() {
    let unit = read("paced-work@.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/paced "));
    let words = start.expect("it starts the program").replace("%H-%i", "host-1");
    let words: Vec<String> =
        words.replace("$PACED_ROLE", "--role=download").split(' ').map(str::to_owned).collect();
    assert_eq!(words[0], "work");
    assert_taken(&words);
}
