-- The timed mutex: taken if free, ended by its time, released only by its owner (V4-V9, R1-R5).
local lock = module(function(lock)
  local courtesy = store.grace

  -- The next turn of one who missed this one: on a loaded machine answers and timers are late again and again.
  local function longer(turn)
    return math.min(2 * turn, LONGEST_TURN)
  end

  -- The unit that a mutex paces, if it does.
  local function unit_of(name)
    local unit = records.unit_of(name)
    return unit and store.unit(unit)
  end

  -- Who holds it now. A start's own lock lasts as long as the unit says; one that its site has left says nothing new.
  local function held_now(name, unit, endless)
    local held = records.mutex(name, endless)
    local own = unit and store.site(unit.name)
    local is_left = own and own.unit ~= unit.name
    if held and unit and not is_left and places.owns(unit, held.token) then
      held.until_at = math.min(held.until_at, store.outsiders_wait_until(unit))
    end
    return held and held.until_at > now and held or nil
  end

  local function left_of(unit)
    return math.max(store.outsiders_wait_until(unit), unit.not_before or 0) - now
  end

  -- A site's mutex that isn't there although its last start is younger than the interval, as it was evicted or flushed, or
  -- although there may have been one that a restart forgot.
  local function is_too_early(unit)
    return places.notices_restart(unit) or left_of(unit) > 0
  end

  -- Somebody asks for the mutex of a site while a start of the site's own holds it: the next claim lets it in.
  -- Where it was too slow for its turn after the start before, this turn is twice as long.
  local function book_turn(unit, token, expire)
    if not places.owns(unit, token) then
      return
    end
    local booked = unit.courtesy_token
    if booked ~= unit.last_token then
      local missed = booked ~= nil and booked == unit.before_token
      unit.courtesy_ms = missed and longer(unit.courtesy_ms) or courtesy(expire)
      unit.courtesy_token = unit.last_token
      places.save_unit(unit)
    end
  end

  -- The lock that the claims met isn't the one that ends next: they have no turn after it. Who waited came in: claims
  -- need not wait for it, and its next turn is an ordinary one.
  local function was_another(unit)
    local waited = unit.courtesy_token
    unit.courtesy_token, unit.courtesy_ms = nil, nil
    if waited or (unit.held_until or 0) > 0 then
      unit.held_by_another = (unit.held_until or 0) > 0 and 1 or nil
      places.save_unit(unit)
    end
  end

  -- Takes a mutex for `expire` ms if it is free, from `lead` ms on. Asked again with the same token, it answers the same.
  function lock.try(name, token, expire, lead)
    records.sweep_mutexes()
    sites_of.sweep_units()
    local unit = unit_of(name)
    local held = held_now(name, unit, expire)
    if held and held.token == token then
      return { taken = held.until_at - expire }
    end
    if not held and unit and is_too_early(unit) then
      places.retime(unit)
      return { held = math.max(1, left_of(unit)) }
    end
    if held then
      if unit then
        book_turn(unit, held.token, expire)
      end
      return { held = held.until_at - now }
    end
    if unit and (unit.held_until or 0) > 0 and not unit.held_by_another then
      local turn = math.max(unit.turn or 0, courtesy(expire))
      if unit.held_until + turn > now then
        return { held = unit.held_until + turn - now }
      end
      unit.turn = longer(turn)
    end
    local from = now + math.min(LONGEST_LEAD, math.max(0, lead or 0))
    records.save_mutex(name, token, from + expire)
    if unit then
      was_another(unit)
    end
    return { taken = from }
  end

  -- A unit that waits for an outsider's lock need not wait longer than that lasts now (L1).
  local function bring_forward(name, until_at)
    local unit = unit_of(name)
    if unit and (unit.held_until or 0) > until_at then
      unit.held_until = until_at
      places.save_unit(unit)
    end
  end

  function lock.holds(name, token)
    local held = records.mutex(name)
    return held ~= nil and held.token == token
  end

  function lock.unlock(name, token)
    if not lock.holds(name, token) then
      return false
    end
    records.remove_mutex(name)
    bring_forward(name, 0)
    return true
  end

  function lock.extend(name, token, expire)
    if not lock.holds(name, token) then
      return false
    end
    records.save_mutex(name, token, now + expire)
    bring_forward(name, now + expire)
    local unit = unit_of(name)
    if unit and (unit.held_until or 0) < now + expire then
      was_another(unit)
    end
    return true
  end

  function lock.left(name)
    local held = held_now(name, unit_of(name))
    return held and held.until_at - now or false
  end
end)
