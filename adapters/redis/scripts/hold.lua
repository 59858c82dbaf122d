-- Attempts that run: number of the lane, pool, bound of the pool, token. Lanes are {id, 0, def}.
local function main()
  local tokens = {}
  for at = 7, #ARGV, 4 do tokens[#tokens + 1] = ARGV[at] end
  holds.prefetch(tokens)
  for at = 4, #ARGV, 4 do
    holds.hold(body.lanes[tonumber(ARGV[at])][3], ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3])
    standing.settle()
  end
  return {'ok'}
end
