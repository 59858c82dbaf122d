-- Limits as they stand now: held, when the rate has room again or -1, whether it is full.
local function main()
  local views = {}
  for _, limit in ipairs(body.limits) do
    local gate = gates.get(limit.i)
    local held, again_at, room = 0, -1, limit.m
    if gate then held, again_at, room = gate.held, bucket.again_at(gate) or -1, gates.room(gate, limit.m) end
    for _, value in ipairs({held, again_at, room == 0 and 1 or 0}) do views[#views + 1] = value end
  end
  return {'ok', views}
end
