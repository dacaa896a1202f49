//! A server that is away for a while, a bucket that goes, and everything that can be wrong at the start.

use std::time::Duration;

use paced::internals::archive::{Archive, ArchiveError, writer_name};
use paced::internals::clock::Clock;

use crate::gate::Gate;
use crate::pages::*;
use crate::server::*;
use crate::support::*;

#[test]
fn l2_a_page_kept_while_the_server_is_away_is_durable_when_it_is_back() {
    let test = "trouble::l2_a_page_kept_while_the_server_is_away_is_durable_when_it_is_back";
    if std::env::var_os("PACED_TEST_S3").is_some() {
        return alone(test, async |_| keep_three().await);
    }
    let Some(server) = Server::start() else { return };
    let addr = server.s3.url.strip_prefix("http://").expect("a URL").parse().expect("an address");
    let gate = Gate::before(addr);
    let through = S3 { url: gate.url(), ..server.s3.clone() };
    let worker = std::thread::spawn(move || run_alone(test, &through));
    let objects = || server.s3.count("PUT", false);
    eventually("the first object", || (objects() >= 1).then_some(()));
    gate.shut();
    eventually("tries in vain", || (gate.turned_away() >= 3).then_some(()));
    let kept = objects();
    gate.open();
    let text = worker.join().expect("no panic");
    assert!(text.contains("test result: ok. 1 passed"), "{text}");
    assert!(objects() > kept, "{} objects before, {} after", kept, objects());
}

/// Keeps pages, one after another, for longer than the gate is shut.
async fn keep_three() {
    let archive = open(&at("away")).await;
    let started = std::time::Instant::now();
    let mut places = Vec::new();
    while places.len() < 3 || started.elapsed() < Duration::from_secs(4) {
        let n = places.len();
        places.push(archive.keep(visit(page("x", &format!("body {n}"), 0))).await.expect("kept in the end"));
    }
    for (n, place) in places.iter().enumerate() {
        assert_eq!(archive.read(place).expect("read").body, format!("body {n}"));
    }
    assert_eq!(all(&at("away")).await.len(), places.len());
}

#[test]
fn a_commit_that_fails_for_good_is_told_and_the_next_one_works() {
    let test = "trouble::a_commit_that_fails_for_good_is_told_and_the_next_one_works";
    if std::env::var_os("PACED_TEST_S3").is_some() {
        return alone(test, async |_| keep_without_a_bucket().await);
    }
    let Some(mut server) = Server::start() else { return };
    let s3 = server.s3.clone();
    let worker = std::thread::spawn(move || run_alone(test, &s3));
    eventually("the first object", || (server.s3.count("PUT", false) >= 1).then_some(()));
    server.order("remove", BUCKET);
    // Until the answer to an object was that there is no bucket.
    let puts = server.s3.count("PUT", false);
    eventually("an object in vain", || (server.s3.count("PUT", false) > puts + 1).then_some(()));
    server.order("make", BUCKET);
    let text = worker.join().expect("no panic");
    assert!(text.contains("test result: ok. 1 passed"), "{text}");
}

async fn keep_without_a_bucket() {
    let archive = open(&at("gone")).await;
    let keep = async || archive.keep(visit(page("x", "body", 0))).await;
    let refused = loop {
        if let Err(refused) = keep().await {
            break refused;
        }
    };
    assert!(matches!(refused, ArchiveError::Bucket { .. }) && !refused.is_transient(), "{refused:?}");
    let told = "could not write to s3://shop-pages/gone: there is no such bucket; make it";
    assert!(refused.to_string().starts_with(told), "{refused}");
    let place = loop {
        if let Ok(place) = keep().await {
            break place;
        }
    };
    assert_eq!(archive.read(&place).expect("read").body, "body");
}

#[test]
fn a_place_without_a_bucket_is_refused_at_once() {
    alone("trouble::a_place_without_a_bucket_is_refused_at_once", async |_| {
        let nowhere = "s3://no-such-bucket/x".parse().expect("a location");
        let opened = Archive::open_at(&nowhere, &writer_name(), Clock::wall()).await;
        let told = "could not open s3://no-such-bucket/x: there is no such bucket; make it, or name another with --pages";
        assert_eq!(opened.expect_err("no bucket").to_string(), told);
    });
}

#[test]
fn what_is_wrong_at_the_start_is_one_line_and_no_page_is_asked_for() {
    let Some(server) = Server::start() else { return };
    let (data, site) = (TempData::new(), TestSite::builder().page("/", "<h1>Front</h1>").serve());
    let rules = "[[page]]\nname = \"front\"\nmatch = \"/\"\nitem = true\n  [page.fields]\n  title = \"h1\"\n";
    let file = data.write("shop.toml", &(site.toml("shop", Duration::from_millis(10)) + rules));
    let shut =
        std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|port| port.local_addr()).expect("a port");
    let nobody = format!("http://{shut}");
    for (url, changed, told) in [
        ("s3://no-such-bucket/x", &[][..], "there is no such bucket; make it, or name another with --pages"),
        (
            "s3://shop-pages/x",
            &[("AWS_SECRET_ACCESS_KEY", Some("mistaken"))],
            "the keys are refused (SignatureDoesNotMatch); check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY",
        ),
        (
            "s3://shop-pages/x",
            &[("AWS_ACCESS_KEY_ID", Some("AKIAMISTAKEN"))],
            "the keys are refused (InvalidAccessKeyId); check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY",
        ),
        ("s3://shop-pages/x", &[("AWS_ENDPOINT_URL", Some(&nobody))], "can't be reached"),
        ("s3://shop-pages/x", &[("AWS_ALLOW_HTTP", None)], "set AWS_ALLOW_HTTP=true if that is right"),
        (
            "s3://shop-pages/x",
            &[
                ("AWS_ACCESS_KEY_ID", None),
                ("AWS_SECRET_ACCESS_KEY", None),
                ("AWS_METADATA_ENDPOINT", Some(&nobody)),
            ],
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ),
        (
            "s3://shop-pages/x",
            &[("AWS_SECRET_ACCESS_KEY", None)],
            "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY isn't; set both or none",
        ),
    ] {
        for verb in [&["crawl"][..], &["audit"]] {
            let mut paced = Paced::new(verb).data(&data).arg("--pages").arg(url).env("RUST_LOG", "error");
            if verb == ["crawl"] {
                paced = paced.arg(&file);
            }
            for (name, value) in server.s3.variables() {
                let changed = changed.iter().find(|(changed, _)| *changed == name);
                match changed {
                    None => paced = paced.env(name, value),
                    Some((_, Some(value))) => paced = paced.env(name, value),
                    Some((_, None)) => {}
                }
            }
            for (name, value) in changed.iter().filter(|(name, _)| *name == "AWS_METADATA_ENDPOINT") {
                paced = paced.env(name, value.expect("a value"));
            }
            let run = paced.run().expect_code(1);
            let lines: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("paced: ")).collect();
            assert_eq!(lines.len(), 1, "{verb:?} {told}: {}", run.stderr);
            assert!(lines[0].starts_with(&format!("paced: could not open {url}: ")), "{}", run.stderr);
            assert!(lines[0].contains(told), "no `{told}` in {}", run.stderr);
            assert!(!run.stderr.contains(&server.s3.secret), "{}", run.stderr);
        }
    }
    assert_eq!(site.requests().len(), 0);
}
