-- The moves between places. Each keeps the task, its site's books and the unit's due time true together.

local sessions
local places = module(function(places)
  local function count(site, task, field, by)
    store.add(site, counter[task.stage][field], by or 1)
  end

  local function place_field(place)
    if place == RUNNING then
      return 'leased'
    end
    return place == PARKED and WAITING or place == BEHIND and SCHEDULED or place
  end

  -- What a task weighs while nobody works on it.
  local function weigh(site, task, by)
    if task.place ~= RUNNING then
      local field = counter[task.stage].bytes
      local bytes = (site[field] or 0) + by * (#task.url + TASK_BYTES)
      site[field] = bytes > 0 and bytes
    end
  end

  local function arrive(site, task)
    weigh(site, task, 1)
    count(site, task, place_field(task.place))
    gate.count(site, task, 1)
    if task.place == PARKED or task.place == BEHIND then
      count(site, task, task.place)
    end
  end

  local function leave(site, task)
    weigh(site, task, -1)
    gate.count(site, task, -1)
    store.take(site, counter[task.stage][place_field(task.place)])
    if task.place == PARKED or task.place == BEHIND then
      store.take(site, counter[task.stage][task.place])
    end
    local names = counter[task.stage]
    if not (site[names.waiting] or site[names.delayed] or site[names.scheduled]) then
      site[names.bytes] = false -- of an older frontier they were guessed
    end
    if task.place == RUNNING then
      if task.in_flight then
        store.take(site, 'running')
      end
      if site.errand == task.token then
        site.errand = nil
      end
    end
  end

  -- What a lease granted now says of a task.
  function places.lease(task, token, owner, fence, departure)
    task.token, task.owner, task.fence = token, owner, fence
    places.departs(task, departure)
    task.granted_at, task.ends_at = now, now + LEASE_MS
  end

  places.no_departure = { at = 0, unit = 0, site = 0 } -- of a parse

  -- When the request may start, and the waits that begin then.
  function places.departs(task, departure)
    task.departs_at, task.unit_wait, task.site_wait = departure.at, departure.unit, departure.site
  end

  -- How long before it a start is granted at the latest.
  function places.lead(wait, asked)
    if wait == 0 then
      return 0
    end
    return math.max(math.min(MOST_LEAD, math.floor(wait / LEAD_PARTS)), math.min(LONGEST_LEAD, asked or 0))
  end

  -- Puts a task that stood nowhere into a place.
  function places.enter(site, task)
    arrive(site, task)
    tasks.save(task)
  end

  -- Moves a task from the place where it stands to another.
  function places.shift(site, task, place, until_at)
    leave(site, task)
    task.place, task.until_at = place, until_at
    arrive(site, task)
    tasks.save(task)
  end

  -- Moves a task to another lane; where it stands stays.
  function places.change_lane(site, task, lane)
    gate.count(site, task, -1)
    task.lane = lane
    gate.count(site, task, 1)
    tasks.save(task)
  end

  local function remove(site, task)
    leave(site, task)
    tasks.remove(task)
  end

  -- Takes a task out for good, of its session as well, where it is done, dead or dropped.
  local function leave_for_good(site, task, how, following)
    remove(site, task)
    if task.session then
      sessions.left(site, task.session, task.url, how, following)
    end
  end

  -- Nobody wants a task any more that nobody works on.
  function places.drop(site, task)
    if task.stage == 'd' then
      flow.books_change(site)
    end
    count(site, task, 'dropped')
    batches.leave(site, task.batches, 'dropped')
    batches.leave(site, task.deferral and task.deferral.batches, 'dropped')
    leave_for_good(site, task, 'dropped')
  end

  function places.later_expiry(one, other)
    return one and other and math.max(one, other) or nil
  end

  -- A further run takes the place of this one: new attempts, the request's own values.
  function places.take_up(task, deferral)
    task.priority = deferral.priority
    task.depth = math.min(task.depth, deferral.depth)
    task.link = false
    task.hops = deferral.hops
    task.expires = deferral.expires
    task.stored = deferral.stored or task.stored
    task.attempts, task.losses, task.errand, task.history, task.deferral = nil, nil, nil, nil, nil
    task.returned = nil
  end

  -- A task that runs again anyway, not before `starts`, stands for the request that met it as well, unless that one is for later.
  function places.absorb(site, task, starts)
    local deferral = task.deferral
    if deferral and (not deferral.at or deferral.at <= starts) then
      count(site, task, 'absorbed')
      if gate.goes_now(site, task.stage, deferral) then
        task.lane = NOW
      end
      task.batches = batches.carry(site, task.batches, deferral.batches)
      local is_foreign = task.session and not deferral.turn -- where it stands in its session is the session's own matter
      deferral.priority = is_foreign and task.priority or math.min(task.priority, deferral.priority)
      deferral.expires = places.later_expiry(task.expires, deferral.expires)
      local errand = task.errand
      places.take_up(task, deferral)
      if errand then
        task.priority, task.errand = PRIORITY_ROBOTS, errand
      end
    end
  end

  -- The further run is a task of its own: a new turn, not before the time that was asked for. Unless it leaves its session, as one
  -- that is done or dead, it goes on in its place there.
  local function rerun(site, task, how, following)
    local deferral, name = task.deferral, how and task.session
    local later = deferral.at and deferral.at > now and deferral.at or nil
    local again = name and deferral.turn and true
    count(site, task, 'reruns')
    gate.stand(site, task, deferral, later)
    task.batches = deferral.batches
    places.take_up(task, deferral)
    task.position = again and deferral.turn or store.next_position(site)
    task.after, task.begun = again and later or nil, not name and task.begun or nil
    if name and not again then
      task.session = nil
    end
    if again then
      places.shift(site, task, BEHIND)
    elseif later then
      places.shift(site, task, SCHEDULED, later)
    else
      places.shift(site, task, WAITING)
    end
    if name then
      sessions.left(site, name, task.url, how, following, again)
    end
  end

  local function finish(site, task, how, following)
    if task.deferral then
      rerun(site, task, how, following)
    else
      leave_for_good(site, task, how, following)
    end
  end

  -- Done: gone and known, or, where a request met it, waiting once more at a new position. `following` takes its place in its session.
  function places.finish(site, task, following)
    batches.leave(site, task.batches, 'done')
    task.batches = nil
    if task.stage == 'd' then
      flow.books_change(site)
      tasks.add_known(site, task.url, task.mark)
    end
    count(site, task, 'done')
    finish(site, task, 'done', following)
  end

  -- Dead: a letter is kept, which may hold its session, or, where a request met it, it waits once more.
  function places.die(site, task, why)
    if task.stage == 'd' then
      flow.books_change(site)
    end
    count(site, task, 'dead')
    local holds = sessions.is_to_hold(site, task)
    if holds then
      sessions.died(site, task.session, task.deferral)
    end
    if task.deferral then
      task.deferral.batches = batches.carry(site, task.deferral.batches, task.batches)
      return rerun(site, task, not holds and 'dead' or nil)
    end
    batches.leave(site, task.batches, 'dead')
    local history = task.history or {}
    history[#history + 1] = why
    tasks.save_dead(site, task.stage, task.url, {
      why = why, attempts = task.attempts or 0, history = history, died_at = now, run = site.run, depth = task.depth,
      session = holds and task.session or nil, batches = task.batches, tenant = task.tenant,
    })
    if holds then
      remove(site, task)
    else
      leave_for_good(site, task, 'dead')
    end
  end

  -- What a robots.txt asks of the pace, in ms, holds for every site that has its host, whichever of a group has read it;
  -- nothing where that is below zero.
  function places.follow_floor(site, origin, delay)
    if not delay or delay < 0 and not site.floors then
      return
    end
    local floors, floor = store.map(site, 'floors'), delay >= 0 and delay or nil
    if floors[origin] ~= floor then
      floors[origin] = floor
      store.set_map(site, 'floors', floors)
    end
  end

  -- Hosts that a site has no more ask nothing of its pace.
  function places.keep_floors_of(site, hosts)
    local floors, kept = store.map(site, 'floors'), {}
    for _, host in ipairs(hosts) do
      for _, scheme in ipairs({ 'https://', 'http://' }) do
        kept[scheme .. host] = floors[scheme .. host]
      end
    end
    store.set_map(site, 'floors', kept)
  end

  -- Notes what the robots.txt of an origin asks of the pace, as a site of the group has read it. One site waits for it itself;
  -- where several have pages there, all of them wait for it together.
  function places.keep_floor(unit, reader, origin, delay)
    local floors = unit.floors or {}
    local before = floors[origin]
    floors[origin] = unit.wait and delay and {
      wait = delay, reader = reader, is_shared = before and (before.is_shared or before.reader ~= reader),
    } or nil
    unit.floors = next(floors) and floors
  end

  -- Notes that a site of the group has pages at an origin.
  function places.share_floor(unit, site, origin)
    local floor = unit.floors and unit.floors[origin]
    if floor then
      floor.is_shared = floor.is_shared or floor.reader ~= site.name
    end
  end

  -- The robots.txt of these hosts are to be read anew.
  function places.forget_floors(unit, hosts)
    for _, host in ipairs(unit.floors and hosts or {}) do
      for _, scheme in ipairs({ 'https://', 'http://' }) do
        unit.floors[scheme .. host] = nil
      end
    end
    unit.floors = unit.floors and next(unit.floors) and unit.floors
  end

  places.save_unit = store.save_unit

  function places.mutex(unit)
    return UNIT_MUTEX .. unit.name
  end

  -- The token that a start leaves in the mutex.
  function places.start_token(lease)
    return START_TOKEN .. lease
  end

  function places.owns(unit, token)
    return unit.last_at and places.start_token(unit.last_token) == token
  end

  -- The last start of a unit or of a site is at another time.
  function places.set_start(record, at, token, grace)
    record.last_at, record.last_token, record.last_grace = at, token, grace
  end

  local LAST = { 'last_at', 'last_token', 'last_grace', 'last_after_at', 'last_after_grace' }
  local BEFORE = { 'before_at', 'before_token', 'before_grace', 'before_after_at', 'before_after_grace' }

  local function copy_start(record, from, to)
    for i = 1, #from do
      record[to[i]] = record[from[i]]
    end
  end

  -- A start is the last one. When the one before it was stays with it, and how late that may have been: a re-arm still comes
  -- after it, also where this one became the last again.
  function places.add_start(record, at, token, grace)
    copy_start(record, LAST, BEFORE)
    record.last_after_at, record.last_after_grace = record.last_at, record.last_grace
    places.set_start(record, at, token, grace)
  end

  -- A unit that never started has the starts of another one.
  function places.take_starts(unit, from)
    if not unit.last_at then
      for i = 1, #LAST do
        unit[LAST[i]], unit[BEFORE[i]] = from[LAST[i]], from[BEFORE[i]]
      end
      places.save_unit(unit)
    end
  end

  local function take_start_back(record)
    copy_start(record, BEFORE, LAST)
  end

  -- Saves a unit whose last start or wait has changed: its due time and its own timed mutex follow.
  function places.retime(unit)
    if unit.last_at then
      local wait = store.wait_of(unit)
      local until_at = store.outsiders_wait_until(unit)
      local held = records.mutex(places.mutex(unit), wait)
      if (held and places.owns(unit, held.token)) or (not held and until_at > now) then
        records.save_mutex(places.mutex(unit), places.start_token(unit.last_token), until_at)
      end
    end
    places.save_unit(unit)
  end

  -- The probe under that token was never sent: the next one is due. Nor was the start that was granted ahead: the first probe
  -- waits no longer for it.
  function places.unprobed(wall, token)
    if wall and wall.ahead == token then
      wall.ahead = nil
      if not wall.probe then
        wall.probes = math.max(0, wall.probes - 1)
        wall.probe_at = wall.probe_at - math.floor((wall.probe_at - wall.since) / 2)
      end
    end
    if wall and wall.probe and wall.probe.token == token then
      wall.probe = nil
      wall.probes = math.max(0, wall.probes - 1)
      wall.probe_at = now
    end
  end

  -- Gives a start back that wasn't used: the site's and the unit's, each unless a later one of it was granted meanwhile. The
  -- start before it stays the one to fall back on.
  function places.give_back_start(site, token)
    local unit = store.some_unit(site.unit)
    places.unprobed(site.wall, token)
    places.unprobed(unit.wall, token)
    if site.last_at and site.last_token == token then
      take_start_back(site)
      store.take(site, 'starts')
    end
    store.save_site(site)
    if unit.last_at and unit.last_token == token then
      local held = records.mutex(places.mutex(unit))
      if held and places.owns(unit, held.token) then
        records.remove_mutex(places.mutex(unit))
      end
      take_start_back(unit)
      places.retime(unit)
    else
      places.save_unit(unit)
    end
  end

  -- A start that may have been granted right before a restart went out by then.
  local function started_soon(record, at)
    places.set_start(record, math.max(at, record.last_at or 0), record.last_token or '0', record.last_grace)
    copy_start(record, LAST, BEFORE)
  end

  -- A restart of the server may have forgotten its last second, and starts with it: the unit and each of its sites count as
  -- started soon after its first look. True: the unit noticed it now.
  function places.notices_restart(unit)
    if unit.server == store.server() then
      return false
    end
    unit.server, unit.restarted_at = store.server(), now + MOST_AHEAD
    started_soon(unit, unit.restarted_at)
    if not unit.wait and store.site(unit.name) then
      places.knows_restart(store.site(unit.name), unit)
      store.save_site(store.site(unit.name))
    end
    places.retime(unit)
    return true
  end

  -- The same of a site, as it is looked at.
  function places.knows_restart(site, unit)
    if site.server ~= store.server() then
      site.server = store.server()
      if unit.restarted_at then
        started_soon(site, unit.restarted_at)
      end
    end
  end

  -- No start of a unit or a site before `until_at`; whether that is news.
  local function block(record, until_at, why)
    if until_at <= (record.blocked_until or 0) then
      return false
    end
    record.blocked_until, record.blocked_why = until_at, why
    if until_at - now >= LEAST_BLOCK then
      local before = record.slow and now < record.slow.until_at and record.slow
      record.slow = { left = SLOW_STARTS, until_at = until_at + FORGIVEN_AFTER, probes = before and before.probes or 0 }
    end
    return true
  end

  -- A site asked for that: its unit waits.
  function places.block(unit, until_at, why)
    if block(unit, until_at, why) then
      places.save_unit(unit)
    end
  end

  -- Nobody there answers: others of its unit go on.
  function places.hold_back(site, until_at, why)
    if block(site, until_at, why) then
      store.save_site(site)
      places.retime(store.some_unit(site.unit))
    end
  end
end)
