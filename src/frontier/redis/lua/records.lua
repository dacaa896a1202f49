-- Records beside the tasks: stored pages, robots, hosts, the timed mutexes, processes.

local records = {}

-- A page: its fence, where it is kept, in the client's own words, and its `recrawl`.
function records.page(site, url)
  local row = call('HGET', P .. 'page:' .. site, url)
  if not row then
    return nil
  end
  local fence, recrawl, stored = string.match(row, '^(%d+) (%S+) (.*)$')
  return tonumber(fence), stored, tonumber(recrawl)
end

local function fetched_key(site, recrawl)
  return P .. 'fetched:' .. site .. string.format(':%.0f', recrawl)
end

-- Saves a page, with a `recrawl` among those that are asked for again and those whose age is told.
function records.save_page(site, url, page)
  local _, _, before = records.page(site.name, url)
  local recrawl = page.recrawl and string.format('%.0f', page.recrawl) or '-'
  call('HSET', P .. 'page:' .. site.name, url, string.format('%.0f %s ', page.fence, recrawl) .. page.stored)
  local periods = P .. 'periods:' .. site.name
  if before and before ~= page.recrawl then
    call('ZREM', fetched_key(site.name, before), url)
    if call('EXISTS', fetched_key(site.name, before)) == 0 then
      call('SREM', periods, before)
    end
  end
  if page.recrawl then
    call('ZADD', fetched_key(site.name, page.recrawl), page.fetched_at, url)
    call('SADD', periods, page.recrawl)
  end
  if before or page.recrawl then
    records.ask_again(site, url, page.recrawl)
  end
end

-- The page is due again a `recrawl` from now, or, without one, never.
function records.ask_again(site, url, recrawl)
  local key = P .. 'again:' .. site.name
  if recrawl then
    call('ZADD', key, now + math.max(recrawl, 1), url)
  else
    call('ZREM', key, url)
  end
  store.offer_again(site)
end

-- A page that the site's file doesn't want any more isn't asked for again.
function records.forget_recrawl(site, url)
  local fence, stored, recrawl = records.page(site.name, url)
  if recrawl then
    records.save_page(site, url, { fence = fence, stored = stored })
  end
end

-- The first page to be asked for again, of a site that has room for it: when, of which site, which one.
function records.first_again()
  local site = call('ZRANGE', P .. 'again', 0, 0)[1]
  if not site then
    return nil
  end
  local first = call('ZRANGE', P .. 'again:' .. site, 0, 0, 'WITHSCORES')
  return tonumber(first[2]), site, first[1]
end

-- Pages that have a `recrawl`, and how many of them are fresh.
function records.freshness(site)
  local fresh, all = 0, 0
  for _, recrawl in ipairs(call('SMEMBERS', P .. 'periods:' .. site)) do
    local key = fetched_key(site, tonumber(recrawl))
    fresh = fresh + call('ZCOUNT', key, '(' .. string.format('%.0f', now - recrawl), '+inf')
    all = all + call('ZCARD', key)
  end
  return { fresh, all }
end

-- What steps need of an origin's robots.txt; its text stays where it is.
function records.robots(origin)
  local found = call('HMGET', P .. 'robots:' .. origin, 'until', 'failures', 'unreachable')
  if not found[1] then
    return nil
  end
  return { until_at = tonumber(found[1]), failures = tonumber(found[2]), unreachable = found[3] }
end

function records.save_robots(origin, until_at, failures, record, unreachable)
  local key = P .. 'robots:' .. origin
  call('HSET', key, 'until', until_at, 'failures', failures, 'record', record)
  if unreachable then
    call('HSET', key, 'unreachable', unreachable)
  else
    call('HDEL', key, 'unreachable')
  end
end

-- The timed mutexes are plain keys that end by themselves, so that PTTL shows them and any program can take one with
-- SET key token NX PX ms. Where a test moves the time, their ends are kept beside them.
local fake_time = ARGV[3] ~= ''

function records.mutex_key(name)
  local unit = string.match(name, '^site/(.*)$')
  return P .. (unit and 'mutex:' .. unit or name)
end

-- Who holds it, and until when; for one that has no end, so long as `endless` from now.
function records.mutex(name, endless)
  local key = records.mutex_key(name)
  local token = call('GET', key)
  if not token then
    return nil
  end
  local until_at
  if fake_time then
    until_at = tonumber(call('HGET', P .. 'mutex-ends', name))
  else
    local left = call('PTTL', key)
    until_at = left >= 0 and now + left or now + math.max(endless or 0, 1000)
  end
  if until_at <= now then
    return nil
  end
  return { token = token, until_at = until_at }
end

function records.save_mutex(name, token, until_at)
  local key = records.mutex_key(name)
  if fake_time then
    call('SET', key, token)
    call('HSET', P .. 'mutex-ends', name, until_at)
  elseif until_at > now then
    call('SET', key, token, 'PX', until_at - now)
  else
    call('DEL', key)
  end
end

function records.remove_mutex(name)
  call('DEL', records.mutex_key(name))
end

local OWNER_TEXTS = { crawls = true, claimed = true, settled = true, settled_replies = true }

function records.owner(name)
  local flat = call('HGETALL', P .. 'owner:' .. name)
  local owner = { name = name }
  for i = 1, #flat, 2 do
    owner[flat[i]] = OWNER_TEXTS[flat[i]] and flat[i + 1] or tonumber(flat[i + 1])
  end
  return owner, #flat > 0
end

function records.is_dead(name)
  return call('SISMEMBER', P .. 'dead-owners', name) == 1
end

function records.save_owner(name, ...)
  call('HSET', P .. 'owner:' .. name, ...)
  call('SADD', P .. 'owners', name)
end

function records.bury(name)
  call('SADD', P .. 'dead-owners', name)
  call('ZREM', P .. 'beat', name)
  call('ZREM', P .. 'asleep:d', name)
  call('ZREM', P .. 'asleep:p', name)
  call('SREM', P .. 'picky', name)
  call('HDEL', P .. 'owner:' .. name, 'settled', 'settled_replies')
end

-- Removes dead owners that hold no lease any more.
function records.sweep_owners()
  for _, name in ipairs(call('SMEMBERS', P .. 'dead-owners')) do
    if call('EXISTS', P .. 'held:' .. name) == 0 then
      call('SREM', P .. 'dead-owners', name)
      call('SREM', P .. 'owners', name)
      call('DEL', P .. 'owner:' .. name)
    end
  end
end
