-- What people did to a site: a list of "MS JSON", the latest first. What concerns no site that is there is under no name.
local acts = module(function(acts)
  local function key_of(site)
    return store.key_of_site('acts:%s', site)
  end

  local function time_of(entry)
    return entry and tonumber(string.match(entry, '^%d+'))
  end

  -- Of a site that is there.
  function acts.keep(site, act)
    local key = key_of(site)
    call('LPUSH', key, string.format('%.0f ', now) .. act)
    call('LTRIM', key, 0, MOST_ACTS - 1)
    while (time_of(call('LINDEX', key, -1)) or now) < now - ACTS_KEPT_MS do -- at most as many as are kept
      call('RPOP', key)
    end
  end

  function acts.note(site, act)
    if site ~= '' and not store.site(site) then
      return false
    end
    acts.keep(site, act)
    return true
  end

  function acts.all(site)
    local found = {}
    for _, entry in ipairs(call('LRANGE', key_of(site), 0, -1)) do
      if time_of(entry) > now - ACTS_KEPT_MS then
        found[#found + 1] = entry
      end
    end
    return found
  end
end)
