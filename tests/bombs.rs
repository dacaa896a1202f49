//! Pages made to cost much: each ends soon and within its memory, as an item or with a reason that says what it was too dear at.

#[path = "bombs/below.rs"]
mod below;
#[path = "../benches/measure/child.rs"]
#[allow(dead_code, reason = "benches use more of it")]
mod child;
#[path = "bombs/crawled.rs"]
mod crawled;
#[path = "crawl/ground.rs"]
mod ground;
#[path = "bombs/pages.rs"]
mod pages;
#[path = "support/mod.rs"]
mod support;

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use below::BELOW;
use child::{Cost, Measured};
use paced::internals::budget::Budget;
use paced::internals::extract::{Fetched, extract_within};
use paced::internals::page::Headers;
use paced::internals::site;
use paced::{CanonicalUrl, Timestamp};
use pages::{BOMBS, Bomb, SITE};
use support::{bound, in_three_tries, paced};
use tempfile::TempDir;

/// What a page may take on a processor, its program's start included.
const MOST_CPU: Duration = Duration::from_secs(3);
/// Memory that a page may take, beside what the program takes for a small one.
const MOST_MEMORY: u64 = 150 << 20;
/// Lines that are told of a page, at most, whatever it holds.
const MOST_LINES: usize = 20;
/// Steps that no loop takes between two looks at what is left.
const MOST_AT_ONCE: u64 = 1_000_000;

/// The tests of this program take turns: each measures what a page costs.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder with the site's file.
struct Ground(TempDir);

impl Ground {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("shop.toml"), SITE).expect("written");
        Self(folder)
    }

    /// What the site's rules make of the page, and what that cost.
    fn tried(&self, rule: &str, body: &[u8]) -> (String, Cost) {
        let file = |name: &str| self.0.path().join(name);
        std::fs::write(file("page"), body).expect("written");
        let out = |name: &str| std::fs::File::create(file(name)).expect("a file");
        let mut command = Command::new(paced());
        command.current_dir(self.0.path()).env("PACED_DATA", file("data"));
        command.args([
            "try",
            &format!("https://shop.example/{rule}/1"),
            "--site",
            "shop.toml",
            "--from",
            "page",
        ]);
        let measured = Measured::run(command.stdout(Stdio::from(out("out"))).stderr(Stdio::from(out("err"))));
        let text = |name: &str| std::fs::read_to_string(file(name)).expect("text");
        let told = text("err");
        assert!(told.lines().count() <= MOST_LINES, "{rule}: {} lines, {told:.1000}", told.lines().count());
        let printed = text("out") + &told;
        assert!(measured.status.code().is_some(), "{rule}: {:?}, {printed}", measured.status);
        (printed, measured.cost)
    }
}

fn all() -> impl Iterator<Item = &'static Bomb> {
    let only = std::env::var("PACED_TEST_BOMB").ok();
    BOMBS.iter().chain(BELOW).filter(move |bomb| only.as_ref().is_none_or(|only| bomb.name.contains(only)))
}

#[test]
fn each_page_that_is_made_to_cost_much_ends_soon_and_says_what_became_of_it() {
    let _turn = alone();
    let ground = Ground::new();
    let (_, small) = ground.tried("title", b"<h1>small</h1>");
    for Bomb { name, rule, body, says } in all() {
        let body = body();
        assert!(body.len() <= 8 << 20, "{name}: a page of {} bytes isn't read at all", body.len());
        in_three_tries(|| {
            let (printed, cost) = ground.tried(rule, &body);
            let more = cost.peak.saturating_sub(small.peak);
            eprintln!("{name}: {} bytes, {:?}, {} MiB", body.len(), cost.cpu, more >> 20);
            let ends = says.iter().any(|says| printed.contains(says));
            assert!(ends, "{name}: {}", printed.chars().take(2_000).collect::<String>());
            // How much is taken at once hangs on what else runs.
            bound(more <= MOST_MEMORY, format_args!("{name}: {more} bytes"))?;
            bound(cost.cpu <= MOST_CPU, format_args!("{name}: {:?}", cost.cpu))
        });
    }
}

#[test]
fn no_loop_over_a_page_takes_a_million_steps_between_two_looks_at_what_is_left() {
    let _turn = alone();
    let (site, mut failed) = (site::parse(SITE, "shop.toml").expect("a good site"), Vec::new());
    for Bomb { name, rule, body, .. } in all() {
        let (body, headers) = (body(), Headers::default());
        let url = CanonicalUrl::parse(&format!("https://shop.example/{rule}/1")).expect("a URL");
        let rule = site.rule_for(&url).expect("a rule");
        let page =
            Fetched { url: &url, fetched_at: Timestamp::from_millis(0), headers: &headers, body: &body };
        for most in [1_000_000, 20_000_000] {
            let budget = Budget::of_steps(most);
            let extract = extract_within(&budget, &page, rule, &site);
            let (steps, at_once) = (budget.steps(), budget.most_at_once());
            eprintln!("{name}: {steps} steps of {most}, {at_once} at once, {:?}", extract.map(|_| ()));
            if at_once >= MOST_AT_ONCE || steps >= most + MOST_AT_ONCE {
                failed.push(format!("{name}: {steps} steps of {most}, {at_once} at once"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
