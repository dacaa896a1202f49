-- What is asked for, and the way in which the rest of the script is laid out.
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

-- Functions are made anew for each call of a script. A module's are made when the first of them is used.
local function module(define)
  return setmetatable({}, {
    __index = function(itself, name)
      setmetatable(itself, nil)
      define(itself)
      return itself[name]
    end,
  })
end
