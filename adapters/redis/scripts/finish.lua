-- What every script ends with: one run of its `main`, then everything that changed is written back.
local function flush()
  standing.settle()
  lanes.flush()
  holds.flush(lease_until)
  fits.flush()
  shares.flush()
  queue.flush()
  ring.flush()
  gates.flush()
  call('HSET', root .. ':meta', 'tick', tick, 'now', now)
end

local done, answer = pcall(function()
  local said = main()
  flush()
  return said
end)
if not done then
  local reason = type(answer) == 'table' and answer.err or tostring(answer)
  -- A script that fails half-way leaves what nobody can rely on: the lanes are blank, and are filled again from the Store.
  -- Where memory ran out nothing was written yet: Redis refuses the first write of a script, never a later one.
  if not string.find(reason, 'OOM', 1, true) then call('DEL', root .. ':meta') end
  return redis.error_reply(reason)
end
return answer
