-- What is booked of every site, whichever partition it lies in: whose a host is, and of which unit a site is.
local directory = module(function(directory)
  -- A site that is on its way from one unit to another may be in either: it is of neither alone.
  local function is_of(site, group)
    local to = call('HGET', P .. 'moving', site)
    return call('HGET', P .. 'units', site) == group and (not to or to == group)
  end

  -- A host belongs to one site, unless both are of one group: else two files would double a shop's load. Those that have a host
  -- are all of one group, so two of them tell; unless one of them is on its way to another.
  function directory.foreign_host(new)
    local last = call('EXISTS', P .. 'moving') == 1 and -1 or 1
    for _, host in ipairs(new.hosts) do
      for _, owner in ipairs(call('LRANGE', P .. 'host:' .. host, 0, last)) do
        if owner ~= new.name and not (new.group and is_of(owner, new.group)) then
          return filled(FOREIGN_HOST, { host = host, owner = owner })
        end
      end
    end
    return nil
  end

  local function add_hosts(new)
    for _, host in ipairs(new.hosts) do
      if call('SADD', P .. 'hosts:' .. new.name, host) == 1 then
        call('RPUSH', P .. 'host:' .. host, new.name)
      end
    end
  end

  -- Hosts that the site's file named and names no more.
  function directory.dropped(new)
    local wanted, dropped = {}, {}
    for _, host in ipairs(new.hosts) do
      wanted[host] = true
    end
    for _, host in ipairs(call('SMEMBERS', P .. 'hosts:' .. new.name)) do
      dropped[#dropped + 1] = not wanted[host] and host or nil
    end
    return dropped
  end

  local function drop_other_hosts(new)
    for _, host in ipairs(directory.dropped(new)) do
      call('SREM', P .. 'hosts:' .. new.name, host)
      call('LREM', P .. 'host:' .. host, 0, new.name)
      records.forget_robots(host)
    end
  end

  -- The site has these hosts and this unit, and no others.
  function directory.save(new)
    drop_other_hosts(new)
    add_hosts(new)
    call('HSET', P .. 'units', new.name, new.group or new.name)
    call('HDEL', P .. 'moving', new.name)
  end

  -- In another partition, where the site itself lies, its hosts are noted once more.
  function directory.copy(new)
    if P ~= DIRECTORY then
      drop_other_hosts(new)
      for _, host in ipairs(new.hosts) do
        call('SADD', P .. 'hosts:' .. new.name, host)
      end
    end
  end

  -- Reserves, for a site of another partition, its hosts beside what it has; they become its own when it is registered
  -- there. Returns the refusal, or the booking's number and whether it is all that is booked of the site.
  function directory.book(new)
    local refusal = directory.foreign_host(new)
    if refusal then
      return { refusal, 0, false }
    end
    add_hosts(new)
    local to = new.group or new.name
    call('HSETNX', P .. 'units', new.name, to)
    if call('HGET', P .. 'units', new.name) ~= to then
      call('HSET', P .. 'moving', new.name, to)
    end
    local is_all = call('SCARD', P .. 'hosts:' .. new.name) == #new.hosts
      and call('HEXISTS', P .. 'moving', new.name) == 0
    return { false, call('HINCRBY', P .. 'bookings', new.name, 1), is_all }
  end

  -- A site is registered as it was booked under that number: what else was booked of it is free. Where it was booked once
  -- more since, that may be in force already, and whoever did so says it.
  function directory.confirm(new, number)
    if tonumber(call('HGET', P .. 'bookings', new.name)) == number then
      directory.save(new)
    end
    return true
  end

  -- What was booked of a site that is forgotten.
  function directory.unbook(name)
    local key = P .. 'hosts:' .. name
    for _, host in ipairs(call('SMEMBERS', key)) do
      call('LREM', P .. 'host:' .. host, 0, name)
    end
    call('DEL', key)
    campaigns.move_names(name, nil)
    for _, book in ipairs({ 'units', 'moving', 'bookings' }) do
      call('HDEL', P .. book, name)
    end
    return true
  end

  -- What was booked of a site that is renamed.
  function directory.rebook(name, to)
    for _, host in ipairs(call('SMEMBERS', P .. 'hosts:' .. name)) do
      local key = P .. 'host:' .. host
      call('LREM', key, 0, to)
      call('LINSERT', key, 'BEFORE', name, to)
      call('LREM', key, 0, name)
    end
    call('SUNIONSTORE', P .. 'hosts:' .. to, P .. 'hosts:' .. to, P .. 'hosts:' .. name)
    call('DEL', P .. 'hosts:' .. name)
    for _, book in ipairs({ 'units', 'moving' }) do
      local unit = call('HGET', P .. book, name)
      if unit then
        call('HSET', P .. book, to, unit == name and to or unit)
        call('HDEL', P .. book, name)
      end
    end
    call('HDEL', P .. 'bookings', name)
    campaigns.move_names(name, to)
    return true
  end
end)
