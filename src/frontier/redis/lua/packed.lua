-- Sites and pace units as they lie in their keys: values by place, `false` where there is none, and what few have by name
-- at the end. Names in each record would be most of it, and most of the time that reading it takes.
local packed = module(function(packed)
  local COMMON = {
    name = true, unit = true, version = true, run = true, run_began = true, interval = true, parallel = true,
    attempts = true, robots = true, position = true, fence = true, known = true, keeps = true, running = true,
    starts = true, ready_d = true, ready_p = true, response = true, full = true, ['d.waiting'] = true,
    ['d.leased'] = true, ['d.created'] = true, ['d.done'] = true, ['d.known'] = true, ['d.coalesced'] = true,
    ['p.waiting'] = true, ['p.leased'] = true, ['p.created'] = true, ['p.done'] = true, has_rare = true,
  }

  -- Notes where a site gets something that few have.
  local watched = {
    __newindex = function(site, field, value)
      rawset(site, field, value)
      if not COMMON[field] then
        rawset(site, 'has_rare', true)
      end
    end,
  }

  function packed.new_site(site)
    return setmetatable(site, watched)
  end

  local function rare_of(site)
    local rare
    for field, value in pairs(site) do
      if not COMMON[field] then
        rare = rare or {}
        rare[field] = value
      end
    end
    return rare or false
  end

  function packed.of_site(s)
    return cmsgpack.pack(s.name, s.unit, s.version, s.run, s.run_began, s.interval or false, s.parallel or false,
      s.attempts or false, s.robots or false, s.position or false, s.fence or false, s.known or false, s.keeps or false,
      s.running or false, s.starts or false, s.ready_d or false, s.ready_p or false, s.response or false, s.full or false,
      s['d.waiting'] or false, s['d.leased'] or false, s['d.created'] or false, s['d.done'] or false,
      s['d.known'] or false, s['d.coalesced'] or false, s['p.waiting'] or false, s['p.leased'] or false,
      s['p.created'] or false, s['p.done'] or false, s.has_rare and rare_of(s) or false)
  end

  function packed.site(text)
    local name, unit, version, run, run_began, interval, parallel, attempts, robots, position, fence, known, keeps,
      running, starts, ready_d, ready_p, response, full, d_waiting, d_leased, d_created, d_done, d_known, d_coalesced,
      p_waiting, p_leased, p_created, p_done, rare = cmsgpack.unpack(text)
    local site = {
      name = name, unit = unit, version = version, run = run, run_began = run_began, interval = interval or nil,
      parallel = parallel or nil, attempts = attempts or nil, robots = robots or nil, position = position or nil,
      fence = fence or nil, known = known or nil, keeps = keeps or nil, running = running or nil, starts = starts or nil,
      ready_d = ready_d or nil, ready_p = ready_p or nil, response = response or nil, full = full or nil,
      ['d.waiting'] = d_waiting or nil, ['d.leased'] = d_leased or nil, ['d.created'] = d_created or nil,
      ['d.done'] = d_done or nil, ['d.known'] = d_known or nil, ['d.coalesced'] = d_coalesced or nil,
      ['p.waiting'] = p_waiting or nil, ['p.leased'] = p_leased or nil, ['p.created'] = p_created or nil,
      ['p.done'] = p_done or nil,
    }
    if rare then
      site.has_rare = true
      for field, value in pairs(rare) do
        site[field] = value
      end
    end
    return setmetatable(site, watched)
  end

  local RARE_OF_UNIT = {
    'last_fixed', 'before_fixed', 'held_until', 'held_by_another', 'blocked_until', 'blocked_why', 'unsure_until',
    'courtesy_token', 'courtesy_ms', 'turn',
  }

  function packed.of_unit(u)
    local rare
    for i = 1, #RARE_OF_UNIT do
      local value = u[RARE_OF_UNIT[i]]
      if value then
        rare = rare or {}
        rare[RARE_OF_UNIT[i]] = value
      end
    end
    return cmsgpack.pack(u.name, u.server, u.due or false, u.ready_d or false, u.ready_p or false, u.parsed_at or false,
      u.interval or false, u.last_at or false, u.last_site or false, u.last_token or false, u.before_at or false,
      u.before_site or false, u.before_token or false, rare or false)
  end

  function packed.unit(text)
    local name, server, due, ready_d, ready_p, parsed_at, interval, last_at, last_site, last_token, before_at,
      before_site, before_token, rare = cmsgpack.unpack(text)
    local unit = {
      name = name, server = server, due = due or nil, ready_d = ready_d or nil, ready_p = ready_p or nil,
      parsed_at = parsed_at or nil, interval = interval or nil, last_at = last_at or nil, last_site = last_site or nil,
      last_token = last_token or nil, before_at = before_at or nil, before_site = before_site or nil,
      before_token = before_token or nil,
    }
    for field, value in pairs(rare or {}) do
      unit[field] = value
    end
    return unit
  end
end)
