//! How a crawl ends, as its exit code and its last line tell, and where its items go.

use std::time::Duration;

use paced::internals::mutex::TimedMutex;

use crate::expected::*;
use crate::support::*;

fn crawl(data: &TempData, site: &TestSite, words: &[&str]) -> Run {
    Paced::new(["crawl"].iter().chain(words)).arg(site_file(data, site)).data(data).run()
}

#[track_caller]
fn assert_last_line(run: &Run, told: &str) {
    assert!(
        run.stderr.lines().next_back().is_some_and(|line| line.contains(told)),
        "no `{told}` in\n{}",
        run.stderr
    );
}

#[test]
fn a_crawl_by_name_takes_the_file_of_the_folder_sites() {
    let (data, site) = (TempData::new(), small_site());
    data.write("sites/shop.toml", &(site.toml("shop", Duration::from_millis(10)) + RULES));
    let run = Paced::new(["crawl", "shop"]).dir(data.path()).run().expect_code(0);
    assert_last_line(&run, "done dead=0");
    assert_eq!(
        data.read("paced-data/items/shop.jsonl").lines().count(),
        3,
        "the data folder is where it was started"
    );
}

#[test]
fn items_go_to_one_file_or_to_stdout() {
    let (data, site) = (TempData::new(), small_site());
    let run = crawl(&data, &site, &["--items", "-"]).expect_code(0);
    let mut titles: Vec<_> =
        json_lines_of(&run.stdout).iter().map(|item| item["fields"]["title"].clone()).collect();
    titles.sort_by_key(ToString::to_string);
    assert_eq!(titles, ["Thing 1", "Thing 2", "Thing 3"]);
    let file = data.file("all.jsonl");
    crawl(&data, &site, &["--items", file.to_str().expect("a path")]).expect_code(0);
    assert_eq!(json_lines_of(&data.read("all.jsonl")).len(), 3);
    assert!(!data.file("items").exists());
}

#[test]
fn dead_letters_are_counted_and_fail_only_where_asked_for() {
    let (data, site) = (TempData::new(), small_site());
    site.remove("/p/2");
    let run = crawl(&data, &site, &[]).expect_code(0);
    assert!(run.stderr.contains("dead letter: HTTP 404 Not Found"), "{}", run.stderr);
    assert_last_line(&run, "done dead=1");
    let run = crawl(&TempData::new(), &site, &["--fail-on-dead"]).expect_code(3);
    assert_last_line(&run, "done dead=1");
}

#[test]
fn a_crawl_whose_pages_give_no_item_says_how_to_find_out_why() {
    let (data, site) = (TempData::new(), small_site());
    let rules = RULES.replace("follow = ", "follow = \".no-such-list a\"\n# ");
    let file = data.write("shop.toml", &(site.toml("shop", Duration::from_millis(10)) + &rules));
    let run = Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    let said =
        "no page was an item: `paced try URL` shows which links and rules a page meets site=shop pages=1";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    let run = crawl(&TempData::new(), &site, &[]).expect_code(0);
    assert!(!run.stderr.contains("no page was an item"), "{}", run.stderr);
}

#[test]
fn a_crawl_without_any_page_failed() {
    let (data, site) = (TempData::new(), small_site());
    site.remove("/");
    let run = crawl(&data, &site, &[]).expect_code(1);
    assert_last_line(&run, "done dead=1");
}

#[test]
fn an_early_end_is_named_and_the_next_start_goes_on() {
    let (data, site) = (TempData::new(), small_site());
    let run = crawl(&data, &site, &["--max-pages", "2"]).expect_code(3);
    assert_last_line(&run, "ended early: --max-pages is reached; the next start goes on here");
    assert_eq!(site.requests().len(), 3, "robots.txt and two pages");
    let run = crawl(&data, &site, &["--deadline", "0s"]).expect_code(3);
    assert_last_line(&run, "ended early: the deadline is over; the next start goes on here");
    let run = crawl(&data, &site, &[]).expect_code(0);
    assert!(run.stderr.contains("run goes on where it was site=shop run=1"), "{}", run.stderr);
    assert_eq!(site.count("/p/3"), 1);
    let run = crawl(&data, &site, &["--fresh"]).expect_code(0);
    assert!(run.stderr.contains("run begun site=shop run=2"), "{}", run.stderr);
    assert_eq!(site.count("/p/3"), 2);
}

#[test]
fn a_site_that_cannot_be_reached_is_given_up_and_named() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    drop(site);
    let run = Paced::new(["crawl", "--give-up", "300ms"]).arg(file).data(&data).run().expect_code(3);
    assert!(run.stderr.contains("given up"), "{}", run.stderr);
    assert_last_line(&run, "ended early: sites were given up");
}

