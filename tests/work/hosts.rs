//! A page that links to many hosts: whose they are is asked in portions, with other steps in between.

use paced::internals::task::{Priority, Put};

use crate::fleet::{items_of, register_only, worker};
use crate::ground::*;
use crate::support::*;

/// Hosts that one page links to; each fifth is some site's.
const HOSTS: usize = 400;
/// The most that one batch asks about.
const PORTION: usize = 32;

#[test]
fn i16_owners_of_a_page_s_hosts_are_asked_for_in_portions() {
    let Some(shared) = Shared::redis() else { return };
    let host = |n: usize| format!("h{n:03}.example.com");
    let links = (0..HOSTS).map(|n| format!("http://{}/p", host(n)));
    let site = TestSite::builder().page("/", page("front", links)).serve();
    let known: Vec<String> = (0..HOSTS).step_by(5).map(|n| format!("{:?}", host(n))).collect();
    let others =
        SiteFile::new("others", "http://h000.example.com/").scope(&format!("hosts = [{}]", known.join(", ")));
    let ground = Ground::on(&shared, [SiteFile::of("shop", &site).pace("robots = \"ignore\""), others]);
    register_only(&ground, "shop");
    register_only(&ground, "others");
    wait(ground.frontier().tune("others", paced::internals::frontier::Tuning::pause("later")))
        .expect("paused");
    let mut running = worker(&ground, "w").start();
    running.wait_for_stderr("at work");
    let heard = shared.server().heard_steps();
    let put = Put::request(site.url("/").parse().expect("a URL"), Priority::OPERATOR);
    wait(ground.frontier().put("shop", vec![put])).expect("put");
    eventually("its item", || items_of(&ground, "shop", "w").first().cloned());
    let batches = heard.batches();
    running.terminate();
    running.finish().expect_code(0);
    let asked_by = |batch: &Vec<String>| batch.iter().filter(|name| *name == "view.site_of").count();
    let portions: Vec<usize> = batches.iter().map(asked_by).filter(|asked| *asked > 0).collect();
    assert_eq!(portions.iter().sum::<usize>(), HOSTS, "each once: {portions:?}");
    assert!(portions.iter().all(|asked| *asked <= PORTION), "{portions:?}");
    assert!(portions.len() <= 3 * HOSTS / PORTION, "they travel together: {portions:?}");
    let texts = batches.iter().flatten().filter(|name| *name == "view.text").count();
    assert!(texts <= 2 * HOSTS / PORTION, "the rules of a site are read once a portion: {texts}");
    assert_eq!(ground.view("others").download.waiting, HOSTS as u64 / 5);
}
