-- Runs a batch of steps, in order, as one atomic call. A step is named by its module and function; those of `view` change
-- nothing.
-- The key is the partition. The arguments: the client · the batch's number · a test's time, or nothing · the steps, each an
-- array with its name first, in MessagePack, as is the answer.

local MODULES = {
  put = put, feed = feed, claim = claim, lease = lease, settle = settle, lock = lock, sites = sites_of,
  directory = directory, rename = rename, owners = owners, view = view, letters = letters,
}

-- Sent again by the same client under the same number, its answer having been lost, a batch changes nothing and answers
-- the same (I5).
local function answered_before(key, number)
  local of, reply = string.match(call('GET', key) or '', '^(%S+) (.*)$')
  return of == number and reply or nil
end

local function run_steps(steps)
  local replies = {}
  for i = 1, #steps do
    local module_name, name = string.match(steps[i][1], '^(%l+)%.([%l_]+)$')
    replies[i] = MODULES[module_name][name](unpack(steps[i], 2)) or false
  end
  return replies
end

local function run(keys, args, reads)
  P = keys[1] .. ':'
  local reply_key = P .. 'reply:' .. args[1]
  local before = answered_before(reply_key, args[2])
  if before then
    return before
  end
  batch = {
    fake_time = args[3] ~= '', sites = {}, changed_sites = {}, units = {}, changed_units = {}, firsts = {},
    last_answers = {}, sleepers = {},
  }
  local steps = cmsgpack.unpack(args[4])
  if not reads then
    call('DEL', reply_key) -- the first write is one that a full memory allows, and so are all that follow
  end
  store.read_clock(args[3])
  local replies = run_steps(steps)
  if reads then
    return cmsgpack.pack({ now, replies })
  end
  store.flush()
  records.write_last_answers()
  wake.write_sleepers()
  if batch.coming then
    wake.hint()
  end
  store.write_clock()
  local reply = cmsgpack.pack({ now, replies })
  call('SET', reply_key, args[2] .. ' ' .. reply, 'PX', 120000)
  return reply
end
