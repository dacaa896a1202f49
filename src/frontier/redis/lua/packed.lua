-- Sites, pace units and tasks as they lie in their keys: values by place, NONE where there is none, and what few have by
-- name at the end. Names in each record would be most of it, and most of the time that reading it takes.
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

  -- Names first, each ended by a zero byte, which no name of a site, a group or a process has. Then fixed-width numbers:
  -- hashing a new Lua string costs per byte.
  local NONE = -1 -- no number of a record is ever negative
  local SITE = '<ssi5i5i6di5i5i1i6i6i5i1i5i6i1i1di1' .. string.rep('i5', 10)
  local UNIT = '<ssssssdi3i3i6ddd'
  local TASK = '<ssssdi2i6i4i1ddi6i1d'

  local function rare_of(site)
    local rare
    for field, value in pairs(site) do
      if value and not COMMON[field] then
        rare = rare or {}
        rare[field] = value
      end
    end
    return rare
  end

  -- What few have, behind the rest.
  local function with_rare(text, rare)
    return rare and text .. cmsgpack.pack(rare) or text
  end

  local function read_rare(record, text, from)
    if from <= #text then
      for field, value in pairs(cmsgpack.unpack(string.sub(text, from))) do
        record[field] = value
      end
    end
    return record
  end

  function packed.of_site(s)
    local text = struct.pack(SITE, s.name, s.unit, s.version, s.run, s.run_began, s.interval or NONE, s.parallel or NONE,
      s.attempts or NONE, s.robots or NONE, s.position or NONE, s.fence or NONE, s.known or NONE, s.keeps or NONE,
      s.running or NONE, s.starts or NONE, s.ready_d or NONE, s.ready_p or NONE, s.response or NONE, s.full or NONE,
      s['d.waiting'] or NONE, s['d.leased'] or NONE, s['d.created'] or NONE, s['d.done'] or NONE, s['d.known'] or NONE,
      s['d.coalesced'] or NONE, s['p.waiting'] or NONE, s['p.leased'] or NONE, s['p.created'] or NONE,
      s['p.done'] or NONE)
    return with_rare(text, s.has_rare and rare_of(s))
  end

  function packed.site(text)
    local name, unit, version, run, run_began, interval, parallel, attempts, robots, position, fence, known, keeps,
      running, starts, ready_d, ready_p, response, full, d_waiting, d_leased, d_created, d_done, d_known, d_coalesced,
      p_waiting, p_leased, p_created, p_done, rare_from = struct.unpack(SITE, text)
    local site = {
      name = name, unit = unit, version = version, run = run, run_began = run_began,
      interval = interval >= 0 and interval, parallel = parallel >= 0 and parallel, attempts = attempts >= 0 and attempts,
      robots = robots >= 0 and robots, position = position >= 0 and position, fence = fence >= 0 and fence,
      known = known >= 0 and known, keeps = keeps >= 0 and keeps, running = running >= 0 and running,
      starts = starts >= 0 and starts, ready_d = ready_d >= 0 and ready_d, ready_p = ready_p >= 0 and ready_p,
      response = response >= 0 and response, full = full >= 0 and full,
      ['d.waiting'] = d_waiting >= 0 and d_waiting, ['d.leased'] = d_leased >= 0 and d_leased,
      ['d.created'] = d_created >= 0 and d_created, ['d.done'] = d_done >= 0 and d_done,
      ['d.known'] = d_known >= 0 and d_known, ['d.coalesced'] = d_coalesced >= 0 and d_coalesced,
      ['p.waiting'] = p_waiting >= 0 and p_waiting, ['p.leased'] = p_leased >= 0 and p_leased,
      ['p.created'] = p_created >= 0 and p_created, ['p.done'] = p_done >= 0 and p_done,
      has_rare = rare_from <= #text,
    }
    return setmetatable(read_rare(site, text, rare_from), watched)
  end

  local function chosen(record, fields)
    local rare
    for i = 1, #fields do
      local value = record[fields[i]]
      if value then
        rare = rare or {}
        rare[fields[i]] = value
      end
    end
    return rare
  end

  local RARE_OF_UNIT = {
    'last_fixed', 'before_fixed', 'held_until', 'held_by_another', 'blocked_until', 'blocked_why', 'unsure_until',
    'courtesy_token', 'courtesy_ms', 'turn',
  }

  function packed.of_unit(u)
    local text = struct.pack(UNIT, u.name, u.server, u.last_site or '', u.last_token or '', u.before_site or '',
      u.before_token or '', u.due or NONE, u.ready_d or NONE, u.ready_p or NONE, u.parsed_at or NONE, u.interval or NONE,
      u.last_at or NONE, u.before_at or NONE)
    return with_rare(text, chosen(u, RARE_OF_UNIT))
  end

  local function named(text)
    return text ~= '' and text or nil
  end

  function packed.unit(text)
    local name, server, last_site, last_token, before_site, before_token, due, ready_d, ready_p, parsed_at, interval,
      last_at, before_at, rare_from = struct.unpack(UNIT, text)
    local unit = {
      name = name, server = server, last_site = named(last_site), last_token = named(last_token),
      before_site = named(before_site), before_token = named(before_token), due = due >= 0 and due or nil,
      ready_d = ready_d >= 0 and ready_d, ready_p = ready_p >= 0 and ready_p, parsed_at = parsed_at >= 0 and parsed_at,
      interval = interval >= 0 and interval, last_at = last_at >= 0 and last_at or nil,
      before_at = before_at >= 0 and before_at or nil,
    }
    return read_rare(unit, text, rare_from)
  end

  local RARE_OF_TASK = { 'hops', 'attempts', 'losses', 'expires', 'stored', 'deferral', 'errand', 'history' }

  -- What few tasks have; none where it has nothing of that.
  function packed.rare_of_task(task)
    return chosen(task, RARE_OF_TASK)
  end

  function packed.of_task(t, rare)
    local text = struct.pack(TASK, t.place, t.token or '', t.owner or '', t.orphan or '', t.until_at or NONE, t.priority,
      t.position, t.depth, t.link and 1 or 0, t.granted_at or NONE, t.ends_at or NONE, t.fence or NONE,
      t.in_flight and 1 or 0, t.interval or NONE)
    return with_rare(text, rare)
  end

  function packed.place_of_task(text)
    return struct.unpack('<s', text)
  end

  -- What a task may become is named from the start: a table that grows is laid out anew again and again.
  function packed.task(site, stage, url, text)
    local place, token, owner, orphan, until_at, priority, position, depth, link, granted_at, ends_at, fence, in_flight,
      interval, rare_from = struct.unpack(TASK, text)
    token, until_at, ends_at = named(token), until_at >= 0 and until_at, ends_at >= 0 and ends_at
    local task = {
      site = site, stage = stage, url = url, place = place, until_at = until_at, priority = priority,
      position = position, depth = depth, link = link == 1, token = token, owner = named(owner),
      granted_at = granted_at >= 0 and granted_at, ends_at = ends_at, fence = fence >= 0 and fence,
      in_flight = in_flight == 1, interval = interval >= 0 and interval, orphan = named(orphan), recorded = true,
      lies = place, lies_position = position, lies_until = ends_at, lies_delayed = until_at,
    }
    return read_rare(task, text, rare_from)
  end
end)
