-- Campaigns: a list of URLs lies beside the queue, and is put into it portion by portion (C12-C16). A portion is put and the list's
-- place moved on in the same step. What a list holds only its clients can read: its chunks are deflated.
local campaigns = module(function(campaigns)
  local TAKEN_IN = { is_taken_in = true } -- no mark refuses one of its pages: it refuses the portion

  -- In the directory: "NUMBER SITE" of each name.
  local function names_key()
    return P .. 'campaign-names'
  end

  local function records_key(site)
    return P .. 'campaigns:' .. site
  end

  local function chunks_key(site)
    return P .. 'chunks:' .. site
  end

  local function chunk_field(name, number)
    return string.format('%s/%d', name, number)
  end

  local function batch_of(name)
    return OF_CAMPAIGN .. name
  end

  local function read(site, name)
    local text = call('HGET', records_key(site), name)
    return text and cjson.decode(text)
  end

  local function save(site, name, campaign)
    call('HSET', records_key(site), name, cjson.encode(campaign))
  end

  local function booked(name)
    local number, site = string.match(call('HGET', names_key(), name) or '', '^(%d+) (.*)$')
    return tonumber(number), site
  end

  -- Takes a name for a campaign of a site, under a number of its own each time.
  function campaigns.book(name, site)
    local number, of = booked(name)
    if number and of ~= site then
      return { taken = of }
    elseif not number and call('HLEN', names_key()) >= CAMPAIGNS_KEPT then
      return 'full'
    end
    number = math.max(now, (number or 0) + 1)
    call('HSET', names_key(), name, string.format('%.0f %s', number, site))
    return { number = number }
  end

  -- Gives a name back, unless it was taken again since.
  function campaigns.unbook(name, number)
    local is_there = booked(name) == number
    if is_there then
      call('HDEL', names_key(), name)
    end
    return is_there
  end

  -- What the directory has of a site that is forgotten, or renamed.
  function campaigns.move_names(site, to)
    for _, name in ipairs(call('HKEYS', names_key())) do
      local number, of = booked(name)
      if of == site and to then
        call('HSET', names_key(), name, string.format('%.0f %s', number, to))
      elseif of == site then
        call('HDEL', names_key(), name)
      end
    end
  end

  function campaigns.names()
    local names = {}
    for i, name in ipairs(call('HKEYS', names_key())) do
      local number, site = booked(name)
      names[i] = { name, site, number }
    end
    return names
  end

  -- Where its pages are: open, done, dead, dropped, and those that stood there already.
  local function counts_of(site, name)
    local books = batches.of_site(site, batch_of(name))
    if not books then
      return { 0, 0, 0, 0, 0 }
    end
    local created, coalesced, deferred, revived, _, targets, merged, done, dead, excluded, dropped = unpack(books, 1, 11)
    local open = created + coalesced + deferred + revived + targets - merged - done - dead - excluded - dropped
    -- A redirect's origin is done, and so is its target then: they are one page.
    return { math.max(0, open), math.max(0, done + excluded - targets), dead, dropped, coalesced + deferred }
  end

  local function chunks_of(list)
    return math.ceil(list.total / math.max(1, list.per_chunk))
  end

  local function unfed(campaign)
    return campaign.stopped and 0 or math.max(0, campaign.list.total - campaign.next)
  end

  local function is_done(campaign, open)
    return campaign.began_at and unfed(campaign) == 0 and open == 0
  end

  local function is_over(campaign)
    if campaign.began_at then
      return (campaign.ended_at or math.huge) <= now - CAMPAIGN_KEPT_MS
    end
    return campaign.made_at <= now - UPLOAD_KEPT_MS
  end

  local function interval_of(site)
    return math.max(store.interval(site), store.group_wait(store.some_unit(site.unit)))
  end

  -- How many pages a portion has.
  local function portion_of(campaign, site)
    local number, by_ticks = string.match(campaign.plan.portion, '^(%d+)(x?)$')
    if by_ticks == '' then
      return tonumber(number)
    end
    local pages = math.floor(campaign.plan.tick * number / math.max(1, interval_of(site)))
    return math.max(LEAST_PORTION, math.min(MOST_PORTION, pages))
  end

  -- How many more of its pages may be put now. What a run that is given up takes in would go at once.
  local function room_of(site, campaign, open)
    local is_fed = campaign.began_at and not campaign.paused and not campaign.stopped and campaign.next < campaign.list.total
    if site.given_up or not is_fed then
      return 0
    end
    local portion = portion_of(campaign, site)
    local is_due = now >= campaign.next_tick or open * 2 < portion
    return is_due and math.min(math.max(0, portion - open), unfed(campaign)) or 0
  end

  -- Marks how many of its pages have ended by now: the last two marks are kept.
  local function mark(campaign, ended)
    local marks = campaign.marks or {}
    if not marks[1] or now - marks[#marks][1] >= MARK_MS then
      marks[#marks + 1] = { now, ended }
    end
    if #marks > 2 then
      table.remove(marks, 1)
    end
    campaign.marks = marks
  end

  local function ended(counts)
    return counts[2] + counts[3] + counts[4]
  end

  local function note_end(campaign, counts)
    if campaign.began_at then
      mark(campaign, ended(counts))
    end
    if is_done(campaign, counts[1]) then
      campaign.ended_at = campaign.ended_at or now
    end
  end

  -- Removes the last chunks of a list, a bounded number, and saves that; whether some are left.
  local function remove_chunks(site, name, campaign)
    local left = math.max(0, campaign.chunks - REMOVED)
    for number = left, campaign.chunks - 1 do
      call('HDEL', chunks_key(site), chunk_field(name, number))
    end
    campaign.chunks = left
    save(site, name, campaign)
    return left > 0
  end

  local function same_list(one, other)
    return one.mark == other.mark and one.total == other.total and one.per_chunk == other.per_chunk
  end

  -- Makes a campaign whose list is still to come, or goes on with one.
  function campaigns.make(site, name, list, plan)
    if not store.site(site) then
      return 'no_site'
    end
    local before = read(site, name)
    if before then
      if before.began_at and not is_done(before, counts_of(site, name)[1]) then
        return 'running'
      end
      if not before.began_at and same_list(before.list, list) then
        before.plan, before.made_at = plan, now
        save(site, name, before)
        return { next = before.chunks }
      end
      if remove_chunks(site, name, before) then
        return 'partly'
      end
    end
    batches.forget(site, batch_of(name))
    save(site, name, { plan = plan, list = list, chunks = 0, made_at = now, next = 0, next_tick = 0 })
    return { next = 0 }
  end

  -- Adds a chunk to a list that isn't whole; whether it is there.
  function campaigns.add_chunk(site, name, list_mark, number, chunk)
    local campaign = read(site, name)
    if not campaign or campaign.list.mark ~= list_mark or number > campaign.chunks or number >= chunks_of(campaign.list) then
      return false
    end
    if number == campaign.chunks and not campaign.began_at then
      call('HSET', chunks_key(site), chunk_field(name, number), chunk)
      campaign.chunks, campaign.made_at = number + 1, now
      save(site, name, campaign)
    end
    return true
  end

  -- Begins a campaign whose list is whole; whether it has begun.
  function campaigns.begin(site, name, list_mark, act)
    local campaign = read(site, name)
    if not campaign or campaign.list.mark ~= list_mark then
      return false
    elseif campaign.began_at then
      return true
    elseif campaign.chunks < chunks_of(campaign.list) then
      return false
    end
    campaign.began_at, campaign.next_tick = now, now
    mark(campaign, 0)
    save(site, name, campaign)
    acts.keep(site, act)
    return true
  end

  -- How many were put: none where as much waits as may (M10). What has no room for one more batch is of the
  -- campaign alone.
  local function put_portion(site, name, puts, marks, most, elsewhere)
    if gate.mark_met(site, { beside = { elsewhere = elsewhere } }) then
      return 0
    end
    local first = {}
    for i = 1, math.min(most, #puts) do
      first[i] = puts[i]
    end
    local row
    for i, reply in ipairs(put.all(site, first, marks, TAKEN_IN)) do
      row = type(first[i]) == 'table' and first[i] or row -- one that is a URL alone is asked for as the one before it
      if type(reply) == 'table' then -- it is of as many batches as it can be
        local alone = { unpack(row, 1, 15) }
        alone[1], alone[16] = type(first[i]) == 'string' and first[i] or row[1], { batch_of(name) }
        put.all(site, { alone }, {}, TAKEN_IN)
      end
    end
    store.save_site(site)
    return #first
  end

  -- Puts pages of a campaign, those from that URL of its list on: as many as there is room for, and none where another one put some
  -- meanwhile. Its end is noted, once that has come. None where it is another list's by now.
  function campaigns.feed(site_name, name, list_mark, from, puts, marks, elsewhere)
    local site = store.site(site_name)
    local campaign = site and read(site_name, name)
    if not campaign or campaign.list.mark ~= list_mark then
      return false
    end
    local counts = counts_of(site_name, name)
    local room, fed = room_of(site, campaign, counts[1]), 0
    if from == campaign.next and room > 0 and #puts > 0 then
      fed = put_portion(site, name, puts, marks, room, elsewhere)
      campaign.next = campaign.next + fed
      counts = counts_of(site_name, name)
      local is_over = fed == 0 or counts[1] >= portion_of(campaign, site) or unfed(campaign) == 0
      campaign.next_tick = is_over and now + campaign.plan.tick or math.min(campaign.next_tick, now)
    end
    note_end(campaign, counts)
    save(site_name, name, campaign)
    return { fed, campaign.next, room_of(site, campaign, counts[1]) }
  end

  local SETS = {
    portion = function(campaign, portion)
      campaign.plan.portion = portion
    end,
    tick = function(campaign, tick)
      campaign.plan.tick, campaign.next_tick = tick, math.min(campaign.next_tick, now + tick)
    end,
    priority = function(campaign, priority)
      campaign.plan.priority = priority
    end,
    paused = function(campaign, paused)
      campaign.paused = paused or nil
    end,
    stopped = function(campaign, how)
      campaign.stopped, campaign.drops = true, not how.keep or nil
    end,
  }

  local function all_stop(tunings)
    for _, tuning in ipairs(tunings) do
      if not tuning.stopped then
        return false
      end
    end
    return true
  end

  -- Sets values of a campaign: they are in force at its next tick.
  function campaigns.tune(site, name, tunings, act)
    local campaign = read(site, name)
    if not campaign or not campaign.began_at then
      return 'unknown'
    end
    local counts = counts_of(site, name)
    if is_done(campaign, counts[1]) or campaign.stopped and not all_stop(tunings) then
      return 'over'
    end
    for _, tuning in ipairs(tunings) do
      for what, value in pairs(tuning) do
        SETS[what](campaign, value)
      end
    end
    mark(campaign, ended(counts))
    save(site, name, campaign)
    if act then
      acts.keep(site, act)
    end
    return 'done'
  end

  -- Whether the page waited.
  local function leave(site, batch_name, url)
    local task = tasks.find(site, 'd', url)
    if not task or task.place == RUNNING then
      return false
    end
    local others, is_its = {}, false
    for _, name in ipairs(task.batches or {}) do
      if name == batch_name then
        is_its = true
      else
        others[#others + 1] = name
      end
    end
    if not is_its then
      return false
    end
    local is_others = others[1] or task.session or task.errand
    task.batches = others[1] and others or nil
    batches.leave(site, { batch_name }, 'dropped')
    if is_others then
      tasks.save(task)
    else
      places.drop(site, task)
    end
    return true
  end

  -- Those of these pages that wait are no longer the campaign's, and go where no other batch and no session has them: how many.
  -- Without any, all were dropped.
  function campaigns.drop(site_name, name, urls)
    local site = store.site(site_name)
    local campaign = site and read(site_name, name)
    if not campaign then
      return false
    end
    if #urls == 0 then
      campaign.drops = nil
    end
    local dropped = 0
    for _, url in ipairs(campaign.drops and urls or {}) do
      dropped = dropped + (leave(site, batch_of(name), url) and 1 or 0)
    end
    store.save_site(site)
    mark(campaign, ended(counts_of(site_name, name)))
    save(site_name, name, campaign)
    return dropped
  end

  -- Removes what nobody needs of a campaign: the list of one that ended, in small steps, then the campaign where it is wanted so or
  -- that was long ago. That of a site whose renaming is half done lies under its new name.
  function campaigns.clear(site, name, wanted)
    local campaign = read(site, name)
    if not campaign then
      return call('HEXISTS', P .. 'renamed', site) == 1 and 'kept' or 'gone'
    end
    local counts, goes = counts_of(site, name), wanted or is_over(campaign)
    if not is_done(campaign, counts[1]) and (campaign.began_at or not goes) then
      return 'kept'
    end
    note_end(campaign, counts)
    if remove_chunks(site, name, campaign) then
      return 'partly'
    elseif not goes then
      return 'kept'
    end
    call('HDEL', records_key(site), name)
    batches.forget(site, batch_of(name))
    return 'gone'
  end

  -- Forgets the lists of a site, a bounded number of chunks; whether some are left. The rest goes with its keys.
  function campaigns.forget(site)
    local names = call('HKEYS', records_key(site))
    table.sort(names)
    for _, name in ipairs(names) do
      if remove_chunks(site, name, read(site, name)) then
        return true
      end
    end
    return false
  end

  -- How a campaign stands.
  function campaigns.status(site_name, name)
    local site = store.site(site_name)
    local campaign = site and read(site_name, name)
    if not campaign then
      return false
    end
    local counts = counts_of(site_name, name)
    return { cjson.encode(campaign), counts, interval_of(site), room_of(site, campaign, counts[1]), now }
  end

  function campaigns.chunk(site, name, number)
    return call('HGET', chunks_key(site), chunk_field(name, number))
  end
end)
