-- Records beside the tasks: stored pages, robots, hosts, the timed mutexes, processes.
local records = module(function(records)
  -- What steps need of an origin's robots.txt; its text stays where it is.
  -- Read once a call.
  function records.robots(origin)
    local robots = batch.robots[origin]
    if robots == nil then
      local found = call('HMGET', P .. 'robots:' .. origin, 'until', 'failures', 'unreachable', 'delay')
      robots = found[1] and {
        until_at = tonumber(found[1]), failures = tonumber(found[2]), unreachable = found[3], delay = tonumber(found[4]),
      }
      batch.robots[origin] = robots
    end
    return robots or nil
  end

  function records.save_robots(origin, until_at, failures, record, unreachable, delay)
    local key = P .. 'robots:' .. origin
    batch.robots[origin] = nil
    call('HSET', key, 'delay', string.format('%.0f', delay or -1))
    call('HSET', key, 'until', until_at, 'failures', failures, 'record', record)
    if unreachable then
      call('HSET', key, 'unreachable', unreachable)
    else
      call('HDEL', key, 'unreachable')
    end
  end

  -- Those of a host are to be read anew.
  function records.forget_robots(host)
    for _, origin in ipairs({ 'https://' .. host, 'http://' .. host }) do
      batch.robots[origin] = nil
      call('UNLINK', P .. 'robots:' .. origin)
    end
  end

  -- The timed mutexes are plain keys that end by themselves, so that PTTL shows them and any program can take one with
  -- SET key token NX PX ms. When one ends is also kept beside it, by our own clock: the server's may jump, and a test's is
  -- its own. A start's own lock needs no such note, as the unit knows its last start.

  -- The name of the unit that a mutex paces, if it does.
  function records.unit_of(name)
    return string.sub(name, 1, #UNIT_MUTEX) == UNIT_MUTEX and string.sub(name, #UNIT_MUTEX + 1) or nil
  end

  local function mutex_key(name)
    local unit = records.unit_of(name)
    return P .. (unit and 'mutex:' .. unit or name)
  end

  local function note_end(name, token, until_at)
    if batch.fake_time or string.sub(token, 1, #START_TOKEN) ~= START_TOKEN then
      call('HSET', P .. 'mutex-noted', name, string.format('%.0f ', until_at) .. token)
      call('ZADD', P .. 'mutex-times', until_at, name)
    end
  end

  -- Until when a key is held that was seen to last so long more; never longer than when it was first seen.
  local function noted_end(name, token, until_at)
    local noted, of = string.match(call('HGET', P .. 'mutex-noted', name) or '', '^(%d+) (.*)$')
    if of == token then
      return math.min(until_at, tonumber(noted))
    end
    return until_at
  end

  -- Whose it is, over or not.
  function records.holder(name)
    return call('GET', mutex_key(name))
  end

  -- Who holds it, and until when; one that has no end is looked at again after `endless`.
  function records.mutex(name, endless)
    local key = mutex_key(name)
    local token = call('GET', key)
    if not token then
      return nil
    end
    local left = call('PTTL', key)
    local until_at = math.huge
    if left >= 0 then
      until_at = now + store.passed() + left
    elseif not batch.fake_time then
      until_at = now + math.max(endless or 0, 1000)
    end
    if left >= 0 or batch.fake_time then
      until_at = noted_end(name, token, until_at)
    end
    if until_at <= now then
      return nil
    end
    return { token = token, until_at = until_at }
  end

  -- Remembers the end of a lock that another program took, so that it isn't put off by a jump of the server's clock.
  function records.note_mutex(name, held)
    note_end(name, held.token, held.until_at)
  end

  -- The server counts a PX from when the call came, before the step read its time: by that it would end a moment early.
  function records.save_mutex(name, token, until_at)
    local key = mutex_key(name)
    if batch.fake_time then
      call('SET', key, token)
    elseif until_at > now then
      call('SET', key, token, 'PXAT', batch.wall + until_at - now)
    else
      call('DEL', key)
      return
    end
    note_end(name, token, until_at)
  end

  function records.remove_mutex(name)
    call('DEL', mutex_key(name))
    call('HDEL', P .. 'mutex-noted', name)
    call('ZREM', P .. 'mutex-times', name)
  end

  -- Forgets locks that ended, a bounded number. Such a key may be there still, after a jump of the server's clock.
  function records.sweep_mutexes()
    for _, name in ipairs(call('ZRANGEBYSCORE', P .. 'mutex-times', '-inf', now, 'LIMIT', 0, SWEPT)) do
      local noted = string.match(call('HGET', P .. 'mutex-noted', name) or '', '^%d+ (.*)$')
      if call('GET', mutex_key(name)) == noted then
        records.remove_mutex(name)
      else
        call('HDEL', P .. 'mutex-noted', name)
        call('ZREM', P .. 'mutex-times', name)
      end
    end
  end

  -- What a process claimed and settled last: read once a call, and written at its end.
  function records.last_answers(name)
    local last = batch.last_answers[name]
    if not last then
      local row = call('HMGET', P .. 'owner:' .. name, 'claimed', 'granted', 'settled', 'settled_replies', 'dead', 'pid',
        'named', 'lanes')
      last = {
        claimed = row[1], granted = row[2], settled = row[3], replies = row[4], dead = row[5], pid = row[6], named = row[7],
        served = row[8] and cjson.decode(row[8]) or nil,
      }
      batch.last_answers[name] = last
    end
    return last
  end

  function records.claimed(name, token, granted)
    local last = records.last_answers(name)
    last.claimed, last.granted, last.is_changed = token, granted, true
  end

  function records.settled(name, token, replies)
    local last = records.last_answers(name)
    last.settled, last.replies, last.is_changed = token, replies, true
  end

  function records.remove_owner(name)
    batch.last_answers[name] = nil
    call('SREM', P .. 'owners', name)
    call('UNLINK', P .. 'owner:' .. name, store.named(name))
  end

  function records.write_last_answers()
    for name, last in pairs(batch.last_answers) do
      if last.is_changed then
        call('HSET', P .. 'owner:' .. name, 'claimed', last.claimed or '', 'granted', last.granted or '',
          'settled', last.settled or '', 'settled_replies', last.replies or '')
      end
    end
    batch.last_answers = {}
  end
end)
