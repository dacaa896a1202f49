//! What is kept in a bucket is read back, by any process and by any WARC tool, for as few requests as can be.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use paced::internals::archive::{ArchiveError, Erased, Record, RecordPlace, Visit, VisitOutcome};
use paced::internals::audit::Audit;
use paced::internals::clock::Timestamp;
use paced::internals::page::Page;
use tempfile::TempDir;

use crate::pages::*;
use crate::server::*;

#[test]
fn l2_a_page_is_in_the_bucket_once_it_is_kept_and_read_back_in_one_request() {
    alone("storing::l2_a_page_is_in_the_bucket_once_it_is_kept_and_read_back_in_one_request", async |s3| {
        let archive = open(&at("one")).await;
        assert_eq!((s3.count("GET", true), s3.requests().len()), (1, 1), "one look at the bucket");
        let sent = page("a?x=1&y=%C3%A9", "the body", 0);
        let place = archive.keep(visit(sent.clone())).await.expect("kept");
        assert_eq!((s3.count("PUT", false), s3.requests().len()), (1, 2));
        let stored = archive.read(&place).expect("read");
        assert_eq!((s3.count("GET", false), s3.requests().len()), (1, 3));
        assert_eq!((stored.url, stored.status, stored.body), (sent.url, 200, sent.body));
        assert_eq!((stored.fetched_at, stored.response), (sent.sent_at, sent.response));
        let objects = s3.objects("").await;
        let [(key, bytes)] = &objects[..] else { panic!("{} objects", objects.len()) };
        assert_eq!(*key, format!("one/{}", place.segment()));
        assert!(place.segment().starts_with("20261120T090000Z-") && key.ends_with("-00001.warc.gz"), "{key}");
        assert_eq!(place.offset() + place.length(), bytes.len() as u64);
        archive.close().await.expect("closed");
        let late = archive.keep(visit(page("late", "", 0))).await;
        assert!(matches!(late, Err(ArchiveError::Closed)), "{late:?}");
    });
}

#[test]
fn each_commit_is_one_object_that_other_programs_read() {
    alone("storing::each_commit_is_one_object_that_other_programs_read", async |s3| {
        let Some(venv) = venv() else { return };
        let archive = open(&at("deep/er")).await;
        let mut keeps = Vec::new();
        for n in 0..30 {
            let (archive, visit) =
                (archive.clone(), visit(page(&format!("{n}"), &format!("body {n}"), n * 1000)));
            keeps.push(tokio::spawn(async move { archive.keep(visit).await }));
        }
        let mut places = Vec::new();
        for keep in keeps {
            places.push(keep.await.expect("no panic").expect("kept"));
        }
        let last = archive.keep(visit(page("last", "the last", 30_000))).await.expect("kept");
        for (n, place) in places.iter().enumerate() {
            assert_eq!(archive.read(place).expect("read").body, format!("body {n}"));
        }
        let folder = TempDir::new().expect("a folder");
        let files = s3.download("deep/er/", folder.path()).await;
        assert_eq!(files.len() as u64, archive.commits(), "an object a commit");
        assert!(files.len() < 30, "pages that came together share a commit: {files:?}");
        let named = files.last().and_then(|file| file.file_name()).expect("a name");
        assert_eq!(named.to_string_lossy(), last.segment(), "numbers increase");
        for file in &files {
            let output = Command::new(venv.join("bin/warcio")).args(["check", "-v"]).arg(file).output();
            let output = output.expect("warcio runs");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("digest pass"), "{text}");
            assert!(!text.contains("digest failed"), "{text}");
            let listed =
                Command::new(venv.join("bin/warcio")).args(["index", "-f", "warc-type"]).arg(file).output();
            let listed = String::from_utf8(listed.expect("warcio runs").stdout).expect("text");
            assert!(listed.starts_with("{\"warc-type\": \"warcinfo\"}"), "{listed}");
        }
        assert_eq!(all(&at("deep/er")).await.len(), 31);
        assert_eq!(all(&at("deep")).await.len(), 0, "what lies deeper is another place");
    });
}

