-- The claim: a due unit, its timed mutex, a ready site, its first task, a lease. One step, bounded (I16).
local claim = module(function(claim)
  -- When something more can be claimed, if nothing else happens: never later than the first such moment (L1).
  local function first_moment(want, round)
    local soonest
    local function may(at)
      soonest = at and math.min(at, soonest or math.huge) or soonest
    end
    may(store.first_of('delay'))
    may(away.first())
    may(lease.first_end()) -- 0 where a dead owner has one
    if want.download > 0 then
      may(round.index.next_turn('d', round.whose))
    end
    if want.parse > 0 then
      may(round.index.next_turn('p', round.whose))
    end
    return soonest
  end

  -- What is granted, and when the claimer is to come again. Others that sleep may come before it.
  local function answer(round, leases, more, lost)
    local want, is_common = round.want, not round.whose
    local granted = { d = 0, p = 0 }
    for _, granted_lease in ipairs(leases) do
      granted[granted_lease[3]] = granted[granted_lease[3]] + 1
    end
    local at = more and now or first_moment(want, round)
    if is_common then
      wake.took(want, granted)
    end
    if at and is_common and want.download > granted.d then
      at = wake.moment('d', want.owner, at)
    elseif at and is_common and want.download == 0 and want.parse > granted.p then
      at = wake.moment('p', want.owner, at)
    end
    wake.sleeps(want, round.kind, granted, at)
    return { leases, at and math.max(0, at - now) or false, false, lost }
  end

  -- Delayed tasks whose time has come wait again, in their old position.
  local function promote()
    for _, task in ipairs(tasks.overdue(TIDIED)) do
      local site = store.site(task.site)
      places.shift(site, task, WAITING)
      store.save_site(site)
    end
  end

  -- An outsider's lock moves the due time to its end.
  local function is_held_by_somebody_else(unit)
    local holder = records.holder(places.mutex(unit))
    local held = holder and not places.owns(unit, holder) and records.mutex(places.mutex(unit), store.wait_of(unit))
    if not held then
      return false
    end
    records.note_mutex(places.mutex(unit), held)
    unit.held_until, unit.held_by_another = held.until_at, nil
    places.save_unit(unit)
    return true
  end

  -- What the robots.txt of its host makes of a task: the one that is granted, or why it is unwanted, or when its host is looked
  -- at again. The record must hold when the task `starts`.
  local function past_robots(site, task, starts)
    local origin = lease.origin_of(task.url)
    local robots = not task.errand and records.robots(origin)
    if robots and robots.until_at <= starts then
      robots = nil
    end
    if robots and not robots.unreachable then
      places.follow_floor(site, origin, robots.delay)
      places.share_floor(store.some_unit(site.unit), site, origin)
      return task
    end
    if not away.is_of(site.name, origin) then
      return nil, SCOPE
    end
    if robots then
      return nil, nil, robots.until_at
    end
    if task.errand then
      return task
    end
    local errand, later = away.errand(site, origin)
    return errand, nil, later
  end

  -- The unit's turn is behind all that are due now.
  local function stand_behind(unit)
    unit.not_before = math.max(unit.not_before or 0, now + store.ahead_of(unit))
  end

  -- The first task that is still wanted and may go now, to start `soonest`; those before it are tidied away.
  local function first_wanted(round, site, unit, stage, soonest, dice)
    local starts = stage == 'd' and soonest or now
    local function first()
      local lane = gate.draw(site, stage, dice, round.served)
      local task = lane and tasks.first_waiting(site, stage, lane) or nil
      if task or not lane or lane == LANE then
        return task
      end
      gate.forget_lane(site, stage, lane)
      return first()
    end
    local task = stage == 'd' and walls.refused_page(site, unit, round.served) or first()
    while task do
      local is_errand = task.errand and site.robots == 1
      local found, why, at
      if not is_errand and task.expires and task.expires <= starts then
        why = EXPIRED
      elseif stage == 'p' or site.robots ~= 1 then
        task.errand = nil
        return task
      else
        found, why, at = past_robots(site, task, starts)
      end
      if found then
        return found
      end
      if round.tidied >= TIDIED then
        round.was_cut = true
        if stage == 'd' then
          stand_behind(unit)
        end
        return nil
      end
      round.tidied = round.tidied + 1
      if why then
        settle.exclude(site, task, why)
      else
        away.park(site, task, at)
      end
      task = first()
    end
    return nil
  end

  -- The unit's start and its site's: the timed mutex is taken for the wait in force and never released.
  local function start(site, unit, token, departure)
    local wait = math.max(departure.unit, departure.site)
    for _, record in ipairs({ unit, site }) do
      places.add_start(record, departure.at, token, wait > 0 and store.grace(wait) or nil)
    end
    unit.held_until, unit.held_by_another, unit.turn = nil, nil, nil
    walls.count_start(unit)
    walls.count_start(site)
    if site.paused_until and site.paused_until <= now then
      site.paused, site.paused_until = nil, nil
    end
    store.add(site, 'running', 1)
    store.add(site, 'starts', 1)
    if departure.unit > 0 then
      records.save_mutex(places.mutex(unit), places.start_token(token), store.paced_until(unit, departure.unit))
    end
  end

  -- Leases the task, a download with the start that comes `soonest`; not where its site turned out to wait longer.
  local function grant(round, site, unit, task, soonest)
    local token = round.want.tokens[#round.leases + 1]
    local departure = places.no_departure
    task.in_flight = nil
    if task.stage == 'd' then
      departure = { unit = store.wait_of(unit), site = store.interval(site) }
      departure.at = math.max(soonest, now + places.lead(math.max(departure.unit, departure.site), round.want.lead))
      if math.max(store.ends(unit), store.waits_until(site)) > departure.at then
        return
      end
      start(site, unit, token, departure)
      local dice = round.want.dice[#round.leases % math.max(1, #round.want.dice) + 1] or 0
      walls.begin_probe(site, unit, token, task.url, departure.at, dice)
      task.in_flight = true
    end
    if task.errand then
      site.errand = token
    end
    task.begun = task.session and true or nil
    if task.stage == 'd' then
      flow.ends_wait(site, task)
    end
    places.lease(task, token, round.want.owner, store.next_fence(site), departure)
    places.shift(site, task, RUNNING)
    round.leases[#round.leases + 1] = lease.of(task)
  end

  -- When the unit's next start is, by its ready sites as well.
  local function soonest_of(round, unit)
    local first
    if unit.wait then
      first = round.index.first_ready(unit, round.whose)
    else
      local own = store.site(unit.name)
      first = own and store.waits_until(own)
    end
    return math.max(store.ends(unit), first or 0, now + places.lead(store.wait_of(unit), round.want.lead))
  end

  local function look_at(round, stage, unit, dice)
    if stage == 'd' and (places.notices_restart(unit) or is_held_by_somebody_else(unit)) then
      return
    end
    local soonest = stage == 'd' and soonest_of(round, unit) or math.huge
    local name
    if stage == 'd' then
      name = walls.first_refused(unit, round, soonest)
        or round.index.nth_ready(unit, round.whose, soonest, unit.wait and gate.picks_earliest() and 0 or dice)
    else
      name = round.index.next_parse(unit, round.whose)
    end
    if not name then
      return
    end
    local site = store.site(name)
    places.knows_restart(site, unit)
    if stage == 'd' and walls.awaits_probe(site, unit, soonest) then
      store.save_site(site)
      places.save_unit(unit)
      return
    end
    local task = first_wanted(round, site, unit, stage, soonest, math.floor(dice / WIDEST))
    if task then
      grant(round, site, unit, task, soonest)
    end
    if stage == 'p' then
      store.parsed(unit, name)
    end
    store.save_site(site)
    places.save_unit(unit)
  end

  -- Random among the longest due, until enough is granted or nothing is due: of the quarter that is due longest, so that
  -- nobody waits much longer than in turn (L2); or the longest due itself. Whether others can be claimed still.
  local function serve(round, stage, wanted)
    local enough, more = #round.leases + wanted, false
    for look = 0, LOOKS - 1 do
      if #round.leases >= enough then
        return more
      end
      local by = round.tidied >= TIDIED and now - 1 or now -- what has more to be tidied away stands behind all that are due
      local due, nth = round.index.due_units(stage, round.whose, WIDEST * DUE_PARTS, by)
      if due == 0 then
        return false
      end
      more = due > 1 -- this look takes one of them away at most
      local dice = round.want.dice[look % math.max(1, #round.want.dice) + 1] or 0
      local among = math.max(1, math.min(WIDEST, math.floor(due / DUE_PARTS)))
      if among > 1 and gate.picks_earliest() then
        among = 1
      end
      local unit = store.some_unit(nth(dice % among))
      look_at(round, stage, unit, math.floor(dice / WIDEST))
    end
    return more
  end

  -- The same claim again, its answer having been lost: the same tasks, as far as they still run.
  local function again(round, granted)
    local leases, want = {}, round.want
    for i, task in ipairs(lease.granted(want.owner, { unpack(want.tokens, 1, granted) })) do
      leases[i] = lease.of(task)
    end
    return answer(round, leases, false)
  end

  -- Grants up to as many tasks as asked for.
  function claim.step(want)
    local last = records.last_answers(want.owner)
    if last.dead or not last.pid then
      return { {}, false, true }
    end
    local named, served = last.named and want.owner, last.served -- whose sites alone, or which lanes alone, are looked at
    batch.named_units = nil -- steps before may have changed whose they are
    local round = {
      want = want, named = named, served = served, whose = served or named or nil, index = served and lanes or store,
      kind = served and 'laned' or named and 'named' or nil, tidied = 0, was_cut = false, leases = {},
    }
    if last.claimed == want.tokens[1] then
      return again(round, tonumber(last.granted))
    end
    local lost = lease.free_lost()
    promote()
    away.look()
    serve(round, 'd', want.download) -- of those that can be claimed, some are better claimed a little later
    local more_parses = serve(round, 'p', want.parse)
    records.claimed(want.owner, want.tokens[1], #round.leases)
    return answer(round, round.leases, more_parses or round.was_cut, lost)
  end
end)
