//! The moves of a random history. A history is made from its seed alone, so that it can be played again and cut down.

use fastrand::Rng;
use paced::internals::frontier::Tuning;
use paced::internals::frontier::state::CampaignTuning;
use paced::internals::task::{BatchNames, CampaignPortion, LaneWish, OnFailure, Priority, SessionWish};

use super::batched::BATCHES;
use super::campaigned::CAMPAIGNS;
use super::laned::{LANES, RULES, TENANTS};
use super::stepped::SESSIONS;
use super::told::with_events;

/// Sites of every history; the last two begin in one group.
pub const SITES: [&str; 4] = ["a", "b", "c", "d"];
/// Pace units that a site may be in.
pub const UNITS: [&str; 5] = ["a", "b", "c", "d", "g"];
/// Processes that claim.
pub const OWNERS: [&str; 3] = ["one", "two", "three"];
/// The site whose links have a budget, and whose pages may be put for later.
pub const PLANNED: &str = "b";

/// One move.
#[derive(Clone, Debug)]
pub enum Op {
    Advance(i64),
    Put(Page),
    Claim {
        owner: usize,
        download: u32,
        parse: u32,
        dice: u32,
    },
    /// A process joins, or works on something else from now on.
    WorkOn {
        owner: usize,
        /// A bit a site, and one more for a site that never is; none: all sites.
        sites: Option<usize>,
    },
    ClaimAgain {
        owner: usize,
    },
    /// `which` counts the leases ever granted, newest first: most are held, some are stale.
    Settle {
        which: usize,
        how: u32,
        block: Option<i64>,
        other_owner: bool,
        /// The parse of what it brings is wanted at once.
        parse: bool,
    },
    SettleAgain,
    Rearm {
        which: usize,
    },
    Landed {
        which: usize,
        block: Option<i64>,
    },
    /// A body that refuses ended.
    Refuse {
        which: usize,
        of_site: bool,
        first: i64,
        dice: u32,
    },
    /// A person asked for a page of a site; refused or not.
    Probed {
        site: usize,
        dice: Option<u32>,
    },
    Resume {
        site: usize,
    },
    Back {
        which: usize,
        unused: bool,
    },
    Extend {
        which: usize,
    },
    Tune {
        site: usize,
        tunings: Vec<Tuning>,
    },
    Pause {
        site: usize,
        on: bool,
        /// Its parses instead of its downloads.
        parse: bool,
        /// In so many ms, by itself.
        ends: Option<i64>,
    },
    /// Requests in flight of a site, of the group, or of all are to be dropped.
    DropRequests {
        of: usize,
    },
    /// A tenant gets rules of its own while it runs, or those of the files again.
    TuneTenant {
        tenant: usize,
        rules: Option<usize>,
    },
    TuneGroup {
        interval: Option<i64>,
    },
    /// The same of the group, or of all sites.
    PauseShared {
        all: bool,
        on: bool,
        parse: bool,
        ends: Option<i64>,
    },
    Block {
        site: usize,
        wait: i64,
    },
    Register {
        site: usize,
        interval: i64,
        parallel: u32,
        attempts: u32,
        robots: bool,
        /// In the group, with its interval.
        grouped: Option<i64>,
        /// With a host that others may have as well, if all are of one group.
        shared: bool,
        /// Without its own second host.
        lean: bool,
        /// Its lane and whom it is for.
        wish: LaneWish,
    },
    /// Waiting downloads are dropped, raised or lowered, or moved.
    Requeue {
        site: usize,
        path: usize,
        second_host: bool,
        change: u32,
    },
    /// A machine comes with rules for the fleet.
    Agree(usize),
    Feed(u32),
    Campaign {
        site: usize,
        which: usize,
        act: CampaignAct,
    },
    ParseAgain {
        site: usize,
        path: usize,
        second_host: bool,
    },
    DropLetter {
        site: usize,
        path: usize,
        parse: bool,
    },
    BeginRun {
        site: usize,
        fresh: bool,
        seeds: usize,
    },
    /// And at once registered again.
    Forget {
        site: usize,
        grouped: bool,
    },
    /// To another name and back.
    Rename {
        site: usize,
    },
    Bury {
        owner: usize,
    },
    /// A process says that it lives, and how many leases it has.
    Beat {
        owner: usize,
        leases: u32,
    },
    Drain {
        owner: usize,
    },
    LockReply {
        unit: usize,
        expire: i64,
    },
    ExtendLock {
        unit: usize,
        expire: i64,
    },
    Unlock {
        unit: usize,
    },
    /// Something happened that an operator is to be told.
    PostEvent {
        kind: usize,
        site: usize,
    },
    /// A process takes an event of some kinds.
    TakeEvent {
        kinds: usize,
    },
    /// Ends what was taken, newest first: it was told or not.
    EndEvent {
        which: usize,
        failed: bool,
    },
}

