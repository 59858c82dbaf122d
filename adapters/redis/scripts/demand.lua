-- What could be claimed now: pool, shape, urgency, jobs.
local function main()
  local names, demand = call('SMEMBERS', base .. 'demand'), {}
  for _, name in ipairs(names) do
    local fit, urgency = fits.get(name), 0
    local ring_of = ':' .. fit[2] .. ':' .. name
    while urgency < 3 and call('EXISTS', base .. 'r:' .. urgency .. ring_of) == 0 do urgency = urgency + 1 end
    for _, value in ipairs({fit[2], fit[1], urgency, fit[4]}) do demand[#demand + 1] = value end
  end
  return {'ok', demand}
end
