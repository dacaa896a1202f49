-- Pages whose `recrawl` is over are asked for again.
local feed = module(function(feed)
  -- Puts pages whose time has come as requests, the longest due first. Each is due again a period later, whatever becomes
  -- of the request. A page that is being fetched just now isn't asked for once more: that fetch is its re-crawl. Nor is one that holds a
  -- session. A site
  -- with enough waiting downloads is passed over until it has room. So many pages are looked at, put or not.
  function feed.step(most)
    local fed, looks = 0, math.min(most, FED)
    local at, name, url, left = pages.first_again(REMOVED)
    while looks > 0 and url and at <= now do
      looks = looks - 1
      local site, page = store.site(name), kept.page(name, url)
      local depth = page.depth
      pages.save(site, url, page, { fence = page.fence, stored = page.stored, depth = depth, recrawl = page.recrawl })
      local task = tasks.find(site, 'd', url)
      local letter = site.held and not task and tasks.dead(site, 'd', url)
      if not (task and task.place == RUNNING) and not (letter and letter.session) then
        -- As far from a seed as it was: what `max_depth` holds off its links stays off.
        put.one(site, 'd', { url = url, link = false, priority = PRIORITY_RECRAWL, depth = depth })
        fed = fed + 1
      end
      store.save_site(site)
      at, name, url, left = pages.first_again(left)
    end
    if at and not url then
      return { fed, 0 }
    end
    return { fed, at and math.max(0, at - now) or false }
  end
end)
