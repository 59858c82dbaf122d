-- Lanes with waiting jobs, deepest first, from the one numbered `from`: id, key, pool, jobs, those that nobody has claimed,
-- whether a limit holds them back, head.
local function main()
  local listed, ids, depths = call('ZREVRANGE', base .. 'depths', body.from, body.from + body.count - 1, 'WITHSCORES'), {}, {}
  for at = 1, #listed, 2 do ids[#ids + 1] = listed[at] end
  lanes.prefetch(ids)
  for at = 1, #listed, 2 do
    local lane = lanes.get(listed[at])
    if lane then
      local depth, limited = tonumber(listed[at + 1]), lane.st == 'w' and 1 or 0
      local values = {lane.id, lane.def.j, lane.def.q, depth, math.max(depth - lane.claimed, 0), limited, lane.front}
      for _, value in ipairs(values) do depths[#depths + 1] = value end
    end
  end
  return {'ok', depths}
end
