-- Runs a batch of steps, in order, as one atomic call. A step is named by its module and function; those of `view` change
-- nothing.

local MODULES = {
  put = put, feed = feed, claim = claim, lease = lease, settle = settle, lock = lock, sites = sites_of,
  owners = owners, view = view,
}
local steps = cjson.decode(ARGV[4])
local reads = true
for i = 1, #steps do
  reads = reads and string.sub(steps[i][1], 1, 5) == 'view.'
end
if not reads then
  call('DEL', REPLY) -- the first write is one that a full memory allows, and so are all that follow
end
store.read_clock(ARGV[3])
local replies = {}
for i = 1, #steps do
  local module_name, name = string.match(steps[i][1], '^(%l+)%.([%l_]+)$')
  replies[i] = MODULES[module_name][name](unpack(steps[i], 2)) or false
end
if not reads then
  store.flush()
  if store.coming then
    wake.hint()
  end
  store.write_clock()
end
local reply = cjson.encode({ now, replies })
if not reads then
  call('SET', REPLY, ARGV[2] .. ' ' .. reply, 'PX', 120000)
end
return reply
