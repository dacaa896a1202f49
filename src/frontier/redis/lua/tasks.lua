-- Tasks in their places, known pages, dead letters, stored pages.
-- A waiting task is its URL in a sorted set and nothing else, but for its tenant, unless something rare is to be told of it:
-- then, and while it is delayed or running, a record lies beside it.
local tasks = module(function(tasks)
  local TURN = 2 ^ 39 -- positions below this
  local DEEP = 15 -- the depth that stands for a record

  -- Where the tasks of a site wait, in one of its lanes.
  local function queue(site, stage, lane)
    return P .. 'q:' .. stage .. ':' .. site .. ':' .. (lane or LANE)
  end

  tasks.queue = queue

  function tasks.origin_of(url)
    local scheme, authority = string.match(url, '^(%a[%w+.-]*://)([^/?#]*)')
    return scheme .. (string.match(authority, '@([^@]*)$') or authority)
  end

  -- Where the tasks of a site lie that wait for a host.
  local function parked_key(site, origin)
    return P .. 'parked:' .. site .. ':' .. origin
  end
  tasks.parked_key = parked_key

  -- Where a task lies in a place by its turn.
  local function queue_of(task, place, lane)
    if place == PARKED then
      return parked_key(task.site, tasks.origin_of(task.url))
    end
    return queue(task.site, task.stage, lane)
  end

  local function has_turn(place)
    return place == WAITING or place == PARKED
  end

  -- Priority, position, who asked and depth in one number of 53 bits: queues are in the order of the first two.
  local function score_of(task, depth)
    return ((task.priority * TURN + task.position) * 2 + (task.link and 1 or 0)) * 16 + depth
  end

  -- Its depth, whether a link asked, its position and its priority.
  local function read_score(score)
    local depth = score % 16
    score = (score - depth) / 16
    local link = score % 2 == 1
    score = math.floor(score / 2)
    local position = score % TURN
    return depth, link, position, (score - position) / TURN
  end

  local OF_RUNNING = { 'token', 'owner', 'granted_at', 'ends_at', 'fence', 'in_flight', 'interval' }

  local function member_of_name(site, task, position)
    return string.format('%013d', position) .. site .. '\n' .. task.stage .. task.url
  end

  local function member_at(task, position)
    return member_of_name(task.site, task, position)
  end

  function tasks.member_of(task)
    return member_at(task, task.position)
  end

  -- Where the leases of a process lie by their ends: as many as it has slots.
  local function leases_of(owner)
    return 'leases:' .. owner
  end

  -- Where a step of a session stands behind its head: by session, then by its turn among its steps.
  local function step_of(task)
    local at = task.after or EPOCH + task.position
    return string.format('%s\n%05d%016d%013d', task.session, task.priority, at, task.position) .. task.url
  end
  local STEP = 34 -- bytes of a turn

  local function behind_key(site)
    return P .. 'behind:' .. site
  end

  -- Whether one step of a session goes before another one.
  function tasks.goes_before(one, other)
    return step_of(one) < step_of(other)
  end

  -- Remembers where the task lies, so that the next save can take it away from there.
  local function lies(task)
    task.lies, task.lies_lane = task.place, task.lane
    if task.place == BEHIND then
      task.lies_step = step_of(task)
    elseif task.place ~= WAITING then
      task.lies_position, task.lies_until, task.lies_delayed = task.position, task.ends_at, task.until_at
    end
    return task
  end

  local function of_record(site, stage, url, record)
    local task = record and packed.task(site, stage, url, record) or nil
    if task and task.place == BEHIND then
      task.lies_step = step_of(task)
    end
    return task
  end

  -- The task that lies beside a record and isn't in a queue.
  local function find_recorded(site, stage, url)
    return of_record(site, stage, url, call('HGET', P .. 'tasks:' .. site, stage .. url))
  end

  -- The site, the stage and the URL stand behind a position.
  local function of_member(member)
    local site, stage, url = string.match(string.sub(member, 14), '^([^\n]*)\n(.)(.*)$')
    return find_recorded(site, stage, url) or find_recorded(call('HGET', P .. 'renamed', site) or site, stage, url)
  end

  function tasks.find(site, stage, url)
    for _, lane in ipairs(site[counter[stage].waiting] and gate.lanes(site, stage) or {}) do
      local score = call('ZSCORE', queue(site.name, stage, lane), url)
      if score then
        return tasks.waiting(site.name, stage, url, tonumber(score), WAITING, lane)
      end
    end
    local parked = site[counter[stage].parked] and call('ZSCORE', parked_key(site.name, tasks.origin_of(url)), url)
    if parked then
      return tasks.waiting(site.name, stage, url, tonumber(parked), PARKED)
    end
    if site[counter[stage].leased] or site[counter[stage].delayed] or site[counter[stage].scheduled] then
      return find_recorded(site.name, stage, url)
    end
    return nil
  end

  -- Those of the URLs that wait in a lane other than the one that is always there: their scores, and which lane that is.
  local function find_in_lanes(site, stage, urls, found, lane_of)
    for lane in pairs(gate.counts(site, stage)) do
      local scores = call('ZMSCORE', queue(site.name, stage, lane), unpack(urls))
      for i = 1, #urls do
        if scores[i] then
          found[urls[i]], lane_of[urls[i]] = tonumber(scores[i]), lane
        end
      end
    end
  end

  -- Of each URL: false where it is nowhere, its score where it waits, or else its task. And those that wait in another lane than
  -- the one that is always there, with that lane.
  function tasks.find_all(site, stage, urls)
    local found, fields, others, lane_of = {}, {}, {}, {}
    local scores = site[counter[stage].waiting] and call('ZMSCORE', queue(site.name, stage), unpack(urls)) or {}
    for i = 1, #urls do
      local url, score = urls[i], scores[i]
      found[url] = score and tonumber(score) or false
      if not score then
        others[#others + 1], fields[#fields + 1] = url, stage .. url
      end
    end
    local names, left = counter[stage], others
    if #fields > 0 and (site[names.leased] or site[names.delayed] or site[names.scheduled]) then
      local records = call('HMGET', P .. 'tasks:' .. site.name, unpack(fields))
      left = {}
      for i = 1, #others do
        local task = of_record(site.name, stage, others[i], records[i])
        found[others[i]] = task or false
        if not task or has_turn(task.place) then
          left[#left + 1] = others[i]
        end
      end
    end
    if site[names.lanes] and #left > 0 then
      find_in_lanes(site, stage, left, found, lane_of)
    end
    for i = 1, site[names.parked] and #left or 0 do
      local score = call('ZSCORE', parked_key(site.name, tasks.origin_of(left[i])), left[i])
      if score then
        found[left[i]] = tasks.waiting(site.name, stage, left[i], tonumber(score), PARKED)
      end
    end
    return found, lane_of
  end

  -- Whether a waiting task stands for such a link as it is, nothing rare being told of it.
  function tasks.outranks(score, link)
    local depth = score % 16
    return depth ~= DEEP and link.depth >= depth and link.priority >= math.floor(score / (TURN * 32))
  end

  -- The tenants of waiting tasks that have no record, by position. They lie in small hashes, which Redis keeps packed; there
  -- is one more for every 40 of them, as there are sets of known pages, and none once none is left. The keys don't name the
  -- site, which may be renamed.
  local BOOK_SIZE = 40
  local POSITION = '<I5'

  local function book_key(whose, book)
    return P .. 'whose:' .. whose.id .. ':' .. book
  end

  -- Those that are put by a clock, one a second, are spread too.
  local function book_of(position, books)
    return tasks.set_of(position * 7919 % 1000003, books)
  end

  local function tenant_of(site, position)
    local whose = site and site.whose
    local key = whose and book_key(whose, book_of(position, whose.books))
    return key and call('HGET', key, struct.pack(POSITION, position)) or nil
  end

  local function split_book(whose)
    local from, moved, fields = tasks.set_of(whose.books, whose.books), {}, {}
    local flat = call('HGETALL', book_key(whose, from))
    for i = 1, #flat, 2 do
      if book_of(struct.unpack(POSITION, flat[i]), whose.books + 1) == whose.books then
        fields[#fields + 1] = flat[i]
        moved[#moved + 1], moved[#moved + 2] = flat[i], flat[i + 1]
      end
    end
    if #fields > 0 then
      call('HSET', book_key(whose, whose.books), unpack(moved))
      call('HDEL', book_key(whose, from), unpack(fields))
    end
    whose.books = whose.books + 1
  end

  local function note_tenant(site, position, tenant)
    local whose = site.whose or { id = call('INCR', P .. 'whose'), count = 0, books = 1 }
    local key = book_key(whose, book_of(position, whose.books))
    whose.count = whose.count + call('HSET', key, struct.pack(POSITION, position), tenant)
    if whose.count >= whose.books * BOOK_SIZE then
      split_book(whose)
    end
    site.whose = whose
  end

  local function forget_tenant(site, position)
    local whose = site.whose
    local key = book_key(whose, book_of(position, whose.books))
    whose.count = whose.count - call('HDEL', key, struct.pack(POSITION, position))
    if whose.count == 0 then
      site.whose = nil
    end
  end

  -- The task's tenant lies by that position, or by none.
  local function keep_tenant(task, position)
    if task.lies_tenant ~= position then
      local site = store.site(task.site)
      if task.lies_tenant then
        forget_tenant(site, task.lies_tenant)
      end
      if position then
        note_tenant(site, position, task.tenant)
      end
      task.lies_tenant, batch.changed_sites[site.name] = position, site
    end
  end

  function tasks.waiting(site, stage, url, score, place, lane)
    local depth, link, position, priority = read_score(score)
    if depth == DEEP then
      local task = find_recorded(site, stage, url)
      task.lies_score = score
      return task
    end
    local tenant = tenant_of(store.site(site), position)
    return {
      site = site, stage = stage, url = url, place = place or WAITING, until_at = false, priority = priority,
      position = position, depth = depth, link = link, token = false, owner = false, granted_at = false,
      ends_at = false, fence = false, in_flight = false, interval = false, lies = place or WAITING, lies_score = score,
      recorded = false, lies_position = false, lies_until = false, lane = lane ~= LANE and lane or nil,
      lies_lane = lane ~= LANE and lane or nil, tenant = tenant, lies_tenant = tenant and position,
    }
  end

  -- The task that runs under a token, over or not; `field` is its stage and URL, as its record lies.
  function tasks.leased(token, site, field)
    local record = call('HGET', P .. 'tasks:' .. site, field)
    local task = of_record(site, string.sub(field, 1, 1), string.sub(field, 2), record)
    return task and task.place == RUNNING and task.token == token and task or nil
  end

  local function enters(index, at, member)
    call('ZADD', P .. index, at, member)
    local first = batch.firsts[index]
    if first == false or first and at < first then
      batch.firsts[index] = at
    end
  end

  -- One that stood at `at` goes, or goes elsewhere in it.
  local function leaves(index, at)
    if batch.firsts[index] == at then
      batch.firsts[index] = nil
    end
  end

  local function take_away(task)
    if task.lies == RUNNING then
      if task.place ~= RUNNING then
        local index = leases_of(task.owner)
        call('ZREM', P .. index, member_at(task, task.lies_position))
        leaves(index, task.lies_until)
        batch.lessees[task.owner] = true
      end
    elseif task.lies == BEHIND then
      call('ZREM', behind_key(task.site), task.lies_step)
    elseif task.lies == DELAYED or task.lies == SCHEDULED then
      call('ZREM', P .. 'delay', member_at(task, task.lies_position))
      local site = store.site(task.site)
      local from = site and site.renamed_from
      if from then
        call('ZREM', P .. 'delay', member_of_name(from.name, task, task.lies_position))
      end
      leaves('delay', task.lies_delayed)
    elseif has_turn(task.lies) and (task.place ~= task.lies or task.lane ~= task.lies_lane) then
      call('ZREM', queue_of(task, task.lies, task.lies_lane), task.url)
      task.lies = nil
    end
  end

  local function forget_record(task)
    if task.recorded then
      call('HDEL', P .. 'tasks:' .. task.site, task.stage .. task.url)
      task.recorded = nil
    end
  end

  -- Lists a running task among its process's leases.
  function tasks.list_lease(task)
    enters(leases_of(task.owner), task.ends_at, tasks.member_of(task))
    batch.lessees[task.owner] = true
  end

  function tasks.save(task)
    take_away(task)
    if task.place ~= RUNNING then
      for i = 1, #OF_RUNNING do
        task[OF_RUNNING[i]] = nil
      end
    end
    local rare = packed.rare_of_task(task)
    -- The queue that it waits in tells its lane.
    local plain = has_turn(task.place) and task.depth < DEEP and not (rare and (task.place == PARKED or packed.needs_record(task)))
    keep_tenant(task, plain and task.tenant and task.position or nil)
    if has_turn(task.place) then
      task.until_at = nil
      local score = score_of(task, plain and task.depth or DEEP)
      if task.lies ~= task.place or score ~= task.lies_score then
        call('ZADD', queue_of(task, task.place, task.lane), string.format('%d', score), task.url)
      end
      task.lies_score = score
      if plain then
        forget_record(task)
        lies(task)
        return
      end
    end
    call('HSET', P .. 'tasks:' .. task.site, task.stage .. task.url, packed.of_task(task, rare))
    task.recorded = true
    if task.place == RUNNING then
      if task.lies ~= RUNNING or task.lies_until ~= task.ends_at then
        leaves(leases_of(task.owner), task.lies_until)
        tasks.list_lease(task)
      end
    elseif task.place == BEHIND then
      call('ZADD', behind_key(task.site), '0', step_of(task))
    elseif not has_turn(task.place) then
      enters('delay', task.until_at, tasks.member_of(task))
      store.comes(task.stage, task.until_at, task.site)
      if (store.site(task.site) or {}).by_lane then
        lanes.comes(task.stage, task.lane or LANE, task.until_at)
      end
    end
    lies(task)
  end

  function tasks.remove(task)
    task.place = 'nowhere'
    take_away(task)
    keep_tenant(task, nil)
    forget_record(task)
  end

  -- The first ones of each priority in a queue: as many looks as there are priorities.
  local function first_ones(key)
    local found, above = {}, '-inf'
    while true do
      local first = call('ZRANGEBYSCORE', key, above, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
      if not first[1] then
        return found
      end
      local score = tonumber(first[2])
      local _, _, position, priority = read_score(score)
      found[#found + 1] = { url = first[1], score = score, position = position, priority = priority }
      above = (priority + 1) * TURN * 32
    end
  end

  -- By when a task is to go at the latest; a robots.txt goes before all others.
  local function deadline(priority, position)
    return priority == PRIORITY_ROBOTS and -math.huge or position + ALLOWED[priority]
  end

  local function goes_before(one, other)
    local by, others = deadline(one.priority, one.position), deadline(other.priority, other.position)
    if by == others then
      return one.position < other.position
    end
    return by < others
  end

  -- The waiting task of a lane that goes first: by priority, then position, or by deadline where its site goes by that.
  function tasks.first_waiting(site, stage, lane)
    local key = queue(site.name, stage, lane)
    if site.order ~= DEADLINE then
      local first = call('ZRANGE', key, '0', '0', 'WITHSCORES')
      return first[1] and tasks.waiting(site.name, stage, first[1], tonumber(first[2]), WAITING, lane)
    end
    local first
    for _, one in ipairs(first_ones(key)) do
      first = first and goes_before(first, one) and first or one
    end
    return first and tasks.waiting(site.name, stage, first.url, first.score, WAITING, lane)
  end

  -- Adds waiting tasks of a lane behind a priority and position, up to a score.
  local function add_behind(found, site, stage, lane, priority, position, up_to, most)
    local behind = string.format('(%d', score_of({ priority = priority, position = position, link = true }, DEEP))
    local flat = call('ZRANGEBYSCORE', queue(site.name, stage, lane), behind, up_to, 'WITHSCORES', 'LIMIT', 0, most)
    for i = 1, #flat, 2 do
      found[#found + 1] = tasks.waiting(site.name, stage, flat[i], tonumber(flat[i + 1]), WAITING, lane)
    end
  end

  -- The downloads that are behind the head of a session, in the order of their steps.
  function tasks.steps_behind(site, session, most)
    local found = {}
    for i, member in ipairs(call('ZRANGEBYLEX', behind_key(site), '[' .. session .. '\n', '(' .. session .. '\v', 'LIMIT', 0, most)) do
      found[i] = find_recorded(site, 'd', string.sub(member, #session + 2 + STEP))
    end
    return found
  end

  -- Waiting tasks of a lane behind a place of it, in order.
  function tasks.waiting_behind(site, stage, lane, priority, position, most)
    local found = {}
    if site.order ~= DEADLINE then
      add_behind(found, site, stage, lane, priority, position, '+inf', most)
      return found
    end
    local by = deadline(priority, position)
    for _, first in ipairs(first_ones(queue(site.name, stage, lane))) do
      if first.priority ~= PRIORITY_ROBOTS then
        local same = by - ALLOWED[first.priority]
        same = math.max(-1, same > position and same - 1 or same) -- one of that very deadline is behind it if it was put later
        local up_to = string.format('(%d', (first.priority + 1) * TURN * 32)
        add_behind(found, site, stage, lane, first.priority, same, up_to, most)
      end
    end
    table.sort(found, goes_before)
    return { unpack(found, 1, math.min(#found, most)) }
  end

  -- Tasks of a site that wait for a host, in the order of a queue.
  function tasks.parked(site, origin, most)
    local flat, found = call('ZRANGE', parked_key(site, origin), 0, most - 1, 'WITHSCORES'), {}
    for i = 1, #flat, 2 do
      found[#found + 1] = tasks.waiting(site, 'd', flat[i], tonumber(flat[i + 1]), PARKED)
    end
    return found
  end

  -- Of each priority in a lane the least position.
  function tasks.first_positions(site, stage, lane)
    local found = {}
    for i, first in ipairs(first_ones(queue(site, stage, lane))) do
      found[i] = { first.priority, first.position }
    end
    return found
  end

  -- When the longest waiting task was put.
  function tasks.oldest_waiting(site, stage)
    local least = math.huge
    for _, lane in ipairs(gate.lanes(site, stage)) do
      for _, first in ipairs(tasks.first_positions(site.name, stage, lane)) do
        least = math.min(least, first[2])
      end
    end
    return least < math.huge and math.min(now, EPOCH + least)
  end

  local function all_of(members)
    local found = {}
    for i, member in ipairs(members) do
      found[i] = of_member(member)
    end
    return found
  end

  -- Delayed tasks whose time has come.
  function tasks.overdue(most)
    local first = store.first_of('delay')
    if not first or first > now then
      return {}
    end
    return all_of(call('ZRANGEBYSCORE', P .. 'delay', '-inf', now, 'LIMIT', 0, most))
  end

  -- Tasks under leases of a process that end by then, the first ones first.
  function tasks.held_by(owner, by, most)
    return all_of(call('ZRANGEBYSCORE', P .. leases_of(owner), '-inf', by, 'LIMIT', 0, most))
  end

  -- When the first of a process's leases ends.
  function tasks.first_end_of(owner)
    return store.first_of(leases_of(owner))
  end

  -- Tasks of a site that lie beside a record, of the wanted places, at most so many.
  function tasks.recorded(site, wanted, most)
    local found, cursor = {}, '0'
    repeat
      local page = call('HSCAN', P .. 'tasks:' .. site, cursor, 'COUNT', 500)
      cursor = page[1]
      for i = 1, #page[2], 2 do
        local task = of_record(site, string.sub(page[2][i], 1, 1), string.sub(page[2][i], 2), page[2][i + 1])
        if wanted[task.place] and #found < most then
          found[#found + 1] = task
        end
      end
    until cursor == '0' or #found >= most
    return found
  end

  -- The queues of a site: of each its stage and its lane.
  function tasks.queues(site)
    local queues = {}
    for _, stage in ipairs(STAGES) do
      for _, lane in ipairs(gate.lanes(site, stage)) do
        queues[#queues + 1] = { stage, lane }
      end
    end
    return queues
  end

  -- Waiting tasks of a site, and once there are none, those that wait for these hosts, then delayed ones: few others lie beside
  -- a record then.
  function tasks.idle(site, hosts, most)
    local found = {}
    for _, queued in ipairs(tasks.queues(store.site(site))) do
      local stage, lane = unpack(queued)
      local waiting = most > #found and call('ZRANGE', queue(site, stage, lane), 0, most - #found - 1, 'WITHSCORES') or {}
      for i = 1, #waiting, 2 do
        found[#found + 1] = tasks.waiting(site, stage, waiting[i], tonumber(waiting[i + 1]), WAITING, lane)
      end
    end
    for _, origin in ipairs(hosts) do
      found = #found > 0 and found or tasks.parked(site, origin, most)
    end
    return #found > 0 and found or tasks.recorded(site, { [DELAYED] = true, [SCHEDULED] = true, [BEHIND] = true }, most)
  end

  -- Fingerprints lie in small sets of integers; there is one more set for every 200 of them, and each time one of the old
  -- sets is split (linear hashing).
  local SET_SIZE = 200

  -- Redis fills up a block of SHA-1 byte by byte, each one a call: blanks up to where it need not.
  local BLANKS = string.rep(' ', MARK_BLOCK - 1)

  -- As `mark` in wire/mark.rs, so that the server needn't do it for each link.
  local function fingerprint(url)
    local hash = redis.sha1hex(url .. string.sub(BLANKS, 1, (MARK_TEXT - #url) % MARK_BLOCK))
    local low = tonumber(string.sub(hash, 1, 8), 16) % MARK_LOW
    return string.format('%d%09d', tonumber(string.sub(hash, 9, 16), 16) + 1, low), low
  end

  -- Some may lie under the name that the site had before.
  local function known_key(site, run, set)
    local from = site.renamed_from
    local is_left = from and tonumber(run) == from.run and set >= from.moved and set < from.sets
    return P .. 'known:' .. (is_left and from.name or site.name) .. ':' .. run .. ':' .. set
  end

  function tasks.set_of(low, sets)
    local round = 1
    while round * 2 <= sets do
      round = round * 2
    end
    local set = low % (round * 2)
    return set < sets and set or set - round
  end

  local set_of = tasks.set_of

  local function sets_for(count)
    return math.floor(count / SET_SIZE) + 1
  end

  -- A page's fingerprint: as the client sent it, or else made here.
  local function mark_of(url, sent)
    if sent then
      return sent, tonumber(string.sub(sent, -9))
    end
    return fingerprint(url)
  end

  tasks.mark = fingerprint

  function tasks.is_known(site, url)
    local mark, low = fingerprint(url)
    return call('SISMEMBER', known_key(site, site.run, set_of(low, sets_for(site.known or 0))), mark) == 1
  end

  -- Those of the URLs that are nowhere else and known. Where the client sent marks, of links alone, theirs begin at `first`.
  function tasks.known_among(site, urls, found, marks, first)
    local known, sets, asked, urls_of = {}, sets_for(site.known or 0), {}, {}
    for i = 1, site.known and #urls or 0 do
      local url, sent = urls[i], marks and marks[first + i - 1]
      if not found[url] and sent ~= false then
        local mark, low = mark_of(url, sent)
        local set = set_of(low, sets)
        if not asked[set] then
          asked[set], urls_of[set] = {}, {}
        end
        local at = #asked[set] + 1
        asked[set][at], urls_of[set][at] = mark, url
      end
    end
    for set, those in pairs(asked) do
      local are_known = call('SMISMEMBER', known_key(site, site.run, set), unpack(those))
      for i = 1, #those do
        known[urls_of[set][i]] = are_known[i] == 1
      end
    end
    return known
  end

  local function split(site, sets)
    local from = set_of(sets, sets) -- the set that shared its fingerprints with the new one
    local old, new = known_key(site, site.run, from), known_key(site, site.run, sets)
    local moved = {}
    for _, mark in ipairs(call('SMEMBERS', old)) do
      if set_of(tonumber(string.sub(mark, -9)), sets + 1) == sets then
        moved[#moved + 1] = mark
      end
    end
    if #moved > 0 then
      call('SADD', new, unpack(moved))
      call('SREM', old, unpack(moved))
    end
  end

  function tasks.add_known(site, url, sent)
    local mark, low = mark_of(url, sent)
    local count = site.known or 0
    local sets = sets_for(count)
    if call('SADD', known_key(site, site.run, set_of(low, sets)), mark) == 1 then
      site.known = count + 1
      if sets_for(count + 1) > sets then
        split(site, sets)
      end
    end
  end

  -- What was known in a run that is over is forgotten later, a few sets a step.
  function tasks.leave_known(site)
    if site.known then
      site.swept = (site.swept or '') .. string.format('%d:%d;', site.run, sets_for(site.known))
      site.known = nil
    end
  end

  function tasks.sweep_known(site, most)
    local removed = 0
    while site.swept and removed < most do
      local run, sets, rest = string.match(site.swept, '^(%d+):(%d+);(.*)$')
      local key = known_key(site, run, sets - 1)
      removed = removed + call('SCARD', key) + 1
      call('DEL', key)
      sets = sets - 1
      site.swept = (sets > 0 and string.format('%d:%d;', run, sets) or '') .. rest
      if site.swept == '' then
        site.swept = nil
      end
    end
    store.save_site(site)
    return site.swept ~= nil
  end

  -- All its sets, those of runs that are over too.
  function tasks.known_sets(site)
    local keys = {}
    local of_run = string.format('%d:%d;', site.run, tasks.sets_known(site))
    for run, sets in string.gmatch((site.swept or '') .. of_run, '(%d+):(%d+);') do
      for set = 0, sets - 1 do
        keys[#keys + 1] = known_key(site, run, set)
      end
    end
    return keys
  end

  -- How many sets there are of this run.
  function tasks.sets_known(site)
    return site.known and sets_for(site.known) or 0
  end

  -- Moves sets from under the name that the site had before, at most so many; whether some are left.
  function tasks.move_known(site, most)
    local from = site.renamed_from
    for _ = 1, math.min(most, from.sets - from.moved) do
      local old = known_key(site, from.run, from.moved)
      from.moved = from.moved + 1
      if call('EXISTS', old) == 1 then
        call('RENAME', old, known_key(site, from.run, from.moved - 1))
      end
    end
    return from.moved < from.sets
  end

  -- Moves delayed tasks from under the name that the site had before, about so many; whether some are left.
  function tasks.move_delayed(site, most)
    local from = site.renamed_from
    local page = call('HSCAN', P .. 'tasks:' .. site.name, from.cursor, 'COUNT', most)
    for i = 1, #page[2], 2 do
      local task = of_record(site.name, string.sub(page[2][i], 1, 1), string.sub(page[2][i], 2), page[2][i + 1])
      if task.lies_delayed and call('ZREM', P .. 'delay', member_of_name(from.name, task, task.position)) == 1 then
        call('ZADD', P .. 'delay', task.lies_delayed, tasks.member_of(task))
      end
    end
    from.cursor = page[1]
    return from.cursor ~= '0'
  end

  function tasks.dead(site, stage, url)
    local letter = (site[counter[stage].letters] or 0) > 0 and call('HGET', P .. 'letter:' .. site.name, stage .. url)
    return letter and cjson.decode(letter)
  end

  function tasks.save_dead(site, stage, url, letter)
    store.add(site, counter[stage].letters, 1)
    call('HSET', P .. 'letter:' .. site.name, stage .. url, cjson.encode(letter))
    call('ZADD', P .. 'dead:' .. site.name, letter.died_at, stage .. url)
  end

  function tasks.remove_dead(site, stage, url)
    store.take(site, counter[stage].letters)
    call('HDEL', P .. 'letter:' .. site.name, stage .. url)
    call('ZREM', P .. 'dead:' .. site.name, stage .. url)
  end

  -- Of each letter its stage and URL, its text, and its site.
  function tasks.read_letters(site, members)
    local found = {}
    for i, member in ipairs(members) do
      found[i] = {
        string.sub(member, 1, 1), string.sub(member, 2), call('HGET', P .. 'letter:' .. site, member), site,
      }
    end
    return found
  end
end)
