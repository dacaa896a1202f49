//! `--sites DIR` and the rules in force: read at the start and on SIGHUP; a bad file changes nothing; rules that others
//! register count from the next page on.

use paced::internals::frontier::{Registration, SiteSettings};
use paced::internals::task::{Priority, Put};
use rustix::process::Signal;

use crate::fleet::{items_of, register_only, seed, to_the_end, worker};
use crate::ground::*;
use crate::support::*;

fn with_folder(ground: &Ground) -> Paced {
    worker(ground, "w").arg("--sites").arg(ground.data.file("sites"))
}

fn titles(ground: &Ground, site: &str) -> Vec<String> {
    items_of(ground, site, "w").iter().map(|item| text(&item["fields"]["title"])).collect()
}

/// How often the log says it.
fn said(running: &Running, what: &str) -> usize {
    running.stderr().matches(what).count()
}

#[test]
fn on_sighup_new_files_come_in_good_ones_change_and_bad_ones_leave_the_old_rules_with_one_line() {
    on_each_frontier(|shared| {
        let (kept, changed, new) = (star(1).serve(), star(1).serve(), star(1).serve());
        let ground = Ground::on(shared, [SiteFile::of("kept", &kept), SiteFile::of("changed", &changed)]);
        let mut running = with_folder(&ground).start();
        running.wait_for_stderr("site files read");
        assert!(running.stderr().contains("sites=2 changed=2 wrong=0"), "{}", running.stderr());
        assert_eq!(ground.view("kept").run, 0, "registered, and not begun");
        let version = |site| ground.view(site).version;
        let before = [version("kept"), version("changed")];

        ground.data.write("sites/kept.toml", "seeds = 1\nname = 2\nfoo = 3\n");
        ground.rewrite(&SiteFile::of("changed", &changed).pages(&EVERY_PAGE.replace("\"h1\"", "\"title\"")));
        ground.data.write("sites/new.toml", &SiteFile::of("new", &new).text());
        ground.data.write("sites/notes.txt", "no site file");
        running.signal(Signal::HUP);
        running.wait_for_stderr("sites=2 changed=2 wrong=1");
        let log = running.stderr();
        let bad: Vec<&str> = log.lines().filter(|line| line.contains("kept.toml")).collect();
        assert_eq!(bad.len(), 1, "{log}");
        for told in [
            "ERROR",
            "kept.toml:1:1: there are no page rules",
            "3 more: `paced check ",
            "the rules that were in force stay so",
        ] {
            assert!(bad[0].contains(told), "no `{told}` in {}", bad[0]);
        }
        assert_eq!(version("kept"), before[0]);
        assert!(version("changed") > before[1], "{} after {before:?}", version("changed"));

        for (name, site) in [("kept", &kept), ("changed", &changed), ("new", &new)] {
            ground.verb("put").arg(name).arg(site.url("/p/1")).run().expect_code(0);
            eventually("its item", || items_of(&ground, name, "w").first().cloned());
        }
        assert_eq!(titles(&ground, "changed"), ["/p/1"]);
        running.terminate();
        running.finish().expect_code(0);
    });
}

#[test]
fn sites_that_do_not_go_together_are_said_and_the_others_are_taken() {
    on_each_frontier(|shared| {
        let (one, two) = (star(1).serve(), star(1).serve());
        let ground =
            Ground::on(shared, [SiteFile::of("a", &one), SiteFile::of("b", &one), SiteFile::of("z", &two)]);
        ground.data.write("sites/c.toml", &SiteFile::of("a", &two).text());
        let mut running = with_folder(&ground).start();
        running.wait_for_stderr("sites=2 changed=2 wrong=2");
        let log = running.stderr();
        assert!(log.contains("b.toml: host") && log.contains("belongs to site `a` already"), "{log}");
        assert!(
            log.contains("c.toml: site `a` is") && log.contains("a.toml already; give it another name"),
            "{log}"
        );
        running.terminate();
        running.finish().expect_code(0);
    });
}

