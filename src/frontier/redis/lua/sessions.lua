-- Sessions: one step of each is in the queue, its head; the others are behind it. What takes a head away lets the next one in, in the
-- same step.
sessions = module(function(sessions)
  local function records_key(site)
    return P .. 'sessions:' .. site
  end

  -- Sessions by how they stand: those that are held come first, then those that ended, by when, then the others.
  local function turns_key(site)
    return P .. 'session-turns:' .. site
  end

  local function read(site, name)
    local text = call('HGET', records_key(site), name)
    return text and cjson.decode(text)
  end

  -- It ended so long ago that it is forgotten.
  local function is_over(session)
    return (session.ended_at or math.huge) <= now - ENDED_MS
  end

  local function save(site, name, session)
    local turn = session.ended_at or session.held and SESSION_HELD or SESSION_OPEN
    call('HSET', records_key(site.name), name, cjson.encode(session))
    call('ZADD', turns_key(site.name), string.format('%d', turn), name)
  end

  -- Those that ended, the earliest first: their names and when.
  local function ended(site, most)
    local from, to = '(' .. SESSION_HELD, string.format('(%d', SESSION_OPEN)
    return call('ZRANGEBYSCORE', turns_key(site.name), from, to, 'WITHSCORES', 'LIMIT', 0, most),
      call('ZCOUNT', turns_key(site.name), from, to)
  end

  -- Forgets sessions that ended long ago, or before as many others as are kept: so many at most.
  function sessions.sweep(site, most)
    local flat, count = ended(site, most)
    local over = count - ENDED_KEPT
    for i = 1, #flat, 2 do
      if (i - 1) / 2 < over or tonumber(flat[i + 1]) <= now - ENDED_MS then
        call('HDEL', records_key(site.name), flat[i])
        call('ZREM', turns_key(site.name), flat[i])
      end
    end
  end

  local function left_of(session)
    return session.created - session.done - session.dead - session.dropped
  end

  local function let_in(site, session, task)
    session.head = task.url
    if task.after and task.after > now then
      local is_new = (task.attempts or 0) + (task.losses or 0) == 0
      places.shift(site, task, is_new and SCHEDULED or DELAYED, task.after)
    else
      places.shift(site, task, WAITING)
    end
  end

  -- The first step that is behind others is let in where there is no head, and where it goes before one that was never granted.
  local function put_in_order(site, name, session)
    if not session.held and not site.given_up then
      local head = session.head and tasks.find(site, 'd', session.head)
      local first = tasks.steps_behind(site.name, name, 1)[1]
      if first and not head then
        let_in(site, session, first)
      elseif first and not head.begun and tasks.goes_before(first, head) then
        places.shift(site, head, BEHIND)
        let_in(site, session, first)
      end
    end
    if left_of(session) == 0 and not session.held then
      session.ended_at = now
    end
    save(site, name, session)
    if session.ended_at then
      sessions.sweep(site, SESSIONS_SWEPT)
    end
  end

  -- The session of that name, with what a put says of it.
  local function session_for(site, asked)
    local session = read(site.name, asked.session)
    session = session and not is_over(session) and session
      or { on_failure = 'block', began_at = now, created = 0, done = 0, dead = 0, dropped = 0 }
    session.on_failure = asked.on_failure or session.on_failure
    return session
  end

  -- A put says what a step that dies does from now on.
  function sessions.tell(site, asked)
    if asked.on_failure then
      save(site, asked.session, session_for(site, asked))
    end
  end

  -- A task that is behind all others is a step of its session from now on.
  function sessions.joined(site, asked)
    local session = session_for(site, asked)
    session.created, session.ended_at = session.created + 1, nil
    put_in_order(site, asked.session, session)
  end

  -- Places of the steps of a session may have changed.
  function sessions.reorder(site, task)
    local session = task.session and read(site.name, task.session)
    if session then
      put_in_order(site, task.session, session)
    end
  end

  -- A step of a session is done, dead or dropped; `again`: it is a step of it once more, behind the others. `following` takes its
  -- place, if it is behind it.
  function sessions.left(site, name, url, how, following, again)
    local session = read(site.name, name)
    if not session then
      return
    end
    session[how] = session[how] + 1
    session.created = session.created + (again and 1 or 0)
    if session.head == url then
      session.head = nil
      local task = following and tasks.find(site, 'd', following)
      if task and task.place == BEHIND and task.session == name then
        task.begun = true -- no other one goes before it any more
        let_in(site, session, task)
      end
    end
    put_in_order(site, name, session)
  end

  -- Whether the head that dies now holds its session.
  function sessions.is_to_hold(site, task)
    local session = task.session and read(site.name, task.session)
    return session and session.on_failure == 'block'
  end

  -- A step died whose letter holds the session, or, with a further run, takes its own place.
  function sessions.died(site, name, runs_again)
    local session = read(site.name, name)
    session.dead = session.dead + 1
    if runs_again then
      session.created = session.created + 1
    else
      session.held = true
      store.add(site, 'held', 1)
    end
    save(site, name, session)
  end

  -- The letter that held a session is gone: it is its head again, or the next step goes on without it.
  function sessions.release(site, name, is_revived)
    local session = name and read(site.name, name)
    if not session or not session.held then
      return
    end
    session.held = nil
    store.take(site, 'held')
    if is_revived then
      session.created = session.created + 1
      save(site, name, session)
    else
      session.head = nil
      put_in_order(site, name, session)
    end
  end

  -- Drops steps of a session that nobody works on, a bounded number: how many. Those behind its head go first, so that none is let in.
  function sessions.drop_steps(name, session_name)
    local site = store.site(name)
    if not site then
      return 0
    end
    local steps = tasks.steps_behind(name, session_name, REMOVED)
    local session = read(name, session_name)
    local head = #steps == 0 and session and session.head and tasks.find(site, 'd', session.head)
    if head and head.place ~= RUNNING and head.session == session_name then
      steps[1] = head
    end
    for i = 1, #steps do
      places.drop(site, steps[i])
    end
    store.save_site(site)
    return #steps
  end

  -- The first sessions of a site that are held: their names and heads.
  function sessions.held(site)
    local held = {}
    local names = site.held and call('ZRANGEBYSCORE', turns_key(site.name), SESSION_HELD, SESSION_HELD, 'LIMIT', 0, HELD_SHOWN)
    for i, name in ipairs(names or {}) do
      held[i] = { name, read(site.name, name).head }
    end
    return held
  end

  -- How a session stands: its books, and the first steps behind its head.
  function sessions.status(site, name)
    local session = read(site, name)
    if not session or is_over(session) then
      return false
    end
    local following = {}
    for i, task in ipairs(tasks.steps_behind(site, name, STEPS_SHOWN)) do
      following[i] = { task.url, task.priority }
    end
    return { cjson.encode(session), following }
  end
end)