/// What is done to a campaign.
#[derive(Clone, Debug)]
pub enum CampaignAct {
    /// Its list has so many pages, from that one on.
    Start {
        from: usize,
        count: usize,
        portion: u32,
        tick: i64,
        batch: Option<&'static str>,
    },
    /// From so many before where it is, or as of the list that its name had before.
    Feed {
        behind: u32,
        count: usize,
        of_old: bool,
    },
    Tune(CampaignTuning),
    /// From the first page of its list on, so many.
    Drop(usize),
}

/// What is put.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is thrown by itself")]
pub struct Page {
    pub site: usize,
    pub path: usize,
    pub second_host: bool,
    pub link: bool,
    pub priority: u16,
    pub at: Option<i64>,
    pub expires: Option<i64>,
    /// It asks nothing of a page that is this new, in ms.
    pub unless_newer: Option<i64>,
    pub again: bool,
    pub rule: bool,
    pub hops: u32,
    pub wish: LaneWish,
    pub session: Option<SessionWish>,
    pub batches: BatchNames,
}

/// A move, and whether it is posted at once with the one before it.
#[derive(Clone, Debug)]
pub struct Posted {
    pub op: Op,
    pub joins: bool,
}

/// The most moves posted at once.
const MOST: usize = 6;

/// The history of a seed: every other move is posted by itself, the others two to six at once. Two of four know lanes, and two of
/// them sessions.
pub fn history(seed: u64, length: usize) -> Vec<Posted> {
    let mut dice = Rng::with_seed(seed);
    let (lanes, sessions) = (seed % 4 >= 2, seed % 2 == 1);
    let mut left = 0;
    let mut post = || {
        let joins = left > 0;
        left = if joins { left - 1 } else { dice.usize(0..2) * dice.usize(1..MOST) };
        Posted { op: op(&mut dice, lanes, sessions), joins }
    };
    let begins = if lanes { begins(seed) } else { Vec::new() };
    // Drawn apart: they come in between, and the other moves stay as they are.
    let mut dice = Rng::with_seed(!seed);
    let mut with_others = |posted: Posted| {
        let joins = posted.joins;
        let other = (dice.u32(0..40) == 0).then(|| Posted { op: of_many(&mut dice, lanes), joins });
        other.into_iter().chain([posted])
    };
    let begins = begins.into_iter().map(|op| Posted { op, joins: false });
    with_events(seed, begins.chain((0..length).map(|_| post()).flat_map(&mut with_others)))
}

/// What people set of a group, of a tenant, or of several sites.
fn of_many(dice: &mut Rng, lanes: bool) -> Op {
    match dice.u32(0..3) {
        0 if lanes => Op::TuneTenant { tenant: dice.usize(0..TENANTS.len()), rules: some(dice, &[0, 1, 2]) },
        0 | 1 => Op::TuneGroup { interval: some(dice, &[0, 400, 2_000, 6_000, 90_000_000]) },
        _ => Op::DropRequests { of: dice.usize(0..SITES.len() + 2) },
    }
}

/// Two sites take the order of some rules from the start.
fn begins(seed: u64) -> Vec<Op> {
    let rules = if seed.is_multiple_of(2) { 1 } else { 2 };
    let begin = |site| Op::BeginRun { site, fresh: false, seeds: 0 };
    vec![Op::Agree(rules), begin(0), begin(2)]
}

