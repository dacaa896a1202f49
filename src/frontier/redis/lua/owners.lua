-- Processes that claim: alive while they are heard of.
local owners = module(function(owners)
  local BURIED = 10 -- in one step
  local SILENCE_MS = 6000 -- nobody beat for so long: the server was away, not they

  -- What a process works on: all sites (`true`), what is in some lanes (`lanes`), or the sites of these names, which are a set beside
  -- its record.
  local function save_scope(name, pid, scope)
    records.write_last_answers()
    wake.leaves(name)
    local key = P .. 'owner:' .. name
    call('SADD', P .. 'owners', name)
    call('HSET', key, 'pid', pid, 'program', PROGRAM)
    call('DEL', store.named(name))
    call('ZREM', P .. 'downloaders', name)
    call('HDEL', key, 'named', 'lanes')
    if scope == true then
      return
    elseif scope.lanes then
      call('HSET', key, 'lanes', cjson.encode(scope.lanes))
      return
    end
    call('HSET', key, 'named', 1)
    for first = 1, #scope, 1000 do
      call('SADD', store.named(name), unpack(scope, first, math.min(#scope, first + 999)))
    end
  end

  -- A process says what it works on from now on (`true`: all sites), or merely that it is there, and that it downloads. Those who
  -- haven't been heard of for too long are dead, a few a step. How many of the living download from all sites, if it may as well.
  function owners.enlist(name, pid, scope, downloads, tells)
    if scope then
      save_scope(name, pid, scope)
    end
    local key = P .. 'beat'
    local newest = call('ZRANGE', key, -1, -1, 'WITHSCORES')
    if newest[2] and tonumber(newest[2]) - BEAT_MS + SILENCE_MS < now then
      for _, other in ipairs(call('ZRANGE', key, 0, -1)) do -- the living processes alone
        call('ZADD', key, now + BEAT_MS, other)
      end
    end
    local owner = records.last_answers(name)
    local is_alive = owner.pid and not owner.dead
    if is_alive then
      call('ZADD', key, now + BEAT_MS, name)
      if downloads and not owner.named and not owner.served then
        call('ZADD', P .. 'downloaders', now + BEAT_MS, name)
      end
      if tells and P == DIRECTORY then
        call('HSET', P .. 'owner:' .. name, 'tells', tells, 'told_at', string.format('%.0f', now))
      end
    end
    for _, silent in ipairs(call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, BURIED)) do
      owners.declare_dead(silent)
    end
    for _, silent in ipairs(call('ZRANGEBYSCORE', P .. 'downloaders', '-inf', now, 'LIMIT', 0, BURIED)) do
      call('ZREM', P .. 'downloaders', silent)
    end
    local shares = is_alive and not owner.named and not owner.served
    local sharers = shares and call('ZCOUNT', P .. 'downloaders', '(' .. string.format('%.0f', now), '+inf') or 0
    return { sharers, is_alive and P == DIRECTORY and call('HGET', P .. 'owner:' .. name, 'drained') == '1' or false }
  end

  -- A process that lives is to claim nothing more and to end: it is told so with its next beat.
  function owners.drain(name)
    local owner = records.last_answers(name)
    if not owner.pid or owner.dead then
      return false
    end
    call('HSET', P .. 'owner:' .. name, 'drained', 1)
    return true
  end

  -- A process is dead: from now on its tokens are stale and its leases return; its record stays until they have. However many it
  -- has, that is said once, where it stands among those that have leases.
  function owners.declare_dead(name)
    records.write_last_answers()
    wake.leaves(name)
    call('ZREM', P .. 'beat', name)
    call('ZREM', P .. 'downloaders', name)
    local key = P .. 'owner:' .. name
    if call('EXISTS', key) == 0 then
      return false
    end
    call('HDEL', key, 'settled', 'settled_replies')
    call('HSET', key, 'dead', 1)
    batch.lessees[name] = true
    lease.index_lessees()
    if call('ZSCORE', P .. 'leases', name) then
      for _, stage in ipairs(STAGES) do
        store.comes(stage, now, store.any_site) -- the next claim takes its leases back
        lanes.comes(stage, nil, now)
      end
    end
    return true
  end
end)
