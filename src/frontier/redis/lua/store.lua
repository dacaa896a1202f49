-- Sites and pace units as records, the clock, and the indexes of what is ready and due. What a step decides isn't here.
-- A record is read once a call, and written at the end if it changed.

local STAGES = { 'd', 'p' }
local READY = { d = 'ready_d', p = 'ready_p' }
local DUE = { d = 'due:d:' .. LANE, p = 'due:p:' .. LANE }
local AGAIN_ENTRY = '<I6I3' -- a page that is asked for again: when, and what chooses its bucket
local gate, lanes
local store = module(function(store)
  local function wall_clock()
    local time = call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
  end

  -- The server's time in ms. It never goes back: after a jump of the server's clock it stands still, or runs a tenth slower,
  -- until the two agree again. A test brings its own.
  function store.read_clock(fake)
    local wall = wall_clock()
    batch.wall = wall
    if fake ~= '' then
      now = tonumber(fake)
      return
    end
    local last, ahead = string.match(call('GET', P .. 'clock') or '', '^(%S+) (%S+)$')
    local passed = wall - (tonumber(last) or wall)
    ahead = tonumber(ahead) or 0
    if passed < 0 then
      ahead = ahead - passed
    else
      ahead = math.max(0, ahead - passed / 10)
    end
    now = math.floor(wall + ahead)
    batch.clock = string.format('%.0f %.3f', wall, ahead)
  end

  -- How long ago this call read the time, in ms: what the server tells of a key's time counts from later than `now`.
  function store.passed()
    return wall_clock() - batch.wall
  end

  function store.write_clock()
    if batch.clock then
      call('SET', P .. 'clock', batch.clock)
    end
  end

  -- Which life of the server this is: another one may have forgotten the last second. No function of the server's outlives
  -- its process. A master that failed over and came back is the same process with what its replica had: each promotion gives
  -- the data another id of replication, read anew in each call.
  local process
  function store.server()
    if not batch.server then
      process = process or string.match(call('INFO', 'server'), 'run_id:(%x+)')
      local history = string.match(call('INFO', 'replication'), 'master_replid:(%x+)')
      batch.server = string.sub(process, 1, 16) .. string.sub(history, 1, 16)
    end
    return batch.server
  end

  -- What was written last, by its key, with the record that it was made of: one that is the same still isn't unpacked again.
  -- While a call has it, it isn't here, as that may end with an error and change nothing.
  local REMEMBERED = 2000
  local texts, written, remembered = {}, {}, 0

  local function remember(key, text, record)
    if texts[key] == nil then
      remembered = remembered + 1
      if remembered > REMEMBERED then
        texts, written, remembered = {}, {}, 1
      end
    end
    texts[key], written[key] = text, record
  end

  -- A record by its name, read once a call.
  local function reader(kind, prefix, unpacked)
    return function(name)
      local read = batch[kind]
      local record = read[name]
      if record == nil then
        local key = P .. prefix .. name
        local text = call('GET', key)
        if text and texts[key] == text then
          record, texts[key] = written[key], false
        else
          record = text and unpacked(text)
        end
        read[name] = record
      end
      return record or nil
    end
  end

  -- Downloads of a site that nobody works on.
  function store.idle(site)
    return (site['d.waiting'] or 0) + (site['d.delayed'] or 0) + (site['d.scheduled'] or 0)
  end

  store.site = reader('sites', 'state:', function(text)
    local site = packed.site(text)
    site.idle_before = store.idle(site)
    return site
  end)

  -- Downloads of all sites that nobody works on, as the call began.
  function store.idle_in_all()
    return tonumber(call('GET', P .. 'idle') or 0)
  end

  -- Those of the other sites now.
  function store.idle_beside(site)
    local idle = store.idle_in_all() - (site.idle_before or 0)
    for _, other in pairs(batch.changed_sites) do
      if other ~= site then
        idle = idle + store.idle(other) - (other.idle_before or 0)
      end
    end
    return idle
  end

  store.unit = reader('units', 'pace:', packed.unit)

  function store.new_site(site)
    batch.sites[site.name] = packed.new_site(site)
    call('SADD', P .. 'sites', site.name)
  end

  -- What lies under a site's name alone: where the name stands in each key.
  store.keys_of_site = {
    'tasks:%s', 'letter:%s', 'dead:%s', 'pages:%s', 'recrawl:%s', 'periods:%s', 'text:%s',
    'away:%s', 'acts:%s', 'flow:%s', 'waits:%s', 'sessions:%s', 'session-turns:%s', 'behind:%s', 'batch-books:%s', 'batch-ends:%s',
    'campaigns:%s', 'chunks:%s',
  }

  function store.key_of_site(key, name)
    return P .. string.format(key, name)
  end

  -- The newest version that a site had whose name got free, where the clock hadn't passed it yet.
  local function freed_version()
    return tonumber(call('HGET', P .. 'fleet', 'freed_version') or 0)
  end

  -- The name stands for no site any more.
  function store.drop_site(name)
    local site = store.site(name)
    if site then
      lanes.unlist(site)
      if site.version >= now - EPOCH and site.version > freed_version() then
        call('HSET', P .. 'fleet', 'freed_version', string.format('%.0f', site.version))
      end
    end
    call('UNLINK', P .. 'state:' .. name)
    call('SREM', P .. 'sites', name)
    call('ZREM', P .. 'again', name)
    call('ZREM', P .. 'away', name)
    batch.firsts.away = nil
    call('HDEL', P .. 'admitted', name)
    batch.sites[name], batch.changed_sites[name], batch.slots_open[name], batch.batch_books[name] = false, nil, nil, nil
    batch.to_list[name] = nil
  end

  -- The unit, made where there is none.
  function store.some_unit(name)
    local unit = store.unit(name)
    if not unit then
      unit = { name = name, server = store.server() }
      batch.units[name], batch.changed_units[name] = unit, unit
    end
    return unit
  end

  -- Whether any site is of that unit.
  function store.has_sites(name)
    local own = store.site(name)
    return own and own.unit == name or call('EXISTS', P .. 'intervals:' .. name) == 1
  end

  function store.drop_unit(name)
    call('UNLINK', P .. 'pace:' .. name)
    batch.units[name], batch.changed_units[name], batch.to_rank[name] = false, nil, nil
  end

  -- A decoded JSON field of a record.
  function store.map(record, field)
    local text = record[field]
    return text and cjson.decode(text) or {}
  end

  function store.set_map(record, field, map)
    record[field] = next(map) and cjson.encode(map) or nil
  end

  -- What comes to nothing stays in its place, as false.
  function store.add(record, field, by)
    local value = (record[field] or 0) + by
    record[field] = value ~= 0 and value
  end

  -- Never below nothing.
  function store.take(record, field)
    local value = record[field] or 0
    record[field] = value > 1 and value - 1
  end

  -- The most that a robots.txt asks for, in ms, and whose; the last by name of those that ask for the same.
  function store.floor(site)
    local most, whose = 0, nil
    if site.robots == 1 and site.floors then
      for origin, floor in pairs(cjson.decode(site.floors)) do
        if not whose or floor > most or floor == most and origin > whose then
          most, whose = floor, origin
        end
      end
    end
    return most, whose
  end

  -- A wait as it is in force in a slow start.
  local function lengthened(record, wait)
    local slow = record.slow
    if not slow or slow.left <= SLOW_STEP then
      return wait
    end
    return wait * (slow.left > 2 * SLOW_STEP and 4 or 2)
  end

  function store.interval(site)
    local tuned = site.tuned_interval
    local interval = tuned and math.max(tuned, store.least_interval(site)) or site.interval
    return lengthened(site, site.floors and math.max(interval, (store.floor(site))) or interval)
  end

  -- How long its waiting downloads last at the least, in ms: one start an interval.
  function store.supply(site)
    return math.max(0, (site['d.waiting'] or 0) - (site['d.parked'] or 0)) * store.interval(site)
  end

  function store.parallel(site)
    local tuned = site.tuned_parallel
    return tuned and math.min(tuned, store.most_parallel(site)) or site.parallel
  end

  -- What may be set while it runs, where its file doesn't say: its own interval, and several times its own requests in flight.
  function store.least_interval(site)
    return site.min_interval or site.interval
  end

  function store.most_parallel(site)
    return site.max_parallel or math.max(site.parallel, math.min(site.parallel * PARALLEL_TIMES, PARALLEL_MOST))
  end

  -- The most pages of a run as in force: never fewer than the file says.
  function store.max_pages(site, budgets)
    return budgets[''] and math.max(budgets[''], site.tuned_max_pages or 0)
  end

  -- A pause is in force; it may end by itself.
  function store.is_paused(site)
    return site.paused and (site.paused_until or math.huge) > now
  end

  -- How many more requests may be in flight.
  function store.places(site)
    return math.max(0, store.parallel(site) - (site.running or 0))
  end

  local function is_ready(site, stage)
    if stage == 'p' then
      return (site['p.waiting'] or 0) > 0 and not site.given_up and not site.parse_paused
    end
    return (site['d.waiting'] or 0) > (site['d.parked'] or 0) and not site.given_up and not (site.paused and not site.paused_until) and store.places(site) > 0
      and not site.errand
  end

  store.any_site, store.any_lane = '', ''

  -- The moment, if it ever comes: what somebody paused for good is behind all others.
  local function that_comes(at)
    return at and at < FOR_GOOD - MOST_AHEAD and at or nil
  end
  store.that_comes = that_comes

  -- Something of a site can be claimed at `at`: those who sleep longer want to know.
  function store.comes(stage, at, site)
    if not that_comes(at) then
      return
    end
    local coming = batch.coming[stage] or { at = math.huge, sites = {} }
    coming.at, coming.sites[site] = math.min(at, coming.at), true
    batch.coming[stage] = coming
  end

  -- A start may be so late on the wire, in ms, and is granted so long ahead.
  function store.grace(wait)
    local grace = math.floor(wait / GRACE_PARTS)
    return grace < LEAST_GRACE and LEAST_GRACE or grace > MOST_GRACE and MOST_GRACE or grace
  end

  -- Until when a wait lasts after the last start of a unit or a site. One that was granted under a longer wait may be later on
  -- the wire than the next one reckons with.
  function store.paced_until(record, wait)
    if not record.last_at then
      return 0
    end
    local grace = wait > 0 and record.last_grace or 0
    local late = grace > LEAST_GRACE and grace - store.grace(wait) or 0
    return record.last_at + wait + (late > 0 and late or 0)
  end

  -- Until when the site's own wait lasts: its last start's, a block's, a wall's, or a pause's that ends by itself.
  function store.waits_until(site)
    local ends = store.paced_until(site, store.interval(site))
    ends = site.wall and math.max(ends, site.wall.probe_at) or ends
    ends = site.blocked_until and math.max(ends, site.blocked_until) or ends
    return site.paused_until and math.max(ends, site.paused_until) or ends
  end

  -- What the group waits for the sake of hosts that several of its sites share.
  local function shared_floor(unit)
    local most = 0
    for _, floor in pairs(unit.floors or {}) do
      most = floor.is_shared and math.max(most, floor.wait) or most
    end
    return most
  end

  -- What its group asks a site to wait, whatever both were set to; nothing where it is in none.
  function store.least_group_wait(unit)
    return unit.wait and math.max(unit.wait, shared_floor(unit))
  end

  -- The same, as the group was set to: it is made longer alone; 0 where it is in none.
  function store.group_wait(unit)
    return unit.wait and math.max(store.least_group_wait(unit), unit.tuned_interval or 0) or 0
  end

  -- What the unit waits between its starts, as in force now: a group's own time, or the interval of its site.
  function store.wait_of(unit)
    if unit.wait then
      return lengthened(unit, store.group_wait(unit))
    end
    local own = store.site(unit.name)
    return own and lengthened(unit, store.interval(own)) or 0
  end

  -- Until when outsiders wait for the unit's last start: that of its site as well, which may have brought it from another one.
  function store.outsiders_wait_until(unit)
    local own = not unit.wait and store.site(unit.name)
    return math.max(store.paced_until(unit, store.wait_of(unit)), own and store.paced_until(own, store.interval(own)) or 0)
  end

  local function courtesy_of(unit)
    return unit.last_at and unit.courtesy_token == unit.last_token and unit.courtesy_ms or 0
  end

  -- The end of all that the unit itself waits for, but for what people paused.
  function store.ends_unpaused(unit)
    local paced = store.paced_until(unit, store.wait_of(unit)) + courtesy_of(unit)
    local probe = unit.wall and unit.wall.probe_at or 0
    return math.max(paced, unit.blocked_until or 0, unit.held_until or 0, unit.not_before or 0, probe)
  end

  -- The same, and of what people paused.
  function store.ends(unit)
    return math.max(store.ends_unpaused(unit), unit.paused_d or 0)
  end

  -- How long before its due time the unit can be claimed: not at all while somebody else holds its mutex, or waits for it.
  function store.ahead_of(unit)
    if not unit.last_at or (unit.held_until or 0) > 0 or courtesy_of(unit) > 0 then
      return 0
    end
    return math.min(MOST_AHEAD, math.floor(store.wait_of(unit) / AHEAD_PARTS))
  end

  -- A unit's turn among others: from when on it can be claimed, and in the small change when a claimer does best to come.
  local function turn_of(due, ahead)
    return math.max(0, due - ahead) * TURN_PARTS + ahead - math.floor(ahead / 2)
  end

  local function best_of(turn)
    return math.floor(turn / TURN_PARTS) + turn % TURN_PARTS
  end
  store.best_of = best_of

  -- Of the parse stage: when it was served last or, where it is paused, when it may be served again.
  local function score_of(unit, stage)
    return stage == 'd' and unit.score or math.max(unit.parsed_at or 0, unit.paused_p or 0)
  end

  -- Its turn in a lane whose first site is ready then.
  function store.turn_in_lane(unit, stage, first)
    return stage == 'd' and turn_of(math.max(store.ends(unit), first), store.ahead_of(unit)) or score_of(unit, 'p')
  end

  -- When the unit is due in a stage; false where none of its sites is ready.
  local function set_due(unit, stage, at)
    if at then
      call('ZADD', P .. DUE[stage], at, unit.name)
    else
      call('ZREM', P .. DUE[stage], unit.name)
    end
    batch.firsts[DUE[stage]], batch.named_units = nil, nil
  end

  local function ready_key(stage, unit)
    return P .. 'ready:' .. stage .. ':' .. unit .. ':' .. LANE
  end

  store.ready_key = ready_key

  -- Where a ready site stands among those of its group: by the end of its own wait.
  local function place_of(site, stage)
    return stage == 'd' and store.waits_until(site) or 0
  end
  store.place_of = place_of

  -- Keeps the unit in the due index exactly while one of its sites is ready.
  local function count_ready(unit, site, stage, ready)
    if unit.name ~= site.name then
      if ready then
        call('ZADD', ready_key(stage, unit.name), place_of(site, stage), site.name)
      else
        call('ZREM', ready_key(stage, unit.name), site.name)
      end
    end
    store.add(unit, READY[stage], ready and 1 or -1)
    batch.changed_units[unit.name] = unit
    if stage == 'd' then
      store.reckon(unit)
    end
    if unit[READY[stage]] then
      set_due(unit, stage, score_of(unit, stage) or 0)
      store.comes(stage, stage == 'd' and best_of(unit.score) or math.max(now, unit.paused_p or 0), site.name)
    else
      set_due(unit, stage, false)
    end
  end

  function store.unready(site)
    lanes.unlist(site)
    local unit = store.some_unit(site.unit)
    for _, stage in ipairs(STAGES) do
      if site[READY[stage]] then
        site[READY[stage]] = false
        count_ready(unit, site, stage, false)
      end
    end
  end

  -- Where the pages of a period lie, by when they are asked for again.
  function store.again_list(site, period)
    return P .. 'again:' .. site .. ':' .. period
  end

  function store.periods_of(site)
    return P .. 'periods:' .. site
  end

  -- When the site's first page is asked for again, and of which period that is: the shortest of those at the same time.
  function store.first_again(site)
    local first, of
    for _, period in ipairs(call('SMEMBERS', store.periods_of(site))) do
      local entry = call('LINDEX', store.again_list(site, period), 0)
      local at = entry and struct.unpack(AGAIN_ENTRY, entry)
      if at and (not first or at < first or at == first and tonumber(period) < tonumber(of)) then
        first, of = at, period
      end
    end
    return first, of
  end

  -- Keeps the site among those whose pages are fed exactly while it has room and a page to be asked for again.
  function store.offer_again(site)
    local first = not site.full and store.first_again(site.name)
    if first then
      call('ZADD', P .. 'again', first, site.name)
    else
      call('ZREM', P .. 'again', site.name)
    end
  end

  local function keep_ready(site, stage, before, ready)
    if ready ~= before then
      site[READY[stage]] = ready and 1
      count_ready(store.some_unit(site.unit), site, stage, ready)
    end
  end

  function store.save_site(site)
    batch.changed_sites[site.name] = site
    lanes.saved(site)
    -- A flood in another lane than that of pages to be fetched again takes them no room.
    local waiting = site['d.waiting'] or 0
    local full = waiting >= FED_WAITING and gate.waiting_in(site, 'd', site.tuned_lane or site.lane or LANE) >= FED_WAITING
    if full ~= (site.full == 1) then
      site.full = full and 1
      store.offer_again(site)
    end
    keep_ready(site, 'd', site.ready_d == 1, is_ready(site, 'd'))
    keep_ready(site, 'p', site.ready_p == 1, is_ready(site, 'p'))
    if site.unit ~= site.name and site.ready_d then
      local place = store.waits_until(site)
      if place ~= site.ready_at then
        site.ready_at = place
        call('ZADD', ready_key('d', site.unit), place, site.name)
        batch.named_units = nil
      end
    end
  end

  -- Works out the unit's turn; whether it is another one now.
  function store.reckon(unit)
    local first = unit.wait and store.first_ready(unit, nil)
    if not unit.wait then
      local own = store.site(unit.name)
      first = own and store.waits_until(own)
    end
    unit.ends = store.ends(unit)
    local score, before = turn_of(math.max(unit.ends, first or 0), store.ahead_of(unit)), unit.score
    unit.score = score
    batch.changed_units[unit.name] = unit
    lanes.turned(unit)
    return score ~= before, before
  end

  function store.save_unit(unit)
    local is_another, before = store.reckon(unit)
    if unit.ready_d and is_another then
      set_due(unit, 'd', unit.score)
      if unit.score < (before or 0) then
        store.comes('d', best_of(unit.score), unit.wait and store.any_site or unit.name)
      end
    end
  end

  -- A pause of its parses began, ended, or ends at another time.
  function store.save_parse_turn(unit)
    lanes.turned(unit)
    if unit.ready_p then
      set_due(unit, 'p', score_of(unit, 'p'))
      store.comes('p', math.max(now, unit.paused_p or 0), store.any_site)
    end
  end

  function store.parsed(unit, site)
    unit.parsed_at, unit.parsed_site = now, site ~= unit.name and site
    lanes.turned(unit)
    if unit.ready_p then
      set_due(unit, 'p', now)
    end
  end

  function store.flush()
    lanes.index()
    local all, changed, idle = {}, {}, 0
    for name, site in pairs(batch.changed_sites) do
      idle = idle + store.idle(site) - (site.idle_before or 0)
      site.idle_before = store.idle(site)
      all[#all + 1], all[#all + 2] = P .. 'state:' .. name, packed.of_site(site)
      changed[#changed + 1] = site
    end
    for name, unit in pairs(batch.changed_units) do
      all[#all + 1], all[#all + 2] = P .. 'pace:' .. name, packed.of_unit(unit)
      changed[#changed + 1] = unit
    end
    if idle ~= 0 then
      call('INCRBY', P .. 'idle', idle)
    end
    for first = 1, #all, 200 do
      call('MSET', unpack(all, first, math.min(#all, first + 199)))
    end
    for i = 1, #changed do
      remember(all[2 * i - 1], all[2 * i], changed[i])
    end
  end

  local function members_key(site)
    return P .. 'intervals:' .. site.unit
  end

  -- The site is of its unit, which lists those that don't have its name.
  function store.join(site)
    if site.unit ~= site.name then
      call('ZADD', members_key(site), site.interval or 0, site.name)
      call('SADD', P .. 'grouped', site.name)
    end
  end

  function store.leave(site)
    call('ZREM', members_key(site), site.name)
    call('SREM', P .. 'grouped', site.name)
  end

  -- The longest interval that the files of a unit's sites name.
  function store.longest_interval(unit)
    local longest = tonumber(call('ZRANGE', P .. 'intervals:' .. unit.name, '0', '0', 'REV', 'WITHSCORES')[2]) or 0
    local own = store.site(unit.name)
    return own and own.unit == unit.name and math.max(longest, own.interval or 0) or longest
  end

  -- The set of the sites that a process works on, if these aren't all.
  function store.named(owner)
    return P .. 'named:' .. owner
  end

  -- The unit's ready sites that `named` works on, each with the end of its own wait, in that order, then by name. All of them
  -- are asked for only where the unit has its name from one of them, or for the few that are named.
  local function ready_list(stage, unit, named, own)
    local key, found = ready_key(stage, unit.name), {}
    local flat = named and call('ZINTER', '2', key, store.named(named), 'WEIGHTS', '1', '0', 'WITHSCORES')
      or call('ZRANGE', key, '0', '-1', 'WITHSCORES')
    for i = 1, #flat, 2 do
      found[#found + 1] = { tonumber(flat[i + 1]), flat[i] }
    end
    if own and (not named or call('SISMEMBER', store.named(named), unit.name) == 1) then
      found[#found + 1] = { place_of(own, stage), unit.name }
    end
    table.sort(found, function(a, b)
      return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2])
    end)
    return found
  end

  -- The site that has the unit's name, where it is ready; and whether it is the only one.
  local function own_ready(stage, unit)
    local own = store.site(unit.name)
    own = own and own.unit == unit.name and own[READY[stage]] and own
    return own, own and (unit[READY[stage]] or 0) == 1
  end

  -- When the wait of the first of the unit's sites is over that are ready for a download.
  function store.first_ready(unit, named)
    local own = own_ready('d', unit)
    if named or own then
      local first = ready_list('d', unit, named, own)[1]
      return first and first[1]
    end
    return tonumber(call('ZRANGE', ready_key('d', unit.name), '0', '0', 'WITHSCORES')[2])
  end

  -- One of the unit's sites that are ready for a download and whose own wait is over `by` then: the `dice` modulo n-th of the
  -- first n of them.
  function store.nth_ready(unit, named, by, dice)
    local own, is_only = own_ready('d', unit)
    if is_only and not named then
      return place_of(own, 'd') <= by and unit.name
    end
    if named or own then
      local found, over = ready_list('d', unit, named, own), 0
      while over < WIDEST and found[over + 1] and found[over + 1][1] <= by do
        over = over + 1
      end
      return over > 0 and found[dice % over + 1][2]
    end
    local key = ready_key('d', unit.name)
    local over = math.min(WIDEST, call('ZCOUNT', key, '-inf', by))
    local nth = over > 0 and string.format('%d', dice % over)
    return nth and call('ZRANGE', key, nth, nth)[1]
  end

  -- The first by name of the unit's sites that have a parse ready: of those after the one that had the last turn, else of all.
  function store.next_parse(unit, named)
    local own, is_only = own_ready('p', unit)
    if is_only and not named then
      return unit.name
    end
    local after = unit.parsed_site or ''
    if named or own then
      local found = ready_list('p', unit, named, own)
      for _, ready in ipairs(found) do
        if ready[2] > after then
          return ready[2]
        end
      end
      return found[1] and found[1][2]
    end
    local key = ready_key('p', unit.name)
    return call('ZRANGE', key, '(' .. after, '+', 'BYLEX', 'LIMIT', 0, 1)[1] or call('ZRANGE', key, '0', '0')[1]
  end

  -- Units with a site ready that `named` works on, the longest due first, then by name: read once as long as none of them
  -- changes. A site without a group has its unit's name; those with one are few, and looked at one by one.
  local function named_units(stage, named)
    local lists = batch.named_units or {}
    batch.named_units = lists
    local found, key, seen = lists[stage .. named], store.named(named), {}
    if found then
      return found
    end
    found = {}
    for _, name in ipairs(call('SINTER', key, P .. 'grouped')) do
      local site = store.site(name)
      if site and site.unit ~= name and site[READY[stage]] and not seen[site.unit] then
        seen[site.unit] = true
        local unit = store.unit(site.unit)
        local turn = score_of(unit, 'p')
        if stage == 'd' then
          turn = turn_of(math.max(store.ends(unit), store.first_ready(unit, named) or 0), store.ahead_of(unit))
        end
        found[#found + 1] = { turn, site.unit }
      end
    end
    local grouped = #found > 0
    local flat = call('ZINTER', '2', P .. DUE[stage], key, 'WEIGHTS', '1', '0', 'WITHSCORES')
    for i = 1, #flat, 2 do
      found[#found + 1] = { tonumber(flat[i + 1]), flat[i] }
    end
    if grouped then
      table.sort(found, function(a, b)
        return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2])
      end)
    end
    lists[stage .. named] = found
    return found
  end

  -- How many units are due at a time, counted up to `most`, and a way to the n-th longest due of them, from 0.
  function store.due_units(stage, named, most, at)
    local by = stage == 'd' and at * TURN_PARTS + TURN_PARTS - 1 or at
    if named then
      local found, due = named_units(stage, named), 0
      while due < most and found[due + 1] and found[due + 1][1] <= by do
        due = due + 1
      end
      return due, function(n)
        return found[n + 1][2]
      end
    end
    local key = P .. DUE[stage]
    return math.min(most, call('ZCOUNT', key, '-inf', by)), function(n)
      local nth = string.format('%d', n)
      return call('ZRANGE', key, nth, nth)[1]
    end
  end

  -- The first score of an index, read once as long as that one stays.
  function store.first_of(index)
    local first = batch.firsts[index]
    if first == nil then
      first = tonumber(call('ZRANGE', P .. index, '0', '0', 'WITHSCORES')[2]) or false
      batch.firsts[index] = first
    end
    return first or nil
  end

  -- The first turns of units with something ready, in order, from that one on.
  local function turns_from(turn)
    local turns = {}
    local flat = call('ZRANGE', P .. DUE.d, turn, '+inf', 'BYSCORE', 'LIMIT', 0, TURNS_TOLD, 'WITHSCORES')
    for i = 2, #flat, 2 do
      turns[#turns + 1] = tonumber(flat[i])
    end
    return turns
  end

  local function next_turns(named)
    if not named then
      return turns_from('-inf')
    end
    local turns = {}
    for i, turn in ipairs({ unpack(named_units('d', named), 1, TURNS_TOLD) }) do
      turns[i] = turn[1]
    end
    return turns
  end

  -- When a claimer does best to come. A later unit may want it sooner than the first: of those behind the last one that is
  -- looked at, none can be claimed before that one.
  local function best_of_all(turns)
    local best = turns[TURNS_TOLD] and math.floor(turns[TURNS_TOLD] / TURN_PARTS) or math.huge
    for _, turn in ipairs(turns) do
      best = math.min(best, best_of(turn))
    end
    return turns[1] and best
  end
  store.best_of_all = best_of_all

  -- When a claimer does best to come for something that is ready.
  function store.next_turn(stage, named)
    if stage == 'd' then
      return that_comes(best_of_all(next_turns(named)))
    end
    if named then
      return that_comes((named_units(stage, named)[1] or {})[1])
    end
    return that_comes(store.first_of(DUE[stage]))
  end

  -- Of the moments that begin after `after` (or at any time) the first: from when on something can be claimed then, and when a
  -- claimer does best to come for it. One is `sure` to be among them.
  function store.moment_after(stage, after, sure)
    local from, best
    local function may(begins, at)
      from, best = math.min(begins, from or math.huge), math.min(at, best or math.huge)
    end
    if stage == 'd' then
      local turns = turns_from(after and (after + 1) * TURN_PARTS or '-inf')
      local best = that_comes(best_of_all(turns))
      if best then
        may(math.floor(turns[1] / TURN_PARTS), best)
      end
    end
    local times = { sure or math.huge }
    for _, index in ipairs(stage == 'p' and { 'delay', 'away', DUE.p } or { 'delay', 'away' }) do
      local first = store.first_of(index)
      if first and after and first <= after then
        first = tonumber(call('ZRANGE', P .. index, '(' .. after, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2])
      end
      times[#times + 1] = first
    end
    for _, at in ipairs(times) do
      if that_comes(at) then
        may(at, at)
      end
    end
    return from, best
  end

  -- The site's next turn: later than all before, and it tells when it was given.
  function store.next_position(site)
    site.position = math.max((site.position or 0) + 1, now - EPOCH)
    return site.position
  end

  -- Other rules: a version above all that its name had.
  function store.renew_version(site)
    site.version = math.max(site.version + 1, now - EPOCH)
  end

  -- The first version of a site under its name, which another one may have had.
  function store.first_version(site)
    site.version = math.max(site.version, freed_version())
    store.renew_version(site)
  end

  function store.next_fence(site)
    site.fence = math.max((site.fence or 0) + 1, now)
    return site.fence
  end
end)
