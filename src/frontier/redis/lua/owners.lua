-- Processes that claim: alive while they are heard of.
local owners = module(function(owners)
  local BEAT_MS = 10000 -- a beat lives so long, and is renewed every 3 s
  local SILENCE_MS = 6000 -- nobody beat for so long: the server was away, not they

  -- A process says what it works on from now on (`true`: all sites), or merely that it is there; the names of those who
  -- haven't been heard of for too long.
  function owners.enlist(name, pid, scope)
    if scope then
      records.save_scope(name, pid, scope)
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

  -- A process is dead: from now on its tokens are stale and its leases return.
  function owners.declare_dead(name)
    if call('EXISTS', P .. 'owner:' .. name) == 0 then
      return false
    end
    records.write_last_answers()
    wake.write_sleepers()
    records.declare_dead(name)
    records.sweep_owners()
    return true
  end
end)
