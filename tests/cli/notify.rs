//! `[notify]`: what fails or ends is told to a program or to an address, beside whatever goes on (C19).

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::frontier::Frontier;
use paced::internals::task::{Event, EventKind, Priority, Put};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use crate::expected::*;
use crate::support::*;

/// What a script does that keeps what it is told, each event on a line.
const KEEPS: &str = "cat >> \"$1\"; echo >> \"$1\"";
/// Events that wait are told within so long.
const SOON: Duration = Duration::from_secs(10);

/// A data folder, and beside it a `paced.toml`.
struct Desk {
    data: TempData,
    folder: TempData,
}

impl Desk {
    fn new(notify: &str) -> Self {
        let desk = Self { data: TempData::new(), folder: TempData::new() };
        desk.folder.write("paced.toml", notify);
        desk
    }

    /// One whose script does this; `$1` is where it keeps what it is told.
    fn with_script(script: &str, more: &str) -> Self {
        let desk = Self::new("");
        let (script, told) = (desk.folder.write("tell.sh", script), desk.file_of_told());
        let command = format!("command = [\"/bin/sh\", \"{}\", \"{}\"]", script.display(), told.display());
        desk.folder.write("paced.toml", &format!("[notify]\n{command}\n{more}\n"));
        desk
    }

    fn file_of_told(&self) -> PathBuf {
        self.folder.file("told.jsonl")
    }

    fn told(&self) -> Vec<Value> {
        json_lines_of(&std::fs::read_to_string(self.file_of_told()).unwrap_or_default())
    }

    fn paced(&self, words: &[&str]) -> Paced {
        Paced::new(words).data(&self.data).arg("--config").arg(self.folder.file("paced.toml"))
    }

    fn sqlite(&self) -> String {
        format!("sqlite:{}", self.data.file("frontier.db").display())
    }
}

/// The kinds and sites of what was told, in order of their names.
fn kinds(told: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut kinds: Vec<_> = told.iter().map(|event| (text(&event["event"]), text(&event["site"]))).collect();
    kinds.sort();
    kinds
}

fn of(kind: &str, site: &str) -> (String, String) {
    (kind.to_owned(), site.to_owned())
}

/// An address that answers each POST as `answer` says of its number, from 1, and keeps the bodies.
struct Hook {
    server: RawServer,
    told: Arc<Mutex<Vec<Value>>>,
}

impl Hook {
    fn new(answer: impl Fn(usize) -> &'static str + Send + Sync + 'static) -> Self {
        let told = Arc::<Mutex<Vec<Value>>>::default();
        let keep = Arc::clone(&told);
        let server = RawServer::start(move |mut stream, number| {
            let head = RawServer::read_head(&mut stream).to_lowercase();
            assert!(head.starts_with("post /hook?key=1 ") && head.contains("application/json"), "{head}");
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            let mut body = vec![0; length.expect("a length").trim().parse().expect("a number")];
            stream.read_exact(&mut body).expect("a body");
            let body = serde_json::from_slice(&body).expect("JSON");
            keep.lock().unwrap_or_else(PoisonError::into_inner).push(body);
            let _ = stream
                .write_all(format!("HTTP/1.1 {}\r\nContent-Length: 0\r\n\r\n", answer(number)).as_bytes());
        });
        Self { server, told }
    }

    fn told(&self) -> Vec<Value> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn desk(&self) -> Desk {
        Desk::new(&format!("[notify]\nurl = \"{}\"\n", self.server.url("/hook?key=1")))
    }
}

/// A small site of which the pages under `/p/` are gone, and the front page where `front` isn't there.
fn broken(desk: &Desk, front: bool) -> (TestSite, PathBuf) {
    let links: Vec<String> = (0..30).map(|n| format!("<a href=\"/p/{n}\">{n}</a>")).collect();
    let site = TestSite::builder();
    let site = if front { site.page("/", links.concat()) } else { site }.serve();
    let file = site_file(&desk.data, &site);
    (site, file)
}

