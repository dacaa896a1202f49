-- Runs a batch of steps, in order, as one atomic call. A step is named by its module and function; those of `view` change
-- nothing.
-- The key is the partition. The arguments: the client · the batch's number · a test's time, or nothing · the steps, each an
-- array with its name first, in MessagePack, as is the answer. A client first says hello, without a number, and is given one.

local MODULES = {
  put = put, feed = feed, claim = claim, lease = lease, settle = settle, lock = lock, sites = sites_of,
  directory = directory, rename = rename, owners = owners, view = view, letters = letters, upgrade = upgrade,
  walls = walls, acts = acts, gate = gate, queue = queue, sessions = sessions, pauses = pauses, lanes = lanes,
  events = events,
  campaigns = campaigns,
}

-- The function of each step, by the step's name.
local FUNCTIONS = setmetatable({}, {
  __index = function(functions, step)
    local module_name, name = string.match(step, '^(%l+)%.([%l_]+)$')
    functions[step] = MODULES[module_name][name]
    return functions[step]
  end,
})

local function run_steps(steps)
  local replies = {}
  for i = 1, #steps do
    replies[i] = FUNCTIONS[steps[i][1]](unpack(steps[i], 2)) or false
  end
  return replies
end

local function run(keys, args, reads)
  P = keys[1] .. ':'
  local name, number = args[1], args[2]
  if not reads then
    if number == '' then
      return client.join(name)
    end
    local answered = client.check(name, number)
    if answered then
      return answered
    end
  end
  batch = {
    fake_time = args[3] ~= '', sites = {}, changed_sites = {}, units = {}, changed_units = {}, firsts = {},
    last_answers = {}, sleepers = {}, coming = {}, coming_in_lanes = {}, books = {}, segments = {}, lessees = {}, robots = {}, slots_open = {}, batch_books = {},
    to_list = {}, to_rank = {},
  }
  local steps = cmsgpack.unpack(args[4])
  store.read_clock(args[3])
  local replies = run_steps(steps)
  if reads then
    return cmsgpack.pack({ now, replies })
  end
  lease.index_lessees()
  batches.close()
  store.flush()
  kept.flush()
  records.write_last_answers()
  wake.write_sleepers()
  wake.hints()
  store.write_clock()
  local reply = cmsgpack.pack({ now, replies })
  client.keep(name, number, reply)
  return reply
end
