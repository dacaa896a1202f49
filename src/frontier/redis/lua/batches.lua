-- Batches: each name that a task, a further run of it or a dead letter carries is a page of that batch, and is counted by its site.
-- A name that moves from one of them to another is the same page. The books are read once a call, and written at its end.
local batches = module(function(batches)
  local ENDS = { 'merged', 'done', 'dead', 'excluded', 'dropped' }
  local JOINS = { 'created', 'coalesced', 'deferred', 'revived', 'targets' }

  local function books_key(site)
    return P .. 'batch-books:' .. site
  end

  -- Those that ended, by when.
  local function ended_key(site)
    return P .. 'batch-ends:' .. site
  end

  -- The books of a batch on a site, unless it ended so long ago that it is forgotten.
  local function read(site, name)
    local of_site = batch.batch_books[site] or {}
    batch.batch_books[site] = of_site
    local books = of_site[name]
    if books == nil then
      local text = call('HGET', books_key(site), name)
      books = text and cjson.decode(text)
      of_site[name] = books
    end
    return books and (books.ended_at or math.huge) > now - BATCH_KEPT_MS and books or nil
  end

  local function sum(books, fields)
    local all = 0
    for i = 1, #fields do
      all = all + (books[fields[i]] or 0)
    end
    return all
  end

  local function count(books, field, by)
    local value = (books[field] or 0) + by
    books[field] = value > 0 and value or nil
    books.is_changed = true
    local is_open = sum(books, JOINS) > sum(books, ENDS) or books.is_of_campaign
    books.ended_at = not is_open and (books.ended_at or now) or nil
  end

  -- Forgets batches that ended long ago, or before as many others as are kept: so many at most.
  function batches.sweep(site, most)
    batches.flush()
    local key = ended_key(site)
    local over, flat = call('ZCARD', key) - BATCHES_KEPT, call('ZRANGE', key, 0, most - 1, 'WITHSCORES')
    for i = 1, #flat, 2 do
      if (i - 1) / 2 < over or tonumber(flat[i + 1]) <= now - BATCH_KEPT_MS then
        call('HDEL', books_key(site), flat[i])
        call('ZREM', key, flat[i])
        if batch.batch_books[site] then
          batch.batch_books[site][flat[i]] = nil
        end
      end
    end
  end

  -- Forgets a batch on a site.
  function batches.forget(site, name)
    local of_site = batch.batch_books[site] or {}
    batch.batch_books[site] = of_site
    of_site[name] = false
    call('HDEL', books_key(site), name)
    call('ZREM', ended_key(site), name)
  end

  local function write(site, name, books)
    local ended_at = books.ended_at
    books.is_changed = nil
    call('HSET', books_key(site), name, cjson.encode(books))
    if ended_at then
      call('ZADD', ended_key(site), string.format('%d', ended_at), name)
    else
      call('ZREM', ended_key(site), name)
    end
    return ended_at
  end

  -- Writes what changed; sites where batches have ended.
  function batches.flush()
    local ended = {}
    for site, of_site in pairs(batch.batch_books) do
      for name, books in pairs(of_site) do
        if books and books.is_changed and write(site, name, books) then
          ended[#ended + 1] = site
        end
      end
    end
    return ended
  end

  -- The same at the end of a call.
  function batches.close()
    for _, site in ipairs(batches.flush()) do
      batches.sweep(site, BATCHES_SWEPT)
    end
  end

  -- Whether a name counts among those that a page may have.
  local function is_somebodys(name)
    return string.sub(name, 1, #OF_CAMPAIGN) ~= OF_CAMPAIGN
  end

  local function contains(names, name)
    for i = 1, #names do
      if names[i] == name then
        return true
      end
    end
    return false
  end

  local function has_room(names, name)
    local own = 0
    for i = 1, #names do
      own = own + (is_somebodys(names[i]) and 1 or 0)
    end
    return own < MOST_BATCHES or not is_somebodys(name)
  end

  -- Whether a page has room for the batches of a put beside its own and those of its further run.
  function batches.have_room(own, further, asked)
    local together = {}
    for _, names in ipairs({ own or {}, further or {}, asked }) do
      for _, name in ipairs(names) do
        if not contains(together, name) then
          if not has_room(together, name) then
            return false
          end
          together[#together + 1] = name
        end
      end
    end
    return true
  end

  local function read_or_begin(site, name)
    local books = read(site.name, name)
    if not books then
      -- A campaign's goes on with its next portion: it ends with that.
      books = { began_at = now, is_of_campaign = not is_somebodys(name) or nil }
      batch.batch_books[site.name][name] = books
    end
    return books
  end

  -- The batches of a put are those of a task, or of a further run, as well: all of them. The target of a redirect goes without those
  -- that it has no room for.
  function batches.join(site, names, asked, how)
    if not asked.batches then
      return names
    end
    local all = { unpack(names or {}) }
    for _, name in ipairs(asked.batches) do
      if not contains(all, name) and has_room(all, name) then
        all[#all + 1] = name
        count(read_or_begin(site, name), asked.hops and 'targets' or how, 1)
      end
    end
    return all[1] and all
  end

  -- A request that asks for nothing joins no batch, but whoever looks is told of it.
  function batches.know(site, asked)
    for _, name in ipairs(not asked.hops and asked.batches or {}) do
      count(read_or_begin(site, name), 'known', 1)
    end
  end

  -- Pages end in their batches.
  function batches.leave(site, names, how)
    for _, name in ipairs(names or {}) do
      local books = read(site.name, name)
      if books then
        count(books, how, 1)
      end
    end
  end

  -- Pages go on as those that carry `names`: all of them. What has no room there is done.
  function batches.carry(site, names, carried)
    if not carried then
      return names
    end
    local all = { unpack(names or {}) }
    for _, name in ipairs(carried) do
      if contains(all, name) then
        batches.leave(site, { name }, 'merged')
      elseif has_room(all, name) then
        all[#all + 1] = name
      else
        batches.leave(site, { name }, 'done')
      end
    end
    return all[1] and all
  end

  -- Whether there was such a death: one from before its beginning was another batch's of that name.
  local function undo_death(site, name, died_at, how)
    local books = read(site.name, name)
    if not books or not books.dead or died_at < books.began_at then
      return false
    end
    if how then
      count(books, how, 1) -- before the death is undone, so that the batch doesn't open in between
    end
    count(books, 'dead', -1)
    return true
  end

  -- The batches of a task, then those of its further run.
  function batches.of_task(task)
    local all = { unpack(task.batches or {}) }
    for _, name in ipairs(task.deferral and task.deferral.batches or {}) do
      if not contains(all, name) then
        all[#all + 1] = name
      end
    end
    return all
  end

  -- A dead letter comes back: its batches that are still known.
  function batches.revive(site, letter)
    local names = {}
    for _, name in ipairs(letter and letter.batches or {}) do
      if undo_death(site, name, letter.died_at) then
        names[#names + 1] = name
      end
    end
    return names[1] and names or nil
  end

  -- A dead letter is put away.
  function batches.drop(site, letter)
    for _, name in ipairs(letter.batches or {}) do
      undo_death(site, name, letter.died_at, 'dropped')
    end
  end

  -- The books of a batch on a site.
  function batches.of_site(site, name)
    local books = read(site, name)
    return books and {
      books.created or 0, books.coalesced or 0, books.deferred or 0, books.revived or 0, books.known or 0, books.targets or 0, books.merged or 0,
      books.done or 0, books.dead or 0, books.excluded or 0, books.dropped or 0, books.began_at, books.ended_at or false,
    }
  end
end)
