-- Jobs of the lanes {id, how many, def or nothing}, whose members follow lane by lane.
local function main()
  local missing = lanes.look(body.lanes)
  if missing[1] then return {'missing', missing} end
  local from = 4
  for _, entry in ipairs(body.lanes) do
    local members = {}
    for at = 1, entry[2] do members[at] = ARGV[from + at - 1] end
    from = from + entry[2]
    local lane = lanes.make(entry[1], entry[3])
    window.add(lane, members)
    standing.follow(lane)
    standing.settle()
  end
  lanes.sweep()
  return {'ok'}
end
