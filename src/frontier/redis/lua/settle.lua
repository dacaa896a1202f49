-- How a task ends, row by row of the table "state is a place".
settle = module(function(settle)
  local TOO_MUCH = { 'dropped_links', 'left_out', 'too_dear' }

  -- Keeps what a robots.txt said: a floor for the pace, or a block.
  function settle.keep_robots(site, task, record)
    local origin = lease.origin_of(task.url)
    local before = records.robots(origin)
    local held_until = now + record.holds_for
    local next_at = now + math.max(store.interval(site), store.wait_of(store.some_unit(site.unit))) + ROBOTS_SERVE
    local until_at = (record.why or record.refuses) and held_until or math.max(held_until, next_at)
    places.follow_floor(site, origin, record.crawl_delay or not record.why and -1)
    local failures = record.why and (before and before.failures or 0) + 1 or 0
    -- A record of the frontier's own making is always that of one that can't be reached.
    local text = record.text
      or cjson.encode({
        access = { unreachable = record.why },
        holds_for = { secs = math.floor(record.holds_for / 1000), nanos = record.holds_for % 1000 * 1000000 },
      })
    records.save_robots(origin, until_at, failures, text, record.why, record.crawl_delay)
    away.found(site.name, origin, record.why and until_at or now)
    if not record.why then
      away.found_by_another(origin)
    end
    task.errand = nil
    places.finish(site, task)
    store.save_site(site)
    local unit = store.some_unit(site.unit)
    if record.refuses then
      places.block(unit, held_until, record.refuses)
    end
    if record.crawl_delay or not record.why then
      places.keep_floor(unit, site.name, origin, record.crawl_delay)
    end
    places.retime(unit)
  end

  -- Who takes the parse at once: as a claim of one parse would, where no other one may go.
  local function parse_for(site, taker)
    local next_at, shared = store.first_of(DUE.p), store.some_unit(site.unit).paused_p
    if not taker or next_at and next_at <= now or site.parse_paused or shared and shared > now then
      return nil
    end
    return { token = taker.token, owner = taker.owner, fence = store.next_fence(site) }
  end

  local function done(site, task, outcome, taker)
    local stored, parse = outcome.stored
    if stored and task.stage == 'd' then
      local before, _ = kept.page(task.site, task.url, task.mark), nil
      if not before.fence or before.fence <= task.fence then
        local page = { fence = task.fence, stored = stored, depth = task.depth, recrawl = outcome.recrawl }
        pages.save(site, task.url, before, page, task.mark)
        site.keeps = 1
      end
      _, parse = put.one(site, 'p', {
        url = task.url, link = false, priority = task.priority, depth = task.depth, hops = task.hops,
        urgent = task.lane == NOW or nil, tenant = task.tenant, carried = task.batches,
      }, stored, parse_for(site, taker))
      task.batches = nil -- it is the same page still
    end
    places.finish(site, task)
    return parse
  end

  -- Done again later; where a request met it, that is that request's run.
  local function postpone(site, task, after)
    local until_at = now + after
    places.absorb(site, task, until_at)
    places.shift(site, task, DELAYED, until_at)
  end

  -- Tried again in its old position.
  local function retry(site, task, after, why)
    task.attempts = (task.attempts or 0) + 1
    if task.attempts >= site.attempts then
      return places.die(site, task, why)
    end
    store.add(site, counter[task.stage].retried, 1)
    task.history = task.history or {}
    task.history[#task.history + 1] = why
    postpone(site, task, after)
  end

  local function robots_moved(site, task, to)
    local hops = (task.hops or 0) + 1
    if hops > ROBOTS_HOPS then
      local why = filled(ROBOTS_MOVED_ON, { to = to })
      return settle.keep_robots(site, task, { why = why, holds_for = ODD_ROBOTS })
    end
    places.absorb(site, task, now)
    task.errand, task.hops, task.priority = to, hops, PRIORITY_ROBOTS
    places.shift(site, task, WAITING)
  end

  -- A robots.txt is never delayed, dead or excluded: every way in which it ends leaves a record.
  local function end_errand(site, task, outcome)
    local how = outcome.how
    if how == 'robots_moved' then
      return robots_moved(site, task, outcome.to)
    elseif how ~= 'robots' then
      local failed = how == 'retry' or how == 'dead' or how == 'refused'
      outcome = {
        why = failed and outcome.why.reason or NO_RECORD, holds_for = outcome.after or ODD_ROBOTS,
      }
    end
    settle.keep_robots(site, task, outcome)
  end

  -- The task of the parse, where it is taken at once.
  local function conclude(site, task, outcome, taker)
    local how = outcome.how
    if task.errand then
      end_errand(site, task, outcome)
    elseif how == 'done' then
      return done(site, task, outcome, taker)
    elseif how == 'excluded' then
      settle.exclude(site, task, outcome.why)
    elseif how == 'redirected' then
      store.add(site, counter[task.stage].redirected, 1)
      places.finish(site, task, outcome.to)
    elseif how == 'retry' then
      retry(site, task, outcome.after, outcome.why)
    elseif how == 'refused' then
      walls.stand_back(site, task)
    elseif how == 'postponed' then
      task.position = store.next_position(site) -- behind those whose links may have room
      postpone(site, task, outcome.after)
    elseif how == 'dead' then
      task.attempts = (task.attempts or 0) + 1
      places.die(site, task, outcome.why)
    else
      end_errand(site, task, outcome)
    end
  end

  -- Done by being unwanted, counted by reason.
  function settle.exclude(site, task, why)
    batches.leave(site, task.batches, 'excluded')
    task.batches = nil
    local field = counter[task.stage].excluded
    local excluded = store.map(site, field)
    excluded[why] = (excluded[why] or 0) + 1
    store.set_map(site, field, excluded)
    if why == NO_RULE or why == SCOPE then
      pages.forget_recrawl(site, task.url)
    end
    places.finish(site, task)
  end

  -- A settlement comes as {token, response, block for ms, block why, outcome, token of the parse, mark of the page, site,
  -- stage and URL, what of the page was too much, its site is away for ms, why}; too much as {links, left out, too dear}.
  local function settle_one(row, owner)
    local token, response, block_ms, block_why, outcome = row[1], row[2], row[3], row[4], row[5]
    local taker = owner and row[6] and { owner = owner, token = row[6] }
    local task = lease.held(token, row[8], row[9])
    local site = task and store.site(task.site)
    if not site then
      return STALE
    end
    if response then
      site.response = site.response and math.floor((site.response * (AVERAGED - 1) + response) / AVERAGED) or response
    end
    task.mark = row[7]
    local stage = task.stage
    if row[10] then
      for i, name in ipairs(TOO_MUCH) do
        store.add(site, counter[stage][name], row[10][i])
      end
    end
    local dead_before = site[counter[stage].dead] or 0
    if stage == 'd' then
      walls.ends_probe(site, token, outcome)
    end
    local parse = conclude(site, task, outcome, taker)
    local died = (site[counter[stage].dead] or 0) > dead_before
    store.save_site(site)
    if outcome.unused and stage == 'd' then
      places.give_back_start(site, token)
    end
    if row[11] then
      places.hold_back(site, now + row[11], row[12])
    end
    if block_ms then
      places.block(store.some_unit(site.unit), now + block_ms, block_why)
    end
    return died and DIED or KEPT, parse
  end

  local function words_of(text)
    local words = {}
    for word in string.gmatch(text, '%a+') do
      words[#words + 1] = word
    end
    return words
  end

  -- The answers given before, each with the lease of the parse if that still runs.
  local function again(settlements, replies)
    for i, row in ipairs(settlements) do
      local parse = replies[i] == KEPT and row[6] and tasks.leased(row[6], row[8], 'p' .. string.sub(row[9], 2))
      replies[i] = parse and lease.of(parse) or replies[i]
    end
    return replies
  end

  -- Settles tasks, in order. The same call again gets the same answers and changes nothing.
  function settle.step(owner_name, token, settlements)
    local last = records.last_answers(owner_name)
    if last.settled == token then
      return again(settlements, words_of(last.replies))
    end
    local owner, words, replies = last.pid and not last.dead and owner_name, {}, {}
    for i, row in ipairs(settlements) do
      local word, parse = settle_one(row, owner)
      words[i], replies[i] = word, parse and lease.of(parse) or word
    end
    if owner then
      records.settled(owner_name, token, table.concat(words, ' '))
    end
    return replies
  end
end)
