-- Hosts whose robots.txt can't be had: each is kept back as a whole, its tasks parked beside the queue, until it is looked at
-- again. The hosts of a site lie by that time in an index of its own, and the sites by the first of theirs in `away`.
local put
local away = module(function(away)
  local NO_TIME = math.huge -- its robots.txt is under way: the record of that tells when

  local function hosts_key(site)
    return P .. 'away:' .. site
  end

  -- Keeps the site where the first of its hosts is looked at.
  function away.offer(site)
    local first = call('ZRANGE', hosts_key(site), '0', '0', 'WITHSCORES')[2]
    if first then
      call('ZADD', P .. 'away', first, site)
    else
      call('ZREM', P .. 'away', site)
    end
    batch.firsts.away = nil
  end

  local function set(site, origin, at)
    if at then
      call('ZADD', hosts_key(site), at, origin)
      if at < NO_TIME then
        store.comes('d', at, site)
      end
    else
      call('ZREM', hosts_key(site), origin)
    end
    away.offer(site)
  end

  -- The hosts of a site that are kept back: as many as its file names at most, and those that it named before.
  function away.hosts(site)
    return call('ZRANGE', hosts_key(site), '0', '-1')
  end

  -- When a host is looked at again for the first time.
  function away.first()
    local first = store.first_of('away')
    return first and first < NO_TIME and first or nil
  end

  -- The host of a task can't be reached: it stands beside the queue until that is looked at again.
  function away.park(site, task, at)
    places.shift(site, task, PARKED)
    set(site.name, lease.origin_of(task.url), at)
  end

  -- What was found about a host that is kept back: it is looked at again then.
  function away.found(site, origin, at)
    if call('ZSCORE', hosts_key(site), origin) then
      set(site, origin, at)
    end
  end

  -- All hosts of a site that are kept back are looked at then; without a time none is kept back any more.
  function away.look_at_all(site, at)
    for _, origin in ipairs(away.hosts(site)) do
      set(site, origin, at)
    end
  end

  -- The robots.txt of a host, made or raised to go before everything else; else when the host is looked at again.
  function away.errand(site, origin)
    local url = origin .. '/robots.txt'
    local task = tasks.find(site, 'd', url)
    if not task then
      local asked = { url = url, link = true, priority = PRIORITY_ROBOTS, depth = 0, errand = url }
      return put.create(site, 'd', asked, tasks.dead(site, 'd', url))
    end
    if task.place == RUNNING then
      return nil, task.errand and NO_TIME or now + BACK_MS -- asked for as an ordinary page before the record ended
    end
    if (task.place == DELAYED or task.place == SCHEDULED) and task.errand and task.until_at > now then
      return nil, NO_TIME
    end
    task.priority, task.errand = PRIORITY_ROBOTS, url
    places.shift(site, task, WAITING)
    return task
  end

  -- How many tasks returned. Where some are left, the host stands behind others that are due.
  local function look_at(name, origin, most)
    local site = store.site(name)
    if not site then
      set(name, origin, nil)
      return 0
    end
    local robots = site.robots == 1 and records.robots(origin)
    if robots and robots.until_at <= now then
      robots = nil
    end
    local is_back = site.robots ~= 1 or robots and not robots.unreachable
    -- While it is away, one task tells that there are any.
    local parked = tasks.parked(name, origin, is_back and most or 1)
    if #parked == 0 then
      set(name, origin, nil)
      return 0
    end
    if is_back then
      for _, task in ipairs(parked) do
        places.shift(site, task, WAITING)
      end
      store.save_site(site)
      set(name, origin, now)
      return #parked
    end
    local at = robots and robots.until_at
    if not at then
      local _, later = away.errand(site, origin)
      at = later or NO_TIME
      store.save_site(site)
    end
    set(name, origin, at)
    return 0
  end

  -- Hosts whose time has come: a bounded number of tasks returns, or robots.txt is asked for again.
  function away.look()
    local left = TIDIED
    local first = away.first()
    while left > 0 and first and first <= now do
      local site = call('ZRANGE', P .. 'away', '0', '0')[1]
      local origin = call('ZRANGE', hosts_key(site), '0', '0')[1]
      left = left - math.max(1, look_at(site, origin, left))
      first = away.first()
    end
  end
end)