#[test]
fn a_run_without_a_single_page_fails_however_good_earlier_ones_were() {
    let data = TempData::new();
    let mut asked = 0;
    let site = TestSite::builder().page("/", "<p>fine</p>").faults(move |request| {
        asked += u32::from(request.path == "/");
        (asked > 1 && request.path == "/").then(|| Reply::status(404))
    });
    let site = site.serve();
    let run = crawl(&data, &site, &[]).expect_code(0);
    assert!(run.stderr.contains("crawled site=shop done=2 "), "{}", run.stderr);
    let run = crawl(&data, &site, &[]).expect_code(1);
    let why = "nothing could be crawled: 1 dead letters, and no page";
    assert!(run.stderr.contains(why) && run.stderr.contains("crawled site=shop done=0 "), "{}", run.stderr);
}

#[test]
fn a_site_that_waits_for_its_turn_is_not_given_up() {
    let (data, site) = (TempData::new(), small_site());
    let toml = site.toml("shop", Duration::from_millis(1_500)) + RULES;
    let file = data.write("shop.toml", &toml);
    let run = Paced::new(["crawl", "--give-up", "300ms", "--max-pages", "3"]).arg(file).data(&data).run();
    assert_last_line(&run.expect_code(3), "ended early: --max-pages is reached; the next start goes on here");
}

#[tokio::test]
async fn a_site_whose_pace_another_program_holds_is_given_up_and_named() {
    let (data, site) = (TempData::new(), small_site());
    let file = data.write("shop.toml", &(site.toml("shop", Duration::from_secs(2)) + RULES));
    Paced::new(["seed"]).arg(&file).data(&data).run().expect_code(0);
    let frontier = format!("sqlite:{}", data.file("frontier.db").display());
    let pace = TimedMutex::of_site(&frontier, "shop").await.expect("the site");
    let mut held = pace.lock().await.expect("it is free");
    held.extend(Duration::from_mins(5)).await.expect("it is held");
    let run = Paced::new(["crawl", "--give-up", "1s"]).arg(file).data(&data).run().expect_code(3);
    assert!(run.stderr.contains("does another program hold its pace?"), "{run:?}");
    assert_eq!(site.requests().len(), 0);
    drop(held);
}

#[test]
fn a_crawl_without_the_password_that_its_site_names_is_not_begun() {
    let (data, site) = (TempData::new(), small_site());
    let toml = site.toml("shop", Duration::from_millis(10)) + RULES;
    let toml = toml.replacen("[fetch]\n", "[fetch]\nauth_env = \"PACED_SECRET_SHOP\"\n", 1);
    let file = data.write("shop.toml", &toml);
    let run = Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(1);
    let what = "auth_env names PACED_SECRET_SHOP: set it to user:password in the environment";
    assert!(run.stderr.contains(what), "{run:?}");
    assert_eq!(site.requests().len(), 0);
    Paced::new(["crawl"]).arg(&file).data(&data).env("PACED_SECRET_SHOP", "me:secret").run().expect_code(0);
}

#[test]
fn of_two_sites_each_is_told_by_its_own_run() {
    let data = TempData::new();
    let file = |name: &str, site: &TestSite| {
        data.write(&format!("{name}.toml"), &(site.toml(name, Duration::from_millis(10)) + RULES))
    };
    let old = TestSite::builder().page("/", "<a href=\"/p/1\">1</a>").status("/p/1", 404);
    let (old, empty) = (old.serve(), TestSite::builder().status("/", 404).serve());
    let (old, empty) = (file("a", &old), file("z", &empty));
    Paced::new(["crawl", "--max-pages", "1"]).arg(&old).data(&data).run().expect_code(3);
    // Named against the order of their names: one begins without a page, the other goes on, and has some.
    let run = Paced::new(["crawl"]).arg(&empty).arg(&old).data(&data).run().expect_code(3);
    assert!(run.stderr.contains("run begun site=z run=1"), "{run:?}");
    assert!(run.stderr.contains("run goes on where it was site=a run=1"), "{run:?}");
    assert_last_line(&run, "done dead=2");
}

#[test]
fn a_signal_ends_it_with_130() {
    let data = TempData::new();
    let site = TestSite::builder().page("/", "").latency(Latency::fixed(Duration::from_millis(300))).serve();
    let running = Paced::new(["crawl"]).arg(site_file(&data, &site)).data(&data).start();
    eventually("a request", || site.requests().first().cloned());
    running.interrupt();
    assert_last_line(&running.finish().expect_code(130), "stopped; the next start goes on here");
}
