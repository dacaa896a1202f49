//! The tables of the embedded frontier. A change of them raises `VERSION`.

/// The schema's version, kept in `PRAGMA user_version`.
pub(super) const VERSION: i64 = 7;
/// From which version on a file is brought up to date, and what each step to the next version takes. Since version 4 a site's file
/// has a table of its own, as the site's row is written with every page; since 5 so has what an owner was answered last, as its row
/// names all its sites. Since 6 an owner's row says what its claims no longer do: what it works on.
pub(super) const STEPS: &[(i64, &str)] = &[(3, FROM_3), (4, FROM_4), (5, ""), (6, FROM_6)];
const FROM_3: &str = "
CREATE TABLE site_file (site TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO site_file SELECT name, text FROM site WHERE text IS NOT NULL;
ALTER TABLE site DROP COLUMN text;
";
const FROM_4: &str = "CREATE TABLE answers (owner TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;";
/// Since 7 a site keeps its own last start, which until then was that of its unit; a group's wait says where it comes from; a
/// unit's place goes by when it can be claimed; and hosts that can't be reached keep their tasks beside the queue. What isn't sure is
/// waited for.
const FROM_6: &str = "
ALTER TABLE unit ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
ALTER TABLE unit ADD COLUMN ends INTEGER NOT NULL DEFAULT 0;
ALTER TABLE unit ADD COLUMN ahead INTEGER NOT NULL DEFAULT 0;
ALTER TABLE site ADD COLUMN interval INTEGER NOT NULL DEFAULT 0;
ALTER TABLE site ADD COLUMN waits_until INTEGER NOT NULL DEFAULT 0;
UPDATE site SET interval = state ->> '$.settings.interval',
  state = json_set(state, '$.last', json((SELECT unit.state -> '$.last' FROM unit WHERE unit.id = site.unit)));
UPDATE site SET waits_until = coalesce((state ->> '$.last.at') + max(
    coalesce(state ->> '$.tuned.interval', interval),
    iif(state ->> '$.settings.robots',
      coalesce((SELECT max(floor.value) FROM json_each(state, '$.floors') AS floor), 0), 0)), 0);
UPDATE unit SET turn = due * 32, ends = due;
UPDATE unit SET state = json_set(state, '$.wait', json_object('group', state ->> '$.interval'))
  WHERE state ->> '$.interval' > 0;
UPDATE unit SET state = json_set(state, '$.wait',
    json_object('longest', (SELECT max(site.interval) FROM site WHERE site.unit = unit.id)))
  WHERE state ->> '$.interval' = 0
    AND EXISTS (SELECT 1 FROM site WHERE site.unit = unit.id AND site.name <> unit.name);
UPDATE task SET lease = json_array(lease ->> '$[0]', lease ->> '$[1]', json(lease -> '$[2]'),
    json('{\"at\":0,\"unit\":0,\"site\":0}'))
  WHERE place = 3 AND json_type(lease) = 'array';
UPDATE task SET lease = json_array(lease ->> '$.granted_at', lease ->> '$.fence', json(lease -> '$.in_flight'),
    json('{\"at\":0,\"unit\":0,\"site\":0}'))
  WHERE place = 3 AND json_type(lease) = 'object';
DROP INDEX unit_download;
CREATE INDEX unit_download ON unit (turn, name) WHERE ready_download > 0;
DROP INDEX site_download;
CREATE INDEX site_download ON site (unit, waits_until, name) WHERE ready_download;
CREATE INDEX site_interval ON site (unit, interval);
ALTER TABLE task ADD COLUMN host TEXT;
CREATE INDEX task_parked ON task (site, host, priority, position) WHERE place = 4;
CREATE TABLE away (site TEXT, origin TEXT, until INTEGER NOT NULL, PRIMARY KEY (site, origin)) WITHOUT ROWID;
CREATE INDEX away_time ON away (until, site, origin);
CREATE INDEX mutex_named ON mutex (until) WHERE name NOT GLOB 'site/*';
";
/// Marks the file as ours, kept in `PRAGMA application_id` ("pace").
pub(super) const APPLICATION: i64 = 0x7061_6365;

/// Brings the indexes of an earlier file of this version up to date.
pub(super) const INDEXES: &str = "
CREATE INDEX IF NOT EXISTS site_unit ON site (unit, name);
DROP INDEX IF EXISTS task_token;
DROP INDEX IF EXISTS task_owner;
CREATE INDEX IF NOT EXISTS task_held ON task (owner, until, position) WHERE place = 3;
";

/// Creates an empty frontier. Sites, units and rare values of a task are small JSON records; what is searched by is a column.
pub(super) const CREATE: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE unit (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, turn INTEGER NOT NULL, ends INTEGER NOT NULL, due INTEGER NOT NULL,
  ahead INTEGER NOT NULL, parsed_at INTEGER NOT NULL,
  ready_download INTEGER NOT NULL DEFAULT 0, ready_parse INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL);
CREATE INDEX unit_download ON unit (turn, name) WHERE ready_download > 0;
CREATE INDEX unit_parse ON unit (parsed_at, name) WHERE ready_parse > 0;
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
CREATE TABLE task (
  id INTEGER PRIMARY KEY, site INTEGER NOT NULL, stage INTEGER NOT NULL, fp INTEGER NOT NULL, url TEXT NOT NULL,
  place INTEGER NOT NULL, priority INTEGER NOT NULL, position INTEGER NOT NULL, depth INTEGER NOT NULL,
  origin INTEGER NOT NULL, until INTEGER, token INTEGER, owner TEXT, lease TEXT, rare TEXT,
  host TEXT);
CREATE INDEX task_key ON task (site, stage, fp);
CREATE INDEX task_waiting ON task (site, stage, priority, position) WHERE place = 0;
CREATE INDEX task_delayed ON task (until, position) WHERE place IN (1, 2);
CREATE INDEX task_leased ON task (until, position) WHERE place = 3;
CREATE INDEX task_held ON task (owner, until, position) WHERE place = 3;
CREATE INDEX task_parked ON task (site, host, priority, position) WHERE place = 4;
CREATE TABLE away (site TEXT, origin TEXT, until INTEGER NOT NULL, PRIMARY KEY (site, origin)) WITHOUT ROWID;
CREATE INDEX away_time ON away (until, site, origin);
CREATE TABLE dead (
  id INTEGER PRIMARY KEY, site INTEGER NOT NULL, stage INTEGER NOT NULL, fp INTEGER NOT NULL, url TEXT NOT NULL,
  died_at INTEGER NOT NULL, state TEXT NOT NULL);
CREATE INDEX dead_key ON dead (site, stage, fp);
CREATE INDEX dead_time ON dead (site, died_at, stage, url);
CREATE TABLE known (site INTEGER, run INTEGER, fp INTEGER, PRIMARY KEY (site, run, fp)) WITHOUT ROWID;
CREATE TABLE page (
  id INTEGER PRIMARY KEY, site INTEGER NOT NULL, fp INTEGER NOT NULL, url TEXT NOT NULL, state TEXT NOT NULL,
  fetched_at INTEGER NOT NULL, recrawl INTEGER, recrawl_at INTEGER);
CREATE INDEX page_recrawl ON page (site, recrawl_at, url) WHERE recrawl_at IS NOT NULL;
CREATE INDEX page_age ON page (site, fetched_at, recrawl) WHERE recrawl IS NOT NULL;
CREATE INDEX page_key ON page (site, fp);
CREATE TABLE mutex (name TEXT PRIMARY KEY, token TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX mutex_named ON mutex (until) WHERE name NOT GLOB 'site/*';
CREATE TABLE owner (name TEXT PRIMARY KEY, dead INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE answers (owner TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX owner_dead ON owner (name) WHERE dead;
";