#[test]
fn i1_writers_of_one_place_read_each_other_and_are_audited_together() {
    alone("storing::i1_writers_of_one_place_read_each_other_and_are_audited_together", async |s3| {
        let (one, two) = (open(&at("both")).await, open(&at("both")).await);
        let mut places = Vec::new();
        for (archive, at) in [(&one, 0), (&two, 1500), (&one, 3000), (&two, 3700), (&one, 5200)] {
            places.push(archive.keep(visit(page("x", &format!("at {at}"), at))).await.expect("kept"));
        }
        assert_eq!(two.read(&places[0]).expect("read").body, "at 0");
        assert_eq!(one.read(&places[3]).expect("read").body, "at 3700");
        let segments: BTreeSet<&str> = places.iter().map(RecordPlace::segment).collect();
        assert_eq!((segments.len(), s3.objects("both/").await.len()), (5, 5));
        let report = Audit::of(all(&at("both")).await).report().remove(0);
        assert_eq!((report.starts, report.early), (5, 1), "{report:?}");
        assert_eq!(report.gaps.expect("gaps").min, Duration::from_millis(700));
    });
}

#[test]
fn asking_whether_pages_are_there_costs_one_request_for_many() {
    alone("storing::asking_whether_pages_are_there_costs_one_request_for_many", async |s3| {
        let writer = open(&at("many")).await;
        let mut places = Vec::new();
        for n in 0..6 {
            places.push(writer.keep(visit(page(&format!("{n}"), "body", n * 1000))).await.expect("kept"));
        }
        let asked = s3.requests().len();
        for place in &places {
            assert!(writer.has(place).await);
        }
        assert_eq!(s3.requests().len(), asked, "the writer knows its own objects");
        let other = open(&at("many")).await;
        let asked = s3.requests().len();
        for place in places.iter().chain(&places) {
            assert!(other.has(place).await);
        }
        assert_eq!((s3.requests().len(), s3.count("HEAD", false)), (asked + 1, 0));
        let beyond = |place: &RecordPlace, by| {
            let text = format!("{}:{}:{}", place.segment(), place.offset() + by, place.length());
            text.parse::<RecordPlace>().expect("a place")
        };
        let later = beyond(&places[2], 1);
        assert!(!other.has(&later).await);
        let gone: RecordPlace = "20200101T000000Z-gone-00001.warc.gz:100:100".parse().expect("a place");
        assert!(!other.has(&gone).await);
        let far = beyond(&places[2], 1 << 40);
        let endless = format!("{}:1:{}", places[2].segment(), u64::MAX).parse().expect("a place");
        for place in [&later, &gone, &far, &endless] {
            let read = other.read(place);
            assert!(matches!(&read, Err(ArchiveError::Missing { .. })), "{place}: {read:?}");
        }
        let damaged = format!("{}:0:{}", places[2].segment(), places[2].length()).parse().expect("a place");
        assert!(matches!(other.read(&damaged), Err(ArchiveError::Damaged { .. })));
    });
}

#[test]
fn a_304_in_a_bucket_is_a_revisit_of_the_stored_body() {
    alone("storing::a_304_in_a_bucket_is_a_revisit_of_the_stored_body", async |s3| {
        let archive = open(&at("again")).await;
        let stored = archive.keep(visit(page("p", "the body", 0))).await.expect("kept");
        let answer = Page { status: 304, ..page("p", "", 60_000) };
        let outcome = VisitOutcome::NotModified {
            page: answer.clone(),
            of: stored.clone(),
            fetched_at: answer.sent_at,
        };
        let place = archive.keep(Visit { outcome, ..visit(answer) }).await.expect("kept");
        assert_eq!(place, stored);
        let objects = s3.objects("again/").await;
        let text = |n: usize| {
            let mut text = Vec::new();
            let mut gzip = flate2::read::MultiGzDecoder::new(&objects[n].1[..]);
            std::io::copy(&mut gzip, &mut text).expect("whole members");
            String::from_utf8_lossy(&text).into_owned()
        };
        let (first, second) = (text(0), text(1));
        let response = first.split("WARC-Type: response").nth(1).expect("a response");
        let id = response.lines().find_map(|line| line.strip_prefix("WARC-Record-ID: ")).expect("an id");
        let revisit = second.split("WARC-Type: revisit").nth(1).expect("a revisit");
        assert!(revisit.contains(&format!("WARC-Refers-To: {id}\r\n")), "{revisit}");
        assert!(revisit.contains("WARC-Refers-To-Date: 2026-11-20T09:00:00.123Z\r\n"), "{revisit}");
    });
}

