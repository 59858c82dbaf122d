-- The lanes {id, how many jobs wait, def or nothing} begin anew.
local function main()
  local missing = lanes.look(body.lanes)
  if missing[1] then return {'missing', missing} end
  for _, entry in ipairs(body.lanes) do
    local lane = lanes.make(entry[1], entry[3])
    window.restart(lane, entry[2])
    standing.follow(lane)
    standing.settle()
  end
  if body.last then
    call('HSET', root .. ':meta', 'built', 2)
    call('HINCRBY', root .. ':meta', 'rebuilds', 1)
  end
  return {'ok'}
end
