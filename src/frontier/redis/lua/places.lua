-- The moves between places. Each keeps the task, its site's books and the unit's due time true together.

local places = module(function(places)
  local function count(site, task, field, by)
    store.add(site, counter[task.stage][field], by or 1)
  end

  local function place_field(place)
    return place == RUNNING and 'leased' or place
  end

  local function leave(site, task)
    store.take(site, counter[task.stage][place_field(task.place)])
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
  function places.lease(task, token, owner, fence, interval)
    task.token, task.owner, task.fence, task.interval = token, owner, fence, interval
    task.granted_at, task.ends_at = now, now + LEASE_MS
  end

  -- Puts a task that stood nowhere into a place.
  function places.enter(site, task)
    count(site, task, place_field(task.place))
    tasks.save(task)
  end

  -- Moves a task from the place where it stands to another.
  function places.shift(site, task, place, until_at)
    leave(site, task)
    task.place, task.until_at = place, until_at
    count(site, task, place_field(place))
    tasks.save(task)
  end

  -- Takes a task out for good.
  function places.remove(site, task)
    leave(site, task)
    tasks.remove(task)
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
  end

  -- A task that runs again anyway, not before `starts`, stands for the request that met it, unless that one is for later.
  function places.absorb(site, task, starts)
    local deferral = task.deferral
    if deferral and (not deferral.at or deferral.at <= starts) then
      count(site, task, 'absorbed')
      local errand = task.errand
      places.take_up(task, deferral)
      if errand then
        task.priority, task.errand = PRIORITY_ROBOTS, errand
      end
    end
  end

  -- The further run is a task of its own: a new turn, not before the time that was asked for.
  local function rerun(site, task)
    local deferral = task.deferral
    count(site, task, 'reruns')
    places.take_up(task, deferral)
    task.position = store.next_position(site)
    if deferral.at and deferral.at > now then
      places.shift(site, task, SCHEDULED, deferral.at)
    else
      places.shift(site, task, WAITING)
    end
  end

  -- Done: gone and known, or, where a request met it, waiting once more at a new position.
  function places.finish(site, task)
    count(site, task, 'done')
    if task.stage == 'd' then
      tasks.add_known(site, task.url, task.mark)
    end
    if task.deferral then
      rerun(site, task)
    else
      places.remove(site, task)
    end
  end

  -- Dead: a letter is kept, or, where a request met it, it waits once more.
  function places.die(site, task, why)
    count(site, task, 'dead')
    if task.deferral then
      return rerun(site, task)
    end
    local history = task.history or {}
    history[#history + 1] = why
    tasks.save_dead(site, task.stage, task.url, {
      why = why, attempts = task.attempts or 0, history = history, died_at = now, run = site.run, depth = task.depth,
    })
    places.remove(site, task)
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

  -- What a unit keeps of a start, by name: joining texts at each use would take longer than the use.
  local function names_of(start)
    return { at = start .. '_at', site = start .. '_site', token = start .. '_token', fixed = start .. '_fixed' }
  end
  local NAMES = { last = names_of('last'), before = names_of('before') }

  -- What the unit waits after a start of a site: the larger of its own interval and the site's, as in force now or fixed.
  function places.interval_of(unit, name, fixed)
    local site = not fixed and name and store.site(name)
    return math.max(unit.interval or 0, fixed or site and store.interval(site) or 0)
  end

  local function interval_after(unit, start)
    local names = NAMES[start]
    return places.interval_of(unit, unit[names.site], unit[names.fixed])
  end
  places.interval_after = interval_after

  -- When the unit's next start may be.
  function places.due(unit)
    local paced = 0
    if unit.last_at then
      local courtesy = unit.courtesy_token == unit.last_token and unit.courtesy_ms or 0
      paced = unit.last_at + interval_after(unit, 'last') + courtesy
    end
    return math.max(paced, unit.blocked_until or 0, unit.held_until or 0, unit.unsure_until or 0)
  end

  -- Saves a unit with the due time that follows from it.
  function places.save_unit(unit)
    store.save_unit(unit, places.due(unit))
  end

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

  function places.set_start(unit, which, at, site, token, fixed)
    local names = NAMES[which]
    unit[names.at], unit[names.site], unit[names.token], unit[names.fixed] = at, site, token, fixed
  end

  function places.copy_start(unit, from, to)
    local names = NAMES[from]
    places.set_start(unit, to, unit[names.at], unit[names.site], unit[names.token], unit[names.fixed])
  end

  -- Saves a unit whose last start or interval in force has changed: its due time and its own timed mutex follow.
  function places.retime(unit)
    if unit.last_at then
      local until_at = unit.last_at + interval_after(unit, 'last')
      local held = records.mutex(places.mutex(unit), interval_after(unit, 'last'))
      if (held and places.owns(unit, held.token)) or (not held and until_at > now) then
        records.save_mutex(places.mutex(unit), places.start_token(unit.last_token), until_at)
      end
    end
    places.save_unit(unit)
  end

  -- Gives a start back that wasn't used, unless a later one was granted meanwhile. The start before it stays the one to
  -- fall back on.
  function places.give_back_start(unit, token)
    if unit.last_token ~= token or not unit.last_at then
      return
    end
    local held = records.mutex(places.mutex(unit))
    if held and places.owns(unit, held.token) then
      records.remove_mutex(places.mutex(unit))
    end
    local site = store.site(unit.last_site)
    places.copy_start(unit, 'before', 'last')
    if site then
      store.take(site, 'starts')
      store.save_site(site)
    end
    places.retime(unit)
  end

  -- The longest that the unit waits after any start: nobody knows whose the last one was.
  local function longest_interval(unit)
    local longest = interval_after(unit, 'last')
    for _, site in ipairs(store.members(unit)) do
      longest = math.max(longest, store.interval(site))
    end
    return longest
  end

  -- After a restart of the server its last second may be forgotten, and a start of any of the unit's sites with it, be it
  -- their first: the unit waits one interval, the longest of theirs. True: it waits.
  function places.is_unsure(unit)
    if unit.server == store.server() then
      return false
    end
    unit.server = store.server()
    local interval = longest_interval(unit)
    unit.unsure_until = now + interval
    places.save_unit(unit)
    return interval > 0
  end

  -- No start of the unit before `until_at`.
  function places.block(unit, until_at, why)
    if until_at > (unit.blocked_until or 0) then
      unit.blocked_until, unit.blocked_why = until_at, why
      places.save_unit(unit)
    end
  end
end)
