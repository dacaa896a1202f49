-- What is asked for. Each module of the script is made anew for each call, so those that no step needs are left out; and
-- each keeps its own names in a block, as Lua looks a name that a function keeps up in a list of all that are open.
-- KEYS[1] the partition · ARGV[1] the client · ARGV[2] the batch's number · ARGV[3] a test's time, or nothing ·
-- ARGV[4] the steps, each an array with its name first.

local call = redis.call
local P = KEYS[1] .. ':'

-- Sent again by the same client under the same number, its answer having been lost, a batch changes nothing and answers
-- the same (I5).
local REPLY = P .. 'reply:' .. ARGV[1]
local before = call('GET', REPLY)
if before then
  local number, reply = string.match(before, '^(%S+) (.*)$')
  if number == ARGV[2] then
    return reply
  end
end

local steps = cjson.decode(ARGV[4])
-- Which modules a step needs beside those that most need; `reads` says that it changes nothing.
local NEEDS = {
  put = 'puts', claim = 'claims', rearm = '', landed = '', back = '', extend = '', settle = 'puts',
  book = 'sites', register = 'sites', begin_run = 'sites', give_up = 'sites', sweep = 'sites', tune = 'sites',
  group_interval = 'sites', enlist = 'owners', bury = 'owners', lock = 'locks', unlock = 'locks',
  extend_lock = 'locks',
}
local asked, reads = {}, true
for i = 1, #steps do
  local needs = NEEDS[steps[i][1]]
  if needs then
    asked[needs], reads = true, false
  else
    asked.views, asked.sites, asked.locks = true, true, true
  end
end
asked.puts = asked.puts or asked.sites
