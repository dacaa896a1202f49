-- A frontier of an earlier schema is brought up to date, at most REMOVED rows a step. What was moved is taken away from where it
-- lay, so that a step begun again goes on there.
local upgrade = module(function(upgrade)
  local LOCK_MS = 30000 -- who upgrades says each step that it still does

  -- A process that lives and was there before: its name, its process id, and its program's version, if that is known.
  local function living()
    local name = call('ZRANGEBYSCORE', P .. 'beat', '(' .. string.format('%.0f', now), '+inf', 'LIMIT', 0, 1)[1]
    local told = name and call('HMGET', P .. 'owner:' .. name, 'pid', 'program')
    if not told or not told[1] then
      return name
    end
    return name .. ' (pid ' .. told[1] .. (told[2] and ', paced ' .. told[2] or '') .. ')'
  end

  -- Takes the upgrade, in the partition where the schema stands, or holds it on. From the first time on the schema says that it
  -- is under way, which keeps older builds away. Answers whether the caller has it, and which process stands against it.
  function upgrade.take(token, from, under_way)
    if call('GET', P .. 'schema') == from then
      local name = living()
      if name then
        return { false, name }
      end
      call('SET', P .. 'schema', under_way)
    end
    local holder = call('GET', P .. 'upgrading')
    if call('GET', P .. 'schema') ~= under_way or holder and holder ~= token then
      return { false, false }
    end
    call('SET', P .. 'upgrading', token, 'PX', LOCK_MS)
    return { true, false }
  end

  -- It is done: the schema is the new one.
  function upgrade.done(token, to)
    if call('GET', P .. 'upgrading') ~= token then
      return false
    end
    call('SET', P .. 'schema', to)
    call('DEL', P .. 'upgrading')
    return true
  end

  -- `2026-11-20T09:00:00.123Z` in ms.
  local function ms_of(text)
    local year, month, day, hour, minute, rest = string.match(text, '^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)Z$')
    local y = tonumber(year) - (tonumber(month) <= 2 and 1 or 0)
    local m = (tonumber(month) + 9) % 12 -- years that begin in March
    local days = y * 365 + math.floor(y / 4) - math.floor(y / 100) + math.floor(y / 400)
      + math.floor((m * 153 + 2) / 5) + tonumber(day) - 719469
    return ((days * 24 + tonumber(hour)) * 60 + tonumber(minute)) * 60000 + math.floor(tonumber(rest) * 1000 + 0.5)
  end

  -- Schema 4: a site's pages lay in a hash by URL, each as text, with JSON of where it is kept.
  local function move_pages(site, most)
    local key, moved = P .. 'page:' .. site, 0
    for _, url in ipairs(call('HRANDFIELD', key, most)) do
      local row = call('HGET', key, url)
      local fence, recrawl, depth, text = string.match(row, '^(%d+) ([%d-]+)@?(%d*) (.*)$')
      local page = cjson.decode(text)
      local validators = page.validators or {}
      local stored = { page.fetched_at, page.place, validators.etag or false, validators.last_modified or false }
      for i = 3, 4 do
        stored[i] = stored[i] and #stored[i] <= 256 and stored[i]
      end
      stored[1] = ms_of(stored[1])
      local depth_of = tonumber(depth) or 0
      kept.save(site, url, { fence = tonumber(fence), stored = stored, recrawl = tonumber(recrawl), depth = depth_of })
      call('HDEL', key, url)
      moved = moved + 1
    end
    return moved
  end

  -- A part of the sites, from a place of their set on: `move` moves so much of one at most and tells how much, and `done` ends
  -- one. The place at which to go on, whether it is the same one as a site isn't done, and what is left of `most`.
  local function through_sites(most, cursor, move, done)
    local part = call('SSCAN', P .. 'sites', cursor, 'COUNT', 100)
    for _, site in ipairs(part[2]) do
      most = most - move(site, most)
      if most <= 0 then
        return cursor, true
      end
      done(site)
    end
    return part[1], false, most
  end

  local function from_3(most, cursor)
    return through_sites(most, cursor, move_pages, function() end)
  end

  -- Schema 5: a site keeps its own last start, a group's wait says where it comes from, and a lease when its request departs.
  -- The records lay under other keys.
  local _, read_site = packed.codec(
    'name:s unit:s version:i5 run:i5 run_began:i6 interval:d? parallel:i5? attempts:i5? robots:i1? position:i6? fence:i6? '
      .. 'known:i5? keeps:i1? running:i5? starts:i6? ready_d:i1? ready_p:i1? response:d? full:i1? d.waiting:i5? d.leased:i5? '
      .. 'd.created:i5? d.done:i5? d.known:i5? d.coalesced:i5? p.waiting:i5? p.leased:i5? p.created:i5? p.done:i5?'
  )
  local _, read_unit = packed.codec(
    'name:s server:s last_site:s? last_token:s? before_site:s? before_token:s? due:d? ready_d:i3? ready_p:i3? parsed_at:i6? '
      .. 'interval:d? last_at:d? before_at:d?'
  )
  local _, read_task = packed.codec(
    'place:s token:s? owner:s? orphan:s? until_at:d? priority:i2 position:i6 depth:i4 link:? granted_at:d? ends_at:d? '
      .. 'fence:i6? in_flight:? interval:d?'
  )

  local function old_record(key, read)
    local text = call('GET', key)
    if not text then
      return nil
    end
    local record, rest = read(text)
    return packed.read_rare(record, text, rest)
  end

  local function move_tasks(site, most)
    local from, moved = P .. 'task:' .. site, 0
    for _, field in ipairs(call('HRANDFIELD', from, most)) do
      local text = call('HGET', from, field)
      local task, rest = read_task(text)
      packed.read_rare(task, text, rest)
      task.site, task.stage, task.url = site, string.sub(field, 1, 1), string.sub(field, 2)
      call('HSET', P .. 'tasks:' .. site, field, packed.of_task(task, packed.rare_of_task(task)))
      if task.place == RUNNING then
        tasks.list_lease(task)
      end
      call('HDEL', from, field)
      moved = moved + 1
    end
    return moved
  end

  -- The unit as it is now: it waits for all that it waited for, and what a restart left unsure.
  local function moved_unit(name)
    local key = P .. 'unit:' .. name
    local unit = old_record(key, read_unit)
    if not unit then
      return store.some_unit(name)
    end
    unit.wait = (unit.interval or 0) > 0 and unit.interval
    unit.not_before = unit.unsure_until
    batch.units[name] = unit
    call('UNLINK', key, P .. 'members:' .. name)
    return unit
  end

  -- Nobody noted a site's own last start: each of a group's counts as started with the unit's.
  local function move_site(name)
    local key = P .. 'site:' .. name
    local site = old_record(key, read_site)
    if not site then
      return
    end
    local unit = moved_unit(site.unit)
    site.server, site.last_at, site.last_token = unit.server, unit.last_at, unit.last_token
    site.idle_before = store.idle(site) -- it is counted later
    batch.sites[name] = packed.new_site(site)
    call('UNLINK', key)
    store.join(site)
    if site.unit ~= name and (not unit.wait or unit.is_longest) then
      unit.wait, unit.is_longest = store.longest_interval(unit), 1
    end
    store.save_site(site)
    places.save_unit(unit)
  end

  -- The leases of all processes lay in one index, those of the dead were counted, and an older version still, which removed a
  -- process, left the set of its sites. Locks that ended were noted for ever.
  local function tidy_owners(most)
    lease.index_lessees()
    for _, name in ipairs(call('HKEYS', P .. 'dead')) do
      if not call('ZSCORE', P .. 'leases', name) then
        records.remove_owner(name)
      end
    end
    for _, name in ipairs(call('SPOP', P .. 'named', most)) do
      if call('EXISTS', P .. 'owner:' .. name) == 0 then
        call('UNLINK', store.named(name))
      end
    end
    call('UNLINK', P .. 'lease', P .. 'dead', P .. 'picky')
    for _, name in ipairs(call('HRANDFIELD', P .. 'mutex-ends', most)) do
      local noted = call('HGET', P .. 'mutex-ends', name)
      call('HSET', P .. 'mutex-noted', name, noted)
      call('ZADD', P .. 'mutex-times', string.match(noted, '^%d+'), name)
      call('HDEL', P .. 'mutex-ends', name)
    end
    return call('EXISTS', P .. 'named', P .. 'mutex-ends') > 0
  end

  local function from_4(most, cursor)
    local at, more, left = through_sites(most, cursor, move_tasks, move_site)
    if at == '0' and not more and tidy_owners(left) then
      return cursor, true
    end
    return at, more
  end

  -- An index gets another name. What stands under both has been brought up to date already.
  local function move_index(from, to, most)
    if call('EXISTS', to) == 0 then
      if call('EXISTS', from) == 1 then
        call('RENAME', from, to)
      end
      return 0
    end
    local flat = call('ZPOPMIN', from, most)
    for i = 1, #flat, 2 do
      call('ZADD', to, 'NX', flat[i + 1], flat[i])
    end
    return #flat / 2
  end

  -- Schema 6: what waits, is ready or is due lies in a lane, and a host that is kept back tells which sites wait for it.
  -- Pages that have a `recrawl` lie in lists; they lay in indexes of URLs.
  local function move_recrawls(name, most)
    local key, site = P .. 'again:' .. name, store.site(name)
    local flat = call('ZRANGE', key, 0, most - 1, 'WITHSCORES')
    for i = 1, #flat, 2 do
      pages.enlist(site, flat[i], tonumber(flat[i + 1]))
    end
    call('ZREMRANGEBYRANK', key, 0, most - 1)
    return #flat / 2
  end

  local function leave_indexes(name)
    for _, recrawl in ipairs(call('SMEMBERS', P .. 'periods:' .. name)) do
      call('UNLINK', P .. 'fetched:' .. name .. ':' .. recrawl)
    end
  end

  local function into_lanes(name, most)
    local unit, moved = store.site(name).unit, move_recrawls(name, most)
    for _, stage in ipairs(STAGES) do
      moved = moved + move_index(P .. 'q:' .. stage .. ':' .. name, tasks.queue(name, stage), most)
      moved = moved + move_index(P .. 'ready:' .. stage .. ':' .. unit, store.ready_key(stage, unit), most)
    end
    away.note(name)
    return moved
  end

  -- Units that have no sites go after a day, as those do that lose their last one from now on.
  local function note_idle(cursor)
    local prefix = P .. 'pace:'
    local part = call('SCAN', cursor, 'MATCH', prefix .. '*', 'COUNT', REMOVED)
    for _, key in ipairs(part[2]) do
      local name = string.sub(key, #prefix + 1)
      if not store.has_sites(name) then
        call('ZADD', P .. 'idle-units', 'NX', math.max(store.ends(store.unit(name)), now) + IDLE_MS, name)
      end
    end
    return part[1] == '0' and '0' or 'units ' .. part[1]
  end

  local function from_5(most, cursor)
    local units = string.match(cursor, '^units (%d+)$')
    if units then
      return note_idle(units)
    end
    for _, stage in ipairs(STAGES) do
      most = most - move_index(P .. 'due:' .. stage, P .. DUE[stage], most)
    end
    if most <= 0 then
      return cursor, true
    end
    local at, more = through_sites(most, cursor, into_lanes, leave_indexes)
    if at == '0' and not more then
      return 'units 0', true
    end
    return at, more
  end

  -- Schema 7: tasks wait in lanes, of which a build before knows one alone.
  local function from_6()
    return '0', false
  end

  -- Schema 8: tasks may be steps of sessions, of which a build before knows nothing.
  local function from_7()
    return '0', false
  end

  -- About what the tasks of a site and stage weigh that nobody works on: as many times what some of those weigh that wait.
  local function weight_of(site, stage)
    local bytes, seen, names = 0, 0, counter[stage]
    for _, lane in ipairs(gate.lanes(site, stage)) do
      local urls, sum = call('ZRANDMEMBER', tasks.queue(site.name, stage, lane), 200), 0
      for _, url in ipairs(urls) do
        sum = sum + #url
      end
      local waiting = #urls > 0 and gate.waiting_in(site, stage, lane) or 0
      if waiting > 0 then
        bytes, seen = bytes + waiting * sum / #urls, seen + waiting
      end
    end
    local idle = (site[names.waiting] or 0) + (site[names.delayed] or 0) + (site[names.scheduled] or 0)
    return math.ceil(idle * (TASK_BYTES + (seen > 0 and bytes / seen or 0)))
  end

  local function weigh(name)
    local site = store.site(name)
    if site and not site['d.bytes'] and not site['p.bytes'] then
      site['d.bytes'], site['p.bytes'] = weight_of(site, 'd'), weight_of(site, 'p')
      site.idle_before = 0
      store.save_site(site)
      return 1
    end
    return 0
  end

  -- Schema 9: it is counted what waits in all, and what it weighs.
  local function from_8(most, cursor)
    return through_sites(most, cursor, weigh, function() end)
  end

  -- What brings a partition from one schema to the next, by the earlier one. Each does a part, from the place that it told last
  -- time, '0' at first, and tells where to go on: '0' where it is through, unless it says that more is left there.
  local STEPS = { [3] = from_3, [4] = from_4, [5] = from_5, [6] = from_6, [7] = from_7, [8] = from_8 }

  -- The schema and the place at which to go on; none where there is nothing left to do.
  function upgrade.step(from, cursor)
    local at, more = STEPS[from](REMOVED, cursor)
    if at ~= '0' or more then
      return { from, at }
    end
    return STEPS[from + 1] and { from + 1, '0' }
  end
end)