#[test]
fn c19_a_test_event_says_whether_it_was_told() {
    let desk = Desk::with_script(KEEPS, "");
    let run = desk.paced(&["notify", "--test"]).run().expect_code(0);
    assert_eq!(run.stdout, "/bin/sh: the test event was told\n");
    let [event] = &desk.told()[..] else { panic!("{:?}", desk.told()) };
    assert_eq!((&event["event"], &event["site"]), (&"test".into(), &Value::Null));
    assert!(!desk.data.file("frontier.db").exists(), "it needs no frontier");

    let failing = Desk::with_script("echo no route >&2; exit 7", "");
    let run = failing.paced(&["notify", "--test"]).run().expect_code(1);
    assert_eq!(run.stderr, "paced: /bin/sh can't be told: it ended with exit status: 7; it said: no route\n");
    for (answer, code, said) in [
        ("204 No Content", 0, "the test event was told"),
        ("500 Oops", 1, "can't be told: HTTP 500 Internal Server Error"),
        ("302 Found\r\nLocation: /elsewhere", 1, "can't be told: HTTP 302 Found"),
    ] {
        let hook = Hook::new(move |_| answer);
        let run = hook.desk().paced(&["notify", "--test"]).run().expect_code(code);
        let all = format!("{}{}", run.stdout, run.stderr);
        assert!(all.contains(said) && !all.contains("key=1"), "{all}");
        assert_eq!((hook.server.connections(), kinds(&hook.told())), (1, vec![of("test", "-")]));
    }
    let nobody = Desk::new("[notify]\nurl = \"http://127.0.0.1:1/\"\n");
    let run = nobody.paced(&["notify", "--test"]).run().expect_code(1);
    assert!(run.stderr.contains("http://127.0.0.1:1/… can't be told: Connection refused"), "{}", run.stderr);
}

#[test]
fn c19_without_a_setting_it_is_said_how_to_write_one() {
    let run = Desk::new("max_rate = \"5/s\"\n").paced(&["notify", "--test"]).run().expect_code(2);
    assert!(run.stderr.contains("write it into paced.toml, and below it command = ["), "{}", run.stderr);
    let wrong = Desk::new("[notify]\ncommand = [\"a\"]\non = [\"waled\"]\n");
    let run = wrong.paced(&["notify", "--test"]).run().expect_code(2);
    assert!(
        run.stderr.contains("paced.toml:3:7: `on` can't be `waled`; did you mean `walled`?"),
        "{}",
        run.stderr
    );
}

#[test]
fn c19_a_crawl_without_a_page_is_told_as_it_ends() {
    let desk = Desk::with_script(KEEPS, "");
    let (_site, file) = broken(&desk, false);
    let run = desk.paced(&["crawl"]).arg(&file).run().expect_code(1);
    let told = desk.told();
    assert_eq!(kinds(&told), [of("run_failed", "shop")], "{}", run.stderr);
    let text = told[0]["text"].as_str().expect("a sentence");
    assert!(text.starts_with("the run ended without a page"), "{text}");
    assert!(told[0]["id"].as_str().expect("an id").starts_with("run_failed shop 20"), "{}", told[0]);
    assert!(told[0]["at"].as_str().expect("a time").parse::<paced::Timestamp>().is_ok());
    assert!(run.stderr.contains("told by /bin/sh: the run ended without a page"), "{}", run.stderr);
    let run = desk.paced(&["status"]).run().expect_code(0);
    assert!(!run.stdout.contains("events:"), "nothing waits: {}", run.stdout);
}

#[test]
fn c19_a_share_of_dead_pages_is_told_with_its_figures_and_only_to_whoever_wants_that() {
    let desk = Desk::with_script(KEEPS, "on = [\"dead_share\", \"campaign_done\"]\ndead_share = 0.5");
    let (_site, file) = broken(&desk, true);
    desk.paced(&["crawl"]).arg(&file).run().expect_code(3);
    let told = desk.told();
    assert_eq!(kinds(&told), [of("dead_share", "shop")]);
    let figure = |name: &str| told[0]["figures"][name].as_u64().expect("a count");
    assert!(figure("ended") >= 20 && figure("dead") * 2 >= figure("ended"), "{}", told[0]);
    assert_eq!(figure("run"), 1);

    let other = Desk::with_script(KEEPS, "on = [\"run_failed\"]");
    let (_site, file) = broken(&other, true);
    other.paced(&["crawl"]).arg(&file).run().expect_code(3);
    assert_eq!(other.told(), Vec::<Value>::new());
    let run = other.paced(&["status"]).run().expect_code(0);
    assert!(run.stdout.contains("events: 1 waits to be told by a process with [notify]"), "{}", run.stdout);
}

