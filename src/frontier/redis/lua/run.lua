-- Runs a batch of steps, in order, as one atomic call.

local STEPS = {
  put = put.step,
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
  dead_letters = tasks.dead_letters,
  inspect = view.inspect,
}
if not reads then
  call('DEL', REPLY) -- the first write is one that a full memory allows, and so are all that follow
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
  call('SET', REPLY, ARGV[2] .. ' ' .. reply, 'PX', 120000)
end
return reply
