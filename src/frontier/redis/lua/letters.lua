-- Dead letters, as people look at them and put them away.
local letters = module(function(letters)
  -- The letters that follow one, which may be gone; by time of death, then stage and URL.
  function letters.after(site, most, after)
    local key = P .. 'dead:' .. site
    after = after or { '-inf', '' }
    local rank = call('ZRANK', key, after[2])
    if rank then
      return tasks.read_letters(site, call('ZRANGE', key, rank + 1, rank + most))
    end
    local found = {}
    for _, member in ipairs(call('ZRANGEBYSCORE', key, after[1], after[1])) do -- those that died in one ms
      if member > after[2] and #found < most then
        found[#found + 1] = member
      end
    end
    if #found < most then
      for _, member in ipairs(call('ZRANGEBYSCORE', key, '(' .. after[1], '+inf', 'LIMIT', 0, most - #found)) do
        found[#found + 1] = member
      end
    end
    return tasks.read_letters(site, found)
  end

  -- Removes letters; a page that died in this run stays known.
  function letters.drop(name, members)
    local site, dropped = store.site(name), {}
    for i, member in ipairs(members) do
      local stage, url = string.sub(member, 1, 1), string.sub(member, 2)
      local letter = site and tasks.dead(site, stage, url)
      if letter then
        tasks.remove_dead(site, stage, url)
        batches.drop(site, letter)
        sessions.release(site, letter.session)
        if stage == 'd' and letter.run == site.run then
          tasks.add_known(site, url)
        end
      end
      dropped[i] = letter and true or false
    end
    if site then
      store.save_site(site)
    end
    return dropped
  end
end)
