-- What a call is given, and how the modules are laid out. They are made once and called again and again, so what belongs to
-- one call lies in `batch`. A module makes its functions when the first of them is used.

local call = redis.call
-- What is global is sought in a chain of tables, each time that it is named.
local math, string, table, struct, cjson, cmsgpack = math, string, table, struct, cjson, cmsgpack
local ipairs, pairs, next, tonumber, type, unpack = ipairs, pairs, next, tonumber, type, unpack
local P -- what all keys of the partition begin with
local now -- the time in ms
local batch -- what the steps of this call share

local function module(define)
  return setmetatable({}, {
    __index = function(itself, name)
      setmetatable(itself, nil)
      define(itself)
      return itself[name]
    end,
  })
end

local function names_of(stage)
  return setmetatable({}, {
    __index = function(names, name)
      names[name] = stage .. '.' .. name
      return names[name]
    end,
  })
end

-- A reason with what it tells of in the place of each name in braces.
local function filled(reason, values)
  return (string.gsub(reason, '{(%l+)}', values))
end

-- What a site's counters are called, by stage: `counter.d.waiting` is 'd.waiting', put together once.
local counter = { d = names_of('d'), p = names_of('p') }
