//! No step takes longer as more is there (I16): the same steps once more with ten times as many sites, tasks, pages, letters,
//! leases, owners and locks, by the instructions of `SQLite`'s machine and by the commands of a Redis.

use std::collections::BTreeMap;

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{
    Claim, Forgotten, Frontier, MutexKey, Pause, QueueChange, Registration, Tuning, WorkScope,
};
use paced::internals::task::{
    Failure, FleetRules, LaneRule, LaneWish, Lease, Outcome, Priority, Put, SessionWish, Settlement, Stage,
    TaskOrder,
};

use crate::support::redis_or_skip;
use crate::world::{OWNER, START, World, at, ms, page, request, url, wait_for};

const DAY: i64 = 86_400_000;
/// So many tasks one claim grants at the most.
const LOOKS: u32 = 64;

/// A frontier, and what its steps took.
struct Measured<'a> {
    work: &'a dyn Fn() -> u64,
    costs: BTreeMap<&'static str, u64>,
}

impl Measured<'_> {
    async fn of<T>(&mut self, name: &'static str, step: impl Future<Output = T>) -> T {
        let before = (self.work)();
        let answer = step.await;
        let before = self.costs.insert(name, (self.work)() - before);
        assert_eq!(before, None, "{name} is measured once");
        answer
    }
}

/// A site without a pace.
fn quick(site: &mut Registration) {
    site.settings.interval = 0;
    site.settings.parallel = 1_000_000;
    site.settings.max_parallel = 1_000_000;
}

/// A site of one huge group, whose unit comes first.
fn in_group(site: &mut Registration) {
    quick(site);
    site.group = Some(("a".to_owned(), 0));
}

fn member(number: usize) -> String {
    format!("member-{number:05}")
}

async fn put_many(w: &World, site: &str, count: usize, change: impl Fn(Put) -> Put) {
    for from in (0..count).step_by(1_000) {
        let numbers = from..(from + 1_000).min(count);
        let puts = numbers.map(|number| change(request(site, &format!("{number:06}")))).collect();
        w.frontier.put(site, puts).await.expect("the site is there");
    }
}

async fn settle_all(w: &World, leases: Vec<Lease>, outcome: impl Fn(&Lease) -> Outcome) {
    let settlement = |lease: Lease| {
        let outcome = outcome(&lease);
        Settlement::of(lease, outcome)
    };
    let settlements = leases.into_iter().map(settlement).collect();
    w.frontier.settle(OWNER, w.token(), settlements).await.expect("answers");
}

fn fetched(lease: &Lease) -> Outcome {
    Outcome::Done { stored: Some(page("warc:1:1", lease.granted_at)), recrawl: Some(ms(DAY)) }
}

/// Of these sites so many tasks are granted to that process.
async fn leases(w: &World, owner: &str, sites: &[String], count: usize) -> Vec<Lease> {
    w.work_on(owner, WorkScope::of(sites.iter().cloned())).await;
    let mut leases = Vec::new();
    while leases.len() < count {
        let download = LOOKS.min(u32::try_from(count - leases.len()).expect("few"));
        leases.extend(w.grant(Claim { owner: owner.to_owned(), ..w.want(download, 0) }).await.leases);
    }
    leases
}

