#!/bin/sh
# Makes each mutant of the frontier, one line of sed each, and says which tests kill it: rows for the table in
# tests/frontier/README.md. By hand: `sh tests/mutants.sh [PART OF A NAME…]`. Fails if one survives.
#
# All of it happens in a copy, and each file is put back before the next mutant. FRONTIER_HISTORIES (default 2) is how many
# random histories of each part are played.
set -eu
cd "$(dirname -- "$0")/.."
copy=$(mktemp -d "${TMPDIR:-/tmp}/paced-mutants.XXXXXX")
trap 'rm -rf "$copy"' EXIT
trap 'exit 1' INT TERM HUP
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy"
export CARGO_TARGET_DIR="${MUTANTS_TARGET:-$PWD/target/mutants}" FRONTIER_HISTORIES="${FRONTIER_HISTORIES:-2}" RUST_BACKTRACE=0
survived=""
cd "$copy"

# The names of tests that failed, of what the suite printed: rows of the tables first, of the histories how many parts.
killers() {
    rows=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$1" | grep -v random_histories | sed 's/.*::\(.*\)$/`\1`/' | sort -u)
    parts=$(grep -c '^test .*random_histories.* FAILED$' "$1" || true)
    count=$(printf '%s' "$rows" | grep -c . || true)
    said=$(printf '%s' "$rows" | head -n 3 | paste -sd ',' | sed 's/,/, /g')
    [ "$count" -le 3 ] || said="$said and $((count - 3)) more"
    [ "$parts" -eq 0 ] || said="${said:+$said, }random histories ($parts of 4 parts)"
    grep -q '^test result' "$1" || said="${said:+$said, }no end was reached"
    echo "$said"
}

