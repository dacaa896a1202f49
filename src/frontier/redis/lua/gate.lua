-- Which lane a task waits in, and which lane the next start is of.
gate = module(function(gate)
  local ONLY, NONE = { LANE }, {}

  -- How many tasks may be claimed in each lane but the one that is always there. Earlier builds kept that as a text.
  function gate.counts(site, stage)
    local field = counter[stage].lanes
    if type(site[field]) == 'string' then
      site[field] = cjson.decode(site[field])
    end
    return site[field] or NONE
  end

  local function set_count(site, stage, lane, count)
    local field, counts = counter[stage].lanes, gate.counts(site, stage)
    if counts == NONE then
      counts = {}
    end
    counts[lane] = count
    site[field] = next(counts) and counts or nil
  end

  -- The lanes that have tasks which may be claimed, and the one that is always there before them.
  function gate.lanes(site, stage)
    if not site[counter[stage].lanes] then
      return ONLY
    end
    local lanes = {}
    for lane in pairs(gate.counts(site, stage)) do
      lanes[#lanes + 1] = lane
    end
    table.sort(lanes)
    table.insert(lanes, 1, LANE)
    return lanes
  end

  -- Books a task into its lane, or out of it; those of the lane that is always there aren't counted.
  function gate.count(site, task, by)
    if task.place ~= WAITING or not task.lane then
      return
    end
    local count = (gate.counts(site, task.stage)[task.lane] or 0) + by
    set_count(site, task.stage, task.lane, count > 0 and count or nil)
  end

  -- How many tasks of a lane wait for nothing but their turn; those that wait for their host are the one's that is always there.
  function gate.waiting_in(site, stage, lane)
    local counts, waiting = gate.counts(site, stage), site[counter[stage].waiting] or 0
    if lane ~= LANE then
      return counts[lane] or 0
    end
    for _, count in pairs(counts) do
      waiting = waiting - count
    end
    return waiting
  end

  -- Nothing waits in a lane, whatever was counted: a hand in the server may have taken it away.
  function gate.forget_lane(site, stage, lane)
    set_count(site, stage, lane, nil)
  end

  -- What the fleet agreed on, and what tenants were given while it runs: read once a call, and decoded again only where it
  -- changed.
  local texts, decoded, for_all = { false, false }, { {}, {} }, {}
  local function of_fleet(which)
    local read = batch.fleet
    if read == nil then
      read = call('HMGET', P .. 'fleet', 'rules', 'tuned')
      batch.fleet = read
    end
    if read[which] ~= texts[which] then
      texts[which], decoded[which] = read[which], read[which] and cjson.decode(read[which]) or {}
      for_all = {}
    end
    return decoded[which]
  end

  -- The lanes with their weights and the rules that hold for all.
  local function in_force()
    return of_fleet(1)
  end

  -- Which task goes first at a site whose run begins: nothing where that is the usual one.
  function gate.order()
    return in_force().order == DEADLINE and DEADLINE or nil
  end

  -- Whether a claim serves the unit that is due longest, and none by chance.
  function gate.picks_earliest()
    return in_force().pick == EARLIEST
  end

  -- The mark that keeps a new page out, whatever the others wait for. That of the frontier keeps no link out. What waits beside
  -- the site is asked for once a step.
  function gate.mark_met(site, asked)
    local rules, idle, beside = in_force(), store.idle(site), asked.beside
    if idle >= (rules.most_waiting or MOST_WAITING) then
      return MARK_SITE
    elseif (site['d.bytes'] or 0) >= (rules.most_bytes or MOST_BYTES) then
      return MARK_SITE_BYTES
    elseif asked.link then
      return nil
    end
    beside.idle = beside.idle or store.idle_beside(site) + beside.elsewhere
    return beside.idle + idle >= (rules.most_in_all or MOST_IN_ALL) and MARK_FRONTIER or nil
  end

  -- The lanes that have something ready: the one that is always there first, then by name.
  function gate.ready_lanes(site, stage)
    local lanes = gate.lanes(site, stage)
    local has_general = gate.waiting_in(site, stage, LANE) > (site[counter[stage].parked] or 0)
    return has_general and lanes or { unpack(lanes, 2) }
  end

  -- The lane of the next start: `now` before all others, else one of those that have something ready, by its weight (F13, F18). Of
  -- these lanes, where some alone are served; none where they have nothing.
  function gate.draw(site, stage, dice, served)
    if not site[counter[stage].lanes] then
      return lanes.serves(served, LANE) and LANE or nil
    elseif gate.counts(site, stage)[NOW] and lanes.serves(served, NOW) then
      return NOW
    end
    local weights, ready, all = in_force().lanes or {}, {}, 0
    for _, lane in ipairs(gate.ready_lanes(site, stage)) do
      if lanes.serves(served, lane) then
        ready[#ready + 1] = lane
        all = all + math.max(1, weights[lane] or 1)
      end
    end
    local at = all > 0 and dice % all
    for _, lane in ipairs(ready) do
      at = at - math.max(1, weights[lane] or 1)
      if at < 0 then
        return lane
      end
    end
  end

  -- Whether a put goes before all others: it asked for that, or for as long as there is room and it isn't for later.
  function gate.goes_now(site, stage, wish, is_later)
    if wish.lane or not wish.urgent or is_later then
      return wish.lane == NOW
    end
    return gate.waiting_in(site, stage, NOW) < MOST_NOW
  end

  local function window(stage, tenant)
    return P .. 'window:' .. stage .. ':' .. tenant
  end

  -- Forgets windows that are over, a bounded number.
  local function sweep()
    if (store.first_of('windows') or math.huge) > now then
      return
    end
    batch.firsts.windows = nil
    for _, member in ipairs(call('ZRANGEBYSCORE', P .. 'windows', '-inf', now, 'LIMIT', 0, SWEPT_WINDOWS)) do
      call('DEL', window(string.sub(member, 1, 1), string.sub(member, 2)))
      call('ZREM', P .. 'windows', member)
    end
  end

  -- Those of the rules that are for a stage, the most tasks that one of them lets be, and the longest time that one looks back.
  local function of_stage(all, stage)
    local found = { longest = 0 }
    for _, rule in ipairs(all) do
      if not rule.stage or string.sub(rule.stage, 1, 1) == stage then
        found[#found + 1] = rule
        found.most, found.longest = math.max(found.most or 0, rule.threshold), math.max(found.longest, rule.per)
      end
    end
    return found
  end

  local function rules_for(tenant, stage)
    if batch.has_own_rules == nil then
      batch.has_own_rules = call('EXISTS', P .. 'tenants') == 1
    end
    local own = of_fleet(2)[tenant] or batch.has_own_rules and call('HGET', P .. 'tenants', tenant)
    if own then
      return of_stage(cjson.decode(own), stage)
    end
    local fairness = in_force().fairness or {}
    for_all[stage] = for_all[stage] or of_stage(fairness, stage)
    return for_all[stage]
  end

  -- The lane of the last rule that a tenant's window matches, this task included (F1-F3).
  local function ruled_lane(stage, tenant)
    local found = rules_for(tenant, stage)
    if not found.most then
      return nil
    end
    sweep()
    local key = window(stage, tenant)
    local count = call('LPUSH', key, string.format('%d', now))
    if count > found.most + 1 then
      call('LTRIM', key, '0', string.format('%d', found.most))
    end
    call('ZADD', P .. 'windows', string.format('%d', now + found.longest + 1), stage .. tenant)
    for i = #found, 1, -1 do
      local at = found[i].threshold < count and call('LINDEX', key, string.format('%d', found[i].threshold))
      if at and tonumber(at) >= now - found[i].per then
        return found[i].lane
      end
    end
    return nil
  end

  local function lane_of(site, stage, wish, is_later, tenant)
    if gate.goes_now(site, stage, wish, is_later) then
      return NOW
    elseif wish.lane then
      return wish.lane
    end
    tenant = tenant or site.tenant
    return tenant and ruled_lane(stage, tenant) or site.tuned_lane or site.lane
  end

  -- A task that is made now gets its lane, which it keeps until it is settled, and is noted as somebody's: whose it was `before`,
  -- where the wish names nobody.
  function gate.stand(site, task, wish, is_later, before)
    local tenant = wish.tenant or before or nil
    local lane = lane_of(site, task.stage, wish, is_later, tenant)
    task.lane = lane ~= LANE and lane or nil
    task.tenant = tenant ~= site.tenant and tenant or nil
  end

  local function has_mark(marks, mark)
    return marks and string.find(marks, mark, 1, true) ~= nil
  end

  -- Marks in one text, each of sixteen digits, and others behind them: the latest of all.
  local function latest(marks, others)
    local all = {}
    for mark in string.gmatch((marks or '') .. ' ' .. (others or ''), '%x+') do
      all[#all + 1] = mark
    end
    return table.concat(all, ' ', math.max(1, #all - MARKS_KEPT + 1))
  end

  -- Puts the rules of a machine in force for all of them, unless newer ones took their place before (N8). `digest` tells the
  -- rules from others, `mark` their text. What the directory of a cluster has agreed to holds in each partition.
  function gate.agree(lanes_and_fairness, tenants, digest, is_none, mark, by_directory)
    local key = P .. 'fleet'
    local known, marks, replaced = unpack(call('HMGET', key, 'digest', 'marks', 'replaced'))
    if known == digest or not known and is_none then
      if not has_mark(marks, mark) then
        call('HSET', key, 'digest', digest, 'marks', latest(marks, mark))
      end
      return 'in_force'
    elseif by_directory then
      replaced = replaced and string.gsub(replaced, mark, '')
    elseif has_mark(replaced, mark) then
      return 'older'
    end
    call('HSET', key, 'digest', digest, 'marks', mark, 'replaced', latest(replaced, marks), 'rules', lanes_and_fairness)
    batch.fleet, batch.has_own_rules = nil, nil
    call('DEL', P .. 'tenants')
    for _, tenant in ipairs(tenants) do
      call('HSET', P .. 'tenants', tenant[1], tenant[2])
    end
    return 'replaced'
  end

  -- The number of what tenants were given while it runs, and as one text the rules of each as text.
  function gate.tuned()
    local number, text = unpack(call('HMGET', P .. 'fleet', 'tuned_number', 'tuned'))
    return { tonumber(number or 0), text or '{}' }
  end

  local function keep_tuned(number, text)
    call('HSET', P .. 'fleet', 'tuned_number', string.format('%.0f', number), 'tuned', text)
    batch.fleet = nil
  end

  -- Gives a tenant rules of its own, in place of those of the files, for the very next task that is made (F17); false gives it back
  -- to them. Not where too many have some. Other partitions are told in a further step.
  function gate.tune_tenant(tenant, own)
    local number, text = unpack(gate.tuned())
    local tuned, count = cjson.decode(text), 0
    tuned[tenant] = own or nil
    for _ in pairs(tuned) do
      count = count + 1
    end
    if count > MOST_TUNED then
      return false
    end
    keep_tuned(math.max(number + 1, now), cjson.encode(tuned))
    return gate.tuned()
  end

  -- Such rules hold here too, unless a later change came first.
  function gate.tell_tuned(number, text)
    if number > gate.tuned()[1] then
      keep_tuned(number, text)
    end
  end

  -- The rules in force: those for all, and of each tenant with rules of its own its name and these.
  function gate.rules()
    local found, flat = {}, call('HGETALL', P .. 'tenants')
    for i = 1, #flat, 2 do
      found[#found + 1] = { flat[i], flat[i + 1] }
    end
    return { call('HGET', P .. 'fleet', 'rules') or '{}', found }
  end
end)
