//! Owners: a process that is gone loses its leases at once.

use std::collections::BTreeSet;

use paced::internals::frontier::{Claim, Grant, LastBeat, Member, SignOfLife, WorkScope};
use paced::internals::task::Settled;

use crate::world::{Backend, World, on_every_backend, path_of, wait_for};

#[test]
fn c10_l4_the_leases_of_a_dead_owner_return_at_once_and_its_tokens_are_stale() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.put_many("a", 3).await;
        let mut zombie = w.frontier.join(WorkScope::of(["a".to_owned()])).await.expect("joined");
        let alive = w.frontier.join(WorkScope::All).await.expect("joined");
        zombie.name.truncate(16);
        let lost = w.take_as(&zombie.name).await;
        let kept = w.take_as(&alive.name).await;
        w.frontier.bury(&zombie.name).await.expect("buried");
        assert_eq!(w.frontier.extend(vec![lost.key(), kept.key()]).await.expect("answers"), [false, true]);
        assert_eq!(w.done(&lost).await, Settled::Stale);
        let claim = Claim { owner: zombie.name.clone(), ..w.want(1, 0) };
        let nothing = Grant { buried: true, ..Grant::default() };
        assert_eq!(w.grant(claim).await, nothing, "the dead claim nothing");
        let again = w.take_as(&alive.name).await;
        assert_eq!(path_of(&again), path_of(&lost));
        assert_eq!((again.attempts, w.downloads("a").await.lost), (0, 1));
        assert_eq!(w.done(&again).await, Settled::Kept);
    });
}

#[test]
fn c10_a_process_buried_by_mistake_is_told_at_its_next_claim_and_gets_its_tasks_under_a_new_name() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.put_many("a", 2).await;
        let member = w.frontier.join(WorkScope::of(["a".to_owned()])).await.expect("joined");
        let lease = w.take_as(&member.name).await;
        w.frontier.bury(&member.name).await.expect("buried");
        w.frontier.beat(&member, true).await.expect("a beat is no resurrection");
        for _ in 0..2 {
            let grant = w.grant(Claim { owner: member.name.clone(), ..w.want(2, 0) }).await;
            assert!(grant.buried && grant.leases.is_empty(), "{grant:?}");
        }
        let again = w.frontier.join_anew(&member, WorkScope::of(["a".to_owned()])).await.expect("joined");
        assert_ne!(again.name, member.name);
        let grant = w.grant(Claim { owner: again.name.clone(), ..w.want(2, 0) }).await;
        assert!(!grant.buried && grant.leases.len() == 2, "{grant:?}");
        assert_eq!(path_of(&grant.leases[0]), path_of(&lease), "its task, in the old position");
        let owners = w.frontier.owners().await.expect("answers");
        let scopes: Vec<_> = owners.into_iter().map(|owner| (owner.name, owner.scope)).collect();
        let only_a = WorkScope::of(["a".to_owned()]);
        assert_eq!(
            scopes,
            [(again.name, only_a)],
            "it works on what it worked on, and its old name is forgotten"
        );
    });
}

#[test]
fn l1_a_dead_owner_s_leases_can_be_had_at_once() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let zombie = w.frontier.join(WorkScope::All).await.expect("joined");
        w.take_as(&zombie.name).await;
        w.frontier.bury(&zombie.name).await.expect("buried");
        let other = Claim { download: 0, parse: 0, ..w.want(0, 0) };
        w.grant(other).await;
        assert_eq!(w.place("a", "p").await, "waiting");
    });
}

#[test]
fn i16_a_dead_owner_s_leases_return_a_hundred_a_step() {
    on_every_backend(async |w| {
        w.site_with("a", |a| {
            a.settings.interval = 0;
            a.settings.parallel = 500;
        })
        .await;
        w.put_many("a", 150).await;
        for _ in 0..3 {
            w.grant(Claim { owner: "zombie".to_owned(), ..w.want(50, 0) }).await;
        }
        w.frontier.bury("zombie").await.expect("buried");
        let first = w.grant(w.want(0, 0)).await;
        assert_eq!((w.downloads("a").await.leased, first.next_in), (50, Some(0)));
        w.grant(w.want(0, 0)).await;
        assert_eq!(w.downloads("a").await.leased, 0);
    });
}

