//! Several real processes on one file, killed at will; and files that are no frontier.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use paced::internals::frontier::{Claim, Frontier, FrontierErrorKind, Registered, View, WorkScope};
use paced::internals::task::{Lease, Outcome, Settled, Settlement};

use crate::world::{request, shop, wait_for};

/// What a child does, and on which file.
const ROLE: &str = "FRONTIER_CHILD";
const FILE: &str = "FRONTIER_FILE";
const INTERVAL: i64 = 20;

/// One start, as a process saw it granted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Start {
    site: String,
    at: i64,
    fence: i64,
    url: String,
    settled: bool,
}

#[test]
#[ignore = "the other tests run it as a process of its own"]
fn a_child() {
    let (Ok(role), Ok(file)) = (std::env::var(ROLE), std::env::var(FILE)) else { return };
    wait_for(async {
        let frontier = Frontier::open(&format!("sqlite:{file}")).expect("opened");
        match role.as_str() {
            "work" => work(&frontier).await,
            "hang" => hang(&frontier).await,
            _ => println!("\n@now {}", frontier.clock().now().as_millis()),
        }
    });
}

/// Claims and settles until nothing is left.
async fn work(frontier: &Frontier) {
    let member = frontier.join(WorkScope::All).await.expect("joined");
    loop {
        let grant = frontier.claim(claim(&member.name, 2)).await.expect("claimed");
        for lease in &grant.leases {
            tell("granted", lease);
            tokio::time::sleep(Duration::from_millis(fastrand::u64(0..10))).await;
            if settle(frontier, &member.name, lease).await == Settled::Kept {
                tell("settled", lease);
            }
        }
        match grant.next_in {
            _ if !grant.leases.is_empty() => {}
            Some(wait) => {
                let wait = u64::try_from(wait).expect("forward").min(50);
                tokio::time::sleep(Duration::from_millis(wait)).await;
                frontier.beat(&member, true).await.expect("beaten");
            }
            None => break,
        }
    }
    frontier.leave(member).await.expect("left");
}

/// Claims one task and never comes back.
async fn hang(frontier: &Frontier) {
    let member = frontier.join(WorkScope::All).await.expect("joined");
    let grant = frontier.claim(claim(&member.name, 1)).await.expect("claimed");
    tell("granted", &grant.leases[0]);
    std::future::pending::<()>().await;
}

fn claim(owner: &str, download: u32) -> Claim {
    let (token, dice) = (fastrand::u64(..), vec![fastrand::u32(..)]);
    Claim { owner: owner.to_owned(), token, download, parse: 0, dice, lead: 0 }
}

async fn settle(frontier: &Frontier, owner: &str, lease: &Lease) -> Settled {
    let settlement = Settlement::of(lease.clone(), Outcome::Done { stored: None, recrawl: None });
    let settled = frontier.settle(owner, fastrand::u64(..), vec![settlement]).await.expect("settled");
    settled[0].clone()
}

fn tell(what: &str, lease: &Lease) {
    println!("\n@{what} {} {} {} {}", lease.site, lease.departure.at, lease.fence, lease.url);
}

