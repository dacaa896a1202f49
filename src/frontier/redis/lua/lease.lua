-- What a worker does with a lease before it settles, and what happens to leases that nobody renews.

local settle
lease = module(function(lease)
  local origin_of = tasks.origin_of
  lease.origin_of = origin_of

  -- Whether the site's last start is that lease's, and the first of its time.
  local function is_told_by(site, token)
    if not site.last_at or site.last_token ~= token then
      return false
    end
    return not site.last_after_at or math.floor(site.last_after_at / TOLD_MS) ~= math.floor(site.last_at / TOLD_MS)
  end

  -- The lease of a running task, as its worker sees it.
  function lease.of(task)
    local site = store.site(task.site)
    local robots = site.robots == 1 and records.robots(origin_of(task.url))
    local stored = task.stored
    if task.stage == 'd' and site.keeps then
      stored = kept.page(task.site, task.url).stored
    end
    return {
      task.token, task.site, task.stage, task.url, task.fence, task.granted_at, task.ends_at, task.attempts or 0,
      task.link or false, task.priority, task.depth, task.hops or 0,
      { task.departs_at or 0, task.unit_wait or 0, task.site_wait or 0 },
      task.errand and { task.errand, robots and robots.failures or 0 } or false, robots and robots.until_at or false,
      stored or false, site.version, store.supply(site), store.places(site), store.parallel(site),
      site.response or false, is_told_by(site, task.token), task.stage == 'd' and walls.probe_of(site, task.token),
      task.tenant or false, task.lane == NOW, task.session or false, task.batches or false,
    }
  end

  -- The task that runs under a lease, unless that is over: a stale token changes nothing (I5). A lease is named by its
  -- token, its site, and its task's stage and URL.
  function lease.held(token, site, field)
    local task = tasks.leased(token, site, field)
    if not task or task.ends_at <= now or records.last_answers(task.owner).dead then
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
    task.returned = true
    places.absorb(site, task, until_at or now)
    places.shift(site, task, place, until_at)
    store.save_site(site)
    if unused then
      places.give_back_start(site, token)
    end
  end

  -- Whether a start that is asked about is the one that the task was granted: no restart has forgotten it since.
  local function is_on_record(task, unit, asked)
    return task.departs_at == asked and task.granted_at > (unit.restarted_at or 0) - MOST_AHEAD
  end

  -- The earliest time of a start that takes the place of the one under that token. One that isn't the last any more comes
  -- after that.
  local function earliest(record, token, wait)
    if record.last_at and record.last_token == token then
      local before = { last_at = record.last_after_at, last_grace = record.last_after_grace }
      return math.max(record.last_at, store.paced_until(before, wait))
    end
    return store.paced_until(record, wait)
  end

  local function depart_anew(task, site, unit, wait, interval, lead)
    local token, longer = task.token, math.max(wait, interval)
    local soonest = now + places.lead(longer, lead)
    local at = math.max(soonest, earliest(unit, token, wait), earliest(site, token, interval), unit.not_before or 0)
    for _, record in ipairs({ unit, site }) do
      local set = record.last_token == token and places.set_start or places.add_start
      set(record, at, token, longer > 0 and store.grace(longer) or nil)
    end
    if store.paced_until(unit, wait) > now then
      records.save_mutex(places.mutex(unit), places.start_token(token), store.paced_until(unit, wait))
    end
    task.granted_at, task.ends_at = now, at + LEASE_MS
    places.departs(task, { at = at, unit = wait, site = interval })
    tasks.save(task)
    store.save_site(site)
    places.save_unit(unit)
  end

  -- A new start for a permit that grew late: the last start of its unit and of its site becomes this one, so both spacings
  -- hold. One that is `asked` about once more, as it is far away, stands where nothing has changed, however many were granted
  -- after it.
  function lease.rearm(token, site_name, field, asked, lead)
    local task = lease.held(token, site_name, field)
    if not task then
      return 'stale'
    end
    if task.stage == 'p' then
      return { departs = { at = 0, unit = 0, site = 0 } }
    end
    local site = store.site(task.site)
    local unit = store.some_unit(site.unit)
    places.notices_restart(unit)
    places.knows_restart(site, unit)
    local stands = asked and is_on_record(task, unit, asked)
    local wait, interval = store.wait_of(unit), store.interval(site)
    local is_longer = wait > (task.unit_wait or 0) or interval > (task.site_wait or 0)
    local is_void = store.is_paused(site) or math.max(site.blocked_until or 0, unit.blocked_until or 0, unit.paused_d or 0) > now
      or walls.is_against(site, unit, token)
    if is_void or stands and is_longer then
      give_up(task, WAITING, nil, true)
      return 'went_back'
    end
    if not stands then
      local held = records.mutex(places.mutex(unit), wait)
      if held and not places.owns(unit, held.token) then
        unit.held_until, unit.held_by_another = held.until_at, nil
        places.save_unit(unit)
        return { held = held.until_at - now }
      end
      depart_anew(task, site, unit, wait, interval, lead)
    end
    return { departs = { at = task.departs_at, unit = task.unit_wait, site = task.site_wait } }
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

  -- Puts the processes whose leases changed in `leases`, by when the first of each ends: 0 where the process is dead, which goes
  -- with its last lease.
  function lease.index_lessees()
    for owner in pairs(batch.lessees) do
      local first, is_dead = tasks.first_end_of(owner), records.last_answers(owner).dead
      if first then
        call('ZADD', P .. 'leases', is_dead and 0 or first, owner)
      else
        call('ZREM', P .. 'leases', owner)
        if is_dead then
          records.remove_owner(owner)
        end
      end
      batch.firsts.leases = nil
    end
    batch.lessees = {}
  end

  -- When the first lease ends; 0 where a dead process has one.
  function lease.first_end()
    lease.index_lessees()
    return store.first_of('leases')
  end

  local function ends_before(one, other)
    if one.ends_at ~= other.ends_at then
      return one.ends_at < other.ends_at
    elseif one.position ~= other.position then
      return one.position < other.position
    elseif one.site ~= other.site then
      return one.site < other.site
    end
    return one.stage < other.stage
  end

  -- Running tasks whose lease has ended or whose process is dead, a bounded number.
  local function lost()
    local found, first = {}, lease.first_end()
    if not first or first > now then
      return found
    end
    local flat = call('ZRANGEBYSCORE', P .. 'leases', '-inf', now, 'WITHSCORES', 'LIMIT', 0, REAPED)
    for i = 1, #flat, 2 do
      local by = flat[i + 1] == '0' and '+inf' or now
      for _, task in ipairs(#found < REAPED and tasks.held_by(flat[i], by, REAPED - #found) or {}) do
        found[#found + 1] = task
      end
    end
    table.sort(found, ends_before)
    return found
  end

  -- The tasks that run under these tokens of a process: sought among its leases.
  function lease.granted(owner, tokens)
    local running, found = {}, {}
    for _, task in ipairs(tasks.held_by(owner, '+inf', -1)) do
      running[task.token] = task
    end
    for i = 1, #tokens do
      found[#found + 1] = running[tokens[i]]
    end
    return found
  end

  -- Frees leases that ended or whose owner is dead, a bounded number: which they were, if there were any.
  function lease.free_lost()
    local freed
    for i, task in ipairs(lost()) do
      local site, losses = store.site(task.site), (task.losses or 0) + 1
      freed = freed or {}
      freed[i] = { task.site, task.stage, task.url, losses, lose(site, task) }
      store.save_site(site)
    end
    return freed
  end
end)