#[test]
fn c19_the_end_of_a_campaign_is_told_with_its_figures() {
    let desk = Desk::with_script(KEEPS, "");
    let site = TestSite::builder().page("/", "").page("/p/1", "<h1>One</h1>").page("/p/2", "<h1>Two</h1>");
    let site = site.status("/p/3", 410).serve();
    let file = site_file(&desk.data, &site);
    desk.paced(&["crawl"]).arg(&file).run().expect_code(0);
    let list = ["/p/1", "/p/2", "/p/3"].map(|path| site.url(path)).join("\n");
    let start = ["campaign", "start", "--name", "night", "--site", "shop", "--urls", "-"];
    Paced::new(start).data(&desk.data).stdin(&list).run().expect_code(0);
    desk.paced(&["work", "--until-empty"]).run().expect_code(0);
    let told = desk.told();
    assert_eq!(kinds(&told), [of("campaign_done", "shop")]);
    assert_eq!(told[0]["figures"], serde_json::json!({ "fed": 3, "pages": 3, "dead": 1 }));
    assert_eq!(told[0]["text"], "the campaign `night` has ended: 3 of its 3 pages were put; dead: 1");
}

#[test]
fn c19_a_wall_and_a_site_that_is_given_up_are_told_by_a_webhook_and_what_fails_is_tried_again_later() {
    let hook = Hook::new(|number| if number == 1 { "500 Oops" } else { "200 OK" });
    let desk = hook.desk();
    let challenge = || {
        Reply::html("<title>Just a moment...</title>").with_status(403).header("cf-mitigated", "challenge")
    };
    let site =
        TestSite::builder().faults(move |request| (request.path != "/robots.txt").then(challenge)).serve();
    let file = site_file(&desk.data, &site);
    let run = desk.paced(&["crawl", "--give-up", "5s"]).arg(&file).run().expect_code(3);
    assert_eq!(kinds(&hook.told()), [of("site_given_up", "shop"), of("walled", "shop")], "{}", run.stderr);
    let walled = hook.told().into_iter().find(|event| event["event"] == "walled").expect("it is there");
    assert!(walled["text"].as_str().is_some_and(|text| text.contains("cf-mitigated")), "{walled}");
    let tried = "can't be told: HTTP 500 Internal Server Error; again in 1 min";
    assert!(run.stderr.contains(tried) && !run.stderr.contains("key=1"), "{}", run.stderr);
    let run = desk.paced(&["status"]).run().expect_code(0);
    let shown = run.stdout.lines().find(|line| line.starts_with("events: ")).expect("it is shown").to_owned();
    assert!(
        shown.starts_with("events: 1 waits to be told by a process with [notify]; walled of shop couldn't"),
        "{shown}"
    );
    assert!(shown.ends_with(": HTTP 500 Internal Server Error; it is tried again"), "{shown}");
}

#[test]
fn c19_a_program_that_hangs_holds_no_crawl_up_and_is_ended() {
    let desk = Desk::with_script("cat > /dev/null; sleep 600", "");
    let site = small_site();
    let file = site_file(&desk.data, &site);
    desk.paced(&["seed"]).arg(&file).run().expect_code(0);
    post(&desk.sqlite(), "shop");
    let crawl = desk.paced(&["crawl"]).arg(&file).start();
    eventually("the last page", || (site.count("/p/3") == 1).then_some(()));
    assert!(!crawl.stderr().contains("was ended"), "the pages waited for the program: {}", crawl.stderr());
    let run = crawl.finish().expect_code(0);
    assert!(run.stderr.contains("can't be told: it took longer than 30s and was ended"), "{}", run.stderr);
}

#[test]
fn c19_the_first_ctrl_c_ends_a_program_that_hangs_and_what_waits_for_it() {
    let desk = Desk::with_script("echo $$ > \"$1.pid\"; cat > /dev/null; sleep 600", "");
    let (_site, file) = broken(&desk, false);
    let pid_file = desk.file_of_told().with_extension("jsonl.pid");
    for words in [&["crawl", file.to_str().expect("a path")][..], &["notify", "--test"]] {
        let _ = std::fs::remove_file(&pid_file);
        let waiting = desk.paced(words).start();
        let pid = || std::fs::read_to_string(&pid_file).ok()?.trim().parse().ok();
        let hanging = eventually("the program", || Pid::from_raw(pid()?));
        std::thread::sleep(Duration::from_millis(500));
        waiting.interrupt();
        let run = waiting.finish();
        assert!(!run.stderr.contains("took longer"), "it was waited for: {run:?}");
        eventually("the program's end", || test_kill_process(hanging).is_err().then_some(()));
    }
}

