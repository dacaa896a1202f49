-- A site gets another name and keeps all it has. Its keys are renamed, which takes no longer for more tasks. What there are
-- many of follows in steps, and is found under the old name until then: sets of known pages, and delayed tasks, which stand in
-- an index of all sites.
local rename = module(function(rename)
  local function move(from, to)
    if call('EXISTS', from) == 1 then
      call('RENAME', from, to)
    end
  end

  local function move_keys(site, to)
    kept.flush()
    batches.flush()
    for _, queued in ipairs(tasks.queues(site)) do
      move(tasks.queue(site.name, unpack(queued)), tasks.queue(to, unpack(queued)))
    end
    for _, key in ipairs(store.keys_of_site) do
      move(store.key_of_site(key, site.name), store.key_of_site(key, to))
    end
    for _, origin in ipairs(away.hosts(to)) do
      move(tasks.parked_key(site.name, origin), tasks.parked_key(to, origin))
      away.rename(site.name, to, origin)
    end
    if P ~= DIRECTORY then
      move(P .. 'hosts:' .. site.name, P .. 'hosts:' .. to)
    else -- until they are booked under the new name, they are its hosts already
      call('COPY', P .. 'hosts:' .. site.name, P .. 'hosts:' .. to)
    end
    for _, recrawl in ipairs(call('SMEMBERS', P .. 'periods:' .. to)) do
      move(store.again_list(site.name, recrawl), store.again_list(to, recrawl))
    end
  end

  -- Who holds the unit's mutex from outside holds that of the new name as well.
  local function move_outsider(old, new)
    local held = records.mutex(places.mutex(old))
    if held and not places.owns(old, held.token) and held.until_at < math.huge then
      records.save_mutex(places.mutex(new), held.token, held.until_at)
    end
  end

  local function go_on(site)
    if not site.renamed_from then
      return 'done'
    end
    local is_left = tasks.move_known(site, REMOVED) or tasks.move_delayed(site, REMOVED)
    store.save_site(site)
    return is_left and 'partly' or 'done'
  end

  -- Renames a site that nobody works on. A pace unit of its own is renamed with it, and its wall; the old one keeps its last
  -- starts.
  function rename.step(name, to)
    if call('HGET', P .. 'renamed', name) == to then
      return go_on(store.site(to))
    end
    local refusal = sites_of.renaming(name) or sites_of.renaming(to)
    if refusal then
      return { refused = refusal }
    end
    local site = store.site(name)
    if not site then
      return 'unknown'
    end
    if store.site(to) then
      return 'taken'
    end
    local leased = (site['d.leased'] or 0) + (site['p.leased'] or 0)
    if leased > 0 then
      return { busy = { leased = leased } }
    end
    if tasks.sweep_known(site, REMOVED) then
      return 'partly'
    end
    if site.unit == name then
      sites_of.move_unit(site, to)
      move_outsider(store.unit(name), store.unit(to))
      places.take_starts(store.unit(to), store.unit(name))
    end
    store.unready(site)
    store.leave(site)
    move_keys(site, to)
    store.drop_site(name)
    site.name, site.by_lane = to, site.by_lane or lanes.is_listing() -- those who list the sites may be past that name
    site.renamed_from = { name = name, run = site.run, moved = 0, sets = tasks.sets_known(site), cursor = '0' }
    call('HSET', P .. 'renamed', name, to)
    store.first_version(site)
    store.new_site(site)
    store.join(site)
    store.save_site(site)
    store.offer_again(site)
    away.offer(to)
    local unit = store.some_unit(site.unit)
    places.retime(unit)
    return 'partly'
  end

  -- The directory books all under the new name: the old one is free.
  function rename.finish(name, to)
    if call('HGET', P .. 'renamed', name) == to then
      call('HDEL', P .. 'renamed', name)
      local site = store.site(to)
      site.renamed_from = nil
      store.save_site(site)
    end
    return true
  end
end)
