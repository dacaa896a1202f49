-- Processes that claim: alive while they are heard of.
local owners = module(function(owners)
  local BEAT_MS = 10000 -- a beat lives so long, and is renewed every 3 s
  local SILENCE_MS = 6000 -- nobody beat for so long: the server was away, not they

  -- What a process works on: all sites (`true`), or those of these names, which are a set beside its record.
  local function save_scope(name, pid, scope)
    records.write_last_answers()
    local key = P .. 'owner:' .. name
    call('SADD', P .. 'owners', name)
    call('HSET', key, 'pid', pid)
    call('DEL', store.named(name), P .. 'picky') -- the latter is an older version's
    if scope == true then
      call('HDEL', key, 'named')
      return
    end
    call('HSET', key, 'named', 1)
    call('SADD', P .. 'named', name)
    for first = 1, #scope, 1000 do
      call('SADD', store.named(name), unpack(scope, first, math.min(#scope, first + 999)))
    end
  end

  -- A process says what it works on from now on (`true`: all sites), or merely that it is there; the names of those who
  -- haven't been heard of for too long.
  function owners.enlist(name, pid, scope)
    if scope then
      save_scope(name, pid, scope)
    end
    local key = P .. 'beat'
    local newest = call('ZRANGE', key, -1, -1, 'WITHSCORES')
    if newest[2] and tonumber(newest[2]) - BEAT_MS + SILENCE_MS < now then
      for _, other in ipairs(call('ZRANGE', key, 0, -1)) do
        call('ZADD', key, now + BEAT_MS, other)
      end
    end
    local owner = records.last_answers(name)
    if owner.pid and not owner.dead then
      call('ZADD', key, now + BEAT_MS, name)
    end
    return call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, 10)
  end

  -- Removes dead owners that hold no lease any more.
  local function sweep()
    local flat = call('HGETALL', P .. 'dead')
    for i = 1, #flat, 2 do
      if tonumber(flat[i + 1]) <= 0 then
        call('HDEL', P .. 'dead', flat[i])
        call('SREM', P .. 'owners', flat[i])
        call('DEL', P .. 'owner:' .. flat[i], store.named(flat[i]))
      end
    end
    -- An older version that removes an owner leaves the set of its sites. Some at a time: the step stays bounded.
    for _, name in ipairs(call('SRANDMEMBER', P .. 'named', 100)) do
      if call('EXISTS', P .. 'owner:' .. name) == 0 then
        call('DEL', store.named(name))
        call('SREM', P .. 'named', name)
      end
    end
  end

  -- A process is dead: from now on its tokens are stale and its leases return; its record stays until they have.
  function owners.declare_dead(name)
    local key = P .. 'owner:' .. name
    if call('EXISTS', key) == 0 then
      return false
    end
    records.write_last_answers()
    wake.write_sleepers()
    call('HDEL', key, 'settled', 'settled_replies')
    call('HSET', key, 'dead', 1)
    call('HINCRBY', P .. 'dead', name, tasks.orphan(name))
    for _, index in ipairs({ 'beat', 'asleep:d', 'asleep:p' }) do
      call('ZREM', P .. index, name)
    end
    sweep()
    return true
  end
end)