#[test]
fn what_many_processes_erase_from_one_object_goes_and_the_rest_stays() {
    alone("storing::what_many_processes_erase_from_one_object_goes_and_the_rest_stays", async |_| {
        let archive = open(&at("shared")).await;
        let kept = (0..8).map(|n| {
            let archive = archive.clone();
            let of =
                Visit { site: format!("site-{n}"), ..visit(page(&format!("p{n}"), &format!("body {n}"), n)) };
            tokio::spawn(async move { archive.keep(of).await.expect("kept") })
        });
        let mut places = Vec::new();
        for kept in kept.collect::<Vec<_>>() {
            places.push(kept.await.expect("no panic"));
        }
        let segments: BTreeSet<_> = places.iter().map(RecordPlace::segment).collect();
        assert_eq!(segments.len(), 1, "one commit");
        let erased = (0..7).map(|n| {
            tokio::spawn(async move {
                // Each a process of its own.
                let archive = open(&at("shared")).await;
                let is_gone = move |record: &Record| record.site == format!("site-{n}");
                archive.erase(is_gone, Timestamp::from_millis(START)).await.expect("erased")
            })
        });
        for erased in erased.collect::<Vec<_>>() {
            assert_eq!(erased.await.expect("no panic"), Erased { requests: 1, segments: 0, left: 0 });
        }
        let again = |record: &Record| record.site != "site-7";
        let found = archive.erase(again, Timestamp::from_millis(START)).await.expect("erased");
        assert_eq!(found, Erased::default(), "put back by another's put");
        let (gone, stays) = places.split_at(7);
        let read: Vec<_> = gone.iter().filter_map(|place| archive.read(place).ok()).collect();
        assert!(read.is_empty(), "{read:?}");
        assert_eq!(archive.read(&stays[0]).expect("read").body, "body 7");
    });
}

#[test]
fn a_sites_objects_are_removed_and_those_shared_with_others_are_put_anew() {
    alone("storing::a_sites_objects_are_removed_and_those_shared_with_others_are_put_anew", async |s3| {
        let archive = open(&at("erased")).await;
        let of = |site: &str, path: &str, body: &str| Visit {
            site: site.to_owned(),
            ..visit(page(path, body, 0))
        };
        let keep = async |visits: Vec<Visit>| {
            let kept: Vec<_> = visits
                .into_iter()
                .map(|visit| {
                    let archive = archive.clone();
                    tokio::spawn(async move { archive.keep(visit).await.expect("kept") })
                })
                .collect();
            let mut places = Vec::new();
            for kept in kept {
                places.push(kept.await.expect("no panic"));
            }
            places
        };
        let shared = keep(vec![of("gone", "a", "secret"), of("stays", "b", "the body")]).await;
        assert_eq!(shared[0].segment(), shared[1].segment(), "one commit");
        let alone = keep(vec![of("gone", "c", "secret")]).await;
        let erased = archive
            .erase(|record| record.site == "gone", Timestamp::from_millis(START))
            .await
            .expect("erased");
        assert_eq!(erased, Erased { requests: 2, segments: 1, left: 0 });
        assert_eq!(archive.read(&shared[1]).expect("read").body, "the body");
        assert!(archive.read(&shared[0]).is_err() && archive.read(&alone[0]).is_err());
        let objects = s3.objects("erased/").await;
        assert_eq!(objects.len(), 1, "{} objects", objects.len());
    });
}
