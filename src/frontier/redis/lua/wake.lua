-- Registry of idle claimers: when each comes by itself, who is told which moment, and the pub/sub hint that brings one sooner.
-- A lost hint costs a little time: nobody sleeps longer than LONGEST_SLEEP.
local wake = module(function(wake)
  local SOON = { d = 20, p = 100 } -- who asks again within so many ms needs no hint; a parse can wait a little
  local LISTED = 128 -- the most sleepers that are looked at
  local NAMED_LISTED = 64 -- the same of those who work on named sites, or serve some lanes
  local STAND_IN = 250 -- how much later another one comes, in ms
  local IDLE_SLEEP = 1000 -- how long one sleeps at most who was told no moment
  local ANY = store.any_site
  local KINDS = { 'd', 'p', 'd:named', 'p:named', 'd:laned', 'p:laned' }

  local function asleep(kind)
    return P .. 'asleep:' .. kind
  end

  -- When others come that work on all sites too, in order.
  local function others(stage, owner)
    local times = {}
    local flat = call('ZRANGE', asleep(stage), '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, LISTED, 'WITHSCORES')
    for i = 1, #flat, 2 do
      if flat[i] ~= owner then
        times[#times + 1] = tonumber(flat[i + 1])
      end
    end
    return times
  end

  -- When a claimer is to come: at the first moment that nobody else comes for. A claim takes all that can be claimed by then,
  -- so it is for each moment that began before and isn't over. Where nobody comes soon after it, this one does, in its
  -- stead: whoever was told may be killed, stopped or full by then.
  function wake.moment(stage, owner, first)
    local times, nth, after = others(stage, owner), 1, nil
    if not times[1] or first <= now then
      return first
    end
    while true do
      -- Leases are renewed before they end: one comes for the first of them.
      local from, best = store.moment_after(stage, after, not after and lease.first_end())
      local comes
      while times[nth] and best and times[nth] <= best do
        comes = times[nth] >= from and times[nth] or comes
        nth = nth + 1
      end
      if not comes then
        return best or now + IDLE_SLEEP
      end
      if not times[nth] or times[nth] > comes + STAND_IN then
        local _, later = store.moment_after(stage, comes)
        return math.min(comes + STAND_IN, later or math.huge)
      end
      after = comes
    end
  end

  -- A claim that was given less than it wanted took all that could be claimed: nobody needs to come for that.
  function wake.took(want, granted)
    for stage, wanted in pairs({ d = want.download, p = want.parse }) do
      local coming = batch.coming[stage]
      if wanted > granted[stage] and coming and coming.at <= now + MOST_AHEAD / 2 then
        batch.coming[stage] = nil
      end
    end
  end

  -- The claimer comes at `until_at` for each stage of which it was given less than it wanted. It isn't counted on for the others.
  function wake.sleeps(want, only, granted, until_at)
    until_at = math.min(until_at or math.huge, now + LONGEST_SLEEP)
    for stage, wanted in pairs({ d = want.download, p = want.parse }) do
      local kind = only and stage .. ':' .. only or stage
      batch.sleepers[kind] = batch.sleepers[kind] or {}
      batch.sleepers[kind][want.owner] = wanted > granted[stage] and until_at
    end
  end

  -- An owner comes no more, or not for what it was told: another one is.
  local function drop(kind, owner)
    if call('ZREM', asleep(kind), owner) == 1 and #kind == 1 then
      local first = store.next_turn(kind, nil)
      if first then
        store.comes(kind, first, store.any_site)
      end
    end
  end

  function wake.leaves(owner)
    for _, kind in ipairs(KINDS) do
      if batch.sleepers[kind] then
        batch.sleepers[kind][owner] = nil
      end
      drop(kind, owner)
    end
  end

  function wake.write_sleepers()
    for kind, owners in pairs(batch.sleepers) do
      for owner, until_at in pairs(owners) do
        if until_at then
          call('ZADD', asleep(kind), until_at, owner)
        else
          drop(kind, owner)
        end
      end
    end
    batch.sleepers = {}
  end

  -- The owner comes then.
  local function tell(kind, owner, at)
    call('ZADD', asleep(kind), at, owner)
    call('PUBLISH', CHANNEL, string.format('%s %d %s', string.match(P, '%d+'), at - now, owner))
  end

  -- Whether a process works on one of the sites that something comes for.
  local function is_for(owner, sites)
    for site in pairs(sites) do
      if site == ANY or call('SISMEMBER', store.named(owner), site) == 1 then
        return true
      end
    end
    return false
  end

  -- One who sleeps too long is told to come then, and a second one in its stead; of those who work on named sites each.
  local function hint(stage, coming)
    local at, soon, kind = math.max(coming.at, now), SOON[stage], stage .. ':named'
    local due = at + soon
    local met = call('ZRANGE', asleep(stage), now - soon, due + STAND_IN, 'BYSCORE', 'LIMIT', 0, 2, 'WITHSCORES')
    local is_met = met[2] and tonumber(met[2]) <= due
    if not is_met or not met[4] then
      local late = call('ZRANGE', asleep(stage), '+inf', '(' .. due, 'BYSCORE', 'REV', 'LIMIT', 0, 2)
      if not is_met and late[1] then
        tell(stage, table.remove(late, 1), at)
      end
      if late[1] and not met[is_met and 4 or 2] then
        tell(stage, late[1], at + STAND_IN)
      end
    end
    for _, owner in ipairs(call('ZRANGE', asleep(kind), '+inf', '(' .. due, 'BYSCORE', 'REV', 'LIMIT', 0, NAMED_LISTED)) do
      if is_for(owner, coming.sites) then
        tell(kind, owner, at)
      end
    end
  end

  local function serves_one_of(owner, some)
    local served = records.last_answers(owner).served
    for lane in pairs(some) do
      if lane == store.any_lane or lanes.serves(served, lane) then
        return true
      end
    end
    return false
  end

  -- Of those who serve some lanes each that serves one of these.
  local function hint_in_lanes(stage, at, some)
    local kind = stage .. ':laned'
    at = math.max(at, now)
    for _, owner in ipairs(call('ZRANGE', asleep(kind), '+inf', '(' .. at + SOON[stage], 'BYSCORE', 'REV', 'LIMIT', 0, NAMED_LISTED)) do
      if serves_one_of(owner, some) then
        tell(kind, owner, at)
      end
    end
  end

  function wake.hints()
    for stage, coming in pairs(batch.coming) do
      hint(stage, coming)
    end
    for stage, coming in pairs(batch.coming_in_lanes) do
      hint_in_lanes(stage, coming.at, coming.lanes)
    end
  end
end)
