-- What people do to downloads that wait: look at them, and drop them, raise or lower them, move them to another lane.
local queue = module(function(queue)
  -- Those of a lane behind that place, which comes as {priority, ms}, in order.
  function queue.list(name, lane, after, most)
    local site, found = store.site(name), {}
    if not site then
      return false
    end
    -- Those before are hosts' robots.txt.
    local priority, put_at = unpack(after or { PRIORITY_ROBOTS + 1, EPOCH - 1 })
    for i, task in ipairs(tasks.waiting_behind(site, 'd', lane, priority, put_at - EPOCH, math.min(most, QUEUE_LISTED))) do
      found[i] = {
        task.url, task.priority, EPOCH + task.position, task.depth, task.lane or false, task.tenant or false, task.batches or false,
      }
    end
    return found
  end

  -- Somebody may have asked for it otherwise since.
  local AS_SEEN = {
    drop = function()
      return true
    end,
    priority = function(task, from)
      return task.priority == from and not task.session -- the steps of a session keep their order
    end,
    lane = function(task, from)
      return (task.lane or LANE) == from
    end,
  }

  local CHANGES = {
    drop = function(site, task)
      places.drop(site, task)
    end,
    priority = function(_, task, priority)
      task.priority = priority
      tasks.save(task)
    end,
    lane = function(site, task, lane)
      places.change_lane(site, task, lane ~= LANE and lane or nil)
    end,
  }

  -- Changes those of the pages that wait as they were seen to; how many they are.
  function queue.change(name, urls, change)
    local site, changed = store.site(name), 0
    if not site then
      return false
    end
    for _, url in ipairs(urls) do
      local task = tasks.find(site, 'd', url)
      if task and task.place == WAITING and not task.errand and AS_SEEN[change[1]](task, change[2]) then
        changed = changed + 1
        CHANGES[change[1]](site, task, change[3])
      end
    end
    store.save_site(site)
    return changed
  end
end)
