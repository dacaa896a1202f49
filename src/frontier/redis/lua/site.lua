-- What a person's verbs do to a site: register it, begin a run, give one up, tune it.
local sites_of = module(function(sites_of)
  local function things_of(site, places)
    local count = 0
    for _, stage in ipairs(STAGES) do
      for _, place in ipairs(places) do
        count = count + (site[stage .. place] or 0)
      end
    end
    return count
  end

  -- How long what its last start and its block ask for is still to be kept.
  local function left_to_wait(site, unit)
    local probe = unit.wall and unit.wall.probe_at or 0
    return math.max(unit.blocked_until or 0, store.waits_until(site), probe) - now
  end

  -- Forgets units that had no sites for long enough, at most so many; not a group that somebody paused.
  function sites_of.sweep_units()
    for _, name in ipairs(call('ZRANGE', P .. 'idle-units', '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEPT)) do
      call('ZREM', P .. 'idle-units', name)
      if not store.has_sites(name) then
        if records.mutex(UNIT_MUTEX .. name) or pauses.is_kept(store.unit(name)) then
          call('ZADD', P .. 'idle-units', now + IDLE_MS, name)
        else
          records.remove_mutex(UNIT_MUTEX .. name)
          store.drop_unit(name)
        end
      end
    end
  end

  -- A unit that lost a site: the interval that it waits may have been that site's. One that has none left is kept for a day
  -- beyond what it waits for, as it may get one again that waits longer.
  local function leave_unit(unit)
    if unit.is_longest then
      unit.wait = store.longest_interval(unit)
    end
    local has_sites = store.has_sites(unit.name)
    unit.tuned_interval = has_sites and unit.tuned_interval or nil
    places.retime(unit)
    if not has_sites then
      call('ZADD', P .. 'idle-units', math.max(store.ends_unpaused(unit), now) + IDLE_MS, unit.name)
    end
    sites_of.sweep_units()
  end

  -- Under new rules each robots.txt is read anew: what it asks of the pace is kept with the site that read it.
  local function ask_robots_again(new)
    for _, host in ipairs(new.hosts) do
      records.forget_robots(host)
    end
  end

  -- What stands against doing anything else with a name that a site is losing or getting: that is to be finished first.
  function sites_of.renaming(name)
    local site, to = store.site(name), call('HGET', P .. 'renamed', name)
    if not to and site and site.renamed_from then
      name, to = site.renamed_from.name, name
    end
    return to and filled(BEING_RENAMED, { site = name, to = to }) or nil
  end

  -- Forgets a site that has no tasks and no dead letters; never before its last start is an interval ago and its block is
  -- over.
  function sites_of.forget(name)
    local refusal = sites_of.renaming(name)
    if refusal then
      return { refused = refusal }
    end
    local site = store.site(name)
    if not site then
      return 'unknown'
    end
    local leased = things_of(site, { '.leased' })
    local idle = things_of(site, { '.waiting', '.delayed', '.scheduled', '.letters' })
    if leased + idle > 0 then
      return { busy = { tasks = leased + idle, leased = leased } }
    end
    local wait = left_to_wait(site, store.some_unit(site.unit))
    if wait > 0 then
      return { not_yet = { wait = wait } }
    end
    tasks.leave_known(site)
    if tasks.sweep_known(site, REMOVED) or kept.sweep(name, REMOVED) then
      return 'partly'
    end
    if campaigns.forget(name) then
      return 'partly'
    end
    for _, recrawl in ipairs(call('SMEMBERS', P .. 'periods:' .. name)) do -- as many as its file names
      call('UNLINK', store.again_list(name, recrawl))
    end
    local unit = store.some_unit(site.unit)
    away.look_at_all(name, nil)
    site.parse_paused = nil
    away.await_parse_pause(site)
    local hosts = call('SMEMBERS', P .. 'hosts:' .. name)
    ask_robots_again({ hosts = hosts })
    places.forget_floors(unit, hosts)
    if P ~= DIRECTORY then
      call('UNLINK', P .. 'hosts:' .. name)
    end
    store.leave(site)
    for _, queued in ipairs(tasks.queues(site)) do
      call('UNLINK', tasks.queue(name, unpack(queued)))
    end
    for _, key in ipairs(store.keys_of_site) do
      call('UNLINK', store.key_of_site(key, name))
    end
    store.drop_site(name)
    leave_unit(unit)
    return 'wholly'
  end

  -- The site brings its own last start. The new unit keeps its own, takes over the later block, and waits for what the old one
  -- waits for, be it somebody else's hold on its mutex.
  function sites_of.move_unit(site, to)
    local old, unit = store.some_unit(site.unit), store.some_unit(to)
    places.notices_restart(old)
    places.notices_restart(unit)
    places.knows_restart(site, old)
    local held = records.mutex(places.mutex(old))
    local held_until = held and not places.owns(old, held.token) and held.until_at < math.huge and held.until_at or 0
    local paced = store.paced_until(old, store.wait_of(old))
    unit.not_before = math.max(unit.not_before or 0, old.not_before or 0, paced, held_until)
    if (old.blocked_until or 0) > (unit.blocked_until or 0) then
      unit.blocked_until, unit.blocked_why = old.blocked_until, old.blocked_why
    end
    unit.wall = unit.wall or old.wall and cmsgpack.unpack(cmsgpack.pack(old.wall))
    unit.slow = unit.slow or old.slow
    if old.name == site.name then -- left with a unit of its own, it would come back with that one after it has ended
      old.wall, old.slow = nil, nil
    end
    pauses.copy(unit)
    store.unready(site)
    store.leave(site)
    site.unit = to
    store.join(site)
    store.save_site(site)
    places.forget_floors(old, call('SMEMBERS', P .. 'hosts:' .. site.name))
    leave_unit(old)
    places.save_unit(unit)
  end

  -- What stands against a site's going to that unit.
  function sites_of.bar(name, to)
    local site, renaming = store.site(name), sites_of.renaming(name)
    if renaming then
      return renaming
    end
    if site and site.unit ~= to and ((site['d.leased'] or 0) > 0 or (site.running or 0) > 0) then
      return filled(REQUESTS_IN_FLIGHT, { site = name })
    end
    return false
  end

  -- Texts of one map may differ in the order of its names: an older version wrote them as they came.
  local function same_budgets(old, new)
    local before, after = cjson.decode(old or '{}'), cjson.decode(new or '{}')
    for name, most in pairs(after) do
      if before[name] ~= most then
        return false
      end
      before[name] = nil
    end
    return next(before) == nil
  end

  local function put_in_force(new, dropped)
    local site = store.site(new.name)
    local to = new.group or new.name
    local key = P .. 'text:' .. new.name
    local version = site and site.version
    if not site then
      site = { name = new.name, unit = to, version = 0, run = 0, run_began = 0 }
      store.first_version(site)
      store.new_site(site)
      site.by_lane = lanes.is_listing()
    else
      places.forget_floors(store.some_unit(site.unit), dropped)
      if site.unit ~= to then
        sites_of.move_unit(site, to)
      end
      if site.interval ~= new.interval or (site.min_interval or 0) ~= new.min_interval
        or (site.max_parallel or 0) ~= new.max_parallel or site.parallel ~= new.parallel or site.attempts ~= new.attempts
        or (site.lane or false) ~= new.lane or (site.tenant or false) ~= new.tenant
        or site.robots ~= new.robots or not same_budgets(site.budgets, new.budgets) or call('GET', key) ~= new.text then
        store.renew_version(site)
      end
    end
    site.interval, site.parallel, site.attempts, site.robots = new.interval, new.parallel, new.attempts, new.robots
    site.min_interval = new.min_interval > 0 and new.min_interval or nil
    site.max_parallel = new.max_parallel > 0 and new.max_parallel or nil
    site.budgets, site.lane, site.tenant = new.budgets or nil, new.lane or nil, new.tenant or nil
    if not site.fence then
      site.fence = now
    end
    if site.run == 0 then
      site.order = gate.order()
    end
    if site.floors then
      places.keep_floors_of(site, new.hosts)
    end
    if version ~= site.version then
      ask_robots_again(new)
      away.look_at_all(new.name, now)
    end
    store.join(site)
    store.save_site(site)
    local unit = store.some_unit(to)
    pauses.copy(unit)
    if version ~= site.version then
      places.forget_floors(unit, new.hosts)
    end
    if not new.group then
      unit.wait, unit.is_longest, unit.tuned_interval = false, nil, nil
    elseif new.group_interval == 0 then
      unit.wait, unit.is_longest = store.longest_interval(unit), 1
    else
      unit.wait, unit.is_longest = new.group_interval, nil
    end
    places.retime(unit)
    call('SET', key, new.text)
    return { version = site.version }
  end

  -- Puts a site's rules in force, or says what stands against it and leaves the old ones. Where the directory lies in the
  -- same partition that is one step, which books nothing for a site that is refused.
  function sites_of.register(new)
    local refusal = directory.foreign_host(new) or sites_of.bar(new.name, new.group or new.name)
    if refusal then
      return { refused = refusal }
    end
    local dropped = directory.dropped(new)
    directory.save(new)
    return put_in_force(new, dropped)
  end

  -- The same for a site that was booked in the directory of another partition, under that number. A later booking that is
  -- in force already stays in force, as the directory goes by the latest: this one comes too late.
  function sites_of.admit(new, number)
    local refusal = sites_of.bar(new.name, new.group or new.name)
    if refusal then
      return { refused = refusal }
    end
    if number <= tonumber(call('HGET', P .. 'admitted', new.name) or 0) then
      return false
    end
    call('HSET', P .. 'admitted', new.name, number)
    local dropped = directory.dropped(new)
    directory.copy(new)
    return put_in_force(new, dropped)
  end

  -- Whether not all seeds of its run are put.
  function sites_of.is_seeding(site)
    return site.seeding ~= nil and site.seeding.put < site.seeding.of
  end

  function sites_of.is_finished(site)
    return not sites_of.is_seeding(site) and things_of(site, { '.waiting', '.delayed', '.leased' }) == 0
  end

  -- Goes on with an unfinished run; when the last one is finished, or is the one that a fresh one is to follow, begins a new one
  -- whose seeds are put next. Tasks that run are adopted by the new one. Where not all seeds of an unfinished run were put,
  -- those that are left are next, and all of them where the list is another one now.
  function sites_of.begin_run(name, fresh, list, seeds)
    local site = store.site(name)
    if not site then
      return { { 0, false }, false, false }
    end
    local begun = site.run == 0 or sites_of.is_finished(site) or fresh == site.run
    if not site.given_up then
      local is_another = seeds > 0 and sites_of.is_seeding(site) and site.seeding.list ~= list
      if begun then
        tasks.leave_known(site)
        site.run = site.run + 1
        site.run_began = now
        site.spent, site.starts, site.order = nil, nil, gate.order()
        flow.run_begins(site)
      end
      if begun or is_another then
        site.seeding = seeds > 0 and { list = list, put = 0, of = seeds } or nil
      end
      store.save_site(site)
    end
    local is_own = sites_of.is_seeding(site) and site.seeding.list == list
    return { { site.run, begun }, is_own and site.seeding.put, site.given_up or false }
  end

  -- Puts seeds of a run, those from that one on; which is next. Those that another process has put meanwhile aren't put again,
  -- nor pages that the run has fetched or fetches now.
  function sites_of.seed(name, list, from, puts)
    local site = store.site(name)
    local seeding = site and site.seeding
    if not seeding or seeding.list ~= list then
      return 'another'
    end
    if from == seeding.put and sites_of.is_seeding(site) then
      seeding.put = seeding.put + #puts
      put.all(site, puts)
      site.seeding = seeding
      store.save_site(site)
    end
    return sites_of.is_seeding(site) and { next = seeding.put } or 'done'
  end

  -- Gives up an unfinished run, a bounded number of tasks a step; whether some are left. Nothing of it is granted meanwhile.
  -- It may be for a certain run alone, or only where that goes on. Running tasks are adopted by the next run, what met them is
  -- dropped.
  function sites_of.give_up(name, run, goes_on)
    local site = store.site(name)
    if not site or (run and run ~= site.run) or (goes_on and not site.given_up) then
      return false
    end
    site.given_up = true
    local idle = tasks.idle(name, away.hosts(name), REMOVED)
    for _, task in ipairs(idle) do
      places.drop(site, task)
    end
    local more = #idle > 0
    away.look_at_all(name, more and now or nil)
    if not more then -- running tasks alone have a record now: as many as workers have slots
      for _, letter in ipairs(call('ZRANGE', P .. 'dead:' .. name, 0, REMOVED - 1)) do
        local stage, url = string.sub(letter, 1, 1), string.sub(letter, 2)
        local dead = tasks.dead(site, stage, url)
        tasks.remove_dead(site, stage, url)
        batches.drop(site, dead)
        sessions.release(site, dead.session)
      end
      for _, task in ipairs(tasks.recorded(name, { [RUNNING] = true }, math.huge)) do
        if task.deferral then
          batches.leave(site, task.deferral.batches, 'dropped')
          task.deferral = nil
          tasks.save(task)
        end
      end
    end
    site.given_up = (more or (site['d.letters'] or 0) + (site['p.letters'] or 0) > 0) or nil
    site.seeding = nil
    store.save_site(site)
    return site.given_up
  end

  function sites_of.sweep(name)
    local site = store.site(name)
    if not site then
      return false
    end
    sessions.sweep(site, REMOVED)
    batches.sweep(name, REMOVED)
    return tasks.sweep_known(site, REMOVED)
  end

  -- No start of the site's unit for so long: it asked for that. A shorter block never shortens a longer one.
  function sites_of.block(name, wait, why)
    local site = store.site(name)
    if not site then
      return false
    end
    places.block(store.some_unit(site.unit), now + wait, why)
    return true
  end

  -- Why a value can't be set while a site runs, with what can.
  local function refusal_of(site, unit, what, value)
    if value and what == 'tuned_interval' then
      local floor = site.floors and store.floor(site) or 0
      local least = math.max(store.least_interval(site), floor, store.group_wait(unit))
      local most = math.max(least, LONGEST_INTERVAL)
      return (value < least or value > most) and { interval = { least, most } }
    elseif value and what == 'tuned_parallel' then
      local most = store.most_parallel(site)
      return (value < 1 or value > most) and { parallel = { 1, most } }
    elseif value and what == 'tuned_max_pages' then
      local least = store.max_pages(site, store.map(site, 'budgets'))
      local most = math.max(MOST_PAGES, least or 0)
      return not least and 'unbounded' or (value < least or value > most) and { max_pages = { least, most } }
    end
  end

  -- Sets what a group waits between its starts, for the very next claim (L6): longer than its sites' files and their robots.txt ask
  -- for. False gives it back to them.
  function sites_of.tune_group(group, interval)
    local unit = store.unit(group)
    local least = unit and store.least_group_wait(unit)
    if not least or not store.has_sites(group) then
      return 'unknown'
    end
    local most = math.max(least, LONGEST_INTERVAL)
    if interval and (interval < least or interval > most) then
      return { interval = { least, most } }
    end
    unit.tuned_interval = interval or nil
    places.retime(unit)
    return 'done'
  end

  -- Sets values that are in force for the very next claim (L6): all of them or, where one can't be, none. Each comes as
  -- {field, value}; false gives it back to the file.
  function sites_of.tune(name, tunings, act)
    local site = store.site(name)
    if not site then
      return 'unknown'
    end
    local unit = store.some_unit(site.unit)
    for _, tuning in ipairs(tunings) do
      local refusal = refusal_of(site, unit, tuning[1], tuning[2])
      if refusal then
        return refusal
      end
    end
    for _, tuning in ipairs(tunings) do
      site[tuning[1]] = tuning[2] or nil
      if tuning[1] == 'parse_paused' then
        away.await_parse_pause(site)
      end
    end
    store.save_site(site)
    places.retime(unit)
    if act then
      acts.keep(name, act)
    end
    return 'done'
  end
end)
