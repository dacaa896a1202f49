-- The numbers of a client's batches only rise. The bytes of one whose connection was given up may arrive half a minute later,
-- when it was sent again, done, and followed by others: it must change nothing then.
local client = module(function(client)
  local KEPT_MS = 120000 -- longer than a process that can't bear a step done twice sends it again

  -- The newest number of a client, and what its batch was answered.
  local function newest(name)
    return string.match(call('GET', P .. 'client:' .. name) or '', '^(%d+) (.*)$')
  end

  function client.keep(name, number, reply)
    call('SET', P .. 'client:' .. name, number .. ' ' .. reply, 'PX', KEPT_MS)
  end

  -- Makes a client known, and answers the number that its batches come after. A hello that arrives late changes nothing; it
  -- may make known a client that was forgotten, so that number is the time: no batch that the client sent before is above it.
  function client.join(name)
    call('DEL', P .. 'client') -- see client.check
    local number = newest(name)
    if not number then
      local time = call('TIME')
      number = string.format('%.0f', time[1] * 1000000 + time[2])
      client.keep(name, number, '')
    end
    return number
  end

  -- What a batch was answered before, its answer having been lost: sent again it changes nothing (I5). Or why it is
  -- refused: only batches of a client that is known, and later than its newest, are done.
  function client.check(name, number)
    local known, reply = newest(name)
    if known == number then
      return reply
    elseif not known then
      return redis.error_reply('NOTJOINED this client is not known, or no more')
    elseif tonumber(number) < tonumber(known) then
      return redis.error_reply('OVERTAKEN a later batch of this client was done')
    end
    call('DEL', P .. 'client') -- never there: the first write is one that a full memory allows, and so are all that follow
  end
end)
