-- Registry of idle workers, and the pub/sub hint that wakes them. A lost hint costs a little time: nobody sleeps longer
-- than LONGEST_SLEEP.
local wake = module(function(wake)
  local SOON = { d = 20, p = 100 } -- who asks again within so many ms needs no hint; a parse can wait a little

  -- The claimer will ask again when its time comes, unless it is told before.
  function wake.sleeps(want, granted, wait)
    local until_at = now + math.min(wait or LONGEST_SLEEP, LONGEST_SLEEP)
    for stage, wanted in pairs({ d = want.download, p = want.parse }) do
      local key = P .. 'asleep:' .. stage
      if wanted > 0 then
        batch.sleepers[key] = batch.sleepers[key] or {}
        batch.sleepers[key][want.owner] = granted < want.download + want.parse and until_at
      end
    end
  end

  function wake.write_sleepers()
    for key, owners in pairs(batch.sleepers) do
      for owner, until_at in pairs(owners) do
        if until_at then
          call('ZADD', key, until_at, owner)
        else
          call('ZREM', key, owner)
        end
      end
    end
    batch.sleepers = {}
  end

  -- Tells one who would sleep too long; and those who want certain sites alone, as the first may not want this one.
  function wake.hint()
    for stage, at in pairs(batch.coming or {}) do
      local key = P .. 'asleep:' .. stage
      local late = call('ZREVRANGEBYSCORE', key, '+inf', math.max(at, now) + SOON[stage], 'LIMIT', 0, 16)
      local told = false
      for _, owner in ipairs(late) do
        local picky = call('HEXISTS', P .. 'owner:' .. owner, 'named') == 1
        if picky or not told then
          told = told or not picky
          call('ZADD', key, math.max(at, now), owner)
          call('PUBLISH', CHANNEL, owner)
        end
      end
    end
  end
end)
