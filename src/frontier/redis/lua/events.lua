-- Events that operators are to be told: of each kind and site the latest, by "KIND SITE", with its text, which is kept unread.
-- They lie with the directory.
local events = module(function(events)
  local function name_of(kind, site)
    return kind .. ' ' .. site
  end

  local function due_key(kind)
    return P .. 'events-due:' .. kind
  end

  local function read(kind, site)
    local kept = call('HGET', P .. 'events', name_of(kind, site))
    return kept and cmsgpack.unpack(kept)
  end

  local function save(kind, site, event)
    call('HSET', P .. 'events', name_of(kind, site), cmsgpack.pack(event))
    if event.next_at then
      call('ZADD', due_key(kind), event.next_at, site)
    else
      call('ZREM', due_key(kind), site)
    end
  end

  local function remove(name)
    local kind, site = string.match(name, '^(%S+) (.*)$')
    call('HDEL', P .. 'events', name)
    call('ZREM', P .. 'event-times', name)
    call('ZREM', due_key(kind), site)
  end

  -- Those that happened a day ago go, told or not.
  local function sweep()
    for _, name in ipairs(call('ZRANGEBYSCORE', P .. 'event-times', '-inf', now - EVENT_KEPT_MS)) do
      remove(name)
    end
  end

  function events.post(kind, site, text)
    sweep()
    local known = read(kind, site)
    if known and known.at > now - QUIET_MS then
      return false
    end
    save(kind, site, { at = now, text = text, failures = 0, next_at = now })
    call('ZADD', P .. 'event-times', now, name_of(kind, site))
    if call('HLEN', P .. 'events') > MOST_EVENTS then
      remove(call('ZRANGE', P .. 'event-times', 0, 0)[1])
    end
    return true
  end

  function events.take(kinds, token)
    sweep()
    local kind, site, first
    for _, of in ipairs(kinds) do
      local due = call('ZRANGEBYSCORE', due_key(of), '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
      if due[1] and not (first and first <= tonumber(due[2])) then
        kind, site, first = of, due[1], tonumber(due[2])
      end
    end
    if not kind then
      return false
    end
    local event = read(kind, site)
    event.token, event.next_at = token, now + EVENT_LEASE_MS
    save(kind, site, event)
    return { event.at, event.failures, event.text }
  end

  -- It was told, or couldn't be for that reason.
  function events.finish(kind, site, token, failed)
    local event = read(kind, site)
    if not event or event.token ~= token then
      return 'stale'
    end
    event.token, event.next_at, event.failed_at, event.why = nil, nil, nil, nil
    local ended = 'told'
    if failed then
      event.failures = event.failures + 1
      event.failed_at, event.why = now, failed
      local pause = EVENT_PAUSES[event.failures]
      event.next_at = pause and now + pause
      ended = pause and { again = pause } or 'given_up'
    end
    save(kind, site, event)
    return ended
  end

  local function is_later(at, name, other)
    return not other or at > other[1] or at == other[1] and name > other.name
  end

  -- How many wait, and the latest that couldn't be told.
  function events.status()
    local waiting, failed = 0, nil
    local flat = call('HGETALL', P .. 'events')
    for i = 1, #flat, 2 do
      local event = cmsgpack.unpack(flat[i + 1])
      waiting = waiting + (event.next_at and 1 or 0)
      if event.failed_at and is_later(event.failed_at, flat[i], failed) then
        local kind, site = string.match(flat[i], '^(%S+) (.*)$')
        failed = { event.failed_at, kind, site, event.why, not event.next_at, name = flat[i] }
      end
    end
    if failed then
      failed.name = nil
    end
    return { waiting, failed or false }
  end
end)
