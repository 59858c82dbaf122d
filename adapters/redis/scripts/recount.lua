-- Claims of an earlier layout: number of the lane, pool, bound of the pool, member, end of its lease, number. Lanes are
-- {id, 0, def}. They know nothing of them any more; they hold what they take until they are settled or their time is up.
local function main()
  for at = 4, #ARGV, 6 do
    local entry = body.lanes[tonumber(ARGV[at])]
    local pool, bound = ARGV[at + 1], tonumber(ARGV[at + 2])
    -- Said twice it counts once.
    local known = claims.is_known(entry[1], ARGV[at + 3])
    if not known and holds.count(entry[3], pool, bound) then
      claims.inherit(lanes.make(entry[1], entry[3]), ARGV[at + 3], pool, bound, ARGV[at + 4], ARGV[at + 5])
    end
  end
  if body.last and meta[6] == '0' then call('HSET', root .. ':meta', 'built', 1) end
  return {'ok'}
end