/// Leaves an event in a frontier, as whoever notices it does.
fn post(frontier: &str, site: &str) {
    let event = Event::new(EventKind::Walled, site, "it refuses").with("refused", 3);
    let posted = runtime().block_on(async {
        Frontier::open(frontier).expect("a URL").post_event(event).await.expect("answers")
    });
    assert!(posted);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[test]
fn c19_whoever_is_killed_while_it_tells_leaves_the_event_to_the_next_one() {
    let hangs = "echo $$ > \"$1.begun\"; exec sleep 100";
    let desk = Desk::with_script(&format!("if [ -e \"$1.begun\" ]; then {KEEPS}; else {hangs}; fi"), "");
    let site = small_site();
    desk.paced(&["seed"]).arg(site_file(&desk.data, &site)).run().expect_code(0);
    post(&desk.sqlite(), "shop");
    let first = desk.paced(&["work"]).start();
    let begun = || std::fs::read_to_string(desk.folder.file("told.jsonl.begun")).ok()?.trim().parse().ok();
    let hanging = eventually("the first one tells", || Pid::from_raw(begun()?));
    first.kill();
    first.finish();
    kill_process(hanging, Signal::KILL).expect("nobody else ended it");
    let second = desk.paced(&["work"]).start();
    eventually("the second one tells", || (!desk.told().is_empty()).then_some(()));
    assert_eq!(kinds(&desk.told()), [of("walled", "shop")]);
    second.terminate();
    second.finish().expect_code(0);
    assert_eq!(desk.told().len(), 1, "and nobody once more");
}

#[test]
fn c19_of_two_processes_one_tells_an_event_and_beside_100000_waiting_pages_within_10_s() {
    told_beside_a_backlog(None);
}

#[test]
fn c19_on_a_redis_an_event_is_told_within_10_s_beside_100000_waiting_pages() {
    let Some(redis) = redis_or_skip() else { return };
    told_beside_a_backlog(Some(redis.url(0)));
}

fn told_beside_a_backlog(redis: Option<String>) {
    let desk = Desk::with_script(KEEPS, "");
    let frontier = redis.unwrap_or_else(|| desk.sqlite());
    let site = TestSite::builder().faults(|_| Some(Reply::html("<h1>Thing</h1>"))).serve();
    let paced = |words: &[&str]| desk.paced(words).env("PACED_FRONTIER", &frontier);
    paced(&["seed"]).arg(site_file(&desk.data, &site)).run().expect_code(0);
    put_many(&frontier, &site, 100_000);
    let workers = ["one", "two"].map(|name| paced(&["work", "--name", name]).start());
    eventually("pages are asked for", || (site.arrivals().len() > 20).then_some(()));
    let mut number = 0;
    in_three_tries(|| {
        number += 1;
        let posted = Instant::now();
        post(&frontier, &format!("shop{number}"));
        let site = format!("shop{number}");
        eventually("it is told", || desk.told().iter().any(|event| event["site"] == site).then_some(()));
        bound(posted.elapsed() < SOON, format_args!("it took {:?}", posted.elapsed()))
    });
    assert_eq!(desk.told().len(), number, "each was told once: {:?}", desk.told());
    for worker in workers {
        worker.terminate();
        worker.finish().expect_code(0);
    }
}

fn put_many(frontier: &str, site: &TestSite, count: u32) {
    runtime().block_on(async {
        let frontier = Frontier::open(frontier).expect("a URL");
        let puts: Vec<Put> = (0..count)
            .map(|n| CanonicalUrl::parse(&site.url(&format!("/p/{n}"))).expect("a URL"))
            .map(|url| Put::request(url, Priority::SEED))
            .collect();
        for portion in puts.chunks(1_000) {
            frontier.put("shop", portion.to_vec()).await.expect("answers");
        }
    });
}