/// Starts the suite's own program again, in that role.
fn child(role: &str, file: &Path) -> Child {
    Command::new(std::env::current_exe().expect("the suite's program"))
        .args(["processes::a_child", "--exact", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .env(FILE, file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process")
}

/// Waits for a child and reads what it told; how it ended is for the caller to judge.
fn told(child: Child) -> (Vec<String>, bool, String) {
    let output = child.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| line.strip_prefix('@')).map(str::to_owned).collect();
    (lines, output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn starts(lines: &[String]) -> Vec<Start> {
    let read = |line: &String| {
        let words: Vec<&str> = line.split(' ').collect();
        // The last line of one that was killed may be cut short.
        let [what, site, at, fence, url] = words[..] else { return None };
        Some(Start {
            site: site.to_owned(),
            at: at.parse().ok()?,
            fence: fence.parse().ok()?,
            url: url.to_owned(),
            settled: what == "settled",
        })
    };
    lines.iter().filter_map(read).collect()
}

async fn file_with(path: &Path, sites: &[&str], pages: usize) -> Frontier {
    let frontier = Frontier::sqlite(path, None).expect("a new file");
    for site in sites {
        let mut shop = shop(site);
        shop.settings.interval = INTERVAL;
        let answer = frontier.register(shop).await.expect("registered");
        assert!(matches!(answer, Registered::Version(_)));
        let puts = (0..pages).map(|page| request(site, &page.to_string())).collect();
        frontier.put(site, puts).await.expect("put");
    }
    frontier
}

/// Starts of a site come an interval apart and their fences increase, whichever process had them.
fn check_spacing(starts: &[Start]) {
    let mut sites: BTreeMap<&str, BTreeSet<(i64, i64)>> = BTreeMap::new();
    for start in starts {
        sites.entry(&start.site).or_default().insert((start.at, start.fence));
    }
    for (site, starts) in sites {
        let starts: Vec<_> = starts.into_iter().collect();
        for pair in starts.windows(2) {
            let ((one, fence), (other, next)) = (pair[0], pair[1]);
            assert!(other - one >= INTERVAL, "{site}: {one} and {other}");
            assert!(next > fence, "I6: {site}: fences {fence} and {next}");
        }
    }
}

#[test]
fn v1_m5_i1_processes_on_one_file_do_each_task_once_at_one_pace_without_a_lock_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    wait_for(async {
        let frontier = file_with(&file, &["a", "b", "c"], 25).await;
        let children: Vec<Child> = (0..4).map(|_| child("work", &file)).collect();
        let mut all = Vec::new();
        for child in children {
            let (lines, ended_well, errors) = told(child);
            assert!(ended_well, "{errors}");
            all.extend(starts(&lines));
        }
        let (settled, granted): (Vec<Start>, Vec<Start>) = all.into_iter().partition(|start| start.settled);
        let once: BTreeSet<&str> = settled.iter().map(|start| start.url.as_str()).collect();
        assert_eq!((granted.len(), settled.len(), once.len()), (75, 75, 75));
        check_spacing(&granted);
        let inside = frontier.inspect().await.expect("answers");
        assert_eq!((inside.tasks.len(), inside.due.len(), inside.known), (0, 0, 75));
        assert_eq!(frontier.owners().await.expect("answers"), []);
    });
}

#[test]
fn l4_processes_killed_at_any_point_lose_nothing_and_keep_the_pace() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    wait_for(async {
        let frontier = file_with(&file, &["a", "b"], 60).await;
        let mut all = Vec::new();
        for _ in 0..4 {
            let mut children: Vec<Child> = (0..2).map(|_| child("work", &file)).collect();
            tokio::time::sleep(Duration::from_millis(fastrand::u64(60..400))).await;
            for child in &mut children {
                child.kill().expect("killed");
            }
            for child in children {
                all.extend(starts(&told(child).0));
            }
        }
        let (lines, ended_well, errors) = told(child("work", &file));
        assert!(ended_well, "{errors}");
        all.extend(starts(&lines));
        check_spacing(&all);
        for site in ["a", "b"] {
            let view = frontier.view(site).await.expect("answers").expect("it is there");
            let books = view.download;
            assert_eq!((books.done, books.dead, books.imbalance()), (60, 0, 0), "{site}: {books:?}");
            assert_eq!((books.waiting + books.delayed + books.leased, view.in_flight), (0, 0));
        }
    });
}

#[test]
fn l4_c10_the_leases_of_a_killed_process_return_to_the_next_that_joins_or_beats() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    wait_for(async {
        let frontier = file_with(&file, &["a"], 1).await;
        let member = frontier.join(WorkScope::All).await.expect("joined");
        for (round, joins) in [(1, true), (2, false)] {
            let mut hanging = child("hang", &file);
            let mut lines = BufReader::new(hanging.stdout.take().expect("its output")).lines();
            let granted = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("@granted")));
            assert!(granted.is_some(), "it has the task");
            frontier.beat(&member, true).await.expect("beaten");
            let books = frontier.view("a").await.expect("answers").expect("there").download;
            assert_eq!((books.leased, books.lost), (1, round - 1), "it is alive, the task is its own");
            hanging.kill().expect("killed");
            hanging.wait().expect("ended");
            let name = if joins {
                let other = frontier.join(WorkScope::All).await.expect("joined");
                other.name.clone()
            } else {
                frontier.beat(&member, true).await.expect("beaten");
                member.name.clone()
            };
            frontier.claim(claim(&name, 0)).await.expect("claimed");
            let books = frontier.view("a").await.expect("answers").expect("there").download;
            assert_eq!((books.leased, books.lost), (0, round), "long before its lease ended");
            assert_eq!(books.waiting, 2 - round, "the second loss waits ten seconds");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
}

#[test]
fn two_processes_agree_on_the_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    let frontier = Frontier::sqlite(&file, None).expect("a new file");
    for _ in 0..2 {
        let before = frontier.clock().now().as_millis();
        let (lines, ended_well, errors) = told(child("clock", &file));
        assert!(ended_well, "{errors}");
        let there: i64 = lines[0].trim_start_matches("now ").parse().expect("a time");
        assert!((before..=frontier.clock().now().as_millis()).contains(&there), "{there}");
    }
}

#[test]
fn processes_that_open_a_new_file_at_the_same_moment_all_find_it_whole() {
    for _ in 0..3 {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("below").join("frontier.sqlite");
        let children: Vec<Child> = (0..6).map(|_| child("clock", &file)).collect();
        for child in children {
            let (lines, ended_well, errors) = told(child);
            assert!(ended_well && lines.len() == 1, "{errors}");
        }
    }
}

#[test]
fn a_file_of_another_program_or_of_none_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let garbage = folder.path().join("garbage");
    fs::write(&garbage, "this is no database at all. ".repeat(200)).expect("written");
    let other = folder.path().join("other");
    let connection = rusqlite::Connection::open(&other).expect("made");
    connection.execute_batch("CREATE TABLE bookmark (url TEXT)").expect("made");
    drop(connection);
    for file in [garbage, other] {
        let before = fs::read(&file).expect("read");
        let error = Frontier::sqlite(&file, None).expect_err("refused");
        assert_eq!(error.kind, FrontierErrorKind::Foreign, "{error}");
        assert!(!error.is_transient());
        assert_eq!(fs::read(&file).expect("read"), before);
    }
}

