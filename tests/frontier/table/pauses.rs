//! Pauses of a site, of its group and of all sites: each is a mark of its own, in force for the very next claim.

use paced::internals::frontier::state::{DropMark, DroppedOf};
use paced::internals::frontier::{Forgotten, GroupPaused, Pause, Tuning, Whose};
use paced::internals::task::Stage;

use crate::world::{Rearmed, START, World, at, on_every_backend};

const DOWNLOAD: Stage = Stage::Download;
const PARSE: Stage = Stage::Parse;

fn until(ms: i64) -> Pause {
    Pause { why: "a mail".to_owned(), until: Some(START + ms) }
}

fn for_good() -> Pause {
    Pause::of("a mail")
}

async fn group(w: &World, pause: impl Into<Option<Pause>>) -> GroupPaused {
    w.frontier.pause_group("g", DOWNLOAD, pause.into()).await.expect("an answer")
}

async fn all(w: &World, pause: impl Into<Option<Pause>>) -> bool {
    w.frontier.pause_all(DOWNLOAD, pause.into()).await.expect("an answer")
}

/// A site of the group, with two downloads that wait.
async fn member(w: &World, name: &str) {
    w.site_with(name, |new| new.group = Some(("g".to_owned(), 0))).await;
    w.put_many(name, 2).await;
}

/// A site by itself, with two downloads that wait.
async fn single(w: &World, name: &str) {
    w.site(name).await;
    w.put_many(name, 2).await;
}

/// The sites of which a claim is granted something, and when the next one is to come.
async fn granted(w: &World) -> (Vec<String>, Option<i64>) {
    let grant = w.grant(w.want(9, 0)).await;
    let mut sites: Vec<String> = grant.leases.into_iter().map(|lease| lease.site).collect();
    sites.sort();
    (sites, grant.next_in)
}

async fn pause_of(w: &World, site: &str) -> Option<String> {
    w.view(site).await.pause()
}

#[test]
fn i11_c13_a_pause_of_a_group_holds_for_all_in_it_for_those_who_join_it_and_for_nobody_else() {
    on_every_backend(async |w| {
        member(w, "a").await;
        single(w, "b").await;
        assert_eq!(group(w, for_good()).await, GroupPaused::Was(false));
        member(w, "c").await;
        assert_eq!(granted(w).await.0, ["b"]);
        assert_eq!(pause_of(w, "a").await.as_deref(), Some("paused: the group g, a mail"));
        assert_eq!(pause_of(w, "c").await.as_deref(), Some("paused: the group g, a mail"));
        assert_eq!(pause_of(w, "b").await, None);
        // Who leaves the group leaves its pause; who joins it finds it.
        w.site("c").await;
        assert_eq!(granted(w).await.0, ["c"]);
        assert_eq!(group(w, None).await, GroupPaused::Was(true));
        assert_eq!(group(w, None).await, GroupPaused::Was(false));
        assert_eq!(granted(w).await.0, ["a"]);
    });
}

#[test]
fn c13_a_group_that_is_not_there_can_not_be_paused() {
    on_every_backend(async |w| {
        single(w, "g").await;
        assert_eq!(group(w, for_good()).await, GroupPaused::Unknown, "it is a site");
        assert_eq!(granted(w).await.0, ["g"]);
    });
}

#[test]
fn i11_c13_a_pause_of_all_holds_for_every_site_and_for_those_that_are_registered_later() {
    on_every_backend(async |w| {
        member(w, "a").await;
        single(w, "b").await;
        assert!(!all(w, for_good()).await);
        single(w, "c").await;
        member(w, "d").await;
        assert_eq!(granted(w).await, (Vec::new(), None));
        assert_eq!(pause_of(w, "c").await.as_deref(), Some("paused: all sites, a mail"));
        w.frontier.rename("c", "e").await.expect("renamed");
        assert_eq!(granted(w).await.0, Vec::<String>::new(), "another name is no way around it");
        assert!(all(w, None).await);
        assert!(!all(w, None).await);
        assert_eq!(granted(w).await.0.len(), 3, "a start of the group, and two of sites by themselves");
    });
}