#[test]
fn a_sighup_without_a_folder_is_said_and_ends_nothing() {
    let ground = Ground::new([]);
    let mut running = worker(&ground, "w").start();
    running.wait_for_stderr("at work");
    running.signal(Signal::HUP);
    running.wait_for_stderr("none were named: start with --sites DIR");
    assert_eq!(said(&running, "none were named"), 1);
    running.terminate();
    running.finish().expect_code(0);
}

#[test]
fn rules_that_another_process_registers_count_from_the_next_page_on() {
    on_each_frontier(|shared| {
        let site = star(40).serve();
        let first = SiteFile::of("shop", &site).interval(ms(60));
        let ground = Ground::on(shared, [first.clone()]);
        seed(&ground);
        let running = worker(&ground, "w").start();
        eventually("an item", || items_of(&ground, "shop", "w").first().cloned());
        let marked =
            EVERY_PAGE.replace("title = \"h1\"", "title = \"h1\"\nmark = { css = \"h1\", as = \"bool\" }");
        ground.rewrite(&first.pages(&marked));
        let again = ground.verb_on_all("seed").run().expect_code(0);
        assert!(again.stdout.contains("run 1 goes on where it was"), "{}", again.stdout);
        let marked = eventually("an item by the new rules", || {
            items_of(&ground, "shop", "w").into_iter().find(|item| item["fields"]["mark"] == true)
        });
        assert_eq!(marked["site"], "shop");
        assert!(
            items_of(&ground, "shop", "w")[0]["fields"].get("mark").is_none(),
            "the first was by the old ones"
        );
        running.terminate();
        running.finish().expect_code(0);
    });
}

#[test]
fn a_worker_without_a_sites_password_leaves_its_pages_to_those_that_have_it() {
    on_each_frontier(|shared| {
        let site = star(3).serve();
        let file = SiteFile::of("shop", &site).fetch("auth_env = \"PACED_SECRET_SHOP\"");
        let open = star(2).serve();
        let ground = Ground::on(shared, [file, SiteFile::of("open", &open)]);
        seed(&ground);
        let mut without = worker(&ground, "without").start();
        without.wait_for_stderr("its pages go back to the others: auth_env names PACED_SECRET_SHOP");
        assert_eq!(site.requests().len(), 0);
        eventually("it works on the other site", || (open.count("/p/2") == 1).then_some(()));
        ground.verb("put").arg("open").arg(open.url("/p/1")).run().expect_code(0);
        eventually("also what comes later", || (open.count("/p/1") == 2).then_some(()));
        let log = to_the_end(&ground, "neither").run().expect_code(1).stderr;
        assert!(log.contains("ended early: the password of a site is missing here"), "{log}");
        let with = to_the_end(&ground, "with").env("PACED_SECRET_SHOP", "me:secret").run().expect_code(0);
        assert!(with.stderr.contains("done dead=0"), "{}", with.stderr);
        assert_eq!(said(&without, "its pages go back to the others"), 1, "{}", without.stderr());
        assert!(site.requests().iter().all(|request| request.header("authorization").is_some()));
        assert_eq!(site.count("/p/3"), 1);
        without.terminate();
        without.finish().expect_code(0);
    });
}

