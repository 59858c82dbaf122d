-- Lanes of which the Store has more. A lane is asked for by one caller at a time: an ask is its own for a while, and the
-- same caller may ask again at once.
local function main()
  local clock = call('TIME')
  local clock_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
  local asks, asked = {}, {}
  local listed = call('ZRANGE', base .. 'hungry', 0, body.looks - 1, 'WITHSCORES')
  for at = 1, #listed, 2 do
    local lane = lanes.get(listed[at])
    if #asks < body.asks * 4 and lane and (tonumber(listed[at + 1]) <= clock_ms or lane.asker == body.asker) then
      lane.ticket, lane.asker = next_tick(), body.asker
      lanes.touch(lane)
      asked[#asked + 1] = clock_ms + body.lease
      asked[#asked + 1] = lane.id
      for _, value in ipairs({lane.id, lane.def.j, lane.after, lane.ticket}) do asks[#asks + 1] = value end
    end
  end
  call_many('ZADD', base .. 'hungry', asked)
  return {'ok', asks}
end
