-- Ready sites and due units by lane, for workers that serve some lanes alone. Of a site that isn't listed so nothing is read or
-- written.
lanes = module(function(lanes)
  local function ready_key(stage, unit, lane)
    return P .. 'lane-ready:' .. stage .. ':' .. unit .. ':' .. lane
  end

  local function due_key(stage, lane)
    return P .. 'lane-due:' .. stage .. ':' .. lane
  end

  -- Something comes in a lane, or in any: those who serve it and sleep longer want to know.
  function lanes.comes(stage, lane, at)
    if store.that_comes(at) then
      local coming = batch.coming_in_lanes[stage] or { at = math.huge, lanes = {} }
      coming.at, coming.lanes[lane or store.any_lane] = math.min(at, coming.at), true
      batch.coming_in_lanes[stage] = coming
    end
  end

  -- Keeps a unit where its turn is in each lane in which one of its sites has something ready.
  local function rank(unit)
    for _, stage in ipairs(STAGES) do
      local turns = unit.in_lanes[stage]
      for lane, before in pairs(turns) do
        local first = call('ZRANGE', ready_key(stage, unit.name, lane), '0', '0', 'WITHSCORES')[2]
        local turn = first and store.turn_in_lane(unit, stage, tonumber(first))
        if not turn then
          call('ZREM', due_key(stage, lane), unit.name)
        elseif turn ~= before then
          call('ZADD', due_key(stage, lane), turn, unit.name)
          if before < 0 or turn < before then
            lanes.comes(stage, lane, stage == 'd' and store.best_of(turn) or math.max(now, turn))
          end
        end
        turns[lane] = turn or nil
      end
    end
    unit.in_lanes = (next(unit.in_lanes.d) or next(unit.in_lanes.p)) and unit.in_lanes or nil
    batch.changed_units[unit.name] = unit
  end

  -- A unit has something else in a lane than before.
  local function touch(name, stage, lane)
    local unit = store.some_unit(name)
    unit.in_lanes = unit.in_lanes or { d = {}, p = {} }
    unit.in_lanes[stage][lane] = unit.in_lanes[stage][lane] or -1
    batch.changed_units[name], batch.to_rank[name] = unit, unit
  end

  -- Keeps a site among the ready ones of its unit in each lane in which it has something.
  local function list(site)
    local listed = site.listed or { d = {}, p = {} }
    for _, stage in ipairs(STAGES) do
      local was, is = listed[stage], {}
      for _, lane in ipairs(site.by_lane and site[READY[stage]] and gate.ready_lanes(site, stage) or {}) do
        is[lane] = store.place_of(site, stage)
        if was[lane] ~= is[lane] then
          call('ZADD', ready_key(stage, site.unit, lane), is[lane], site.name)
          touch(site.unit, stage, lane)
        end
      end
      for lane in pairs(was) do
        if not is[lane] then
          call('ZREM', ready_key(stage, site.unit, lane), site.name)
          touch(site.unit, stage, lane)
        end
      end
      listed[stage] = is
    end
    site.listed = (next(listed.d) or next(listed.p)) and listed or nil
  end

  -- A site was saved.
  function lanes.saved(site)
    if site.by_lane or site.listed then
      batch.to_list[site.name] = site
    end
  end

  -- The turn of a unit may have changed.
  function lanes.turned(unit)
    if unit.in_lanes then
      batch.to_rank[unit.name] = unit
    end
  end

  -- Brings the lists up to date with what changed in this call since it was asked for last.
  function lanes.index()
    for name, site in pairs(batch.to_list) do
      batch.to_list[name] = nil
      list(site)
    end
    for name, unit in pairs(batch.to_rank) do
      batch.to_rank[name] = nil
      if unit.in_lanes then
        rank(unit)
      end
    end
  end

  -- A site is about to have another unit or name, or to go.
  function lanes.unlist(site)
    if site.listed then
      local by_lane, unit = site.by_lane, site.unit
      site.by_lane = nil
      list(site)
      site.by_lane = by_lane
      rank(store.some_unit(unit))
    end
  end

  -- Whether sites that are registered now are listed by lane.
  function lanes.is_listing()
    return call('HGET', P .. 'fleet', 'by_lane') and 1 or nil
  end

  -- Lists sites by lane from now on, and some of those that are there: where the next ones are.
  function lanes.list(from)
    call('HSET', P .. 'fleet', 'by_lane', 1)
    local part = call('SSCAN', P .. 'sites', from == '' and '0' or from, 'COUNT', LANES_LISTED)
    for _, name in ipairs(part[2]) do
      local site = store.site(name)
      if site and not site.by_lane then
        site.by_lane = 1
        store.save_site(site)
      end
    end
    return part[1] ~= '0' and part[1]
  end

  -- Whether one who serves these lanes alone, or all, serves that one.
  function lanes.serves(served, lane)
    if not served then
      return true
    end
    for _, one in ipairs(served) do
      if one == lane then
        return true
      end
    end
    return false
  end

  -- Whether a site has something ready in one of these lanes.
  function lanes.is_ready(served, site, stage)
    for _, lane in ipairs(site.by_lane and gate.ready_lanes(site, stage) or {}) do
      if lanes.serves(served, lane) then
        return true
      end
    end
    return false
  end

  -- The first names of all these lanes by score, then by name, none behind `by`: each with its least score.
  local function merged(served, key_of, by, most)
    local least, found = {}, {}
    for _, lane in ipairs(served) do
      local flat = call('ZRANGE', key_of(lane), '-inf', by, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
      for i = 1, #flat, 2 do
        least[flat[i]] = math.min(tonumber(flat[i + 1]), least[flat[i]] or math.huge)
      end
    end
    for name, score in pairs(least) do
      found[#found + 1] = { score, name }
    end
    table.sort(found, function(a, b)
      return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2])
    end)
    return { unpack(found, 1, math.min(#found, most)) }
  end

  local function due(served, stage, by, most)
    return merged(served, function(lane)
      return due_key(stage, lane)
    end, by, most)
  end

  local function ready(served, unit, by, most)
    return merged(served, function(lane)
      return ready_key('d', unit.name, lane)
    end, by, most)
  end

  -- Up to `most`. What one lane has is counted without being read.
  local function count_due(served, stage, by, most)
    local longest = 0
    for _, lane in ipairs(served) do
      longest = math.max(longest, call('ZCOUNT', due_key(stage, lane), '-inf', by))
    end
    if #served == 1 or longest >= most then
      return math.min(longest, most)
    end
    return longest == 0 and 0 or #due(served, stage, by, most)
  end

  -- From here on: what `store` tells those who serve all lanes.
  function lanes.due_units(stage, served, most, at)
    lanes.index()
    local by = stage == 'd' and at * TURN_PARTS + TURN_PARTS - 1 or at
    return count_due(served, stage, by, most), function(n)
      return due(served, stage, by, n + 1)[n + 1][2]
    end
  end

  function lanes.first_ready(unit, served)
    local first = ready(served, unit, '+inf', 1)[1]
    return first and first[1]
  end

  function lanes.nth_ready(unit, served, by, dice)
    local found = ready(served, unit, by, WIDEST)
    return #found > 0 and found[dice % #found + 1][2]
  end

  function lanes.next_parse(unit, served)
    local after, first
    for _, lane in ipairs(served) do
      local key = ready_key('p', unit.name, lane)
      local next_one = call('ZRANGE', key, '(' .. (unit.parsed_site or ''), '+', 'BYLEX', 'LIMIT', 0, 1)[1]
      after = next_one and (not after or next_one < after) and next_one or after
      local first_one = call('ZRANGE', key, '0', '0')[1]
      first = first_one and (not first or first_one < first) and first_one or first
    end
    return after or first
  end

  function lanes.next_turn(stage, served)
    lanes.index()
    local turns = due(served, stage, '+inf', TURNS_TOLD)
    for i, one in ipairs(turns) do
      turns[i] = one[1]
    end
    return store.that_comes(stage == 'd' and store.best_of_all(turns) or turns[1])
  end
end)
