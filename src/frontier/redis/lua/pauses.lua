-- Pauses of a group and of all sites, by mark and stage. Their sites' units keep them, so that a claim finds them where it looks
-- anyway: each has the latest end of its marks in `paused_d` and `paused_p`. A site's own pauses are in its record.
local pauses = module(function(pauses)
  local MARKS = { 'site', 'group', 'all' }

  local function is_in_force(pause)
    return pause and (pause['until'] or FOR_GOOD) > now
  end

  local function end_of(marks, stage)
    local latest = 0
    for _, of_stages in pairs(marks) do
      local pause = of_stages[stage]
      latest = math.max(latest, pause and math.min(pause['until'] or FOR_GOOD, FOR_GOOD) or 0)
    end
    return latest > 0 and latest
  end

  -- The pauses of one of its marks are these.
  local function mark(unit, whose, of_stages)
    local marks = unit.pauses or {}
    marks[whose] = next(of_stages) and of_stages or nil
    unit.paused_d, unit.paused_p = end_of(marks, 'd'), end_of(marks, 'p')
    unit.pauses = next(marks) and marks
    store.save_unit(unit)
    store.save_parse_turn(unit)
  end

  -- The same, but of one stage.
  local function with(of_stages, stage, pause)
    local found = { d = of_stages.d, p = of_stages.p }
    found[stage] = pause or nil
    return found
  end

  -- Whether somebody paused a group: then its unit is kept.
  function pauses.is_kept(unit)
    local group = unit and unit.pauses and unit.pauses.group
    return group and (is_in_force(group.d) or is_in_force(group.p)) or false
  end

  -- Pauses a stage of a group, or ends that: for all who are in it, and those who join it. A unit without a group may have the name of
  -- a former one, whose pause is to be ended still.
  function pauses.of_group(group, stage, pause)
    local unit = store.unit(group)
    if not unit or not unit.wait and not pauses.is_kept(unit) then
      return 'unknown'
    end
    local before = unit.pauses and unit.pauses.group or {}
    local was = is_in_force(before[stage]) or false
    mark(unit, 'group', with(before, stage, pause))
    return { was = was }
  end

  -- What is paused of all sites, as text and read.
  local function of_all()
    local text = call('HGET', P .. 'fleet', 'paused') or '{}'
    return text, cjson.decode(text)
  end

  local function keep(number, text)
    call('HSET', P .. 'fleet', 'paused_number', string.format('%.0f', number), 'paused', text)
  end

  local function number_known()
    return tonumber(call('HGET', P .. 'fleet', 'paused_number') or 0)
  end

  -- Pauses a stage of all sites, or ends that: for those who are registered from now on. The others are told in further steps.
  -- Whether such a pause was in force before.
  function pauses.of_all(stage, pause)
    local _, before = of_all()
    local number, text = math.max(number_known() + 1, now), cjson.encode(with(before, stage, pause))
    keep(number, text)
    return { is_in_force(before[stage]) or false, { number, text } }
  end

  -- Tells the units of some sites what is paused of all: where the next ones are. A later change that came here first stays.
  function pauses.tell(number, text, from)
    if number > number_known() then
      keep(number, text)
    end
    local _, of_stages = of_all()
    local part = call('SSCAN', P .. 'sites', from == '' and '0' or from, 'COUNT', PAUSES_TOLD)
    for _, name in ipairs(part[2]) do
      local site = store.site(name)
      if site then
        mark(store.some_unit(site.unit), 'all', of_stages)
      end
    end
    return part[1] ~= '0' and part[1]
  end

  -- A site is about to be of a unit that may be new: what is paused of all sites holds for it.
  function pauses.copy(unit)
    local text, of_stages = of_all()
    if text ~= '{}' or unit.pauses then
      mark(unit, 'all', of_stages)
    end
  end

  -- Marks of requests that are to be dropped, the latest last: when they were made, and of whom as text.
  function pauses.drops()
    local found = {}
    for at, of in string.gmatch(call('HGET', P .. 'fleet', 'drops') or '', '(%d+) ([^\n]*)\n') do
      if tonumber(at) > now - DROPS_KEPT_MS then
        found[#found + 1] = { tonumber(at), of }
      end
    end
    return found
  end

  -- Requests that were granted until now are to be dropped: each process looks for such marks with its beat.
  function pauses.drop(of)
    local all, lines = {}, {}
    for _, mark in ipairs(pauses.drops()) do
      if mark[2] ~= of then
        all[#all + 1] = mark
      end
    end
    all[#all + 1] = { now, of }
    for i = math.max(1, #all - DROPS_KEPT + 1), #all do
      lines[#lines + 1] = string.format('%.0f ', all[i][1]) .. all[i][2] .. '\n'
    end
    call('HSET', P .. 'fleet', 'drops', table.concat(lines))
  end

  -- Those in force, stage by stage: the site's own, its group's, that of all.
  function pauses.known(site, unit)
    local marks, found = unit.pauses or {}, {}
    local own = { d = site.paused and { why = site.paused, ['until'] = site.paused_until }, p = site.parse_paused }
    for _, stage in ipairs(STAGES) do
      for _, whose in ipairs(MARKS) do
        local pause = (whose == 'site' and own or marks[whose] or {})[stage]
        if is_in_force(pause) then
          found[#found + 1] = { whose, stage, pause.why, pause['until'] or false }
        end
      end
    end
    return found
  end
end)
