-- One page of the lane {id}. `last` is the place of its last job, or empty when the Store has no more.
local function main()
  local lane = lanes.get(body.lane)
  local members = {}
  for at = 4, #ARGV do members[#members + 1] = ARGV[at] end
  if lane and window.feed(lane, body.ticket, body.last, members) then standing.follow(lane) end
  return {'ok'}
end
