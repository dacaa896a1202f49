//! Servers that can't keep a frontier: one clear line, its exit code, and that was all.

use paced::internals::frontier::{Frontier, FrontierErrorKind};

use crate::answers::every_step_of;
use crate::ground::{Ground, SiteFile, ms, star, wait};
use crate::steps::open;
use crate::support::*;

/// Whether it was refused for the right reason.
type Judge = fn(&FrontierErrorKind) -> bool;

/// A server that is refused, by which URL, why, and what the line must say.
struct Refusal {
    url: String,
    kind: Judge,
    says: &'static [&'static str],
}

/// Refused by a handle, by `crawl` and by `status`, each with one line; the server is left as it was, and in peace.
fn assert_refused(refusal: &Refusal, server: Option<&RedisServer>) {
    let keys = || server.map(|server| server.cli(&["INFO", "keyspace"]));
    let (before, Refusal { url, kind, says }) = (keys(), refusal);
    if let Some(server) = server {
        server.cli(&["CONFIG", "RESETSTAT"]);
    }
    let error = wait(open(url).sites()).expect_err("refused");
    assert!(kind(&error.kind), "{error:?}");
    let existing = wait(async { Frontier::open_existing(url)?.sites().await }).expect_err("refused");
    assert!(kind(&existing.kind), "{existing:?}");

    let ground = Ground::new([SiteFile::new("shop", "http://127.0.0.1:9/")]);
    for verb in ["crawl", "status"] {
        let command = if verb == "crawl" { ground.crawl() } else { ground.verb(verb) };
        let run = command.env("PACED_FRONTIER", url).run().expect_code(1);
        let lines: Vec<&str> =
            run.stderr.lines().filter(|line| says.iter().any(|word| line.contains(word))).collect();
        assert_eq!(lines.len(), 1, "{verb}: one line that says {says:?}:\n{}", run.stderr);
        assert!(says.iter().all(|word| lines[0].contains(word)), "{verb}: {says:?} in {}", lines[0]);
        assert!(!run.stderr.contains("panicked") && !run.stderr.contains("sesame"), "{}", run.stderr);
        assert_eq!(run.stdout, "", "{verb}");
    }
    assert_eq!(keys(), before, "nothing was written");
    let calls: u64 = server.map_or(0, |server| server.calls().values().sum());
    assert!(calls < 200, "{calls} calls of four that were refused");
}

#[test]
fn a_server_that_evicts_keys_is_refused_with_the_policy_and_the_remedy() {
    let policy = RedisServer::builder().set("maxmemory-policy", "allkeys-lru");
    let Some(redis) = policy.start() else { return };
    let unfit = |kind: &FrontierErrorKind| matches!(kind, FrontierErrorKind::Unfit(_));
    let says = &["maxmemory-policy is allkeys-lru", "noeviction"];
    assert_refused(&Refusal { url: redis.url(0), kind: unfit, says }, Some(&redis));
    redis.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    assert_eq!(wait(open(&redis.url(0)).sites()).expect("it is fit now"), Vec::<String>::new());
}

#[test]
fn a_wrong_password_and_none_are_refused_without_being_shown() {
    let Some(redis) = RedisServer::builder().password("open").start() else { return };
    let kind = |kind: &FrontierErrorKind| *kind == FrontierErrorKind::Password;
    let says = &["another user or password"];
    for who in ["", ":sesame@", "sesame:sesame@", ":@"] {
        let url = format!("redis://{who}127.0.0.1:{}/0", redis.port());
        assert_refused(&Refusal { url, kind, says }, Some(&redis));
    }
}

#[test]
fn a_database_that_is_not_there_is_refused_with_those_that_are() {
    let Some(redis) = redis_or_skip() else { return };
    let kind = |kind: &FrontierErrorKind| matches!(kind, FrontierErrorKind::Unfit(_));
    let says = &["no database of that number", "redis://host:port/0", "`databases`"];
    assert_refused(&Refusal { url: redis.url(9_999), kind, says }, Some(&redis));
}