#[test]
fn a_file_of_a_newer_version_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    drop(Frontier::sqlite(&file, None).expect("a new file"));
    let connection = rusqlite::Connection::open(&file).expect("opened");
    connection.pragma_update(None, "user_version", 99).expect("raised");
    let error = Frontier::sqlite(&file, None).expect_err("refused");
    assert_eq!(error.kind, FrontierErrorKind::Newer(99), "{error}");
    assert!(error.to_string().contains("schema 99"), "{error}");
}

#[test]
fn a_file_of_an_older_version_is_refused_says_what_to_do_and_is_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    drop(Frontier::sqlite(&file, None).expect("a new file"));
    let connection = rusqlite::Connection::open(&file).expect("opened");
    connection.pragma_update(None, "user_version", 1).expect("lowered");
    drop(connection);
    let before = fs::read(&file).expect("read");
    let error = Frontier::sqlite(&file, None).expect_err("refused");
    assert_eq!(error.kind, FrontierErrorKind::Older(1), "{error}");
    let text = error.to_string();
    assert!(text.contains("schema 1") && text.contains("move the file away"), "{text}");
    assert_eq!(fs::read(&file).expect("read"), before);
}

#[tokio::test]
async fn a_damaged_row_fails_the_steps_that_meet_it_and_not_the_claim_they_travel_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    let open = || Frontier::sqlite(&file, None).expect("our file");
    let frontier = open();
    for name in ["good", "bad"] {
        frontier.register(shop(name)).await.expect("registered");
    }
    frontier.put("good", vec![request("good", "/1")]).await.expect("put");
    frontier.work_on("one", WorkScope::All).await.expect("said");
    drop(frontier);
    let connection = rusqlite::Connection::open(&file).expect("opened");
    connection.execute("UPDATE site SET state = '{' WHERE name = 'bad'", []).expect("damaged");
    drop(connection);
    let frontier = open();
    let (put, grant) = tokio::join!(
        frontier.put_waiting("bad", vec![request("bad", "/1")], true),
        frontier.claim(claim("one", 1))
    );
    assert!(put.is_err(), "{put:?}");
    assert_eq!(grant.expect("granted").leases.len(), 1);
}

