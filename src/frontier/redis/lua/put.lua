-- A put: one function a row of the table "state is a place".
-- A put comes as {url, link, priority, depth, hops, at, expires, again, rule, unless_newer, lane, urgent, tenant,
-- session, on_failure, batches}; what is
-- missing is false.
-- A link or a seed of the run `passes`: it asks nothing of a page that the run has fetched or fetches now.
put = module(function(put)
  -- Whether a link of this rule still fits the budgets.
  local function has_budget(site, rule)
    if not site.budgets then
      return true
    end
    local budgets, spent = store.map(site, 'budgets'), store.map(site, 'spent')
    local function fits(name)
      return not budgets[name] or (spent[name] or 0) < budgets[name]
    end
    budgets[''] = store.max_pages(site, budgets)
    return fits('') and (not rule or fits(rule))
  end

  -- Books a page against the budgets; names without one aren't kept.
  local function spend(site, rule)
    if not site.budgets then
      return
    end
    local budgets, spent = store.map(site, 'budgets'), store.map(site, 'spent')
    for _, name in ipairs(rule and { '', rule } or { '' }) do
      if budgets[name] then
        spent[name] = (spent[name] or 0) + 1
      end
    end
    store.set_map(site, 'spent', spent)
  end

  -- A waiting or delayed task stands for the put: most urgent priority, original position.
  local function coalesce(site, task, asked, stored)
    store.add(site, counter[task.stage].coalesced, 1)
    local goes_now = task.lane ~= NOW and gate.goes_now(site, task.stage, asked, task.place ~= WAITING)
    local joins = asked.session and not task.session
    local is_foreign = task.session and not asked.session -- where it stands in its session is the session's own matter
    if asked.link and asked.priority >= task.priority and asked.depth >= task.depth and not asked.again and not goes_now and not joins and not asked.batches then
      return COALESCED
    end
    task.batches = batches.join(site, batches.carry(site, task.batches, asked.carried), asked, 'coalesced')
    task.priority = is_foreign and task.priority or math.min(task.priority, asked.priority)
    task.depth = math.min(task.depth, asked.depth)
    if not asked.link then
      task.link = false
      task.hops = asked.hops
      task.expires = places.later_expiry(task.expires, asked.expires)
      task.stored = stored or task.stored
    end
    if goes_now then
      places.change_lane(site, task, NOW)
    end
    local is_later = (task.place == SCHEDULED or task.place == DELAYED) and task.until_at > now
    local is_pulled = asked.again and not is_foreign and (not is_later or task.place == SCHEDULED)
    if is_pulled then
      task.after = nil
    end
    if joins then
      task.session, task.after = asked.session, is_later and not is_pulled and task.until_at or nil
      places.shift(site, task, BEHIND)
      sessions.joined(site, asked)
      return COALESCED
    end
    if is_pulled and is_later then
      places.shift(site, task, WAITING)
    else
      tasks.save(task)
    end
    sessions.reorder(site, task)
    return COALESCED
  end

  -- What passes asks nothing of a running task; another request asks for one further run, however many requests there are.
  local function put_on_running(site, task, asked, stored)
    if asked.passes or asked.unless_newer and task.granted_at >= asked.unless_newer then
      store.add(site, counter[task.stage].known, 1)
      batches.know(site, asked)
      return KNOWN
    end
    local at = asked.at and asked.at > now and asked.at or nil
    local deferral, reply = task.deferral, COALESCED
    local turn = asked.session and store.next_position(site) or nil
    if deferral then
      store.add(site, counter[task.stage].coalesced, 1)
      if not deferral.turn == not turn then
        deferral.priority = math.min(deferral.priority, asked.priority)
      elseif turn then -- that of a step is what its session goes by
        deferral.priority = asked.priority
      end
      deferral.depth = math.min(deferral.depth, asked.depth)
      deferral.hops = asked.hops
      deferral.at = deferral.at and at and math.min(deferral.at, at) or nil
      deferral.expires = places.later_expiry(deferral.expires, asked.expires)
      deferral.stored = stored or deferral.stored
      deferral.lane = deferral.lane == NOW and NOW or asked.lane
      deferral.urgent, deferral.tenant = deferral.urgent or asked.urgent, asked.tenant
      deferral.turn = deferral.turn or turn
      deferral.batches = batches.join(site, batches.carry(site, deferral.batches, asked.carried), asked, 'coalesced')
    else
      store.add(site, counter[task.stage].deferred, 1)
      task.deferral = {
        priority = asked.priority, depth = asked.depth, hops = asked.hops, at = at, expires = asked.expires,
        stored = stored, lane = asked.lane, urgent = asked.urgent, tenant = asked.tenant, turn = turn,
        batches = batches.join(site, asked.carried, asked, 'deferred'),
      }
      reply = DEFERRED
    end
    tasks.save(task)
    return reply
  end

  -- Makes a task that stands nowhere, or as a dead letter. The page of a letter is for whom it was, unless the put says another
  -- one. One that held a session goes on as its head.
  function put.create(site, stage, asked, letter, stored, taken)
    local later = asked.at and asked.at > now
    local held = letter and not asked.errand and letter.session
    local joins = not held and asked.session
    local names = batches.carry(site, batches.revive(site, letter), asked.carried)
    local task = {
      site = site.name, stage = stage, url = asked.url,
      place = later and SCHEDULED or WAITING, until_at = later and asked.at or nil,
      priority = asked.priority, position = store.next_position(site), depth = asked.depth, link = asked.link,
      hops = asked.hops, expires = asked.expires, errand = asked.errand, stored = stored,
      session = held or asked.session, begun = held and true or nil,
      batches = batches.join(site, names, asked, letter and 'revived' or 'created'),
    }
    if task.session and later then
      task.after = asked.at
    end
    if joins then
      task.place, task.until_at = BEHIND, nil
    end
    if stage == 'd' then
      flow.books_change(site)
    end
    if letter then
      tasks.remove_dead(site, stage, asked.url)
    end
    if not asked.errand then
      -- A long feed of steps goes before nobody, as any other feed.
      local is_crowded = joins and (site[counter[stage].behind] or 0) >= MOST_NOW
      gate.stand(site, task, asked, later or is_crowded, letter and letter.tenant)
    end
    store.add(site, counter[stage][letter and 'revived' or 'created'], 1)
    if taken and lanes.serves(records.last_answers(taken.owner).served, task.lane or LANE) then
      task.place = RUNNING
      places.lease(task, taken.token, taken.owner, taken.fence, places.no_departure)
    end
    places.enter(site, task)
    if joins then
      sessions.joined(site, asked)
    else
      sessions.release(site, held, true)
    end
    return task
  end

  -- Whether the page was fetched since the time that the put names.
  local function is_new_enough(site, asked)
    local stored = asked.unless_newer and kept.page(site.name, asked.url).stored
    return stored and stored[1] >= asked.unless_newer
  end

  -- Whether somebody put it who can put it again. The target of a redirect takes the place of its origin, and what is as urgent as
  -- a robots.txt shows whether there is a wall.
  local function may_be_refused(asked)
    return asked.beside and not asked.beside.is_taken_in and not asked.hops and asked.priority ~= PRIORITY_ROBOTS
  end

  -- Whether the page has room for its batches beside those that it is of, and its further run. The target of a redirect goes without.
  local function has_room(asked, own, further)
    return not asked.batches or asked.hops or batches.have_room(own, further, asked.batches)
  end

  -- A page that is in hand: it isn't, or it isn't to be, a step of two sessions.
  local function put_on(site, task, asked, stored)
    if not has_room(asked, task.batches, task.deferral and task.deferral.batches) then
      return { refused = MARK_BATCHES }
    end
    local is_fixed = task.place == RUNNING or task.errand
    local session = asked.session
    if session and (task.session and task.session ~= session or not task.session and is_fixed) then
      if not asked.hops then
        return BUSY
      end
      asked.session = nil -- the target of a redirect takes its origin's place as far as it can
    elseif session then
      sessions.tell(site, asked)
    end
    local reply = (task.place == RUNNING and put_on_running or coalesce)(site, task, asked, stored)
    asked.session = session
    return reply
  end

  -- Puts one page into a stage's queue, its task found before. `stored` is where a page to parse is kept. If its parse waits
  -- nowhere yet, the parse is leased to `taken`, whoever settled the download, and returned as well.
  local function put_found(site, stage, asked, stored, task, is_known, taken)
    if task then
      return put_on(site, task, asked, stored)
    end
    local letter = tasks.dead(site, stage, asked.url)
    if letter and letter.session and asked.session and asked.session ~= letter.session and not asked.hops then
      return BUSY
    end
    local seen
    if letter then
      seen = letter.run == site.run or letter.session ~= nil -- what holds a session is an operator's to revive
    else
      seen = asked.passes and stage == 'd' and is_known
    end
    if asked.passes and seen or not letter and stage == 'd' and is_new_enough(site, asked) then
      store.add(site, counter[stage].known, 1)
      batches.know(site, asked)
      return KNOWN
    end
    if asked.link and not has_budget(site, asked.rule) then
      store.add(site, counter[stage].over_budget, 1)
      return OVER_BUDGET
    end
    local mark = not letter and may_be_refused(asked) and gate.mark_met(site, asked)
    if mark then
      return { refused = mark }
    end
    if not has_room(asked, letter and letter.batches) then
      return { refused = MARK_BATCHES }
    end
    if stage == 'd' then
      spend(site, asked.rule)
    end
    task = put.create(site, stage, asked, letter, stored, taken)
    return letter and REVIVED or CREATED, taken and task.place == RUNNING and task or nil
  end

  function put.one(site, stage, asked, stored, taken)
    if stage == 'd' then
      flow.books_change(site)
    end
    local task = tasks.find(site, stage, asked.url)
    local is_known = not task and asked.passes and stage == 'd' and tasks.is_known(site, asked.url)
    return put_found(site, stage, asked, stored, task, is_known, taken)
  end

  local PORTION = 50 -- where so many are is looked up together

  -- What is asked for; a row that is a URL alone is asked for as the one before it.
  local function read_row(row, before)
    if type(row) == 'string' then
      before.url = row
      return before
    end
    return {
      url = row[1], link = row[2], priority = row[3], depth = row[4], hops = row[5] > 0 and row[5] or nil,
      at = row[6] or nil, expires = row[7] or nil, again = row[8], rule = row[9],
      unless_newer = row[10] or nil, lane = row[11] or nil, urgent = row[12] or nil, tenant = row[13] or nil,
      session = row[14] or nil, on_failure = row[15] or nil, batches = row[16] or nil,
    }
  end

  local function urls_of(puts, first, last)
    local urls = {}
    for i = first, last do
      urls[#urls + 1] = type(puts[i]) == 'string' and puts[i] or puts[i][1]
    end
    return urls
  end

  local function put_portion(site, puts, marks, beside, first, last, asked, replies)
    local urls = urls_of(puts, first, last)
    local found, lane_of = tasks.find_all(site, 'd', urls)
    local known = tasks.known_among(site, urls, found, marks, first)
    local has_letters = (site['d.letters'] or 0) > 0
    local is_moved = false
    local known_links, coalesced_links = 0, 0 -- most links of a page are of these two kinds: they are booked together
    for i = first, last do
      asked = read_row(puts[i], asked)
      asked.passes, asked.beside = asked.link or not beside, beside
      local url = asked.url
      local task = found[url]
      local waits = type(task) == 'number'
      if task == nil then
        replies[i] = put.one(site, 'd', asked) -- it came before, in this portion
      elseif waits and asked.link and not asked.again and not asked.lane and not asked.urgent and not asked.session and not asked.batches and tasks.outranks(task, asked) then
        coalesced_links = coalesced_links + 1
        replies[i] = COALESCED
      elseif not task and asked.passes and known[url] and not has_letters and not asked.batches then
        known_links = known_links + 1
        replies[i] = KNOWN
      else
        found[url] = nil
        task = waits and tasks.waiting(site.name, 'd', url, task, WAITING, lane_of[url]) or task
        if task and task.session and is_moved then
          task = tasks.find(site, 'd', url)
        end
        replies[i] = put_found(site, 'd', asked, nil, task, known[url])
      end
      is_moved = is_moved or not asked.link or asked.session -- such a put may move steps of sessions
    end
    store.add(site, 'd.coalesced', coalesced_links)
    store.add(site, 'd.known', known_links)
    return asked
  end

  -- Puts pages into the download queue of a site that the caller saves; with their marks, where the client sent them, and what may
  -- refuse them. Seeds have neither.
  function put.all(site, puts, marks, beside)
    local replies, asked = {}, nil
    flow.books_change(site)
    for first = 1, #puts, PORTION do
      asked = put_portion(site, puts, marks, beside, first, math.min(#puts, first + PORTION - 1), asked, replies)
    end
    return replies
  end

  -- A page whose parse died is parsed again, from where it is kept; whether there was such a dead letter.
  function put.parse_again(name, url)
    local site = store.site(name)
    local letter = site and tasks.dead(site, 'p', url)
    if not letter then
      return false
    end
    local stored = kept.page(name, url).stored
    if not stored then
      return false
    end
    put.one(site, 'p', { url = url, link = false, priority = PRIORITY_LINK, depth = letter.depth or 0 }, stored)
    store.save_site(site)
    return true
  end

  function put.step(name, puts, marks, elsewhere)
    local site = store.site(name)
    if not site then
      return false
    end
    local replies = put.all(site, puts, marks, { elsewhere = elsewhere })
    store.save_site(site)
    return replies
  end
end)