/// The user `some`, who may do all but this, and its frontier.
fn user_without(redis: &RedisServer, rights: &[&str]) -> String {
    let all = ["ACL", "SETUSER", "some", "reset", "on", ">sesame", "~*", "&*", "+@all"];
    redis.cli(&[&all, rights].concat());
    format!("redis://some:sesame@127.0.0.1:{}/0", redis.port())
}

#[test]
fn a_user_who_lacks_a_right_is_refused_with_the_line_that_gives_it() {
    let Some(redis) = redis_or_skip() else { return };
    wait(open(&redis.url(0)).sites()).expect("a frontier that is there");
    let kind = |kind: &FrontierErrorKind| matches!(kind, FrontierErrorKind::Unfit(_));
    for rights in [
        &["-function"][..],
        &["-fcall"],
        &["-zadd", "-smismember"],
        &["-info"],
        &["-subscribe"],
        &["resetchannels"],
        &["resetkeys", "~other:*"],
    ] {
        let url = user_without(&redis, rights);
        let says = &["ACL SETUSER some ~{paced:* &paced:wake +", " +fcall +function|load +get "];
        assert_refused(&Refusal { url, kind, says }, Some(&redis));
    }
    redis.cli(&["FLUSHALL"]);
    let error = wait(open(&user_without(&redis, &["-zadd"])).sites()).expect_err("refused");
    assert_eq!(error.cause.as_deref(), Some("it may not: zadd"));
    assert_eq!(redis.cli(&["DBSIZE"]), "0", "no frontier was begun");
}

#[test]
fn the_line_for_a_user_who_lacks_rights_gives_it_all_that_a_frontier_needs() {
    let Some(redis) = redis_or_skip() else { return };
    let url = user_without(&redis, &["reset", "on", ">sesame"]);
    let error = wait(open(&url).sites()).expect_err("refused");
    let FrontierErrorKind::Unfit(why) = error.kind else { panic!("{error}") };
    let line: Vec<&str> = why.rsplit_once(": ").expect("a line").1.split(' ').collect();
    redis.cli(&line);

    redis.cli(&["ACL", "LOG", "RESET"]);
    wait(every_step_of(&url, || {}));
    redis.cli(&["FLUSHDB"]);
    let site = star(10).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(20))]);
    ground.crawl().env("PACED_FRONTIER", &url).run().expect_code(0);
    assert_eq!(ground.items("shop").len(), 11);
    let run = ground.verb("status").env("PACED_FRONTIER", &url).run().expect_code(0);
    assert!(run.stdout.contains("shop"), "{}", run.stdout);
    let mut cli = redis.connect();
    assert_eq!(cli.say(&["ACL", "LOG"]).expect("an answer"), Said::List(vec![]), "nothing was denied");
    for forbidden in [&["FLUSHALL"][..], &["SET", "another program's", "1"], &["CONFIG", "GET", "*"]] {
        let said = redis.cli(&[&["ACL", "DRYRUN", "some"], forbidden].concat());
        assert!(said.contains("no permissions"), "{forbidden:?}: {said}");
    }
}

#[test]
fn a_user_a_password_a_socket_and_tls_are_ways_to_a_frontier() {
    let Some(redis) = redis_or_skip() else { return };
    let secret = RedisServer::builder().password("sesame").start().expect("the first one started");
    let named = RedisServer::builder().user("crawler", "sesame").start().expect("the first one started");
    let urls = [redis.url(0), redis.url(15), redis.unix_url(), format!("{}?db=3", redis.unix_url())];
    for url in urls.into_iter().chain([secret.url(0), named.url(0)]) {
        assert_eq!(wait(open(&url).sites()).expect(&url), Vec::<String>::new());
    }
    for db in [0, 3, 15] {
        assert_eq!(redis.cli_in(db, &["EXISTS", "{paced:0}:schema"]), "1", "database {db}");
    }
    let tls = RedisServer::builder().tls().start().expect("the first one started");
    let certificate = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/localhost.cert.pem");
    let ground = Ground::new([SiteFile::new("shop", "http://127.0.0.1:9/")]);
    let status = |verb: &str| ground.verb(verb).env("PACED_FRONTIER", tls.url(0));
    let run = ground.crawl().env("PACED_FRONTIER", tls.url(0)).env("SSL_CERT_FILE", certificate);
    run.arg("--deadline").arg("1s").run();
    let run = status("status").env("SSL_CERT_FILE", certificate).run().expect_code(0);
    assert!(run.stdout.contains("shop"), "{run:?}");
    let run = status("status").run().expect_code(1);
    assert!(run.stderr.contains("certificate"), "nobody vouches for it: {}", run.stderr);
}

