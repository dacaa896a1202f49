-- Pages that have a `recrawl`: when each is asked for again, and how old it is.
local pages = module(function(pages)
  local function fetched_key(site, recrawl)
    return P .. 'fetched:' .. site .. string.format(':%.0f', recrawl)
  end

  -- The page is due again a `recrawl` from now, or, without one, never.
  function pages.ask_again(site, url, recrawl)
    local key = P .. 'again:' .. site.name
    if recrawl then
      call('ZADD', key, now + math.max(recrawl, 1), url)
    else
      call('ZREM', key, url)
    end
    store.offer_again(site)
  end

  -- A page was fetched, or is not wanted any more, that had this `recrawl` before: its new one counts from now.
  function pages.set_recrawl(site, url, before, recrawl, fetched_at)
    local periods = P .. 'periods:' .. site.name
    if before and before ~= recrawl then
      call('ZREM', fetched_key(site.name, before), url)
      if call('EXISTS', fetched_key(site.name, before)) == 0 then
        call('SREM', periods, before)
      end
    end
    if recrawl then
      call('ZADD', fetched_key(site.name, recrawl), fetched_at, url)
      call('SADD', periods, recrawl)
    end
    pages.ask_again(site, url, recrawl)
  end

  -- A page that the site's file doesn't want any more isn't asked for again.
  function pages.forget_recrawl(site, url)
    local fence, stored, recrawl, depth = records.page(site.name, url)
    if recrawl then
      records.save_page(site.name, url, fence, stored, nil, depth)
      pages.set_recrawl(site, url, recrawl)
    end
  end

  -- The first page to be asked for again, of a site that has room for it: when, of which site, which one.
  function pages.first_again()
    local site = call('ZRANGE', P .. 'again', '0', '0')[1]
    if not site then
      return nil
    end
    local first = call('ZRANGE', P .. 'again:' .. site, '0', '0', 'WITHSCORES')
    return tonumber(first[2]), site, first[1]
  end

  -- Pages that have a `recrawl`: how many are fresh, how many there are, and when the oldest was fetched.
  function pages.freshness(site)
    local fresh, all, oldest = 0, 0, nil
    for _, recrawl in ipairs(call('SMEMBERS', P .. 'periods:' .. site)) do
      local key = fetched_key(site, tonumber(recrawl))
      fresh = fresh + call('ZCOUNT', key, '(' .. string.format('%.0f', now - recrawl), '+inf')
      all = all + call('ZCARD', key)
      oldest = math.min(oldest or math.huge, call('ZRANGE', key, '0', '0', 'WITHSCORES')[2])
    end
    return { fresh, all, oldest or false }
  end
end)
