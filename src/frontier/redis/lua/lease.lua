-- What a worker does with a lease before it settles, and what happens to leases that nobody renews.

local settle
local lease = module(function(lease)
  local function origin_of(url)
    local scheme, authority = string.match(url, '^(%a[%w+.-]*://)([^/?#]*)')
    return scheme .. (string.match(authority, '@([^@]*)$') or authority)
  end
  lease.origin_of = origin_of

  -- The lease of a running task, as its worker sees it.
  function lease.of(task)
    local site = store.site(task.site)
    local robots = site.robots == 1 and records.robots(origin_of(task.url))
    local stored = task.stored
    if task.stage == 'd' and site.keeps then
      local _, kept = records.page(task.site, task.url)
      stored = kept
    end
    return {
      task.token, task.site, task.stage, task.url, task.fence, task.granted_at, task.ends_at, task.attempts or 0,
      task.link or false, task.priority, task.depth, task.hops or 0, task.interval or 0,
      task.errand and { task.errand, robots and robots.failures or 0 } or false, robots and robots.until_at or false,
      stored or false, site.version,
    }
  end

  -- The task that runs under a lease, unless that is over: a stale token changes nothing (I5). A lease is named by its
  -- token, its site, and its task's stage and URL.
  function lease.held(token, site, field)
    local task = tasks.leased(token, site, field)
    if not task or task.ends_at <= now then
      return nil
    end
    return task
  end

  function lease.extend(names)
    local alive = {}
    for i, name in ipairs(names) do
      local task = lease.held(unpack(name))
      alive[i] = task ~= nil
      if task then
        task.ends_at = math.max(task.ends_at, now + LEASE_MS)
        tasks.save(task)
      end
    end
    return alive
  end

  -- The body ended: the request no longer counts against `parallel`. A block is the site's own word: it holds even where the
  -- lease is lost.
  function lease.landed(token, site_name, field, block_ms, block_why)
    local known = block_ms and store.site(site_name)
    if known then
      places.block(store.some_unit(known.unit), now + block_ms, block_why)
    end
    local task = lease.held(token, site_name, field)
    if not task then
      return false
    end
    if task.in_flight then
      local site = store.site(task.site)
      store.take(site, 'running')
      task.in_flight = nil
      tasks.save(task)
      store.save_site(site)
    end
    return true
  end

  local function give_up(task, place, until_at, unused)
    local site, token = store.site(task.site), task.token
    places.absorb(site, task, until_at or now)
    places.shift(site, task, place, until_at)
    store.save_site(site)
    if unused then
      places.give_back_start(store.some_unit(site.unit), token)
    end
  end

  -- A new start for a permit that grew late: the unit's last start becomes this one, so spacing holds.
  function lease.rearm(token, site_name, field)
    local task = lease.held(token, site_name, field)
    if not task then
      return 'stale'
    end
    if task.stage == 'p' then
      return { start_in = 0 }
    end
    local site = store.site(task.site)
    local unit = store.some_unit(site.unit)
    if site.paused or (unit.blocked_until or 0) > now then
      give_up(task, WAITING, nil, true)
      return 'went_back'
    end
    local interval = math.max(unit.interval or 0, store.interval(site))
    local mutex = records.mutex(places.mutex(unit), interval)
    if mutex and not places.owns(unit, mutex.token) then
      return { held = mutex.until_at - now }
    end
    local own_at
    if unit.last_at then
      if unit.last_token == token then
        own_at = unit.last_at
      else
        places.copy_start(unit, 'last', 'before')
      end
    end
    places.is_unsure(unit)
    -- An interval that was raised since the start before counts as well (I1).
    local spaced = now
    if unit.before_at and unit.before_token ~= token then
      spaced = unit.before_at + places.interval_after(unit, 'before')
    end
    local at = math.max(now, spaced, own_at or now, unit.unsure_until or 0)
    places.set_start(unit, 'last', at, site.name, token)
    if at + interval > now then
      records.save_mutex(places.mutex(unit), places.start_token(token), at + interval)
    end
    places.save_unit(unit)
    task.ends_at = at + LEASE_MS
    task.interval = interval
    tasks.save(task)
    return { start_in = at - now }
  end

  -- The permit was late each time, or its process can't end it: the task goes back to its place, no attempt counted. A
  -- start that was made stands.
  function lease.back(token, site_name, field, unused)
    local task = lease.held(token, site_name, field)
    if not task then
      return false
    end
    give_up(task, DELAYED, now + BACK_MS, unused)
    return true
  end

  -- A lost lease is no attempt: back at once, later with a delay, after the sixth it is dead. How long it is kept back.
  local function lose(site, task)
    store.add(site, counter[task.stage].lost, 1)
    task.losses = (task.losses or 0) + 1
    if task.orphan then
      call('HINCRBY', P .. 'dead', task.orphan, -1)
    end
    if task.losses >= MAX_LOSSES then
      if task.errand then
        settle.keep_robots(site, task, { why = WORKER_DIED, holds_for = DEADLY_ROBOTS })
      else
        places.die(site, task, { reason = WORKER_DIED })
      end
      return false
    end
    local wait = task.errand and 0 or AFTER_LOSS[task.losses]
    places.absorb(site, task, now + wait)
    if wait == 0 then
      places.shift(site, task, WAITING)
    else
      places.shift(site, task, DELAYED, now + wait)
    end
    return wait
  end

  -- Frees leases that ended or whose owner is dead, a bounded number: which they were, if there were any.
  function lease.free_lost()
    local freed
    for i, task in ipairs(tasks.until_now('lease', REAPED)) do
      local site, losses = store.site(task.site), (task.losses or 0) + 1
      freed = freed or {}
      freed[i] = { task.site, task.stage, task.url, losses, lose(site, task) }
      store.save_site(site)
    end
    return freed
  end
end)
