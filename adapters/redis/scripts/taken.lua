-- How many jobs were claimed from the lanes of each pool: pool, jobs.
local function main()
  local counts = call('HGETALL', base .. 'taken')
  for at = 2, #counts, 2 do counts[at] = tonumber(counts[at]) end
  return {'ok', counts}
end
