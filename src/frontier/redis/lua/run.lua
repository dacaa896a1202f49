-- Runs a batch of steps, in order, as one atomic call. Sent again by the same client under the same number, its answer
-- having been lost, it changes nothing and answers the same (I5).
-- KEYS[1] the partition · ARGV[1] the client · ARGV[2] the batch's number · ARGV[3] a test's time, or nothing ·
-- ARGV[4] the steps, each an array with its name first.

local STEPS = {
  put = put.step,
  feed = feed.step,
  claim = claim.step,
  rearm = lease.rearm,
  landed = lease.landed,
  back = lease.back,
  extend = lease.extend,
  settle = settle.step,
  book = sites_of.book,
  register = sites_of.register,
  begin_run = sites_of.begin_run,
  give_up = sites_of.give_up,
  sweep = sites_of.sweep,
  tune = sites_of.tune,
  group_interval = sites_of.set_group_interval,
  enlist = owners.enlist,
  bury = owners.bury,
  owners = view.owners,
  lock = lock.try,
  unlock = lock.unlock,
  extend_lock = lock.extend,
  holds_lock = lock.holds,
  lock_left = lock.left,
  sites = function()
    local names = call('HKEYS', P .. 'units')
    table.sort(names)
    return names
  end,
  view = view.site,
  text = function(name)
    return call('GET', P .. 'text:' .. name)
  end,
  site_of = function(host)
    return call('LINDEX', P .. 'host:' .. host, 0)
  end,
  unit_of = function(name)
    return call('HGET', P .. 'units', name)
  end,
  robots = view.robots,
  stored = view.stored,
  freshness = records.freshness,
  dead_letters = tasks.dead_letters,
  inspect = view.inspect,
}
local READS = {
  owners = true, holds_lock = true, lock_left = true, sites = true, view = true, text = true, site_of = true,
  unit_of = true, robots = true, stored = true, freshness = true, dead_letters = true, inspect = true,
}

local function only_reads(steps)
  for _, step in ipairs(steps) do
    if not READS[step[1]] then
      return false
    end
  end
  return true
end

local key = P .. 'reply:' .. ARGV[1]
local before = call('GET', key)
if before then
  local number, reply = string.match(before, '^(%S+) (.*)$')
  if number == ARGV[2] then
    return reply
  end
end
local steps = cjson.decode(ARGV[4])
local reads = only_reads(steps)
if not reads then
  call('DEL', key) -- the first write is one that a full memory allows, and so are all that follow
end
store.read_clock(ARGV[3])
local replies = {}
for i, step in ipairs(steps) do
  replies[i] = STEPS[step[1]](unpack(step, 2)) or false
end
if not reads then
  store.flush()
  wake.hint()
  store.write_clock()
end
local reply = cjson.encode({ now, replies })
if not reads then
  call('SET', key, ARGV[2] .. ' ' .. reply, 'PX', 120000)
end
return reply