#[test]
fn c18_a_beat_tells_how_many_processes_share_the_downloads() {
    on_every_backend(async |w| {
        let join = async || w.frontier.join(WorkScope::All).await.expect("joined");
        let beat =
            async |member: &Member, downloads| w.frontier.beat(member, downloads).await.expect("beaten");
        let (one, two, parses) = (join().await, join().await, join().await);
        assert_eq!(beat(&parses, false).await, 0, "who only parses shares none");
        assert_eq!(beat(&one, true).await, 1, "the other one hasn't said so");
        assert_eq!(beat(&two, true).await, 2);
        assert_eq!(beat(&one, true).await, 2, "who says it again is one all the same");
        w.work_on(&two.name, WorkScope::of(["a".to_owned()])).await;
        assert_eq!(beat(&two, true).await, 0, "who works on some sites alone shares none");
        assert_eq!(beat(&one, true).await, 1);
        w.work_on(&two.name, WorkScope::All).await;
        assert_eq!(beat(&one, true).await, 1, "the other one hasn't said so again");
        assert_eq!(beat(&two, true).await, 2);
        w.frontier.bury(&two.name).await.expect("buried");
        assert_eq!(beat(&one, true).await, 1, "the dead share none");
        assert_eq!(beat(&two, true).await, 0, "and don't come back");
        assert_eq!(beat(&one, true).await, 1);
        w.frontier.leave(one).await.expect("left");
        assert_eq!(beat(&parses, false).await, 0);
    });
}

#[test]
fn a_drained_process_hears_of_it_with_its_next_beat_and_its_leases_stay_its_own() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.put_many("a", 2).await;
        let join = async || w.frontier.join_as("w", WorkScope::All).await.expect("joined");
        let member = join().await;
        let other = w.frontier.join(WorkScope::of(["a".to_owned()])).await.expect("joined");
        let told = async |member: &Member| {
            let beaten = w.frontier.beat_telling(member, false, SignOfLife::default()).await;
            beaten.expect("beaten").drained
        };
        let lease = w.take_as(&member.name).await;
        assert!(!told(&member).await && !told(&other).await);
        assert!(w.frontier.drain(&member.name).await.expect("answers"));
        assert!(w.frontier.drain(&member.name).await.expect("answers"), "again");
        assert!(told(&member).await && told(&member).await, "until it ends");
        assert!(!told(&other).await, "nobody else");
        w.work_on(&member.name, WorkScope::of(["a".to_owned()])).await;
        assert!(told(&member).await, "also if it works on something else");
        assert_eq!(w.frontier.extend(vec![lease.key()]).await.expect("answers"), [true]);
        assert_eq!(w.done(&lease).await, Settled::Kept);
        let drained = async || {
            let owners = w.frontier.owners().await.expect("answers");
            owners.into_iter().filter(|owner| owner.drained).map(|owner| owner.name).collect::<Vec<_>>()
        };
        assert_eq!(drained().await, std::slice::from_ref(&member.name));
        w.frontier.leave(member).await.expect("left");
        assert_eq!(drained().await, [""; 0]);
        let again = join().await;
        assert!(!told(&again).await, "who starts again under its name works");
        w.frontier.bury(&again.name).await.expect("buried");
        assert!(!w.frontier.drain(&again.name).await.expect("answers"), "the dead can't be drained");
        assert!(!w.frontier.drain("stranger").await.expect("answers"));
        assert!(!told(&again).await);
    });
}

#[test]
fn a_beat_tells_what_people_may_know_of_a_process() {
    on_every_backend(async |w| {
        let member = w.frontier.join(WorkScope::All).await.expect("joined");
        let beat = async || w.frontier.owners().await.expect("answers").remove(0).beat.expect("a beat");
        let joined = LastBeat { at: w.frontier.clock().now(), tells: SignOfLife::of_this_process() };
        assert_eq!(beat().await, joined, "it has told who it is, and nothing of slots");
        assert!(!joined.tells.host.is_empty() && !joined.tells.version.is_empty());
        w.pass(3_000);
        let tells =
            SignOfLife { downloads: Some(12), parses: None, leases: 7, ..SignOfLife::of_this_process() };
        w.frontier.beat_telling(&member, true, tells.clone()).await.expect("beaten");
        let last = LastBeat { at: w.frontier.clock().now(), tells };
        assert_eq!(beat().await, last);
        w.pass(3_000);
        w.work_on(&member.name, WorkScope::of([])).await;
        assert_eq!(beat().await, last, "who says what it works on tells nothing else");
    });
}

#[test]
fn i15_a_dead_owner_without_leases_is_forgotten() {
    on_every_backend(async |w| {
        let member = w.frontier.join(WorkScope::of(["a".to_owned()])).await.expect("joined");
        let owners = w.frontier.owners().await.expect("answers");
        assert_eq!(owners.len(), 1);
        assert_eq!((owners[0].pid, &owners[0].scope), (std::process::id(), &WorkScope::of(["a".to_owned()])));
        w.frontier.leave(member).await.expect("left");
        assert_eq!(w.frontier.owners().await.expect("answers"), []);
    });
}

