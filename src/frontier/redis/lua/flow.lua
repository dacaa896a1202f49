-- What flows through a site's queue: its books every five minutes (N1, N3), and how long its pages waited (N2).
local flow = module(function(flow)
  local ONE = string.format('%d', WAIT_ONE)
  local BOOKS = '<I6I6I6I6'
  local KEPT_MS = string.format('%d', (WAITS_KEPT + 1) * SLOT_MS)

  local function slot_of_now()
    batch.slot = batch.slot or math.floor(now / SLOT_MS)
    return batch.slot
  end

  local function books_key(name)
    return P .. 'flow:' .. name
  end

  -- What was ever counted of its downloads: how many came in, left, were put, and were put where one stood for it already.
  local function books_of(site)
    local created, revived = site['d.created'] or 0, site['d.revived'] or 0
    local coalesced = site['d.coalesced'] or 0
    return created + revived + (site['d.reruns'] or 0),
      (site['d.done'] or 0) + (site['d.dead'] or 0) + (site['d.dropped'] or 0),
      created + revived + coalesced + (site['d.deferred'] or 0) + (site['d.known'] or 0) + (site['d.over_budget'] or 0),
      coalesced
  end

  -- Before the books of a site's downloads change: the first change of a slot keeps them as they were. Those of slots that
  -- are an hour older go.
  function flow.books_change(site)
    if batch.slots_open[site.name] then
      return
    end
    batch.slots_open[site.name] = true
    local key, slot = books_key(site.name), slot_of_now()
    if call('HSETNX', key, slot, struct.pack(BOOKS, books_of(site))) == 1 then
      for _, kept in ipairs(call('HKEYS', key)) do
        local of = tonumber(kept)
        if of ~= RUN_SLOT and of < slot - HOUR_SLOTS then
          call('HDEL', key, kept)
        end
      end
    end
  end

  -- A run begins.
  function flow.run_begins(site)
    call('HSET', books_key(site.name), RUN_SLOT, struct.pack(BOOKS, books_of(site)))
  end

  -- Buckets, and what they begin a counter's name with.
  local BUCKET = {}
  for bucket = 0, #WAIT_BOUNDS do
    BUCKET[bucket] = bucket .. ' '
  end

  -- The level of a priority, as it stands in a counter's name.
  local LEVEL = setmetatable({}, {
    __index = function(levels, priority)
      local level, rest = math.floor(priority / 100), priority % 100
      levels[priority] = string.format('%d ', 100 * level + (rest < 30 and 20 or rest < 50 and 40 or 60))
      return levels[priority]
    end,
  })

  local function bucket_of(wait)
    local bucket = 0
    while bucket < #WAIT_BOUNDS and wait >= WAIT_BOUNDS[bucket + 1] do
      bucket = bucket + 1
    end
    return bucket
  end

  -- The counters of waits with what is left of them after so many halvings.
  local function halved(key, halvings)
    local left, flat = {}, call('HGETALL', key)
    for i = 1, #flat, 2 do
      local count = flat[i] ~= 'slot' and math.floor(tonumber(flat[i + 1]) / 2 ^ halvings) or 0
      if count > 0 then
        left[#left + 1], left[#left + 2] = flat[i], string.format('%.0f', count)
      end
    end
    return left
  end

  -- Halves the waits by each slot that began since. They go by themselves after their last start.
  local function halve(key, before, slot)
    local left = {}
    if before then
      left = halved(key, slot - before)
      call('DEL', key)
    end
    call('HSET', key, 'slot', slot)
    for first = 1, #left, 200 do
      call('HSET', key, unpack(left, first, math.min(#left, first + 199)))
    end
    call('PEXPIRE', key, KEPT_MS)
  end

  -- A download is granted: its wait is counted, if it had one. Only the first try of a task ends one, and no robots.txt had
  -- any. A wait makes no counter of its tenant's own where there are too many.
  function flow.ends_wait(site, task)
    if task.attempts or task.losses or task.returned or task.errand or task.priority == PRIORITY_ROBOTS then
      return
    end
    local key, slot = P .. 'waits:' .. site.name, slot_of_now()
    local before = tonumber(call('HGET', key, 'slot'))
    if before ~= slot then
      halve(key, before, slot)
    end
    local counter_name = BUCKET[bucket_of(now - EPOCH - task.position)] .. LEVEL[task.priority] .. (task.lane or LANE)
    if not task.tenant then
      call('HINCRBY', key, counter_name, ONE)
      return
    end
    local own = counter_name .. ' ' .. task.tenant
    if call('HINCRBY', key, own, ONE) == WAIT_ONE and call('HLEN', key) >= MOST_WAITS + 2 then -- the slot, and this one
      call('HDEL', key, own)
      call('HINCRBY', key, counter_name, ONE)
    end
  end

  -- The books now, and as this slot and each of an hour before began: where a slot has none, nothing changed in it.
  local function books_kept(site)
    local kept, flat, past = {}, call('HGETALL', books_key(site.name)), {}
    for i = 1, #flat, 2 do
      kept[tonumber(flat[i])] = { struct.unpack(BOOKS, flat[i + 1]) }
      table.remove(kept[tonumber(flat[i])]) -- where the next value would begin
    end
    local books = { books_of(site) }
    local at = books
    for back = 0, HOUR_SLOTS do
      at = kept[slot_of_now() - back] or at
      past[back + 1] = at
    end
    return books, past, kept[RUN_SLOT] or false
  end

  -- What was counted of waits lately.
  local function waits_of(site)
    local key, found = P .. 'waits:' .. site.name, {}
    local before = tonumber(call('HGET', key, 'slot'))
    if not before or slot_of_now() - before >= WAITS_KEPT then
      return found
    end
    local left = halved(key, slot_of_now() - before)
    for i = 1, #left, 2 do
      local bucket, level, lane, tenant = string.match(left[i], '^(%d+) (%d+) (%S+) ?(.*)$')
      local names = { lane, tonumber(level), tenant ~= '' and tenant, tonumber(bucket) }
      found[#found + 1] = { names, tonumber(left[i + 1]) }
    end
    return found
  end

  -- The longest waiting download of each lane and priority.
  local function oldest_of(site)
    local found = {}
    for _, lane in ipairs(gate.lanes(site, 'd')) do
      for _, first in ipairs(tasks.first_positions(site.name, 'd', lane)) do
        found[#found + 1] = { lane, first[1], math.min(now, EPOCH + first[2]) }
      end
    end
    return found
  end

  function flow.of_site(name)
    local site = store.site(name)
    if not site then
      return false
    end
    local books, past, run = books_kept(site)
    return { now, books, past, run, waits_of(site), oldest_of(site) }
  end
end)
