//! Ready sites and due units by lane, for workers that serve some lanes alone. Of a site that isn't listed so there is no row, and
//! nothing of it is read or written.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Result, params};

use super::columns::stage_column;
use super::due_list::waits_until;
use super::transaction::Tables;
use crate::frontier::state::{SiteSettings, SiteState, Turn, UnitDue, UnitState};
use crate::task::Stage;

/// Where a site is listed: its unit, when its own wait is over, and the lanes of each stage.
#[derive(PartialEq)]
struct InLanes<'s>(&'s str, i64, [Vec<&'s str>; 2]);

/// None for one that isn't listed by lane.
fn in_lanes(site: &SiteState) -> Option<InLanes<'_>> {
    let lanes = |stage| -> Vec<&str> {
        if site.is_ready(stage) { site.counted(stage).ready_lanes().collect() } else { Vec::new() }
    };
    site.by_lane.then(|| InLanes(&site.unit, site.waits_until(), Stage::ALL.map(lanes)))
}

impl Tables<'_> {
    /// Lists a site anew where that isn't as it was.
    pub(super) fn relist(&self, before: &SiteState, site: &SiteState) -> Result<()> {
        if in_lanes(before) == in_lanes(site) { Ok(()) } else { self.list_by_lane(site) }
    }

    /// Lists a site anew, as it is to stand.
    pub(super) fn list_by_lane(&self, site: &SiteState) -> Result<()> {
        let sql = "SELECT unit, stage, lane FROM lane_site WHERE name = ?1";
        let before = self.file.all(sql, [&site.name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let mut touched: BTreeSet<(String, i64, String)> = before.into_iter().collect();
        self.file.run("DELETE FROM lane_site WHERE name = ?1", [&site.name])?;
        if let Some(InLanes(unit, _, lanes)) = in_lanes(site) {
            for (stage, lane) in Stage::ALL
                .into_iter()
                .zip(lanes)
                .flat_map(|(stage, lanes)| lanes.into_iter().map(move |lane| (stage, lane)))
            {
                let row = params![site.name, stage_column(stage), lane, unit, waits_until(stage, site)];
                self.file.run("INSERT INTO lane_site VALUES (?1, ?2, ?3, ?4, ?5)", row)?;
                touched.insert((unit.to_owned(), stage_column(stage), lane.to_owned()));
            }
        }
        touched.into_iter().try_for_each(|(unit, stage, lane)| self.rank_in_lane(&unit, stage, &lane))
    }

    /// No site of that name is listed any more.
    pub(super) fn unlist(&self, name: &str) -> Result<()> {
        self.list_by_lane(&SiteState::new(name, name, SiteSettings::default()))
    }

    /// Ranks a unit, as it stands, in the lanes in which it has something.
    pub(super) fn rank_in_lanes(&self, unit: &UnitState) -> Result<()> {
        let sql = "SELECT stage, lane FROM lane_unit WHERE name = ?1";
        let lanes: Vec<(i64, String)> =
            self.file.all(sql, [&unit.name], |row| Ok((row.get(0)?, row.get(1)?)))?;
        lanes.into_iter().try_for_each(|(stage, lane)| self.rank_in_lane(&unit.name, stage, &lane))
    }

    fn rank_in_lane(&self, unit: &str, stage: i64, lane: &str) -> Result<()> {
        let sql = "SELECT min(place) FROM lane_site WHERE unit = ?1 AND stage = ?2 AND lane = ?3";
        let first: Option<i64> = self.file.one(sql, params![unit, stage, lane], |row| row.get(0))?.flatten();
        let Some(first) = first else {
            let gone = "DELETE FROM lane_unit WHERE name = ?1 AND stage = ?2 AND lane = ?3";
            return self.file.run(gone, params![unit, stage, lane]);
        };
        let sql = "SELECT ends, due, ahead, parsed_at FROM unit WHERE name = ?1";
        let turn = self.file.one(sql, [unit], |row| {
            let due = UnitDue { ends: row.get(0)?, due: row.get(1)?, ahead: row.get(2)? };
            Ok(if stage == stage_column(Stage::Download) {
                due.turn(first)
            } else {
                Turn::of_parse(row.get(3)?)
            })
        })?;
        let row = params![unit, stage, lane, turn.map_or(0, |turn| turn.0)];
        self.file.run("INSERT OR REPLACE INTO lane_unit VALUES (?1, ?2, ?3, ?4)", row)
    }

    /// Units with something ready in one of these lanes whose turn is then or before: the first ones in order.
    pub(super) fn due_in_lanes(
        &mut self,
        stage: Stage,
        lanes: &BTreeSet<String>,
        by: Turn,
        most: u32,
    ) -> Result<Vec<(Turn, String)>> {
        self.flush()?;
        let sql = "SELECT turn, name FROM lane_unit WHERE stage = ?1 AND lane = ?2 AND turn <= ?3
             ORDER BY turn, name LIMIT ?4";
        let mut turns = BTreeMap::<String, Turn>::new();
        for lane in lanes {
            let row = params![stage_column(stage), lane, by.0, most];
            let due: Vec<(i64, String)> = self.file.all(sql, row, |row| Ok((row.get(0)?, row.get(1)?)))?;
            for (turn, name) in due {
                let first = turns.entry(name).or_insert(Turn(turn));
                *first = Turn(turn).min(*first);
            }
        }
        let mut due: Vec<(Turn, String)> = turns.into_iter().map(|(name, turn)| (turn, name)).collect();
        due.sort();
        due.truncate(most as usize);
        Ok(due)
    }

    /// A unit's sites with something ready for a download in one of these lanes, and whose own wait is over by then: the first ones by
    /// the end of that, then by name.
    pub(super) fn ready_in_lanes(
        &mut self,
        unit: &str,
        lanes: &BTreeSet<String>,
        by: i64,
        most: u32,
    ) -> Result<Vec<(i64, String)>> {
        self.flush()?;
        let sql =
            "SELECT place, name FROM lane_site WHERE unit = ?1 AND stage = ?2 AND lane = ?3 AND place <= ?4
             ORDER BY place, name LIMIT ?5";
        let mut ready = BTreeSet::new();
        for lane in lanes {
            let row = params![unit, stage_column(Stage::Download), lane, by, most];
            let of_lane: Vec<(i64, String)> =
                self.file.all(sql, row, |row| Ok((row.get(0)?, row.get(1)?)))?;
            ready.extend(of_lane);
        }
        Ok(ready.into_iter().take(most as usize).collect())
    }

    /// The first by name, behind that one, of a unit's sites with a parse ready in one of these lanes.
    pub(super) fn parse_in_lanes(
        &mut self,
        unit: &str,
        lanes: &BTreeSet<String>,
        after: &str,
    ) -> Result<Option<String>> {
        self.flush()?;
        let sql = "SELECT name FROM lane_site WHERE unit = ?1 AND stage = ?2 AND lane = ?3 AND place = 0 AND name > ?4
             ORDER BY name LIMIT 1";
        let mut first: Option<String> = None;
        for lane in lanes {
            let row = params![unit, stage_column(Stage::Parse), lane, after];
            let next: Option<String> = self.file.one(sql, row, |row| row.get(0))?;
            first = [first, next].into_iter().flatten().min();
        }
        Ok(first)
    }
}