/// `n` of all there is, and of what is done in portions 24 times as many.
async fn fill(w: &World, n: usize) {
    let many = 24 * n;
    let members: Vec<String> = (0..n).map(member).collect();
    for name in &members {
        w.site_with(name, in_group).await;
        w.put_many(name, 3).await;
    }
    settle_all(w, leases(w, OWNER, &members, n).await, fetched).await;
    for name in ["big", "dead", "gone", "old"] {
        w.site_with(name, quick).await;
    }
    put_many(w, "big", many, |put| put).await;
    let later = |put: Put| Put { url: url("big", &format!("later-{}", put.url.fingerprint())), ..put };
    put_many(w, "big", many, |put| Put { at: Some(at(9 * DAY)), ..later(put) }).await;
    put_many(w, "gone", many, |put| put).await;
    for (name, count) in [("dead", n), ("old", many)] {
        put_many(w, name, count, |put| put).await;
        for left in (0..count).step_by(LOOKS as usize) {
            let some = leases(w, OWNER, &[name.to_owned()], (count - left).min(LOOKS as usize)).await;
            let dead = |_: &Lease| Outcome::Dead { why: Failure::status(410, "gone") };
            if name == "dead" { settle_all(w, some, dead).await } else { settle_all(w, some, fetched).await }
        }
    }
    leases(w, "holder", &["big".to_owned()], n).await;
    settle_all(w, leases(w, OWNER, &["gone".to_owned()], 1).await, fetched).await;
    for number in 0..n {
        w.work_on(&format!("process-{number}"), WorkScope::All).await;
        let job = MutexKey::named(&format!("job-{number}"));
        w.frontier.try_lock(&job, "somebody", 99 * DAY).await.expect("answers");
        w.frontier
            .try_lock(&MutexKey::unit(&format!("unit-{number}")), "somebody", 99 * DAY)
            .await
            .expect("answers");
    }
    w.work_on(OWNER, WorkScope::All).await;
    // A tenant's window is as full as its rule needs it.
    let rule = LaneRule { lane: "slow".to_owned(), threshold: 20, per: 99 * DAY, stage: None };
    let lanes = [("slow".to_owned(), 1)].into();
    let order = TaskOrder::Deadline;
    let rules = FleetRules { lanes, fairness: vec![rule], order, ..FleetRules::default() };
    w.frontier.agree(rules, 1).await.expect("agreed");
    w.site_with("dated", quick).await;
    let cells = [220, 240, 260, 340, 360];
    let of_a_cell = |put: &Put| cells[usize::try_from(put.url.fingerprint().rem_euclid(5)).expect("small")];
    put_many(w, "dated", many, |put| Put { priority: Priority::from_value(of_a_cell(&put)), ..put }).await;
    // Once it started, its turn is behind that of the group.
    let nothing = |_: &Lease| Outcome::Done { stored: None, recrawl: None };
    settle_all(w, leases(w, OWNER, &["dated".to_owned()], 1).await, nothing).await;
    w.work_on(OWNER, WorkScope::All).await;
    let theirs = |put: Put| Put { url: url("big", &format!("theirs-{}", put.url.fingerprint())), ..put };
    put_many(w, "big", n, |put| Put { wish: for_tenant(), at: Some(at(9 * DAY)), ..theirs(put) }).await;
}

fn for_tenant() -> LaneWish {
    LaneWish { tenant: Some("acme".to_owned()), ..LaneWish::default() }
}

/// What each step takes where there is so much.
/// Further steps of a pause of all take as many sites as a portion has: `i16_c13` in table/pauses.rs.
async fn pause(m: &mut Measured<'_>, f: &Frontier) {
    let pause = || Some(Pause::of("a mail"));
    m.of("pause a group", f.pause_group("a", Stage::Download, pause())).await.expect("answers");
    m.of("pause a group's parses", f.pause_group("a", Stage::Parse, pause())).await.expect("answers");
    m.of("pause all", f.begin_pause_of_all(Stage::Download, pause())).await.expect("begun");
    f.pause_all(Stage::Download, None).await.expect("resumed");
    for stage in Stage::ALL {
        f.pause_group("a", stage, None).await.expect("resumed");
    }
}

async fn by_deadline(m: &mut Measured<'_>, w: &World) {
    w.work_on("dating", WorkScope::of(["dated".to_owned()])).await;
    let dated = || Claim { owner: "dating".to_owned(), ..w.want(2, 0) };
    w.grant(dated()).await;
    assert_eq!(m.of("claim by deadline", w.grant(dated())).await.leases.len(), 2);
    m.of("list by deadline", w.frontier.queued("dated", "general", None, 100)).await.expect("answers");
}