#[test]
fn c13_each_mark_is_lifted_by_itself() {
    on_every_backend(async |w| {
        member(w, "a").await;
        w.tune("a", Tuning::Paused(Some(until(9_000)))).await;
        group(w, for_good()).await;
        all(w, until(5_000)).await;
        let view = w.view("a").await;
        let whose: Vec<Whose> = view.pauses.iter().map(|pause| pause.whose).collect();
        assert_eq!(whose, [Whose::Site, Whose::Group, Whose::All]);
        assert_eq!((view.paused_until(), view.next_start()), (None, None), "one has no end");
        group(w, None).await;
        let told = format!(
            "paused until {0}: a mail (until {0}); all sites, a mail (until {1})",
            at(9_000),
            at(5_000)
        );
        assert_eq!(pause_of(w, "a").await.as_deref(), Some(&*told));
        w.tune("a", Tuning::Paused(None)).await;
        assert_eq!(w.view("a").await.paused_until(), Some(at(5_000)));
        all(w, None).await;
        assert_eq!(pause_of(w, "a").await, None);
        assert_eq!(granted(w).await.0, ["a"]);
    });
}

#[test]
fn i11_l1_a_pause_that_sites_share_ends_by_itself_with_the_latest_end() {
    on_every_backend(async |w| {
        member(w, "a").await;
        group(w, until(20_000)).await;
        all(w, until(8_000)).await;
        assert_eq!(w.view("a").await.next_start(), Some(at(20_000)));
        assert_eq!(granted(w).await, (Vec::new(), Some(20_000)));
        w.pass(19_999);
        assert_eq!(granted(w).await.0, Vec::<String>::new());
        w.pass(1);
        assert_eq!(granted(w).await.0, ["a"]);
        assert_eq!(pause_of(w, "a").await, None);
    });
}

#[test]
fn i11_what_was_granted_ahead_of_a_shared_pause_goes_back() {
    on_every_backend(async |w| {
        member(w, "a").await;
        single(w, "b").await;
        let (first, second) = (w.take().await, w.take().await);
        let (of_group, other) = if first.site == "a" { (first, second) } else { (second, first) };
        group(w, for_good()).await;
        assert_eq!(w.rearm(&of_group).await, Rearmed::WentBack);
        all(w, for_good()).await;
        assert_eq!(w.rearm(&other).await, Rearmed::WentBack);
    });
}

#[test]
fn c13_a_pause_of_a_group_outlasts_its_last_site() {
    on_every_backend(async |w| {
        w.site_with("a", |new| new.group = Some(("g".to_owned(), 0))).await;
        group(w, for_good()).await;
        assert_eq!(w.frontier.forget("a").await.expect("answered"), Forgotten::Wholly);
        for _ in 0..3 {
            w.pass(2 * 86_400_000);
            w.site("z").await;
            while w.frontier.forget("z").await.expect("answered") != Forgotten::Wholly {
                w.pass(10_000);
            }
        }
        member(w, "b").await;
        assert_eq!(granted(w).await.0, Vec::<String>::new());
        assert_eq!(group(w, None).await, GroupPaused::Was(true));
        assert_eq!(granted(w).await.0, ["b"]);
    });
}

#[test]
fn i16_c13_a_pause_of_all_is_told_in_portions_and_is_in_force_once_it_is_done() {
    on_every_backend(async |w| {
        let names: Vec<String> = (0..250).map(|n| format!("s{n:03}")).collect();
        for name in &names {
            w.site(name).await;
            w.put(name, "1").await;
        }
        let (was, of_all) = w.frontier.begin_pause_of_all(DOWNLOAD, Some(for_good())).await.expect("begun");
        assert!(!was);
        let (mut portions, mut next) = (0, Some(String::new()));
        while let Some(after) = next {
            // Whoever comes in between is told at once.
            single(w, &format!("t{portions}")).await;
            next = w.frontier.tell_paused(of_all.clone(), &after).await.expect("told");
            portions += 1;
        }
        assert!(portions >= 3, "{portions} portions of 250 sites");
        assert_eq!(granted(w).await, (Vec::new(), None));
        assert!(all(w, None).await);
        // Who was slower than somebody else brings nothing back.
        let mut next = Some(String::new());
        while let Some(after) = next {
            next = w.frontier.tell_paused(of_all.clone(), &after).await.expect("told");
        }
        assert_eq!(w.view("s000").await.pause(), None);
        assert_eq!(granted(w).await.0.len(), 9);
    });
}

/// A page of the site that waits for its parse.
async fn stored(w: &World, site: &str) {
    w.put(site, "1").await;
    let lease = w.start().await;
    w.fetched(&lease).await;
}

async fn parses(w: &World) -> (Vec<String>, Option<i64>) {
    let grant = w.grant(w.want(0, 9)).await;
    let mut sites: Vec<String> = grant.leases.into_iter().map(|lease| lease.site).collect();
    sites.sort();
    (sites, grant.next_in)
}

