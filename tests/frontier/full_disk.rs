//! No space left for the file: steps fail as a whole, nobody's lease ends by it, and the next step with space works.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{Claim, Frontier, FrontierErrorKind, WorkScope};
use paced::internals::task::{Outcome, Settled, Settlement};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{SmallDisk, TempData, with_mounts};
use crate::world::{START, request, shop, wait_for};

fn claim(token: u64) -> Claim {
    Claim { owner: "one".to_owned(), token, download: 1, parse: 0, dice: vec![0], lead: 0 }
}

#[test]
fn i5_l4_no_lease_ends_by_a_disk_that_was_full_for_a_minute() {
    with_mounts("full_disk::i5_l4_no_lease_ends_by_a_disk_that_was_full_for_a_minute", || {
        let disk = SmallDisk::new(32 * 1024);
        let clock = Clock::fake(Timestamp::from_millis(START));
        let file = disk.data().file("frontier.db");
        let frontier = Frontier::sqlite(&file, Some(clock.clone())).expect("a new file");
        wait_for(async {
            frontier.register(shop("a")).await.expect("registered");
            frontier.work_on("one", WorkScope::All).await.expect("said");
            frontier.put("a", vec![request("a", "1"), request("a", "2")]).await.expect("put");
            let over = frontier.claim(claim(100)).await.expect("claimed").leases.remove(0);
            clock.advance(Duration::from_secs(31));
            let held = frontier.claim(claim(200)).await.expect("claimed").leases.remove(0);
            disk.fill(0);
            let before = frontier.view("a").await.expect("a look needs no space").expect("there").download;
            let mut refused = None;
            for n in 0..10_000 {
                let puts = (0..50).map(|m| request("a", &format!("{n}/{m}"))).collect();
                if let Err(error) = frontier.put("a", puts).await {
                    refused = Some(error);
                    break;
                }
            }
            let refused = refused.expect("no space some time");
            assert_eq!(refused.kind, FrontierErrorKind::Full, "{refused}");
            assert!(refused.is_transient() && refused.to_string().contains("free some space"), "{refused}");
            let put = frontier.view("a").await.expect("answers").expect("there").download;
            assert_eq!((put.created - before.created) % 50, 0, "all of a step or nothing");
            assert_eq!(put.imbalance(), 0);
            clock.advance(Duration::from_mins(1));
            assert!(frontier.extend(vec![held.key()]).await.is_err(), "there is still no space");

            disk.free();
            let done = |lease| {
                let outcome = Outcome::Done { stored: None, recrawl: None };
                vec![Settlement::of(lease, outcome)]
            };
            assert_eq!(frontier.settle("one", 1, done(held)).await.expect("settled"), [Settled::Kept]);
            assert_eq!(frontier.settle("one", 2, done(over)).await.expect("settled"), [Settled::Stale]);
            let books = frontier.view("a").await.expect("answers").expect("there").download;
            assert_eq!((books.done, books.lost, books.imbalance()), (1, 1, 0), "{books:?}");
        });
    });
}

/// Where the child of a test keeps its frontier.
const CHILD_FILE: &str = "PACED_TEST_CHILD_FILE";

#[test]
fn l4_a_limit_that_the_system_sets_to_what_is_written_is_no_space_too() {
    let data = TempData::new();
    let program = std::env::current_exe().expect("this program");
    // Over its limit of file size a process is killed unless it ignores that signal; then writing fails.
    let run = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(program)
        .args(["--exact", "full_disk::child_meets_its_limit", "--ignored", "--nocapture"])
        .env(CHILD_FILE, data.file("frontier.db"))
        .output()
        .expect("a child");
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && text.contains("went on after its limit"), "{text}");
}

#[test]
#[ignore = "the child of another test"]
fn child_meets_its_limit() {
    let Some(path) = std::env::var_os(CHILD_FILE) else { return };
    let frontier = Frontier::sqlite(Path::new(&path), None).expect("a new file");
    let limit = getrlimit(Resource::Fsize);
    wait_for(async {
        frontier.register(shop("a")).await.expect("registered");
        setrlimit(Resource::Fsize, Rlimit { current: Some(400_000), ..limit }).expect("a limit");
        let put = async |n| {
            let puts = (0..50).map(|m| request("a", &format!("{n}/{m}"))).collect();
            frontier.put("a", puts).await
        };
        let mut n = 0;
        let refused = loop {
            match put(n).await {
                Ok(_) => n += 1,
                Err(error) => break error,
            }
            assert!(n < 10_000, "the limit is never met");
        };
        assert_eq!(refused.kind, FrontierErrorKind::Full, "{refused}");
        let error = put(n).await.expect_err("it is there still");
        assert_eq!(error.kind, FrontierErrorKind::Full, "{error}");
        setrlimit(Resource::Fsize, limit).expect("no limit");
        put(n).await.expect("there is space again");
        println!("went on after its limit");
    });
}