#[test]
fn i17_a_dead_owner_is_forgotten_with_the_last_of_its_leases() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.put_many("a", 2).await;
        let member = w.frontier.join(WorkScope::All).await.expect("joined");
        let leases = [w.take_as(&member.name).await, w.take_as(&member.name).await];
        w.frontier.bury(&member.name).await.expect("buried");
        let names = async || {
            let owners = w.frontier.owners().await.expect("answers");
            owners.into_iter().map(|owner| (owner.name, owner.dead)).collect::<Vec<_>>()
        };
        assert_eq!(names().await, [(member.name.clone(), true)], "its leases have not returned");
        w.work_on("one", WorkScope::All).await;
        assert_eq!(w.grant(w.want(0, 0)).await.lost.len(), 2);
        assert_eq!(names().await, [("one".to_owned(), false)]);
        for lease in &leases {
            assert_eq!(w.done(lease).await, Settled::Stale);
        }
    });
}

#[test]
fn l4_a_member_that_was_dropped_without_a_word_is_buried_by_the_next_one() {
    let w = World::new(Backend::Sqlite);
    wait_for(async {
        w.site("a").await;
        w.put("a", "p").await;
        let gone = w.frontier.join(WorkScope::All).await.expect("joined");
        let lost = w.take_as(&gone.name).await;
        let other = w.frontier.join(WorkScope::All).await.expect("joined");
        assert_eq!(w.frontier.extend(vec![lost.key()]).await.expect("answers"), [true], "it is alive");
        drop(gone);
        w.frontier.beat(&other, true).await.expect("beaten");
        assert_eq!(w.frontier.extend(vec![lost.key()]).await.expect("answers"), [false]);
        w.pass(1_000);
        w.take_as(&other.name).await;
    });
}

#[test]
fn c10_a_process_that_never_joined_is_told_so_and_gets_nothing() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let claim = Claim { owner: "stranger".to_owned(), ..w.want(1, 0) };
        let nothing = Grant { buried: true, ..Grant::default() };
        for _ in 0..2 {
            assert_eq!(w.frontier.claim(claim.clone()).await.expect("a grant"), nothing);
        }
        assert_eq!(w.place("a", "p").await, "waiting");
        let lease = w.take().await;
        let settled = w.frontier.settle("stranger", 1, vec![]).await.expect("answers");
        assert_eq!((settled, w.done(&lease).await), (vec![], Settled::Kept));
        let owners = w.frontier.owners().await.expect("answers");
        assert_eq!(owners.len(), 1, "I17: a stranger leaves nothing: {owners:?}");
    });
}

#[test]
fn l6_what_a_process_works_on_is_in_force_for_its_very_next_claim_and_a_beat_leaves_it_so() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site_with(site, |site| site.settings.interval = 0).await;
            w.put_many(site, 5).await;
        }
        let member = w.frontier.join(WorkScope::of(["b".to_owned()])).await.expect("joined");
        let sites = async || {
            w.frontier.beat(&member, true).await.expect("beaten");
            let grant = w.grant(Claim { owner: member.name.clone(), ..w.want(2, 0) }).await;
            grant.leases.into_iter().map(|lease| lease.site).collect::<Vec<_>>()
        };
        assert_eq!(sites().await, ["b", "b"]);
        w.work_on(&member.name, WorkScope::of(["a".to_owned()])).await;
        assert_eq!(sites().await, ["a", "a"]);
        w.work_on(&member.name, WorkScope::of([])).await;
        assert_eq!(sites().await, [""; 0], "it gave all of them up");
        w.work_on(&member.name, WorkScope::All).await;
        assert_eq!(sites().await.len(), 2);
    });
}

#[test]
fn i16_one_claim_looks_at_all_named_sites_of_whatever_group_and_at_no_others() {
    on_every_backend(async |w| {
        let name = |n: usize| format!("s{n:03}");
        for n in 0..150 {
            w.site_with(&name(n), |site| {
                site.group = (n % 10 == 0).then(|| (format!("group:{}", n / 20), 0));
            })
            .await;
            w.put(&name(n), "p").await;
        }
        let named: BTreeSet<String> = (0..150).filter(|n| n % 20 != 0).map(name).collect();
        w.work_on("one", WorkScope::of(named.clone())).await;
        let mut seen = BTreeSet::new();
        for dice in 0..8 {
            let grant = w.grant(Claim { dice: vec![dice * 7], ..w.want(30, 0) }).await;
            seen.extend(grant.leases.into_iter().map(|lease| lease.site));
        }
        assert_eq!(seen, named);
    });
}
