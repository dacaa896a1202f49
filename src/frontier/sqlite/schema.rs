//! The tables of the embedded frontier. A change of them raises `VERSION` and adds its parts to [`upgrade`](super::upgrade).

use rusqlite::{Connection, Result};

/// The schema's version, kept in `PRAGMA user_version`.
pub(super) const VERSION: i64 = 12;
/// Marks the file as ours, kept in `PRAGMA application_id` ("pace").
pub(super) const APPLICATION: i64 = 0x7061_6365;

/// Creates an empty frontier.
pub(super) fn create(connection: &Connection) -> Result<()> {
    [RECORDS, TASKS, PAGES, FLOW, IDLE, BATCHES, BEATS, EVENTS, CAMPAIGNS, BY_LANE]
        .into_iter()
        .try_for_each(|tables| connection.execute_batch(tables))
}

/// Sites, units and rare values of a task are small JSON records; what is searched by is a column.
const RECORDS: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE unit (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, turn INTEGER NOT NULL, ends INTEGER NOT NULL, due INTEGER NOT NULL,
  ahead INTEGER NOT NULL, parsed_at INTEGER NOT NULL,
  ready_download INTEGER NOT NULL DEFAULT 0, ready_parse INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL);
CREATE INDEX unit_download ON unit (turn, name) WHERE ready_download > 0;
CREATE INDEX unit_parse ON unit (parsed_at, name) WHERE ready_parse > 0;
CREATE TABLE idle_unit (name TEXT PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX idle_unit_until ON idle_unit (until, name);
CREATE TABLE site (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit INTEGER NOT NULL REFERENCES unit (id),
  ready_download INTEGER NOT NULL, ready_parse INTEGER NOT NULL, has_room INTEGER NOT NULL,
  interval INTEGER NOT NULL, waits_until INTEGER NOT NULL, recrawl_at INTEGER, state TEXT NOT NULL);
CREATE TABLE site_file (site TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX site_unit ON site (unit, name);
CREATE INDEX site_download ON site (unit, waits_until, name) WHERE ready_download;
CREATE INDEX site_interval ON site (unit, interval);
CREATE INDEX site_parse ON site (unit, name) WHERE ready_parse;
CREATE INDEX site_recrawl ON site (recrawl_at, name) WHERE has_room AND recrawl_at IS NOT NULL;
CREATE TABLE host (host TEXT, turn INTEGER, site TEXT NOT NULL, PRIMARY KEY (host, turn)) WITHOUT ROWID;
CREATE UNIQUE INDEX host_site ON host (site, host);
CREATE TABLE robots (origin TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE away (site TEXT, origin TEXT, until INTEGER NOT NULL, PRIMARY KEY (site, origin)) WITHOUT ROWID;
CREATE INDEX away_time ON away (until, site, origin);
CREATE INDEX away_origin ON away (origin, until, site);
CREATE TABLE dead (
  id INTEGER PRIMARY KEY, site INTEGER NOT NULL, stage INTEGER NOT NULL, fp INTEGER NOT NULL, url TEXT NOT NULL,
  died_at INTEGER NOT NULL, state TEXT NOT NULL);
CREATE INDEX dead_key ON dead (site, stage, fp);
CREATE INDEX dead_time ON dead (site, died_at, stage, url);
CREATE TABLE mutex (name TEXT PRIMARY KEY, token TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX mutex_named ON mutex (until) WHERE name NOT GLOB 'site/*';
CREATE TABLE owner (name TEXT PRIMARY KEY, dead INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE answers (owner TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX owner_dead ON owner (name) WHERE dead;
CREATE TABLE act (id INTEGER PRIMARY KEY, site TEXT NOT NULL, at INTEGER NOT NULL, state TEXT NOT NULL);
CREATE INDEX act_site ON act (site);
CREATE TABLE counted (stage INTEGER, tenant TEXT, turn INTEGER, at INTEGER NOT NULL, PRIMARY KEY (stage, tenant, turn)) WITHOUT ROWID;
CREATE TABLE window (stage INTEGER, tenant TEXT, until INTEGER NOT NULL, PRIMARY KEY (stage, tenant)) WITHOUT ROWID;
CREATE INDEX window_until ON window (until, stage, tenant);
CREATE TABLE session (site INTEGER, name TEXT, turn INTEGER NOT NULL, state TEXT NOT NULL, PRIMARY KEY (site, name)) WITHOUT ROWID;
CREATE INDEX session_turn ON session (site, turn, name);
";

/// Tasks. Of the lane that is always there nothing is written.
pub(super) const TASKS: &str = "
CREATE TABLE task (
  id INTEGER PRIMARY KEY, site INTEGER NOT NULL, stage INTEGER NOT NULL, fp INTEGER NOT NULL, url TEXT NOT NULL,
  place INTEGER NOT NULL, priority INTEGER NOT NULL, position INTEGER NOT NULL, depth INTEGER NOT NULL,
  origin INTEGER NOT NULL, until INTEGER, token INTEGER, owner TEXT, lease TEXT, rare TEXT,
  host TEXT, lane TEXT NOT NULL DEFAULT '', session TEXT);
CREATE INDEX task_key ON task (site, stage, fp);
CREATE INDEX task_waiting ON task (site, stage, lane, priority, position) WHERE place = 0;
CREATE INDEX task_delayed ON task (until, position) WHERE place IN (1, 2);
CREATE INDEX task_leased ON task (until, position) WHERE place = 3;
CREATE INDEX task_held ON task (owner, until, position) WHERE place = 3;
CREATE INDEX task_parked ON task (site, host, priority, position) WHERE place = 4;
CREATE INDEX task_behind ON task (site, session, priority, until, position) WHERE place = 5;
";

/// Pages. What a page leaves for good is its URL with a packed row, and what leads to it: a row of `seen`, which says as well in
/// which run the page was seen last (-1: in none), and without a page (0) that alone. Behind the clock are the pages that have a `recrawl`: when
/// each is asked for again, the latest time of each period, and how many were fetched in each part of it.
pub(super) const PAGES: &str = "
CREATE TABLE segment (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, pages INTEGER NOT NULL);
CREATE TABLE page (id INTEGER PRIMARY KEY, url TEXT NOT NULL, segment INTEGER, row BLOB NOT NULL);
CREATE TABLE seen (site INTEGER, fp INTEGER, page INTEGER, run INTEGER NOT NULL, PRIMARY KEY (site, fp, page)) WITHOUT ROWID;
CREATE INDEX seen_alone ON seen (site, run) WHERE page = 0;
CREATE TABLE again (site INTEGER, at INTEGER, page INTEGER, PRIMARY KEY (site, at, page)) WITHOUT ROWID;
CREATE TABLE recrawl (site INTEGER, period INTEGER, pages INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (site, period))
  WITHOUT ROWID;
CREATE TABLE fetched (site INTEGER, period INTEGER, slot INTEGER, pages INTEGER NOT NULL, PRIMARY KEY (site, period, slot))
  WITHOUT ROWID;
";

/// What flowed through the queues of sites lately: their books by slot, and waits, with the slot by which those were halved.
pub(super) const FLOW: &str = "
CREATE TABLE books (site INTEGER, slot INTEGER, entered INTEGER NOT NULL, gone INTEGER NOT NULL, puts INTEGER NOT NULL,
  coalesced INTEGER NOT NULL, PRIMARY KEY (site, slot)) WITHOUT ROWID;
CREATE TABLE waits (site INTEGER PRIMARY KEY, slot INTEGER NOT NULL);
CREATE INDEX waits_slot ON waits (slot);
CREATE TABLE wait (site INTEGER, lane TEXT, level INTEGER, tenant TEXT, bucket INTEGER, count INTEGER NOT NULL,
  PRIMARY KEY (site, lane, level, tenant, bucket)) WITHOUT ROWID;
";

/// What operators are to be told.
pub(super) const EVENTS: &str = "
CREATE TABLE event (kind TEXT, site TEXT, at INTEGER NOT NULL, next INTEGER, state TEXT NOT NULL, PRIMARY KEY (kind, site))
  WITHOUT ROWID;
CREATE INDEX event_at ON event (at, kind, site);
CREATE INDEX event_next ON event (kind, next, site) WHERE next IS NOT NULL;
";

/// For workers that serve some lanes alone, of sites that are listed so: those with something ready in a lane, by the end of their
/// own wait, and their units, by turn.
pub(super) const BY_LANE: &str = "
CREATE TABLE lane_site (name TEXT, stage INTEGER, lane TEXT, unit TEXT NOT NULL, place INTEGER NOT NULL,
  PRIMARY KEY (name, stage, lane)) WITHOUT ROWID;
CREATE INDEX lane_site_unit ON lane_site (unit, stage, lane, place, name);
CREATE TABLE lane_unit (name TEXT, stage INTEGER, lane TEXT, turn INTEGER NOT NULL, PRIMARY KEY (name, stage, lane))
  WITHOUT ROWID;
CREATE INDEX lane_unit_turn ON lane_unit (stage, lane, turn, name);
";

/// How many downloads of each site nobody works on, and of all of them, which follows. A site of an older file has -1 until it is
/// counted.
pub(super) const IDLE: &str = "
INSERT INTO meta VALUES ('idle', 0);
ALTER TABLE site ADD COLUMN idle INTEGER NOT NULL DEFAULT -1;
CREATE TRIGGER site_added AFTER INSERT ON site WHEN new.idle > 0 BEGIN
  UPDATE meta SET value = value + new.idle WHERE key = 'idle';
END;
CREATE TRIGGER site_idle AFTER UPDATE OF idle ON site WHEN new.idle <> old.idle BEGIN
  UPDATE meta SET value = value + new.idle - max(old.idle, 0) WHERE key = 'idle';
END;
CREATE TRIGGER site_removed AFTER DELETE ON site WHEN old.idle > 0 BEGIN
  UPDATE meta SET value = value - old.idle WHERE key = 'idle';
END;
";

/// Books of batches, a row each a site.
pub(super) const BATCHES: &str = "
CREATE TABLE batch_books (site INTEGER, name TEXT, ended INTEGER, state TEXT NOT NULL, PRIMARY KEY (site, name)) WITHOUT ROWID;
CREATE INDEX batch_books_ended ON batch_books (site, ended, name) WHERE ended IS NOT NULL;
";

/// What processes that claim told last: apart from their own rows, which name all their sites.
pub(super) const BEATS: &str =
    "CREATE TABLE beat (owner TEXT PRIMARY KEY, at INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;";

/// Campaigns: their names, and where they lie; their records; and their lists, by chunk.
pub(super) const CAMPAIGNS: &str = "
CREATE TABLE campaign_name (name TEXT PRIMARY KEY, site TEXT NOT NULL, number INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX campaign_name_site ON campaign_name (site);
CREATE TABLE campaign (site INTEGER, name TEXT, state TEXT NOT NULL, PRIMARY KEY (site, name)) WITHOUT ROWID;
CREATE TABLE campaign_chunk (id INTEGER PRIMARY KEY, site INTEGER NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL,
  urls BLOB NOT NULL);
CREATE UNIQUE INDEX campaign_chunk_place ON campaign_chunk (site, name, number);
";