# mutant NAME FILE SED [SUITE [TEST…]]: by default the tables and the histories of the suite of the frontier.
mutant() {
    name=$1 file=src/frontier/$2 change=$3 suite=${4:-frontier}
    [ $# -lt 4 ] || shift
    shift 3
    printf '%s\n' "$name" | grep -qF -e "$only" || return 0
    cp -p "$file" kept
    sed -i "$change" "$file"
    if cmp -s "$file" kept; then
        said="" why="nothing to change in $file"
    elif ! cargo test -q --test "$suite" --no-run >built 2>&1; then
        said="" why="it does not compile: $(grep -m 1 '^error' built)"
    else
        why="it survived"
        timeout 300 cargo test --test "$suite" --no-fail-fast -- ${*:-table:: model::} >told 2>&1 || true
        said=$(killers told)
    fi
    cp -p kept "$file"
    touch "$file"
    [ -n "$said" ] || survived="$survived
$name: $why"
    echo "| $name | ${said:-**$why**} |"
}

# One part a line; none is in every name.
only=$(printf '%s\n' "$@")
mutant 'parallel check removed' state/site.rs 's/&& self.places() > 0//'
mutant 'interval - 1 ms' state/unit.rs 's/at.saturating_add(wait + late)/at.saturating_add(wait + late - 1)/'
mutant 'fence not increasing' state/site.rs 's/self.fence = (self.fence + 1).max(now);/self.fence = self.fence.max(now);/'
mutant 'deferral ignored' steps/put.rs 's/task.rare.deferral = Some(deferral);/drop(deferral);/'
mutant 'retry with a new position' steps/settle.rs 's/^        self.delay(site, &mut task, until)$/        task.position = site.next_position(self.now);\n&/'
mutant 'running not decremented when a lease ends' steps/lease.rs 's/^        let wait = if is_errand/        site.running += u32::from(task.running().is_some_and(|run| run.in_flight));\n&/'
mutant 'due not recomputed on tune' steps/site.rs '/pub(super) fn tune/,/^    }/ s/self.retime(&unit)?;/drop(unit);/'
mutant 'own mutex not moved by tune' steps/site.rs '/pub(super) fn tune/,/^    }/ s/self.retime(&unit)?/self.save_unit(\&unit)?/'
mutant "a re-arm that doesn't move the last start of the unit" steps/lease.rs 's/^        depart(token, departure, &mut unit.last.*//'
mutant "a re-arm that doesn't move the last start of the site" steps/lease.rs 's/^        depart(token, departure, &mut site.last.*//'
mutant "a permit used after its grace" permit.rs 's/held if late + held > grace => PermitStep::Rearm,/held if late + held > 99 * grace => PermitStep::Rearm,/' mutex late::
mutant 'mutex not looked at by the claim' steps/claim.rs '/fn look_at/,/^    }/ s/self.at.held_outside(&unit)?/self.at.held_outside(\&unit)?.filter(|held| held.until == 0)/'
mutant 'a re-arm over the lock of another' steps/lease.rs '/fn rearm/,/^    }/ s/self.held_outside(&unit)?/self.held_outside(\&unit)?.filter(|held| held.until == 0)/'
mutant 'ahead of time where another waits for the mutex' state/unit.rs 's/if shares(start) { 0 }/if shares(start) { ahead_ms(wait) }/'
mutant 'a grant without lead' steps/claim.rs 's/departure.at = soonest.max(self.at.now .*/departure.at = soonest;/'
mutant 'a slow start takes no more grace than others' state/unit.rs 's/(grace - grace_ms(wait)).max(0)/(grace - grace_ms(wait)).clamp(0, 0)/'
mutant 'a site that changes its group leaves its wait behind' steps/site.rs 's/.max(old.not_before).max(paced).max(held)/.max(old.not_before).max(held)/'
mutant "a site of a group doesn't wait its own interval" state/site.rs 's/self.last.map_or(0, |start| start.ends(self.interval()))/self.last.map_or(0, |start| start.at)/'
mutant 'unused start not given back' steps/places.rs 's/^        let is_it = |start: &Start| start.token == token;/        let is_it = |start: \&Start| start.token == token + 1;/'
mutant 'a start of a site given back over a later one' steps/places.rs 's/let is_last_of_site = site.last.as_ref().is_some_and(is_it);/let is_last_of_site = true;/'
mutant 'a start of a unit given back over a later one' steps/places.rs 's/if unit.last.as_ref().is_some_and(is_it) {/if unit.last.is_some() {/'
mutant 'losses counted as attempts' steps/lease.rs 's/task.rare.losses += 1;/&\n        task.rare.attempts += 1;/'
mutant 'a stale settle accepted' steps/lease.rs 's/Ok((!over).then_some(task))/Ok((!over || over).then_some(task))/'
mutant "a dead owner's token accepted" steps/lease.rs 's/^            running.ends_at <= self.now || self.shelf.*/            running.ends_at <= self.now;/'
mutant 'a token good for any running task' steps/lease.rs 's/running.token == lease.token/running.token > 0/'
mutant 'a claim sent again grants anew' steps/claim.rs 's/&& token == claim.token$/\&\& token == claim.token.wrapping_sub(1)/'
mutant 'a settle sent again is settled anew' steps/settle.rs 's/Some((last, replies)) if \*last == token/Some((last, replies)) if *last == token.wrapping_sub(1)/'
mutant 'a bounded step without next_in 0' steps/claim.rs 's/if was_cut { Some(0) }/if was_cut { Some(1) }/'
mutant 'what is due already told for later' steps/claim.rs 's/return Ok(Some(0));/return Ok(Some(1));/'
mutant 'an expired task granted' steps/claim.rs 's/|expires| expires <= starts)/|expires| expires <= starts - 3_600_000)/'
mutant 'promoted before its time' steps/claim.rs 's/self.shelf.overdue(self.now, TIDIED)/self.shelf.overdue(self.now + 1, TIDIED)/'
mutant 'other tasks beside a robots.txt under way' state/site.rs 's/&& self.errand.is_none()//'
mutant 'a block shortened' steps/settle.rs 's/Some(unit) if until > unit.blocked_until/Some(unit) if until != unit.blocked_until/'
mutant 'a block said when the body ended dropped where the lease is lost' steps/lease.rs 's/^            self.block(&lease.site, wait, why)?;/            let _ = self.held(lease)?.is_some() \&\& self.block(\&lease.site, wait, why)?;/'
mutant 'a body that landed still counts' steps/lease.rs 's/^            site.running = site.running.saturating_sub(1);//'
mutant 'least urgent priority wins' steps/put.rs 's/task.priority = task.priority.min(put.priority);/task.priority = task.priority.max(put.priority);/'
mutant 'a known page asked for again by a link' steps/put.rs 's/self.shelf.is_known(site.page(&put.url), site.run)?/self.shelf.is_known(site.page(\&put.url), site.run + 1)?/'
mutant 'a parse taken along though another one waits' steps/settle.rs 's/&WorkScope::All, 1)? == 0/\&WorkScope::All, 9)? < 9/'
mutant 'no parse taken along' steps/settle.rs 's/^        if let Some((owner, token)) = taker$/        if let Some((owner, token)) = taker.filter(|(_, token)| *token == 0)/'
mutant 'a choice among all 64 longest due' steps/claim.rs 's/(due \/ PARTS).clamp(1, WIDEST)/due.clamp(1, WIDEST)/' frontier simulation::l2
mutant 'a choice among a quarter rounded up' steps/claim.rs 's/(due \/ PARTS).clamp(1, WIDEST)/due.div_ceil(PARTS).clamp(1, WIDEST)/' frontier simulation::l2
mutant 'SQLite remembers what another process changed' sqlite/memory.rs 's/PRAGMA data_version/PRAGMA page_size/' frontier processes:: model:: table::
mutant 'weights of lanes collapsed' ../task/lanes.rs 's/self.lanes.get(lane).copied().unwrap_or(1).max(1)/self.lanes.get(lane).map_or(1, |_| 1)/'
mutant 'a lane not drawn anew for each start' steps/claim.rs 's/let lanes = dice \/ WIDEST;/let lanes = dice.min(0);/'
mutant 'the lane now drawn by a weight' ../task/lanes.rs 's/if ready.contains(&NOW) {/if ready == [NOW] {/'
mutant 'the lane now without an end' steps/gate.rs 's/waiting_in(NOW) < MOST_NOW/waiting_in(NOW) < 9 * MOST_NOW/'
mutant 'the lane of the first rule that matches' steps/gate.rs 's/lane = Some(rule.lane.clone());/lane = lane.or_else(|| Some(rule.lane.clone()));/'
mutant 'a window with one task fewer' steps/gate.rs 's/self.shelf.nth_newest(window, rule.threshold)?/self.shelf.nth_newest(window, rule.threshold.saturating_sub(1))?/'
mutant 'a window of one ms less' steps/gate.rs 's/|at| at >= self.now - rule.per/|at| at > self.now - rule.per/'
mutant 'a window that counts what named its lane' steps/gate.rs '/fn lane_of/,/^    }/ s/if wish.lane.is_some() {/if wish.lane.is_some() \&\& wish.tenant.is_none() {/'
mutant 'a lane kept by a further run' steps/places.rs 's/^        self.stand_in_lane(site, &mut task, &deferral.wish, .*//'
mutant 'a flood in one lane stops the feed' state/site.rs 's/self.download.waiting_in(.*) < FED_WAITING/self.download.waiting < FED_WAITING/'
mutant 'a site that takes in one more than may wait' ../task/marks.rs 's/waiting >= self.most_waiting()/waiting > self.most_waiting()/'
mutant 'a mark that failed pages do not count for' state/counts.rs 's/self.waiting + self.delayed + self.scheduled$/self.waiting + self.scheduled/'
mutant 'a redirect refused at the mark' steps/put.rs 's/let may_be_refused = put.hops == 0 \&\& .*/let may_be_refused = true;/'
mutant 'a page that waits for room loses an attempt' steps/settle.rs 's/^    fn postpone(.*/&\n        task.rare.attempts += 1;/'
mutant 'the head of a session ignored' steps/session.rs 's/(None, Some(first)) => self.let_in/(_, Some(first)) => self.let_in/'
mutant 'a step of a session that runs overtaken' steps/session.rs 's/if !head.rare.begun && first.step/if first.step/'
mutant 'a step let in beside the delayed head of its session' steps/session.rs '/fn put_in_order/,/^    }/ s/Stage::Download)?,$/Stage::Download)?.filter(|head| !matches!(head.place, Place::Delayed { .. })),/'
mutant 'a step that is the head before its time' steps/session.rs 's/task.rare.after.filter(|at| \*at > self.now)/task.rare.after.filter(|at| *at < 0)/'
mutant 'a dead step holds no session' steps/session.rs 's/session.on_failure == OnFailure::Block/session.on_failure == OnFailure::Skip/'
mutant 'where a step redirects to stands last' steps/settle.rs 's/return self.finish_before(site, task, Some(&to));/return self.finish(site, task);/'
mutant 'steps of a session in the order of putting alone' state/task.rs 's/(self.priority, self.rare.after.unwrap_or/(Priority::ROBOTS, self.rare.after.unwrap_or/'
mutant 'a put without a session moves a step' steps/put.rs 's/let is_foreign = .*/let is_foreign = false;/'
mutant 'a worker for lanes granted what is of any lane' steps/gate.rs 's/ready_lanes().filter(|lane| scope.serves(lane))/ready_lanes()/'
mutant 'the moment of a worker for lanes taken from all lanes' steps/claim.rs 's/next_turns(stage, scope, most)/next_turns(stage, \&WorkScope::All, most)/'
mutant 'the page refused first granted to who does not serve its lane' steps/wall.rs 's/ \&\& scope.serves(task.queued_in().unwrap_or(LANE));/;/'
mutant 'a parse taken along into a lane that is not served' steps/put.rs 's/&& !self.is_served_by(.*)?$/\&\& begun/'
mutant 'a site that is registered later not listed by lane' steps/site.rs 's/site.by_lane = fleet.by_lane;/site.by_lane = false;/'
mutant 'a site renamed while sites are listed by lane not listed' steps/rename.rs 's/^        site.by_lane |= .*//'
mutant 'a start that moves no turn in a lane (SQLite)' sqlite/transaction.rs 's/if unit.by_lane { self.rank_in_lanes(unit) } else { Ok(()) }/Ok(())/'
mutant 'a unit that stays in a lane in which it has nothing (SQLite)' sqlite/by_lane.rs 's/return self.file.run(gone, .*/return Ok(drop(gone));/'
mutant 'a site that keeps its place in its lanes (SQLite)' sqlite/by_lane.rs 's/InLanes(&site.unit, site.waits_until(), /InLanes(\&site.unit, 0, /'
mutant 'parses of all lanes served (SQLite)' sqlite/by_lane.rs 's/AND lane = ?3 AND place = 0/AND ?3 > 0 AND place = 0/'
mutant 'a forgotten site that stays in its lanes (SQLite)' sqlite/tables.rs 's/^        self.unlist(name)?;$//'
mutant 'a step of a session that runs overtaken (Redis)' redis/lua/sessions.lua 's/elseif first and not head.begun and/elseif first and/'
mutant 'a stale copy of a step saved (Redis)' redis/lua/put.lua 's/task.session and is_moved then/task.session and urls == nil then/'
mutant 'a site that takes in one more than may wait (Redis)' redis/lua/gate.lua 's/if idle >= (rules.most_waiting/if idle > (rules.most_waiting/'
mutant 'a redirect refused at the mark (Redis)' redis/lua/put.lua 's/is_taken_in and not asked.hops and/is_taken_in and/'
mutant 'a lane not drawn anew for each start (Redis)' redis/lua/gate.lua 's/local at = all > 0 and dice % all/local at = all > 0 and 0/'
mutant 'the lane of the first rule that matches (Redis)' redis/lua/gate.lua 's/for i = #found, 1, -1 do/for i = 1, #found do/'
mutant 'parallel check removed (Redis)' redis/lua/store.lua 's/ and store.places(site) > 0$//'
mutant 'a block shortened (Redis)' redis/lua/places.lua 's/if until_at <= (record.blocked_until or 0) then/if until_at == record.blocked_until then/'
mutant 'a site that changes its group leaves its wait behind (Redis)' redis/lua/site.lua 's/old.not_before or 0, paced, held_until)/old.not_before or 0, held_until)/'
mutant 'weights of lanes collapsed (Redis)' redis/lua/gate.lua 's/weights\[lane\] or 1/1/'
mutant 'the lane now without an end (Redis)' redis/lua/gate.lua 's/NOW) < MOST_NOW/NOW) < 9 * MOST_NOW/'
mutant 'a window of one ms less (Redis)' redis/lua/gate.lua 's/tonumber(at) >= now - found/tonumber(at) > now - found/'
mutant 'the head of a session ignored (Redis)' redis/lua/sessions.lua 's/if first and not head then/if first then/'
mutant 'a dead step holds no session (Redis)' redis/lua/sessions.lua "s/session.on_failure == 'block'/session.on_failure == 'skip'/"
mutant 'a step let in beside the delayed head of its session (Redis)' redis/lua/sessions.lua "s/^      if first and not head then/      if first and (not head or head.place == DELAYED or head.place == SCHEDULED) then/"
mutant 'a worker for lanes granted what is of any lane (Redis)' redis/lua/gate.lua 's/^      if lanes.serves(served, lane) then/      if lane then/'
mutant 'the moment of a worker for lanes taken from all lanes (Redis)' redis/lua/claim.lua 's/round.index.next_turn(\(.*\), round.whose)/store.next_turn(\1, round.named)/'
mutant 'the page refused first granted to who does not serve its lane (Redis)' redis/lua/walls.lua 's/ and lanes.serves(served, task.lane or LANE) then/ then/'
mutant 'a parse taken along into a lane that is not served (Redis)' redis/lua/put.lua 's/if taken and lanes.serves(.*) then/if taken then/'
mutant 'a start that moves no turn in a lane (Redis)' redis/lua/store.lua '/function store.reckon/,/^  end/ s/lanes.turned(unit)//'
mutant 'a unit that stays in a lane in which it has nothing (Redis)' redis/lua/lanes.lua '/for lane in pairs(was) do/,/^      end/ s/touch(site.unit, stage, lane)//'
mutant 'a site that stays in a lane in which it has nothing (Redis)' redis/lua/lanes.lua "s/^          call('ZREM', ready_key(stage, site.unit, lane), site.name)//"
mutant 'a site that stays in the lanes of its old unit (Redis)' redis/lua/store.lua 's/^    lanes.unlist(site)$//'
mutant 'a site renamed while sites are listed by lane not listed (Redis)' redis/lua/rename.lua 's/, site.by_lane or lanes.is_listing() --/, site.by_lane --/'
mutant 'versions of a name that got free come again' steps/forget.rs 's/if site.is_ahead_of(self.now)/if site.is_ahead_of(self.now + 1000)/' frontier table::groups model::
mutant 'versions of a name that got free come again (Redis)' redis/lua/store.lua 's/if site.version >= now - EPOCH and/if site.version > now - EPOCH and/' frontier table::groups model::

[ -z "$survived" ] || { echo "survived:$survived" >&2; exit 1; }
