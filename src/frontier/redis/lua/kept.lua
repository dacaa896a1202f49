-- Fetched pages, packed: where each is kept, and what is needed to ask for it again. A bucket is a list, of a URL and a row in
-- turn: a list stays one block of memory however long its entries are, where a hash with a field over 64 bytes does not.
-- There is one more bucket for every PAGES of a site's pages, and each time one of the old ones is split (linear hashing).
local kept = module(function(kept)
  local PAGES = 24
  -- The depth, what chooses the bucket, the fence, how much later it was fetched in ms, its segment's number, offset and
  -- length. Behind that stands what few have, by name. A row begins with a byte below 32, as no URL does.
  local ROW, ROW_BYTES = '<BI3I5I3I2I4I3', 21
  local AGAIN = '<I6I6' -- a page's `recrawl`, and when it is asked for again
  local HASHES = 2 ^ 24
  local DEEP = 31 -- the depth that stands behind the row
  local SCHEME = 'https://' -- left out of a URL

  local function long(url)
    return string.match(url, '^%a[%w+.-]*://') and url or SCHEME .. url
  end

  local function short(url)
    return string.sub(url, 1, #SCHEME) == SCHEME and string.sub(url, #SCHEME + 1) or url
  end

  -- The number under which a site's buckets lie, whatever it is called, and how many pages they hold: read once a call.
  local function book_of(site)
    local book = batch.books[site]
    if not book then
      local row = call('HMGET', P .. 'pages:' .. site, 'number', 'count')
      book = { number = row[1], count = tonumber(row[2] or 0) }
      batch.books[site] = book
    end
    return book
  end

  local function bucket_key(book, bucket)
    return P .. 'bucket:' .. book.number .. ':' .. bucket
  end

  local function buckets_for(count)
    return math.floor(count / PAGES) + 1
  end

  local function hash_of(url, mark)
    return tonumber(string.sub(mark or tasks.mark(url), -9)) % HASHES
  end

  -- A segment by its name; its number is given when its first page comes.
  local function segment_of(name)
    local segment = batch.segments[name]
    if not segment then
      local number = call('HGET', P .. 'segments', name)
      if not number then
        number = call('HINCRBY', P .. 'segments', '', 1) -- no segment is called nothing
        call('HSET', P .. 'segments', name, number)
        call('HSET', P .. 'segment-names', number, name)
      end
      segment = { number = tonumber(number), name = name, change = 0 }
      batch.segments[name], batch.segments[segment.number] = segment, segment
    end
    return segment
  end

  local function segment_at(number)
    local segment = batch.segments[number]
    return segment or segment_of(call('HGET', P .. 'segment-names', number))
  end

  -- `NAME:OFFSET:LENGTH` as its parts; nothing where it isn't that, or is too large for a row.
  local function parts_of(place)
    local name, offset, length = string.match(place, '^(.+):(%d+):(%d+)$')
    if not name or #offset > 10 or #length > 8 then
      return nil
    end
    local from, long = tonumber(offset), tonumber(length)
    if from >= 2 ^ 32 or long >= 2 ^ 24 or string.format('%.0f', from) ~= offset or string.format('%.0f', long) ~= length then
      return nil
    end
    return name, from, long
  end

  local function pack(page)
    local at, place, etag, last_modified = unpack(page.stored)
    local rare
    local function tell(name, value)
      rare = rare or {}
      rare[name] = value
    end
    local name, offset, length = parts_of(place)
    local later = at - page.fence
    if not name then
      tell('place', place)
    end
    if later < 0 or later >= 2 ^ 24 then
      tell('at', at)
      later = 0
    end
    if page.depth >= DEEP then
      tell('depth', page.depth)
    end
    if etag then
      tell('e', etag)
    end
    if last_modified then
      tell('m', last_modified)
    end
    if page.recrawl then
      tell('r', page.again and struct.pack(AGAIN, page.recrawl, page.again) or page.recrawl)
    end
    page.segment = name and segment_of(name)
    if page.segment and page.segment.number >= 2 ^ 16 then
      page.segment = nil
      tell('place', place)
    end
    local row = struct.pack(ROW, math.min(page.depth, DEEP), page.hash, page.fence - EPOCH, later,
      page.segment and page.segment.number or 0, offset or 0, length or 0)
    return rare and row .. cmsgpack.pack(rare) or row
  end

  local function read(row)
    local depth, hash, fence, later, segment, offset, length = struct.unpack(ROW, row)
    local rare = #row > ROW_BYTES and cmsgpack.unpack(string.sub(row, ROW_BYTES + 1)) or {}
    fence, segment = EPOCH + fence, segment > 0 and segment_at(segment)
    local recrawl, again = rare.r, nil
    if type(recrawl) == 'string' then
      recrawl, again = struct.unpack(AGAIN, recrawl)
    end
    local place = rare.place or string.format('%s:%.0f:%.0f', segment.name, offset, length)
    return {
      fence = fence, hash = hash, depth = rare.depth or depth, recrawl = recrawl, again = again, segment = segment,
      stored = { rare.at or fence + later, place, rare.e or false, rare.m or false },
    }
  end

  -- The page's row, with where it lies; or where it would lie.
  local function find(site, url, mark)
    local book, hash = book_of(site), hash_of(url, mark)
    if book.count == 0 then
      return { hash = hash }
    end
    local key = bucket_key(book, tasks.set_of(hash, buckets_for(book.count)))
    local index = call('LPOS', key, short(url))
    local page = index and read(call('LINDEX', key, index + 1)) or { hash = hash }
    page.key, page.index = key, index
    return page
  end

  local function look(site, url, mark)
    local seen = batch.page
    if not seen or seen.site ~= site or seen.url ~= url then
      seen = { site = site, url = url, page = find(site, url, mark) }
      batch.page = seen
    end
    return seen.page
  end

  -- A page: its fence, where it is `stored`, its depth, its `recrawl` and when it is asked for `again`. Without a fence there
  -- is none.
  kept.page = look

  -- The URL of the page that is asked for again at that time; nothing where there is none.
  function kept.url_of(site, hash, recrawl, again)
    local book = book_of(site)
    local all = book.count > 0 and call('LRANGE', bucket_key(book, tasks.set_of(hash, buckets_for(book.count))), 0, -1) or {}
    for i = 2, #all, 2 do
      local _, other = struct.unpack('<BI3', all[i])
      local page = other == hash and #all[i] > ROW_BYTES and read(all[i])
      if page and page.again == again and page.recrawl == recrawl then
        return long(all[i - 1])
      end
    end
    return nil
  end

  local function split(book, buckets)
    local old, new = bucket_key(book, tasks.set_of(buckets, buckets)), bucket_key(book, buckets)
    local stay, go = {}, {}
    local all = call('LRANGE', old, 0, -1)
    for i = 1, #all, 2 do
      local _, hash = struct.unpack('<BI3', all[i + 1])
      local to = tasks.set_of(hash, buckets + 1) == buckets and go or stay
      to[#to + 1], to[#to + 2] = all[i], all[i + 1]
    end
    call('DEL', old)
    for key, entries in pairs({ [old] = stay, [new] = go }) do
      if #entries > 0 then
        call('RPUSH', key, unpack(entries))
      end
    end
  end

  local function add(site, url, page, row)
    local book = book_of(site)
    if not book.number then
      book.number = call('INCR', P .. 'page-numbers')
    end
    call('RPUSH', page.key or bucket_key(book, 0), short(url), row)
    local before = buckets_for(book.count)
    book.count, book.is_changed = book.count + 1, true
    if buckets_for(book.count) > before then
      split(book, before)
    end
  end

  local function count(segment, by)
    if segment then
      segment.change = segment.change + by
    end
  end

  -- Keeps a page in place of what was kept of it before.
  function kept.save(site, url, page, mark)
    local before = look(site, url, mark)
    page.hash = before.hash
    local row = pack(page)
    if before.index then
      call('LSET', before.key, before.index + 1, row)
    else
      add(site, url, before, row)
    end
    count(before.segment, -1)
    count(page.segment, 1)
    batch.page = nil
  end

  -- Writes what the steps so far changed in the books. A segment that no page lies in any more goes.
  function kept.flush()
    for site, book in pairs(batch.books) do
      if book.is_changed then
        call('HSET', P .. 'pages:' .. site, 'number', book.number, 'count', book.count)
      end
    end
    for name, segment in pairs(batch.segments) do
      if type(name) == 'string' and segment.change ~= 0
        and call('HINCRBY', P .. 'segment-pages', segment.number, segment.change) <= 0 then
        call('HDEL', P .. 'segments', name)
        call('HDEL', P .. 'segment-names', segment.number)
        call('HDEL', P .. 'segment-pages', segment.number)
      end
    end
    batch.books, batch.segments, batch.page = {}, {}, nil
  end

  -- Removes pages of a site that is forgotten, some buckets a step; whether some are left. The last bucket goes first, so
  -- that no page is sought where it doesn't lie.
  function kept.sweep(site, most)
    local book, removed = book_of(site), 0
    while book.count > 0 and removed < most do
      local last = buckets_for(book.count) - 1
      local key = bucket_key(book, last)
      local all = call('LRANGE', key, 0, -1)
      for i = 2, #all, 2 do
        count(read(all[i]).segment, -1)
      end
      call('UNLINK', key)
      removed = removed + #all / 2 + 1
      book.count, book.is_changed = math.max(0, last * PAGES - 1), true
    end
    local more = book.count > 0
    kept.flush()
    if not more then
      call('DEL', P .. 'pages:' .. site)
    end
    return more
  end
end)
