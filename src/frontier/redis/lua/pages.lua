-- Pages that have a `recrawl`: when each is asked for again, and how old they are. Those of one period lie in a list, in the order
-- of their times. An entry is a time and what chooses the page's bucket; one that its page has left goes once it comes first.
local pages = module(function(pages)
  local function text(number)
    return string.format('%.0f', number)
  end

  -- The books of a site: of each period the latest time at which one of its pages is asked for again (`PERIOD`), how many pages
  -- it has (`PERIOD n`), and how many of them were fetched in each part of it (`PERIOD TIME`).
  local function books_of(site)
    return P .. 'recrawl:' .. site
  end

  local function entry_of(page)
    return struct.pack(AGAIN_ENTRY, page.again, page.hash)
  end

  -- When the part of its period began in which the page was fetched.
  local function slot_of(page)
    local at = page.stored[1]
    return text(page.recrawl) .. ' ' .. text(at - at % math.max(1, math.floor(page.recrawl / SLOTS)))
  end

  -- The first entry of a period that its page still has: the time and the URL. Those before it go, `most` of them; without a
  -- URL there are more of these. How many went.
  local function first_of(site, period, most)
    local key, again = store.again_list(site, period), nil
    for gone = 0, most do
      local entry, hash, url = call('LINDEX', key, 0)
      if not entry then
        return nil, nil, gone
      end
      again, hash = struct.unpack(AGAIN_ENTRY, entry)
      url = kept.url_of(site, hash, tonumber(period), again)
      if url or gone == most then
        return again, url, gone
      end
      call('LPOP', key)
    end
  end

  local function count(books, field, by)
    local pages_left = call('HINCRBY', books, field, by)
    if pages_left == 0 then
      call('HDEL', books, field)
    end
    return pages_left
  end

  local function enter(site, page)
    local period, books = text(page.recrawl), books_of(site)
    call('RPUSH', store.again_list(site, period), entry_of(page))
    call('HSET', books, period, text(page.again))
    count(books, slot_of(page), 1)
    if count(books, period .. ' n', 1) == 1 then
      call('SADD', store.periods_of(site), period)
    end
  end

  local function leave(site, page)
    local period, books = text(page.recrawl), books_of(site)
    local key = store.again_list(site, period)
    count(books, slot_of(page), -1)
    if count(books, period .. ' n', -1) == 0 then
      call('HDEL', books, period)
      call('SREM', store.periods_of(site), period)
      call('UNLINK', key)
    elseif call('LINDEX', key, 0) == entry_of(page) then
      call('LPOP', key)
      first_of(site, period, SWEPT)
    end
  end

  -- No two pages of a period are asked for at the same time. One that is the latest itself gives its time back.
  local function ask_at(site, before, page, at)
    local last = tonumber(call('HGET', books_of(site), text(page.recrawl)) or -1)
    local is_latest = before.recrawl == page.recrawl and before.again == last
    page.again = math.max(at, is_latest and last or last + 1)
  end

  -- Keeps a page in place of what was kept of it before. With a `recrawl` it is asked for again a period from now, and later
  -- than any other page that has this one.
  function pages.save(site, url, before, page, mark)
    if page.recrawl then
      ask_at(site.name, before, page, now + math.max(page.recrawl, 1))
    end
    kept.save(site.name, url, page, mark)
    if page.recrawl then
      enter(site.name, page)
    end
    if before.recrawl then
      leave(site.name, before)
    end
    if page.recrawl or before.recrawl then
      store.offer_again(site)
    end
  end

  -- A page that lay in no list yet, in the order of their times.
  function pages.enlist(site, url, at)
    local page = kept.page(site.name, url)
    if page.recrawl then
      local before = page
      page = { fence = page.fence, stored = page.stored, depth = page.depth, recrawl = page.recrawl }
      ask_at(site.name, before, page, at)
      kept.save(site.name, url, page)
      enter(site.name, page)
      store.offer_again(site)
    end
  end

  -- A page that the site's file doesn't want any more isn't asked for again.
  function pages.forget_recrawl(site, url)
    local before = kept.page(site.name, url)
    if before.recrawl then
      pages.save(site, url, before, { fence = before.fence, stored = before.stored, depth = before.depth })
    end
  end

  -- The first page to be asked for again, of a site that has room for it: when, of which site, which one. Of the entries before
  -- it that their pages have left, `most` go: without a page there are more of these. How many more may go.
  function pages.first_again(most)
    while true do
      local site = call('ZRANGE', P .. 'again', '0', '0')[1]
      if not site then
        return nil, nil, nil, most
      end
      local _, period = store.first_again(site)
      local at, url, gone = first_of(site, period, most)
      if gone > 0 then
        store.offer_again(store.site(site))
      end
      most = most - gone
      if gone == 0 or at and not url then
        return at, site, url, most
      end
      -- Another site may be before it now.
    end
  end

  -- Pages that have a `recrawl`: how many are fresh, how many there are, and when the oldest was fetched.
  function pages.freshness(site)
    local fresh, all, oldest = 0, 0, nil
    local books = call('HGETALL', books_of(site))
    for i = 1, #books, 2 do
      local period, slot = string.match(books[i], '^(%d+) (%d+)$')
      if period then
        local these = tonumber(books[i + 1])
        fresh = fresh + (slot + period > now and these or 0)
        all, oldest = all + these, math.min(oldest or math.huge, slot)
      end
    end
    return { fresh, all, oldest or false }
  end
end)