#[test]
fn c13_paused_parses_wait_while_downloads_go_on() {
    on_every_backend(async |w| {
        w.site("a").await;
        stored(w, "a").await;
        w.tune("a", Tuning::ParsePaused(Some(for_good()))).await;
        assert_eq!(parses(w).await, (Vec::new(), None));
        let view = w.view("a").await;
        assert_eq!((view.pause(), view.parse_pause().as_deref()), (None, Some("parses are paused: a mail")));
        w.pass(1_000);
        w.put("a", "2").await;
        let lease = w.start().await;
        w.fetched(&lease).await;
        assert_eq!(parses(w).await.0, Vec::<String>::new());
        w.tune("a", Tuning::ParsePaused(None)).await;
        assert_eq!(parses(w).await.0, ["a", "a"]);
    });
}

#[test]
fn i11_l1_a_pause_of_parses_ends_by_itself_for_one_site_of_a_group_too() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site_with(site, |new| new.group = Some(("g".to_owned(), 0))).await;
            stored(w, site).await;
            w.pass(1_000);
        }
        let now = w.now();
        w.tune("a", Tuning::ParsePaused(Some(until(now + 4_000)))).await;
        assert_eq!(parses(w).await, (vec!["b".to_owned()], Some(4_000)));
        w.tune("a", Tuning::ParsePaused(Some(until(now + 7_000)))).await;
        w.pass(4_000);
        assert_eq!(parses(w).await, (Vec::new(), Some(3_000)), "it was made longer");
        w.pass(3_000);
        assert_eq!(parses(w).await.0, ["a"]);
        assert_eq!(w.view("a").await.parse_pause(), None);
    });
}

#[test]
fn i11_l1_parses_of_a_group_and_of_all_are_paused_and_go_on() {
    on_every_backend(async |w| {
        w.site_with("a", |new| new.group = Some(("g".to_owned(), 0))).await;
        w.site("b").await;
        stored(w, "a").await;
        stored(w, "b").await;
        let now = w.now();
        let of_group = w.frontier.pause_group("g", PARSE, Some(until(now + 4_000))).await;
        assert_eq!(of_group.expect("an answer"), GroupPaused::Was(false));
        w.frontier.pause_all(PARSE, Some(until(now + 2_000))).await.expect("an answer");
        assert_eq!(parses(w).await, (Vec::new(), Some(2_000)));
        w.pass(2_000);
        assert_eq!(parses(w).await, (vec!["b".to_owned()], Some(2_000)));
        w.pass(2_000);
        assert_eq!(parses(w).await.0, ["a"]);
        assert!(
            w.frontier.pause_group("g", DOWNLOAD, None).await.expect("answers") == GroupPaused::Was(false)
        );
    });
}

#[test]
fn c13_requests_to_be_dropped_are_told_with_whose_they_are_for_ten_minutes() {
    on_every_backend(async |w| {
        let drops = async || w.frontier.drops().await.expect("answers");
        assert_eq!(drops().await, []);
        let whose = [DroppedOf::Site("a".to_owned()), DroppedOf::Unit("g".to_owned()), DroppedOf::All];
        let began = START + w.now();
        for of in &whose {
            w.frontier.drop_requests(of.clone()).await.expect("answers");
            w.pass(1_000);
        }
        let told = drops().await;
        let expected = (0..).zip(whose).map(|(n, of)| DropMark { at: began + 1_000 * n, of });
        assert_eq!(told, expected.collect::<Vec<_>>());
        let means =
            |site, unit, granted| told.iter().map(|mark| mark.means(site, unit, began + granted)).collect();
        let of: [Vec<bool>; 4] =
            [means("a", "a", 0), means("a", "a", 1), means("b", "g", 1_000), means("b", "b", 2_001)];
        assert_eq!(
            of,
            [vec![true, false, true], vec![false, false, true], vec![false, true, true], vec![false; 3]]
        );
        w.pass(600_000 - 3_000);
        assert_eq!(drops().await, told[1..]);
        for n in 0..1_001 {
            w.frontier.drop_requests(DroppedOf::Site(format!("s{n}"))).await.expect("answers");
            w.frontier.drop_requests(DroppedOf::All).await.expect("answers");
        }
        let told = drops().await;
        assert_eq!((told.len(), told.iter().filter(|mark| mark.of == DroppedOf::All).count()), (1_000, 1));
    });
}