/// Many steps in one session, and many sessions beside it.
async fn in_sessions(m: &mut Measured<'_>, w: &World, n: usize) {
    let f = &w.frontier;
    w.site_with("chained", quick).await;
    w.work_on("chain", WorkScope::of(["chained".to_owned()])).await;
    let step = |session: &str, path: String| Put {
        session: Some(SessionWish::of(session)),
        ..request("chained", &path)
    };
    let urgent = |path: &str| Put { priority: Priority::from_value(120), ..step("long", path.to_owned()) };
    f.put("chained", vec![urgent("head")]).await.expect("put");
    for first in (0..24 * n).step_by(500) {
        let steps = (first..24 * n).take(500).map(|page| step("long", format!("step-{page:06}")));
        f.put("chained", steps.collect()).await.expect("put");
        let alone =
            (first..24 * n).take(500).map(|page| step(&format!("s-{page}"), format!("alone-{page:06}")));
        f.put("chained", alone.collect()).await.expect("put");
    }
    let one = || Claim { owner: "chain".to_owned(), ..w.want(1, 0) };
    w.grant(Claim { download: 0, ..one() }).await;
    let lease = m.of("claim a step", w.grant(one())).await.leases.pop().expect("its turn is first");
    assert!(lease.url.as_str().ends_with("/head"), "{}", lease.url);
    w.put_with("chained", step("long", "one-more".to_owned())).await;
    m.of("put a step", w.put_with("chained", step("long", "another".to_owned()))).await;
    m.of("settle a step", w.done(&lease)).await;
    m.of("put a step that goes first", w.put_with("chained", urgent("first"))).await;
    m.of("look at a session", f.session("chained", "long")).await.expect("answers").expect("it is there");
    assert_eq!(m.of("drop steps", f.drop_steps("chained", "long")).await.expect("answers"), 250);
}

async fn costs(w: &World, work: &dyn Fn() -> u64, n: usize) -> BTreeMap<&'static str, u64> {
    fill(w, n).await;
    let f = &w.frontier;
    let mut m = Measured { work, costs: BTreeMap::new() };
    // What is remembered from here on is the same.
    w.grant(w.want(0, 0)).await;

    let lease = m.of("claim", w.take()).await;
    assert!(
        lease.site.starts_with("member-"),
        "the huge group's turn is before those of others: {}",
        lease.site
    );
    m.of("rearm", w.rearm(&lease)).await;
    m.of("extend", f.extend(vec![lease.key()])).await.expect("answers");
    m.of("landed", w.landed(&lease)).await;
    m.of("settle", w.fetched_for(&lease, DAY)).await;
    let parse = m.of("claim a parse", w.parse()).await.expect("it waits");
    m.of("settle a parse", w.done(&parse)).await;
    let [retry, dead, back, none] = [w.take().await, w.take().await, w.take().await, w.take().await];
    m.of("retry", w.retry(&retry, 60_000)).await;
    m.of("die", w.die(&dead)).await;
    m.of("back", w.back(&back)).await;
    m.of("give a start back", w.hand_back(&none)).await;
    m.of("claim many", w.grant(w.want(16, 16))).await;
    let of_scope = ["big", "old"].map(str::to_owned);
    w.work_on("named", WorkScope::of(of_scope)).await;
    let named = || Claim { owner: "named".to_owned(), ..w.want(2, 2) };
    w.grant(named()).await;
    m.of("claim of named sites", w.grant(named())).await;

    by_deadline(&mut m, w).await;
    in_sessions(&mut m, w, n).await;
    m.of("put", w.put("big", "new")).await;
    m.of("put what waits", w.put("big", "000900")).await;
    m.of("put what is known", w.link("old", "000001")).await;
    m.of("put what is dead", w.put("dead", "000001")).await;
    m.of("put for a tenant", w.put_with("big", Put { wish: for_tenant(), ..request("big", "t") })).await;
    m.of("list what waits", f.queued("big", "general", None, 100)).await.expect("answers");
    let some = vec![url("big", "000901"), url("big", "000902")];
    m.of(
        "move what waits",
        f.requeue("big", some, QueueChange::Lane { from: "general".to_owned(), to: "slow".to_owned() }),
    )
    .await
    .expect("answers");
    m.of("put 100", f.put("big", (0..100).map(|i| request("big", &format!("x{i}"))).collect()))
        .await
        .expect("put");
    w.site_with("seeded", quick).await;
    let seeds: Vec<Put> = (0..24 * n).map(|number| request("seeded", &number.to_string())).collect();
    m.of("begin a run", f.begin("seeded", &seeds, None)).await.expect("begun");
    m.of("seed", f.seed("seeded", &seeds, 0)).await.expect("put");

    m.of("view", f.view("big")).await.expect("answers");
    m.of("view of one of a group", f.view(&member(0))).await.expect("answers");
    m.of("flow", f.flow("big")).await.expect("answers");
    m.of("freshness", f.freshness("old")).await.expect("answers");
    m.of("whereabouts", f.whereabouts("old", &url("old", "000001"))).await.expect("answers");
    m.of("site of", f.site_of(&url("old", "").host())).await.expect("answers");
    m.of("stored", f.stored("old", &url("old", "000001"))).await.expect("answers");
    let letters = m.of("letters", f.dead_letters("dead", 10)).await.expect("answers");
    let some = letters.into_iter().map(|letter| (letter.stage, letter.url)).collect();
    m.of("drop letters", f.drop_letters("dead", some)).await.expect("answers");

    m.of("tune", w.tune("big", Tuning::Parallel(Some(999_999)))).await;
    m.of("tune one of a group", w.tune(&member(5), Tuning::Interval(Some(60_000)))).await;
    pause(&mut m, f).await;
    m.of("block", f.block("dead", ms(5), "429")).await.expect("answers");
    m.of("lock", w.outsider_locks("big", 5)).await;
    m.of("lock what is held", f.try_lock(&MutexKey::named("job-5"), "other", 5)).await.expect("answers");
    m.of("unlock", f.unlock(&MutexKey::named("job-5"), "somebody")).await.expect("answers");
    m.of("register", w.site_with("new", quick)).await;
    m.of("register one of a group", w.site_with("another", in_group)).await;
    m.of(
        "register again",
        w.site_with(&member(7), |site| {
            in_group(site);
            "changed".clone_into(&mut site.text);
        }),
    )
    .await;
    m.of("bury", f.bury("holder")).await.expect("answers");
    assert_eq!(m.of("claim after a burial", w.grant(w.want(0, 0))).await.lost.len(), 100);

    m.of("give up", f.give_up("gone")).await.expect("answers");
    m.of("go on giving up", f.go_on_giving_up("gone")).await.expect("answers");
    m.of("rename", f.rename_step("big", "bigger")).await.expect("answers");
    m.of("go on renaming", f.rename_step("big", "bigger")).await.expect("answers");
    w.pass(DAY);
    let fed = m.of("feed", w.feed(50)).await;
    assert_eq!(fed.put, 50);
    while !w.grant(w.want(0, 0)).await.lost.is_empty() {}
    m.of("give parses up", f.give_up("old")).await.expect("answers");
    while f.give_up("old").await.expect("answers") {}
    w.pass(30_000);
    while !w.grant(w.want(0, 0)).await.lost.is_empty() {}
    for step in ["forget", "go on forgetting"] {
        assert_eq!(m.of(step, f.forget("old")).await.expect("answers"), Forgotten::Partly);
    }
    // Those that are no process here are buried by the first one that is.
    let process = f.join(WorkScope::All).await.expect("joined");
    m.of("beat", f.beat(&process, true)).await.expect("answers");
    m.costs
}