#[test]
fn a_read_only_replica_is_refused_and_the_way_to_its_master_named() {
    let Some(redis) = redis_or_skip() else { return };
    let copy = RedisServer::builder().replica_of(&redis).start().expect("the first one started");
    eventually("the copy follows", || (copy.info("master_link_status")? == "up").then_some(()));
    let kind = |kind: &FrontierErrorKind| *kind == FrontierErrorKind::ReadOnly;
    let says = &["read-only replica"];
    assert_refused(&Refusal { url: copy.url(0), kind, says }, Some(&copy));
}

#[test]
fn a_database_of_another_schema_or_of_another_program_is_refused_and_left_alone() {
    let Some(redis) = redis_or_skip() else { return };
    let table: [(u32, &str, Judge, &'static [&'static str]); 3] = [
        (1, "1 1", |kind| *kind == FrontierErrorKind::Older(1), &["older paced (schema 1)"]),
        (2, "99 1", |kind| *kind == FrontierErrorKind::Newer(99), &["newer paced (schema 99)"]),
        (3, "mine", |kind| *kind == FrontierErrorKind::Foreign, &["not a frontier of paced"]),
    ];
    for (db, schema, kind, says) in table {
        redis.cli_in(db, &["SET", "{paced:0}:schema", schema]);
        assert_refused(&Refusal { url: redis.url(db), kind, says }, Some(&redis));
        assert_eq!(redis.cli_in(db, &["GET", "{paced:0}:schema"]), schema);
    }
}

#[test]
fn a_verb_that_wants_a_frontier_makes_none() {
    let Some(redis) = redis_or_skip() else { return };
    let error = wait(async { Frontier::open_existing(&redis.url(0))?.sites().await }).expect_err("none");
    assert_eq!(error.kind, FrontierErrorKind::Missing, "{error}");
    let ground = Ground::new([SiteFile::new("shop", "http://127.0.0.1:9/")]);
    let run = ground.verb("status").env("PACED_FRONTIER", redis.url(0)).run().expect_code(1);
    assert!(run.stderr.contains("there is no frontier"), "{}", run.stderr);
    assert_eq!(redis.cli(&["DBSIZE"]), "0");
}

#[test]
fn where_no_redis_is_one_line_says_so() {
    let url = format!("redis://127.0.0.1:{}/0", free_port());
    let kind = |kind: &FrontierErrorKind| *kind == FrontierErrorKind::Away;
    assert_refused(&Refusal { url, kind, says: &["can't be reached"] }, None);
}

#[test]
fn a_server_that_is_no_redis_is_told_from_one() {
    let web = TestSite::builder().page("/", "hello").serve();
    let url = format!("redis://{}/0", web.addr());
    let ground = Ground::new([SiteFile::new("shop", "http://127.0.0.1:9/")]);
    let run = ground.verb("status").env("PACED_FRONTIER", &url).run().expect_code(1);
    assert!(!run.stderr.contains("panicked") && run.stderr.contains(&url), "{}", run.stderr);
}

#[test]
fn urls_that_name_no_server_are_refused_before_anything_is_asked() {
    for url in ["redis://", "redis://host:port/0", "redis+cluster://", "redis://127.0.0.1:1/many"] {
        let error = Frontier::open(url).map(|_| ()).expect_err(url);
        assert!(matches!(error.kind, FrontierErrorKind::BadUrl(_)), "{url}: {error}");
    }
}