#[tokio::test]
async fn a_file_of_the_version_before_is_brought_up_to_date_with_all_that_is_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    let frontier = Frontier::sqlite(&file, None).expect("a new file");
    frontier.register(shop("books")).await.expect("registered");
    frontier.put("books", ["/1", "/2", "/1"].map(|path| request("books", path)).to_vec()).await.expect("put");
    frontier.work_on("one", WorkScope::All).await.expect("said");
    let lease = frontier.claim(claim("one", 1)).await.expect("claimed").leases.pop().expect("due");
    let text = frontier.text("books").await.expect("read");
    // Two puts of one moment have a place each, a millisecond apart: both are in the past by then.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let before = frontier.view("books").await.expect("read").expect("a site");
    assert_eq!((before.download.waiting, before.download.leased, before.download.coalesced), (1, 1, 1));
    drop(frontier);
    let connection = rusqlite::Connection::open(&file).expect("opened");
    let back = "ALTER TABLE site ADD COLUMN text TEXT;
                UPDATE site SET text = (SELECT text FROM site_file WHERE site = name);
                DROP TABLE site_file; DROP TABLE books; DROP TABLE waits; DROP TABLE wait; DROP TABLE session; DROP TABLE batch_books; DROP TABLE beat; DROP TABLE event; DROP TABLE campaign_name; DROP TABLE campaign; DROP TABLE campaign_chunk; DROP TABLE lane_site; DROP TABLE lane_unit; DROP TRIGGER site_added; DROP TRIGGER site_idle; DROP TRIGGER site_removed; ALTER TABLE site DROP COLUMN idle; DELETE FROM meta WHERE key = 'idle'; DROP TABLE act; DROP TABLE counted; DROP TABLE window; DROP TABLE answers; DROP TABLE away; DROP TABLE idle_unit;
                DROP INDEX task_parked; ALTER TABLE task DROP COLUMN host; DROP INDEX task_waiting;
                DROP INDEX task_behind; ALTER TABLE task DROP COLUMN session;
                ALTER TABLE task DROP COLUMN lane;
                CREATE INDEX task_waiting ON task (site, stage, priority, position) WHERE place = 0;
                DROP TABLE page; DROP TABLE seen; DROP TABLE again; DROP TABLE recrawl; DROP TABLE fetched; DROP TABLE segment;
                CREATE TABLE known (site INTEGER, run INTEGER, fp INTEGER, PRIMARY KEY (site, run, fp)) WITHOUT ROWID;
                CREATE TABLE page (id INTEGER PRIMARY KEY, site INTEGER NOT NULL, fp INTEGER NOT NULL, url TEXT NOT NULL,
                  state TEXT NOT NULL, fetched_at INTEGER NOT NULL, recrawl INTEGER, recrawl_at INTEGER);
                CREATE INDEX page_recrawl ON page (site, recrawl_at, url) WHERE recrawl_at IS NOT NULL;
                CREATE INDEX page_age ON page (site, fetched_at, recrawl) WHERE recrawl IS NOT NULL;
                CREATE INDEX page_key ON page (site, fp); DROP INDEX task_held; DROP INDEX mutex_named;
                UPDATE task SET lease = json_object('token', token, 'owner', owner, 'granted_at', lease->0, 'ends_at', until,
                  'fence', lease->1, 'in_flight', json(lease->2), 'interval', 1000) WHERE place = 3;
                DROP INDEX unit_download; DROP INDEX site_download; DROP INDEX site_interval;
                ALTER TABLE unit DROP COLUMN turn; ALTER TABLE unit DROP COLUMN ends; ALTER TABLE unit DROP COLUMN ahead;
                ALTER TABLE site DROP COLUMN interval; ALTER TABLE site DROP COLUMN waits_until;
                CREATE INDEX unit_download ON unit (due, name) WHERE ready_download > 0;
                CREATE INDEX site_download ON site (unit, name) WHERE ready_download;
                UPDATE unit SET state = json_set(json_remove(state, '$.wait', '$.last.grace'), '$.interval', 0,
                  '$.last.site', 'books');
                UPDATE site SET state = json_remove(state, '$.last', '$.before');
                PRAGMA user_version = 3;";
    connection.execute_batch(back).expect("as it was");
    drop(connection);
    for _ in 0..2 {
        let again = Frontier::sqlite(&file, None).expect("brought up to date");
        assert_eq!(again.text("books").await.expect("read"), text);
        let view = again.view("books").await.expect("read").expect("a site");
        assert_eq!(View { at: before.at, ..view }, before);
        assert_eq!(again.extend(vec![lease.key()]).await.expect("asked"), [true]);
    }
}