/// With ten times as much of everything no step takes more, but for what the choice of another row makes.
fn assert_bounded(few: &BTreeMap<&str, u64>, many: &BTreeMap<&str, u64>) {
    let grown: Vec<String> = few
        .iter()
        .map(|(step, cost)| (step, *cost, many[step]))
        .inspect(|(step, few, many)| println!("{step}: {few} and {many}"))
        .filter(|(_, few, many)| *many * 10 > *few * 13 + 200)
        .map(|(step, few, many)| format!("{step}: {few} and {many}"))
        .collect();
    assert_eq!(grown, Vec::<String>::new(), "with ten times as much");
}

#[test]
fn i16_no_step_takes_more_instructions_of_a_file_with_ten_times_as_much_in_it() {
    let [few, many] = [100, 1_000].map(|n| {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Clock::fake(Timestamp::from_millis(START));
        let file = folder.path().join("frontier.sqlite");
        let w = World::of(Frontier::sqlite(&file, Some(clock.clone())).expect("ours"), clock);
        let instructions = || w.frontier.instructions().expect("it counts them");
        wait_for(costs(&w, &instructions, n))
    });
    assert_bounded(&few, &many);
}

#[test]
fn i16_no_step_takes_more_commands_of_a_redis_with_ten_times_as_much_in_it() {
    let Some(server) = redis_or_skip() else { return };
    let [few, many] = [100, 1_000].map(|n| {
        let clock = Clock::fake(Timestamp::from_millis(START));
        let db = u32::from(n == 1_000);
        let w = World::of(Frontier::redis(&server.url(db), Some(clock.clone())).expect("a URL"), clock);
        let commands = || server.calls().values().sum();
        wait_for(costs(&w, &commands, n))
    });
    assert_bounded(&few, &many);
}
