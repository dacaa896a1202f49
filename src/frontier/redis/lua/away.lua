-- Hosts whose robots.txt can't be had: each is kept back as a whole, its tasks parked beside the queue, until it is looked at
-- again. The hosts of a site lie by that time in an index of its own, and the sites by the first of theirs in `away`; the sites
-- that wait for one host in an index of that.
local put
local away = module(function(away)
  local NO_TIME = math.huge -- its robots.txt is under way: the record of that tells when

  local function hosts_key(site)
    return P .. 'away:' .. site
  end

  local function sites_key(origin)
    return P .. 'wait-for:' .. origin
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
      call('ZADD', sites_key(origin), at, site)
      if at < NO_TIME then
        store.comes(origin == PARSE_PAUSE and 'p' or 'd', at, site)
        if (store.site(site) or {}).by_lane then
          lanes.comes(origin == PARSE_PAUSE and 'p' or 'd', nil, at)
        end
      end
    else
      call('ZREM', hosts_key(site), origin)
      call('ZREM', sites_key(origin), site)
    end
    away.offer(site)
  end

  -- The sites that wait for a host are noted by it.
  function away.note(site)
    local flat = call('ZRANGE', hosts_key(site), '0', '-1', 'WITHSCORES')
    for i = 1, #flat, 2 do
      call('ZADD', sites_key(flat[i]), flat[i + 1], site)
    end
  end

  -- A site that has another name waits for a host as before.
  function away.rename(site, to, origin)
    call('ZADD', sites_key(origin), call('ZSCORE', sites_key(origin), site) or now, to)
    call('ZREM', sites_key(origin), site)
  end

  -- Whether the site's file still names the host of an origin; where nothing is known of its hosts, it does.
  function away.is_of(site, origin)
    local hosts = P .. 'hosts:' .. site
    return call('SISMEMBER', hosts, string.match(origin, '://(.*)$')) == 1 or P ~= DIRECTORY and call('EXISTS', hosts) == 0
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

  -- A host answers that other sites of its group wait for too: one of them is looked at now, and that one finds the next.
  function away.found_by_another(origin)
    local site = call('ZRANGE', sites_key(origin), '+inf', '(' .. string.format('%.0f', now), 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
    if site then
      set(site, origin, now)
    end
  end

  -- All hosts of a site that are kept back are looked at then; without a time none is kept back any more.
  function away.look_at_all(site, at)
    for _, origin in ipairs(away.hosts(site)) do
      if origin ~= PARSE_PAUSE then
        set(site, origin, at)
      end
    end
  end

  -- The robots.txt of a host, made or raised to go before everything else; else when the host is looked at again.
  function away.errand(site, origin)
    local url = origin .. '/robots.txt'
    local task = tasks.find(site, 'd', url)
    if not task then
      local asked = { url = url, link = true, priority = PRIORITY_ROBOTS, depth = 0, errand = url }
      local letter = tasks.dead(site, 'd', url)
      task = put.create(site, 'd', asked, letter)
      sessions.release(site, letter and letter.session)
      return task
    end
    if task.place == RUNNING then
      return nil, task.errand and NO_TIME or now + BACK_MS -- asked for as an ordinary page before the record ended
    end
    if (task.place == DELAYED or task.place == SCHEDULED) and task.errand and task.until_at > now then
      return nil, NO_TIME
    end
    local session = task.session
    task.priority, task.errand, task.session = PRIORITY_ROBOTS, url, nil
    places.shift(site, task, WAITING)
    if session then
      sessions.left(site, session, url, 'dropped')
    end
    return task
  end

  -- The end of a pause of a site's parses, if it ends by itself, is looked at beside the hosts that are kept back.
  function away.await_parse_pause(site)
    set(site.name, PARSE_PAUSE, site.parse_paused and site.parse_paused['until'])
  end

  -- Its time has come, unless it was made longer.
  local function look_at_parse_pause(name)
    local site = store.site(name)
    if not site then
      return set(name, PARSE_PAUSE, nil)
    end
    local ends = site.parse_paused and site.parse_paused['until']
    if ends and ends <= now then
      site.parse_paused = nil
    end
    store.save_site(site)
    away.await_parse_pause(site)
  end

  -- How many tasks returned. Where some are left, the host stands behind others that are due.
  local function look_at(name, origin, most)
    if origin == PARSE_PAUSE then
      look_at_parse_pause(name)
      return 0
    end
    local robots = records.robots(origin)
    if robots and robots.until_at <= now then
      robots = nil
    end
    local answers = robots and not robots.unreachable
    if answers then
      away.found_by_another(origin)
    end
    local site = store.site(name)
    if not site then
      set(name, origin, nil)
      return 0
    end
    local is_dropped = not away.is_of(name, origin)
    local is_over = is_dropped or answers or site.robots ~= 1
    -- While it is away, one task tells that there are any.
    local parked = tasks.parked(name, origin, is_over and most or 1)
    if #parked == 0 then
      set(name, origin, nil)
      return 0
    end
    if is_over then
      for _, task in ipairs(parked) do
        if is_dropped then
          settle.exclude(site, task, SCOPE)
        else
          places.shift(site, task, WAITING)
        end
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
