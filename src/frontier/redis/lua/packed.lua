-- Sites, pace units and tasks as they lie in their keys: values by place, and what few have by name at the end. Names in
-- each record would be most of it, and most of the time that reading it takes.
local packed = module(function(packed)
  -- How a value is written and read, by its format: one that may be missing, which is read as false, has a question mark. No
  -- number of a record is negative.
  local ALWAYS = { write = 'value', read = 'value' }
  local NUMBER = { write = 'value or -1', read = 'value >= 0 and value' }
  local OTHERS = {
    ['s?'] = { write = "value or ''", read = "value ~= '' and value" },
    ['?'] = { write = 'value and 1 or 0', read = 'value == 1' },
  }

  -- Two functions: one packs these fields of a record, the other reads them and says where the rest begins. They are made
  -- as code: a loop over the fields takes longer. A field without a format isn't packed; it is named from the start, as a
  -- table that grows is laid out anew.
  local function codec(fields)
    local format, values, written, read = '<', {}, {}, {}
    for name, kind in string.gmatch(fields, '([%w_.]+):?(%S*)') do
      local field = string.format('[%q]', name)
      if kind == '' then
        read[#read + 1] = field .. ' = false'
      else
        local is_missable, value = string.sub(kind, -1) == '?', 'value' .. #values
        local how = OTHERS[kind] or is_missable and NUMBER or ALWAYS
        format = format .. (kind == '?' and 'i1' or string.gsub(kind, '?', ''))
        values[#values + 1] = value
        written[#written + 1] = string.gsub(how.write, 'value', 'record' .. field)
        read[#read + 1] = field .. ' = ' .. string.gsub(how.read, 'value', value)
      end
    end
    local code = string.format(
      'local pack, unpack = ... '
        .. 'return function(record) return pack(%q, %s) end, '
        .. 'function(text) local %s, rest = unpack(%q, text) return { %s }, rest end',
      format, table.concat(written, ', '), table.concat(values, ', '), format, table.concat(read, ', ')
    )
    return assert(loadstring(code))(struct.pack, struct.unpack)
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

  packed.read_rare = read_rare

  -- Names first, each ended by a zero byte, which no name of a site, a group or a process has. Then fixed-width numbers:
  -- hashing a new Lua string costs per byte.
  local SITE = 'name:s unit:s server:s? last_token:s? before_token:s? version:i5 run:i5 run_began:i6 interval:d? parallel:i5? attempts:i5? robots:i1? position:i6? '
    .. 'fence:i6? known:i5? keeps:i1? running:i5? starts:i6? ready_d:i1? ready_p:i1? response:d? full:i1? d.waiting:i5? '
    .. 'd.leased:i5? d.created:i5? d.done:i5? d.known:i5? d.coalesced:i5? p.waiting:i5? p.leased:i5? p.created:i5? '
    .. 'p.done:i5? last_at:d? last_grace:i2? before_at:d? before_grace:i2? ready_at:d? '
    .. 'last_after_at:d? last_after_grace:i2? before_after_at:d? before_after_grace:i2? d.bytes p.bytes idle_before rare'
  packed.codec = codec
  local pack_site, read_site = codec(SITE)

  local COMMON = {}
  for name in string.gmatch(SITE, '([%w_.]+)%S*') do
    COMMON[name] = true
  end

  -- Notes what a site gets that few have.
  local watched = {
    __newindex = function(site, field, value)
      if COMMON[field] then
        rawset(site, field, value)
      elseif value then
        rawset(site, field, value)
        site.rare = site.rare or {}
        site.rare[field] = true
      end
    end,
  }

  local function rare_of(site)
    local rare
    for field in pairs(site.rare) do
      local value = site[field]
      if value then
        rare = rare or {}
        rare[field] = value
      else
        site[field], site.rare[field] = nil, nil -- if it comes again, that is noted
      end
    end
    return rare
  end

  -- What a site's tasks weigh stands between the two, behind a byte that no rest begins with: older builds wrote none.
  local WEIGHTS = string.byte('w')
  local pack_weights, read_weights = codec('d.bytes:i6? p.bytes:i6?')

  function packed.of_site(site)
    local weighs = site['d.bytes'] or site['p.bytes']
    local text = weighs and pack_site(site) .. string.char(WEIGHTS) .. pack_weights(site) or pack_site(site)
    return with_rare(text, site.rare and rare_of(site))
  end

  function packed.new_site(site)
    local rare = {}
    for field in pairs(site) do
      rare[field] = not COMMON[field] or nil
    end
    site.rare = next(rare) and rare or false
    return setmetatable(site, watched)
  end

  function packed.site(text)
    local site, rest = read_site(text)
    if string.byte(text, rest) == WEIGHTS then
      local weights, behind = read_weights(string.sub(text, rest + 1))
      site['d.bytes'], site['p.bytes'], rest = weights['d.bytes'], weights['p.bytes'], rest + behind
    end
    return read_rare(setmetatable(site, watched), text, rest)
  end

  -- Whether a record has one of these fields.
  local function has_one_of(fields)
    return loadstring('local record = ... return record.' .. table.concat(fields, ' or record.'))
  end

  -- A function that picks what a record has of these fields; nothing where that is none of them, as it mostly is.
  local function chooser(fields)
    local has_any = has_one_of(fields)
    return function(record)
      if not has_any(record) then
        return nil
      end
      local rare = {}
      for i = 1, #fields do
        rare[fields[i]] = record[fields[i]] or nil
      end
      return rare
    end
  end

  local pack_unit, read_unit = codec(
    'name:s server:s last_token:s? before_token:s? score:d? ends:d? ready_d:i3? ready_p:i3? parsed_at:i6? wait:d? last_at:d? '
      .. 'last_grace:i2? before_at:d? before_grace:i2? last_after_at:d? last_after_grace:i2? before_after_at:d? '
      .. 'before_after_grace:i2?'
  )
  local rare_of_unit = chooser({
    'held_until', 'held_by_another', 'blocked_until', 'blocked_why', 'not_before', 'restarted_at', 'is_longest',
    'courtesy_token', 'courtesy_ms', 'turn', 'floors', 'wall', 'parsed_site', 'slow', 'pauses', 'paused_d', 'paused_p', 'tuned_interval',
    'in_lanes',
  })

  function packed.of_unit(unit)
    return with_rare(pack_unit(unit), rare_of_unit(unit))
  end

  function packed.unit(text)
    local unit, rest = read_unit(text)
    return read_rare(unit, text, rest)
  end

  local pack_task, read_task = codec(
    'place:s token:s? owner:s? until_at:d? priority:i2 position:i6 depth:i4 link:? granted_at:d? ends_at:d? '
      .. 'fence:i6? in_flight:? departs_at:d? unit_wait:d? site_wait:d? site stage url recorded lies lies_position lies_until lies_delayed lies_lane lies_step'
  )

  -- What few tasks have; none where it has nothing of that. A lane and a tenant have places of their own while it waits.
  local NEEDS_RECORD = { 'hops', 'attempts', 'losses', 'expires', 'stored', 'deferral', 'errand', 'history', 'session', 'after', 'begun', 'returned', 'batches' }
  packed.needs_record = has_one_of(NEEDS_RECORD)
  packed.rare_of_task = chooser({ 'lane', 'tenant', unpack(NEEDS_RECORD) })

  function packed.of_task(task, rare)
    return with_rare(pack_task(task), rare)
  end

  function packed.place_of_task(text)
    return struct.unpack('<s', text)
  end

  function packed.task(site, stage, url, text)
    local task, rest = read_task(text)
    task.site, task.stage, task.url, task.recorded = site, stage, url, true
    task.lies, task.lies_position, task.lies_until, task.lies_delayed =
      task.place, task.position, task.ends_at, task.until_at
    read_rare(task, text, rest)
    task.lies_lane = task.lane
    return task
  end
end)