fn op(dice: &mut Rng, lanes: bool, sessions: bool) -> Op {
    let which = recent(dice);
    match dice.u32(0..100) {
        0 if lanes => Op::Advance(dice.choice([3_599_999, 3_600_000, 82_800_001]).unwrap_or(0)),
        0..19 => Op::Advance(wait(dice)),
        19 => Op::Refuse {
            which,
            of_site: dice.bool(),
            first: dice.choice([500, 2_000, 60_000]).unwrap_or(0),
            dice: dice.u32(..),
        },
        20 if lanes => Op::Agree(dice.usize(0..RULES)),
        21 => Op::Requeue {
            site: site(dice),
            path: dice.usize(0..4),
            second_host: dice.u32(0..3) == 0,
            change: dice.u32(0..if lanes { 6 } else { 3 }),
        },
        20..35 => Op::Put(page(dice, lanes, sessions)),
        38..56 => claim(dice),
        56 if dice.u32(0..3) == 0 => Op::Beat { owner: dice.usize(0..OWNERS.len()), leases: dice.u32(0..9) },
        57 if dice.u32(0..4) == 0 => Op::Drain { owner: dice.usize(0..OWNERS.len()) },
        56..58 => work_on(dice),
        58..60 => Op::ClaimAgain { owner: dice.usize(0..OWNERS.len()) },
        60..74 => Op::Settle {
            which,
            how: dice.u32(0..100),
            block: (dice.u32(0..20) == 0).then(|| dice.i64(1..20_000)),
            other_owner: dice.u32(0..10) == 0,
            parse: dice.bool(),
        },
        74 => Op::SettleAgain,
        75..80 => Op::Rearm { which },
        80..82 => Op::Landed { which, block: (dice.u32(0..4) == 0).then(|| dice.i64(1..20_000)) },
        82..84 => Op::Back { which, unused: dice.bool() },
        84 => Op::Extend { which },
        85 if dice.bool() => Op::Resume { site: site(dice) },
        85 => Op::Probed { site: site(dice), dice: dice.bool().then(|| dice.u32(..)) },
        86 | 87 => {
            let interval = Tuning::Interval(some(dice, &[0, 200, 1_000, 7_000, 60_000]));
            let parallel = Tuning::Parallel(some(dice, &[0, 1, 2, 4]));
            let both = [interval, parallel];
            let pages = [Tuning::MaxPages(some(dice, &[1, 3, 9]))];
            let lane = some(dice, &LANES).map(str::to_owned);
            let lane = [Tuning::Lane(lane.filter(|_| lanes))];
            let sets = [&both[..1], &both[1..], &both, &pages, &lane];
            let some = dice.choice(sets).unwrap_or(&both);
            Op::Tune { site: site(dice), tunings: some.to_vec() }
        }
        88 if dice.bool() => Op::PauseShared {
            all: dice.bool(),
            on: dice.u32(0..3) == 0,
            parse: dice.u32(0..3) == 0,
            ends: some(dice, &[1, 500, 3_000, 20_000]),
        },
        88..90 => Op::Pause {
            site: site(dice),
            on: dice.u32(0..3) == 0,
            parse: dice.u32(0..3) == 0,
            ends: some(dice, &[1, 500, 3_000, 20_000]),
        },
        90 => {
            let longest = if dice.u32(0..4) == 0 { 90_000 } else { 20_000 };
            Op::Block { site: site(dice), wait: dice.i64(1..longest) }
        }
        91..93 => Op::Register {
            site: site(dice),
            interval: dice.choice([0, 100, 1_000, 1_000, 3_000]).unwrap_or(0),
            parallel: dice.u32(1..4),
            attempts: dice.u32(1..6),
            robots: dice.bool(),
            grouped: dice.bool().then(|| dice.choice([0, 500, 5_000]).unwrap_or(0)),
            shared: dice.bool(),
            lean: dice.u32(0..3) == 0,
            wish: LaneWish { urgent: false, ..wish(dice, lanes) },
        },
        93..95 => Op::BeginRun { site: site(dice), fresh: dice.u32(0..3) == 0, seeds: dice.usize(0..3) },
        95 if dice.bool() => {
            Op::ParseAgain { site: site(dice), path: dice.usize(0..3), second_host: dice.u32(0..3) == 0 }
        }
        95 if dice.bool() => {
            Op::DropLetter { site: site(dice), path: dice.usize(0..3), parse: dice.u32(0..3) == 0 }
        }
        95 => Op::Bury { owner: dice.usize(0..OWNERS.len()) },
        96 => Op::LockReply { unit: dice.usize(0..UNITS.len()), expire: dice.i64(1..5_000) },
        98 if dice.bool() => Op::Feed(dice.u32(0..4)),
        98 | 35..38 => campaign(dice),
        99 if dice.u32(0..3) == 0 => Op::Forget { site: site(dice), grouped: dice.bool() },
        99 if dice.bool() => Op::Rename { site: site(dice) },
        97 => Op::ExtendLock { unit: dice.usize(0..UNITS.len()), expire: dice.i64(1..5_000) },
        _ => Op::Unlock { unit: dice.usize(0..UNITS.len()) },
    }
}

