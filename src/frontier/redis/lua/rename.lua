-- A site gets another name and keeps all it has. Its keys are renamed, which takes no longer for more tasks; what names it
-- within others is written anew.
local rename = module(function(rename)
  local function move(from, to)
    if call('EXISTS', from) == 1 then
      call('RENAME', from, to)
    end
  end

  local function move_keys(site, to)
    kept.flush()
    for _, key in ipairs(store.keys_of_site) do
      move(store.key_of_site(key, site.name), store.key_of_site(key, to))
    end
    for _, set in ipairs(tasks.known_sets(site)) do
      move(P .. 'known:' .. site.name .. set, P .. 'known:' .. to .. set)
    end
    for _, origin in ipairs(away.hosts(to)) do
      move(tasks.parked_key(site.name, origin), tasks.parked_key(to, origin))
      away.rename(site.name, to, origin)
    end
    if P ~= DIRECTORY then
      move(P .. 'hosts:' .. site.name, P .. 'hosts:' .. to)
    end
    for _, recrawl in ipairs(call('SMEMBERS', P .. 'periods:' .. to)) do
      move(P .. 'fetched:' .. site.name .. ':' .. recrawl, P .. 'fetched:' .. to .. ':' .. recrawl)
    end
  end

  -- Delayed tasks stand in an index of all sites.
  local function move_delayed(delayed, to)
    for _, task in ipairs(delayed) do
      call('ZREM', P .. 'delay', tasks.member_of(task))
      task.site = to
      call('ZADD', P .. 'delay', task.until_at, tasks.member_of(task))
    end
  end

  -- Who holds the unit's mutex from outside holds that of the new name as well.
  local function move_outsider(old, new)
    local held = records.mutex(places.mutex(old))
    if held and not places.owns(old, held.token) and held.until_at < math.huge then
      records.save_mutex(places.mutex(new), held.token, held.until_at)
    end
  end

  -- Renames a site that nobody works on. A pace unit of its own is renamed with it; the old one keeps its last starts.
  function rename.step(name, to)
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
    if site.unit == name then
      sites_of.move_unit(site, to)
      move_outsider(store.unit(name), store.unit(to))
      places.take_starts(store.unit(to), store.unit(name))
    end
    store.unready(site)
    store.leave(site)
    local delayed = tasks.recorded(name, { [DELAYED] = true, [SCHEDULED] = true }, math.huge)
    move_keys(site, to)
    move_delayed(delayed, to)
    store.drop_site(name)
    site.name = to
    store.renew_version(site)
    store.new_site(site)
    store.join(site)
    store.save_site(site)
    store.offer_again(site)
    away.offer(to)
    local unit = store.some_unit(site.unit)
    places.retime(unit)
    return 'done'
  end
end)
