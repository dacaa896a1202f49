-- Walls: a site that refuses without saying for how long is left alone but for one probe at a time. Refusals like 403 wall their
-- site, all others its unit; what holds for one holds for the other.
local lease
local walls = module(function(walls)
  -- The walls that stand before a site.
  local function before(site, unit)
    local found = {}
    if site.wall then
      found[1] = site.wall
    end
    if unit.wall then
      found[#found + 1] = unit.wall
    end
    return found
  end

  local function save(site, unit)
    store.save_site(site)
    places.save_unit(unit)
  end

  -- How long after the probe before, or after the wall was found, the next one comes.
  local function probe_wait(first, probes, dice)
    local doubled = math.min(first * 2 ^ math.min(probes, 30), MOST_BETWEEN_PROBES)
    return doubled + math.floor(doubled * (dice % 1001) / (1000 * SPREAD_PARTS))
  end

  -- By how many probes a first wait is doubled, after what is left of something before.
  local function probes_after(slow)
    return slow and now < slow.until_at and slow.probes or 0
  end

  -- A probe starts: the next one comes after twice the time, whatever becomes of this one.
  local function probed(wall, at, dice)
    wall.probes = wall.probes + 1
    wall.probe_at = at + probe_wait(wall.first, wall.probes, dice)
  end

  -- A refusal is a new wall where none is known, and where it isn't one of those that were in flight together: what was asked
  -- for before the last wall ended tells nothing new (W5). Nor does what was asked for nobody knows when.
  local function find_wall(site, unit, url, refusal, asked_at)
    local function is_old(slow)
      return slow and (not asked_at or asked_at < slow.until_at - FORGIVEN_AFTER)
    end
    if site.wall or unit.wall or is_old(site.slow) or is_old(unit.slow) then
      return
    end
    local walled = refusal.of_site and site or unit
    -- A start that was granted ahead to somebody who can't be told in time any more counts as the first probe.
    local ahead = (walled.last_at or 0) > now and walled.last_token or nil
    local probes = probes_after(walled.slow) + (ahead and 1 or 0)
    walled.wall = {
      why = refusal.why, looks = refusal.looks, since = now, site = site.name, url = url, first = refusal.first,
      probe_at = now + probe_wait(refusal.first, probes, refusal.dice), probes = probes, refused = 0,
      ahead = ahead,
    }
  end

  -- A body ended that refuses: that holds even where the lease is lost. Whether the lease is held.
  function walls.refuse(token, site_name, field, refusal)
    local asked = tasks.leased(token, site_name, field)
    local site = store.site(site_name)
    if not site then
      return false
    end
    local unit = store.some_unit(site.unit)
    for _, wall in ipairs(before(site, unit)) do
      if wall.probe and wall.probe.token == token then
        wall.probe = nil
        wall.refused = wall.refused + 1
      end
    end
    find_wall(site, unit, string.sub(field, 2), refusal, asked and asked.granted_at)
    save(site, unit)
    return lease.landed(token, site_name, field)
  end

  -- These walls are gone; what comes next is asked for slowly at first.
  local function pass(site, unit, is_over)
    for _, walled in ipairs({ site, unit }) do
      if walled.wall and is_over(walled.wall) then
        walled.slow = {
          left = SLOW_STARTS, until_at = now + FORGIVEN_AFTER, probes = math.max(0, walled.wall.probes - 1),
        }
        walled.wall = nil
      end
    end
  end

  -- Somebody without a lease asked for a page: it was refused, or else it came, which ends the walls before it.
  function walls.probed(name, url, refusal)
    local site = store.site(name)
    if not site then
      return false
    end
    local unit = store.some_unit(site.unit)
    if refusal then
      for _, wall in ipairs(before(site, unit)) do
        wall.refused = wall.refused + 1
        probed(wall, now, refusal.dice)
      end
      find_wall(site, unit, url, refusal, now)
    else
      pass(site, unit, function()
        return true
      end)
    end
    store.save_site(site)
    places.retime(unit)
    return true
  end

  -- The next probe of a site, and of its unit, is due now. False: no wall is known.
  function walls.resume(name)
    local site = store.site(name)
    if not site then
      return false
    end
    local unit = store.some_unit(site.unit)
    local found = before(site, unit)
    for _, wall in ipairs(found) do
      wall.probe_at = now
    end
    save(site, unit)
    return #found > 0
  end

  -- A refused page goes back behind the others, no attempt counted.
  function walls.stand_back(site, task)
    task.returned = true
    places.absorb(site, task, now)
    task.position = store.next_position(site)
    places.shift(site, task, WAITING)
  end

  local function is_probed_by(wall, token)
    return wall.probe ~= nil and wall.probe.token == token
  end

  -- A task ended: if it was a probe, and what came is an answer of the site's own, the wall is gone. A robots.txt that had to be
  -- read first is no answer: the probe is due still.
  function walls.ends_probe(site, token, outcome)
    local how, unit = outcome.how, store.some_unit(site.unit)
    local is_answer = how == 'done' or how == 'redirected' or how == 'dead' and outcome.why.status ~= nil
    local is_read = how == 'robots' and not outcome.why
    if not (is_answer or is_read) or not walls.probe_of(site, token) then
      return
    end
    if is_answer then
      pass(site, unit, function(wall)
        return is_probed_by(wall, token)
      end)
    else
      places.unprobed(site.wall, token)
      places.unprobed(unit.wall, token)
    end
    store.save_site(site)
    places.retime(unit)
  end

  -- How the wall looks that the lease of a download is a probe of.
  function walls.probe_of(site, token)
    local unit = store.unit(site.unit)
    for _, wall in ipairs({ site.wall or false, unit and unit.wall or false }) do
      if wall and is_probed_by(wall, token) then
        return wall.looks
      end
    end
    return false
  end

  -- Whether a start that was granted before a wall was found is void: it is no probe of it.
  function walls.is_against(site, unit, token)
    for _, wall in ipairs(before(site, unit)) do
      if not is_probed_by(wall, token) then
        return true
      end
    end
    return false
  end

  -- Whether the page that a wall refused first is asked for next: every other probe is of another page, as that one alone may be
  -- refused.
  local function asks_for_it(wall)
    return wall.refused % 2 == 0
  end

  -- The site whose page a unit refused first, where that can be asked for and its own wait is over by then.
  function walls.first_refused(unit, round, by)
    local site = unit.wall and asks_for_it(unit.wall) and store.site(unit.wall.site)
    if not site or site.unit ~= unit.name or not site[READY.d] or store.waits_until(site) > by then
      return nil
    end
    if round.named and call('SISMEMBER', store.named(round.named), site.name) ~= 1 then
      return nil
    end
    if round.served and not lanes.is_ready(round.served, site, 'd') then
      return nil
    end
    return site.name
  end

  -- The page that was refused first, where it waits in a lane that is served: the unit's, or the site's own.
  function walls.refused_page(site, unit, served)
    for _, wall in ipairs({ unit.wall or false, site.wall or false }) do
      local task = wall and asks_for_it(wall) and tasks.find(site, 'd', wall.url)
      if task and task.place == WAITING and lanes.serves(served, task.lane or LANE) then
        return task
      end
    end
    return nil
  end

  -- One probe at a time: where the last one is still under way, the next is put off. Whether it is.
  function walls.awaits_probe(site, unit, soonest)
    local is_under_way = false
    for _, wall in ipairs(before(site, unit)) do
      local probe = wall.probe
      if probe and tasks.leased(probe.token, probe.site, 'd' .. probe.url) then
        wall.probe_at = soonest + wall.first
        is_under_way = true
      end
    end
    return is_under_way
  end

  -- Marks a start as the probe of the walls before it.
  function walls.begin_probe(site, unit, token, url, at, dice)
    for _, wall in ipairs(before(site, unit)) do
      wall.probe = { token = token, site = site.name, url = url }
      probed(wall, at, dice)
    end
  end

  -- A start is granted: one less of those that are slow at first.
  function walls.count_start(record)
    local slow = record.slow
    if slow then
      record.slow = now < slow.until_at and { left = math.max(0, slow.left - 1), until_at = slow.until_at, probes = slow.probes } or nil
    end
  end

  -- What is told of the walls before a site.
  function walls.known(site, unit)
    local wall = unit.wall or site.wall
    return wall and { wall.why, wall.since, wall.url, wall.probe_at, wall.refused, wall.looks } or false
  end
end)