fn campaign(dice: &mut Rng) -> Op {
    let act = match dice.u32(0..12) {
        0..4 => CampaignAct::Start {
            from: dice.usize(0..6),
            count: dice.usize(1..7),
            portion: dice.u32(1..4),
            tick: dice.i64(1..10) * 1_000,
            batch: some(dice, &BATCHES),
        },
        4..9 => CampaignAct::Feed {
            behind: dice.u32(0..3) / 2,
            count: dice.usize(0..4),
            of_old: dice.u32(0..6) == 0,
        },
        9 => CampaignAct::Drop(dice.usize(0..7)),
        10 => CampaignAct::Tune(CampaignTuning::Stopped { keep: dice.bool() }),
        _ => CampaignAct::Tune(match dice.u32(0..4) {
            0 => CampaignTuning::Portion(CampaignPortion::Pages(dice.u32(1..5))),
            1 => CampaignTuning::Tick(dice.i64(1..5) * 1_000),
            2 => CampaignTuning::Priority(Priority::from_value(220)),
            _ => CampaignTuning::Paused(dice.u32(0..3) == 0),
        }),
    };
    Op::Campaign { site: site(dice), which: dice.usize(0..CAMPAIGNS.len()), act }
}

fn claim(dice: &mut Rng) -> Op {
    Op::Claim {
        owner: dice.usize(0..OWNERS.len()),
        download: dice.u32(0..4),
        parse: dice.u32(0..3),
        dice: dice.u32(..),
    }
}

fn work_on(dice: &mut Rng) -> Op {
    let sites = [0, 0b1111, 0b1_1111, 0b1100, 0b0101, 1 << site(dice)];
    Op::WorkOn { owner: dice.usize(0..OWNERS.len()), sites: some(dice, &sites) }
}

fn wish(dice: &mut Rng, lanes: bool) -> LaneWish {
    if !lanes {
        return LaneWish::default();
    }
    let lane = (dice.u32(0..4) == 0).then(|| dice.choice(LANES)).flatten();
    let tenant = dice.bool().then(|| dice.choice(TENANTS)).flatten();
    LaneWish { lane: lane.map(str::to_owned), urgent: dice.u32(0..6) == 0, tenant: tenant.map(str::to_owned) }
}

fn page(dice: &mut Rng, lanes: bool, sessions: bool) -> Page {
    let site = site(dice);
    let planned = SITES[site] == PLANNED;
    // The fourth is `robots.txt` itself.
    let path = if dice.u32(0..12) == 0 { 3 } else { dice.usize(0..3) };
    // With lanes it isn't told whether one that expired went first or was needed first.
    let may_expire = !(planned || lanes && path == 3);
    Page {
        site,
        path,
        second_host: dice.u32(0..3) == 0,
        link: dice.bool(),
        priority: dice.choice([120, 220, 240, 240, 240, 360]).unwrap_or(240),
        at: (planned && dice.u32(0..4) == 0).then(|| dice.i64(0..30_000)),
        expires: (may_expire && dice.u32(0..5) == 0).then(|| dice.i64(0..10_000)),
        unless_newer: (dice.u32(0..5) == 0).then(|| dice.i64(0..20_000)),
        again: dice.u32(0..6) == 0,
        rule: dice.bool(),
        hops: dice.u32(0..3),
        wish: wish(dice, lanes),
        session: if sessions { session(dice) } else { None },
        batches: batches(dice),
    }
}

/// Mostly none or one; now and then so many that a page has no room for more.
fn batches(dice: &mut Rng) -> BatchNames {
    let most = dice.choice([0, 0, 1, 2, 5]).unwrap_or(0);
    (0..most).filter_map(|_| dice.choice(BATCHES)).map(str::to_owned).collect()
}

fn session(dice: &mut Rng) -> Option<SessionWish> {
    let name = dice.bool().then(|| dice.choice(SESSIONS)).flatten()?;
    let on_failure = dice.choice([None, None, Some(OnFailure::Block), Some(OnFailure::Skip)]).flatten();
    Some(SessionWish { name: name.to_owned(), on_failure })
}

/// Mostly a few milliseconds or about an interval, now and then past a lease's end or a long back-off.
fn wait(dice: &mut Rng) -> i64 {
    match dice.u32(0..20) {
        0..5 => dice.i64(0..20),
        5..9 => dice.i64(100..1_000),
        9..15 => 1_000,
        15..17 => dice.i64(1_000..12_000),
        17 => 30_000,
        18 => dice.i64(29_000..70_000),
        _ => dice.i64(60_000..4_000_000),
    }
}

/// Mostly one of the last few.
fn recent(dice: &mut Rng) -> usize {
    if dice.u32(0..8) == 0 { dice.usize(0..60) } else { dice.usize(0..4) }
}

fn site(dice: &mut Rng) -> usize {
    dice.usize(0..SITES.len())
}

fn some<T: Copy>(dice: &mut Rng, values: &[T]) -> Option<T> {
    if dice.u32(0..4) == 0 { None } else { dice.choice(values).copied() }
}