#[test]
fn a_worker_that_cannot_read_a_sites_rules_leaves_it_to_newer_ones_and_what_leads_to_it_waits() {
    on_each_frontier(|shared| {
        let new = star(3).serve();
        let front = TestSite::builder().page("/", page("front", [new.url("/p/3"), "/moved".to_owned()]));
        let shop = front
            .page("/plain", page("plain", [""; 0]))
            .reply("/moved", Reply::redirect(302, new.url("/p/3")));
        let shop = shop.serve();
        let ground = Ground::on(shared, [SiteFile::of("shop", &shop), SiteFile::of("new", &new)]);
        register_only(&ground, "shop");
        let register = |text: String| {
            let hosts = vec![new.addr().to_string()];
            let settings = SiteSettings { parallel: 1, attempts: 5, ..SiteSettings::default() };
            let rules = Registration { name: "new".to_owned(), text, group: None, hosts, settings };
            wait(ground.frontier().register(rules)).expect("registered");
        };
        let text = std::fs::read_to_string(ground.file("new")).expect("a file");
        register(format!("a_key_of_tomorrow = true\n{text}"));
        let put = |name: &str, url: String| {
            let put = Put::request(url.parse().expect("a URL"), Priority::OPERATOR);
            wait(ground.frontier().put(name, vec![put])).expect("put");
        };
        for path in ["/p/1", "/p/2"] {
            put("new", new.url(path));
        }
        for path in ["/", "/moved", "/plain"] {
            put("shop", shop.url(path));
        }

        let mut old = worker(&ground, "old").start();
        old.wait_for_stderr(
            "its pages go back to the others: frontier: the rules of site `new` can't be read",
        );
        old.wait_for_stderr("what leads to `new` waits with its page");
        eventually("what leads elsewhere", || items_of(&ground, "shop", "old").first().cloned());
        let (left, leading) = eventually("that nothing is held", || {
            let (left, leading) = (ground.view("new"), ground.view("shop"));
            let leased = [&left, &leading].map(|view| view.download.leased + view.parse.leased);
            let delayed = (leading.download.delayed, leading.parse.delayed) == (1, 1);
            (leased == [0, 0] && delayed).then_some((left, leading))
        });
        let waiting = left.download.waiting + left.download.delayed;
        assert_eq!((waiting, left.download.lost, left.download.dead), (2, 0, 0), "{left:?}");
        assert_eq!((leading.download.lost, leading.download.retried, leading.download.dead), (0, 0, 0));
        assert_eq!((leading.parse.lost, leading.parse.retried, leading.parse.dead), (0, 0, 0));
        for told in ["its pages go back to the others", "what leads to `new` waits"] {
            assert_eq!(said(&old, told), 1, "{}", old.stderr());
        }
        register(text);
        let newer = worker(&ground, "newer").start();
        eventually("its pages", || (new.count("/p/2") == 1).then_some(()));
        for worker in [old, newer] {
            worker.terminate();
            worker.finish().expect_code(0);
        }
    });
}

#[test]
fn that_robots_txt_is_ignored_is_said_once_a_start_whoever_registered_the_site() {
    on_each_frontier(|shared| {
        let site = star(3).robots("User-agent: *\nDisallow: /\n").serve();
        let ground = Ground::on(shared, [SiteFile::of("shop", &site).pace("robots = \"ignore\"")]);
        seed(&ground);
        for expected in 1..=2 {
            let log = to_the_end(&ground, "w").run().expect_code(0).stderr;
            assert_eq!(log.matches("robots.txt is ignored").count(), 1, "{log}");
            assert_eq!(site.count("/p/3"), expected);
            seed(&ground);
        }
        let running = with_folder(&ground).start();
        eventually("a page of the last run", || (site.count("/p/3") == 3).then_some(()));
        assert_eq!(said(&running, "robots.txt is ignored"), 1, "{}", running.stderr());
        running.terminate();
        running.finish().expect_code(0);
    });
}

#[test]
fn rules_that_begin_to_ignore_robots_txt_are_said_once() {
    on_each_frontier(|shared| {
        let site = star(2).serve();
        let file = SiteFile::of("shop", &site);
        let ground = Ground::on(shared, [file.clone()]);
        seed(&ground);
        let mut running = worker(&ground, "w").start();
        eventually("a page", || (site.count("/p/2") == 1).then_some(()));
        assert_eq!(said(&running, "robots.txt is ignored"), 0, "{}", running.stderr());
        ground.rewrite(&file.pace("robots = \"ignore\""));
        let put = |path: &str| {
            ground.verb("put").arg(ground.file("shop")).arg(site.url(path)).run().expect_code(0);
            eventually("its page", || (site.count(path) == 2).then_some(()));
        };
        register_only(&ground, "shop");
        put("/p/1");
        running.wait_for_stderr("robots.txt is ignored");
        put("/p/2");
        running.terminate();
        let log = running.finish().expect_code(0).stderr;
        assert_eq!(log.matches("robots.txt is ignored").count(), 1, "{log}");
    });
}