#[tokio::test]
async fn a_file_on_which_an_older_version_works_is_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    let frontier = Frontier::sqlite(&file, None).expect("a new file");
    let member = frontier.join(WorkScope::All).await.expect("joined");
    rusqlite::Connection::open(&file)
        .and_then(|connection| connection.pragma_update(None, "user_version", 3))
        .expect("lowered");
    let error = Frontier::sqlite(&file, None).expect_err("refused");
    assert_eq!(error.kind, FrontierErrorKind::OlderInUse(3), "{error}");
    assert!(error.to_string().contains("end that one first"), "{error}");
    frontier.leave(member).await.expect("it goes on");
    drop(frontier);
}

#[test]
fn a_place_where_no_file_can_be_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Frontier::sqlite(folder.path(), None).expect_err("a folder is no file");
    assert!(matches!(error.kind, FrontierErrorKind::Folder(_)), "{error:?}");
    let plain = folder.path().join("plain");
    fs::write(&plain, "").expect("written");
    let error = Frontier::sqlite(&plain.join("below"), None).expect_err("below a file");
    assert!(matches!(error.kind, FrontierErrorKind::Folder(_)), "{error:?}");
}

#[test]
fn a_frontier_outlives_its_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    wait_for(async {
        let first = file_with(&file, &["a"], 2).await;
        first.work_on("one", WorkScope::All).await.expect("said");
        let lease = first.claim(claim("one", 1)).await.expect("claimed").leases.pop().expect("due");
        drop(first);
        let second = Frontier::sqlite(&file, None).expect("opened again");
        let view = second.view("a").await.expect("answers").expect("there");
        assert_eq!(view.last_start, Some(lease.departure.at()));
        assert_eq!(settle(&second, "one", &lease).await, Settled::Kept);
        assert_eq!(second.view("a").await.expect("answers").expect("there").download.done, 1);
    });
}

#[test]
fn urls_that_name_no_frontier_say_what_to_write() {
    for (url, hint) in
        [("sqlite:", "no path"), ("frontier.db", "sqlite:PATH"), ("postgres://x", "sqlite:PATH")]
    {
        let error = Frontier::open(url).expect_err("refused");
        assert!(matches!(error.kind, FrontierErrorKind::BadUrl(_)), "{error:?}");
        assert!(error.to_string().contains(hint), "{error}");
    }
}
