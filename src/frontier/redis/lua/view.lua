-- What people and other modules look at; nothing here changes anything.
local view = module(function(view)
  view.freshness, view.dead_letters, view.bar = pages.freshness, letters.after, sites_of.bar
  view.holds_lock, view.lock_left, view.acts, view.fleet, view.queue, view.session = lock.holds, lock.left, acts.all, gate.rules, queue.list, sessions.status
  view.flow, view.idle_in_all, view.tuned_tenants, view.drops = flow.of_site, store.idle_in_all, gate.tuned, pauses.drops
  view.batch = batches.of_site

  local function sorted(names)
    table.sort(names)
    return names
  end

  -- A table as it is now: a later step of this batch may change it before the answer is written.
  local function copied(live)
    local copy = {}
    for name, value in pairs(live) do
      copy[name] = value
    end
    return copy
  end

  -- A stage's counters by name; the pages that were excluded, by reason.
  local function counts_of(site, stage)
    local counts = {}
    for field, value in pairs(site) do
      if value and string.sub(field, 1, 2) == stage .. '.' then
        counts[string.sub(field, 3)] = type(value) == 'table' and copied(value) or tonumber(value) or cjson.decode(value)
      end
    end
    return counts
  end

  -- How a site stands: its record, its unit's, and what follows from both.
  function view.site(name)
    local site = store.site(name)
    if not site then
      return false
    end
    local unit = store.some_unit(site.unit)
    local floor, origin = store.floor(site)
    local blocks = (site.blocked_until or 0) > (unit.blocked_until or 0) and site or unit
    local blocked, wait = (blocks.blocked_until or 0) > now, store.wait_of(unit)
    return {
      name, site.unit, now, site.run, site.run_began, site.run > 0 and sites_of.is_finished(site) and not site.given_up,
      math.max(wait, store.interval(site)), store.parallel(site), site.running or 0, counts_of(site, 'd'),
      counts_of(site, 'p'), tasks.oldest_waiting(site, 'd') or false, site.response or false, site.starts or 0,
      math.max(unit.last_at or 0, site.last_at or 0) > 0 and math.max(unit.last_at or 0, site.last_at or 0), math.max(store.ends(unit), store.waits_until(site)), blocked and blocks.blocked_until, blocked and blocks.blocked_why,
      pauses.known(site, unit), site.version,
      {
        site.interval, site.tuned_interval or false, origin and { floor, origin } or false, unit.wait or false, site.parallel,
        site.tuned_parallel or false, store.least_interval(site), store.most_parallel(site),
        store.map(site, 'budgets')[''] or false, site.tuned_max_pages or false, site.tuned_lane or false,
        unit.tuned_interval or false,
      },
      sites_of.is_seeding(site) and { site.seeding.put, site.seeding.of }, site.given_up or false,
      walls.known(site, unit), math.max(unit.slow and unit.slow.left or 0, site.slow and site.slow.left or 0),
      sessions.held(site), site.held or 0, site.order or STRICT,
    }
  end

  function view.robots(origin)
    local found = call('HMGET', P .. 'robots:' .. origin, 'record', 'until', 'failures')
    return found[1] and { found[1], tonumber(found[2]), tonumber(found[3]) } or false
  end

  function view.stored(site, url)
    local page = kept.page(site, url)
    return page.stored and { page.stored, page.depth } or false
  end

  -- Where a URL stands: its tasks, dead letters, page.
  function view.whereabouts(name, url)
    local site = store.site(name)
    local found, found_letters = {}, {}
    if not site then
      return { found, found_letters }
    end
    for _, stage in ipairs(STAGES) do
      local task = tasks.find(site, stage, url)
      if task then
        local history = task.history or {}
        found[#found + 1] = {
          stage, task.place, task.place == RUNNING and task.ends_at or task.until_at or false, task.owner or false,
          task.priority, EPOCH + task.position, task.depth, task.attempts or 0, task.losses or 0, history[#history] or false,
          task.lane or false, task.tenant or false, task.session or false,
          batches.of_task(task),
        }
      end
      local letter = call('HGET', P .. 'letter:' .. name, stage .. url)
      if letter then
        found_letters[#found_letters + 1] = { stage, url, letter, name }
      end
    end
    local again = kept.page(name, url).again or false
    return { found, found_letters, view.stored(name, url), again, tasks.is_known(site, url) }
  end

  -- What a process works on: all sites, those of some lanes, or some; one of an older version has them in its record.
  local function scope_of(name, owner)
    if owner.served then
      return { lanes = owner.served }
    elseif owner.named then
      return call('SMEMBERS', store.named(name))
    end
    local crawls = cjson.decode(call('HGET', P .. 'owner:' .. name, 'crawls') or '[]')
    return #crawls == 0 or crawls
  end

  -- The processes that claim, or did.
  function view.owners()
    local found = {}
    for i, name in ipairs(sorted(call('SMEMBERS', P .. 'owners'))) do
      local owner = records.last_answers(name)
      local told = call('HMGET', P .. 'owner:' .. name, 'drained', 'told_at', 'tells')
      local beat = told[2] and { tonumber(told[2]), told[3] }
      found[i] = { name, tonumber(owner.pid) or 0, scope_of(name, owner), owner.dead ~= false, told[1] == '1', beat }
    end
    return found
  end

  -- A portion of the names, and where the next one begins.
  function view.sites(from)
    local part, names = call('HSCAN', P .. 'units', from == '' and '0' or from, 'COUNT', NAMES), {}
    for i = 1, #part[2], 2 do
      names[#names + 1] = part[2][i]
    end
    return { names, part[1] ~= '0' and part[1] }
  end

  function view.text(name)
    return call('GET', P .. 'text:' .. name)
  end

  function view.site_of(host)
    return call('LINDEX', P .. 'host:' .. host, 0)
  end

  function view.unit_of(name)
    return call('HGET', P .. 'units', name)
  end

  -- The name that a site is getting.
  function view.renamed(name)
    return call('HGET', P .. 'renamed', name)
  end

  -- What operators are to be told.
  function view.events()
    return events.status()
  end

  -- Everything in it: for tests of small frontiers.
  function view.inspect()
    local found, due, dead, known = {}, {}, {}, 0
    for _, name in ipairs(sorted(call('SMEMBERS', P .. 'sites'))) do
      for _, stage in ipairs(STAGES) do
        for _, lane in ipairs(gate.lanes(store.site(name), stage)) do
          for _, url in ipairs(call('ZRANGE', tasks.queue(name, stage, lane), 0, -1)) do
            found[#found + 1] = { name, stage, url, WAITING }
          end
        end
        for _, origin in ipairs(stage == 'd' and away.hosts(name) or {}) do
          for _, task in ipairs(tasks.parked(name, origin, 0)) do
            found[#found + 1] = { name, stage, task.url, PARKED }
          end
        end
        local flat = call('HGETALL', P .. 'tasks:' .. name)
        for i = 1, #flat, 2 do
          local place = packed.place_of_task(flat[i + 1])
          if string.sub(flat[i], 1, 1) == stage and place ~= WAITING and place ~= PARKED then
            found[#found + 1] = { name, stage, string.sub(flat[i], 2), place }
          end
        end
      end
      for _, letter in ipairs(tasks.read_letters(name, call('ZRANGE', P .. 'dead:' .. name, 0, -1))) do
        dead[#dead + 1] = { name, letter[1], letter[2] }
      end
      local site = store.site(name)
      for _, set in ipairs(tasks.known_sets(site)) do
        known = known + call('SCARD', set)
      end
    end
    for _, stage in ipairs(STAGES) do
      local flat = call('ZRANGE', P .. DUE[stage], 0, -1, 'WITHSCORES')
      for i = 1, #flat, 2 do
        due[#due + 1] = { stage, flat[i], tonumber(flat[i + 1]) * (stage == 'p' and TURN_PARTS or 1) }
      end
    end
    return { found, due, dead, known }
  end

  function view.campaigns()
    return campaigns.names()
  end

  function view.campaign(site, name)
    return campaigns.status(site, name)
  end

  function view.campaign_chunk(site, name, number)
    return campaigns.chunk(site, name, number)
  end
end)
