//! `forget --rename-to`: a site goes on under another name.

use std::time::Duration;

use crate::expected::*;
use crate::support::*;

const INTERVAL: Duration = Duration::from_millis(300);

#[test]
fn i1_a_renamed_site_goes_on_where_it_was_at_its_pace_and_asks_for_nothing_twice() {
    let (data, site) = (TempData::new(), small_site());
    let file = |name: &str| data.write(&format!("{name}.toml"), &(site.toml(name, INTERVAL) + RULES));
    let (old, new) = (file("shop"), file("store"));
    Paced::new(["crawl", "--max-pages", "2"]).arg(&old).data(&data).run().expect_code(3);
    let before = site.arrivals().len();
    let run = Paced::new(["forget", "shop", "--rename-to"]).arg(&new).data(&data).run().expect_code(0);
    assert!(run.stdout.starts_with("shop: renamed to store; pages waiting: "), "{run:?}");
    assert!(run.stdout.ends_with("what was stored and written before keeps the name shop\n"), "{run:?}");
    assert_eq!(site.arrivals().len(), before);
    Paced::new(["crawl"]).arg(&new).data(&data).run().expect_code(0);

    let mut paths: Vec<String> = site.arrivals().iter().map(|arrival| arrival.path.clone()).collect();
    paths.sort();
    let asked = paths.len();
    paths.dedup();
    // Under new rules robots.txt is read anew.
    assert_eq!((paths.contains(&"/robots.txt".to_owned()), asked - paths.len()), (true, 1), "{paths:?}");
    let view = status(&data);
    assert_eq!((&view["run"], &view["state"]), (&1.into(), &"finished".into()), "{view}");
    for name in ["shop", "store"] {
        let audit = Paced::new(["audit", name, "--json"]).data(&data).run().expect_code(0);
        assert_eq!(json_lines_of(&audit.stdout)[0]["early"], 0, "{}", audit.stdout);
    }
    let run = Paced::new(["reparse", "store"]).data(&data).run().expect_code(0);
    assert!(
        run.stdout.contains("store: 4 pages: 2 same, 0 changed, 1 new"),
        "those kept under the old name too: {run:?}"
    );
    // The audits know nothing of each other: between them it is the server that tells.
    let arrivals = site.arrivals();
    let (last, first) = (&arrivals[before - 1], &arrivals[before]);
    let gap = first.at.saturating_sub(last.at);
    assert!(gap + INTERVAL / 3 >= INTERVAL, "{gap:?} between {last:?} and {first:?}");
}

#[test]
fn a_name_that_is_taken_or_has_no_file_and_a_site_that_is_worked_on_are_refused() {
    let (data, _site, file) = crawled();
    let forget = |new: &str| Paced::new(["forget", "shop", "--rename-to", new]).data(&data).run();
    let run = forget(&file.display().to_string()).expect_code(1);
    assert!(run.stderr.contains("there is a site `shop` already: forget it first"), "{run:?}");
    let run = forget("nowhere").expect_code(2);
    assert!(run.stderr.contains("there is no site `nowhere`: no such file"), "{run:?}");
    let run = Paced::new(["forget", "shop", "--rename-to", "x", "--items"]).data(&data).run().expect_code(2);
    assert!(run.stderr.contains("cannot be used with"), "{run:?}");
    let working = Paced::new(["work"]).data(&data).start();
    eventually("a worker", || {
        let run = forget(&file.display().to_string());
        run.stderr.contains("site `shop` is being worked on by").then_some(())
    });
    working.signal(rustix::process::Signal::TERM);
    working.finish().expect_code(0);
}
