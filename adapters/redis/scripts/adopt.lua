-- Lays the lanes out anew, if they are blank or follow an earlier version. What waits is forgotten; what is held is handed
-- back, for only the caller knows which limits count it now; rates go on.
local call = redis.call
local root, server, version = KEYS[1], ARGV[1], ARGV[2]
local meta = call('HMGET', root .. ':meta', 'server', 'version', 'era', 'tick', 'now', 'rebuilds')
local known = meta[1] == server
if known and meta[2] == version then return {'already'} end
if known and tonumber(meta[2]) > tonumber(version) then return {'outdated'} end

local clock = call('TIME')
local clock_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
local era = clock[1] .. string.format('%06d', clock[2])
local old, new = root .. ':' .. (meta[3] or '') .. ':', root .. ':' .. era .. ':'
local held, claimed = {}, {}

local function each(key, visit)
  local entries = call('HGETALL', old .. key)
  for at = 1, #entries, 2 do visit(entries[at], cmsgpack.unpack(entries[at + 1])) end
end

if known then
  each('attempts', function(token, attempt)
    for _, value in ipairs({attempt[1], attempt[2], token}) do held[#held + 1] = value end
  end)
  each('claims', function(name, claim)
    local ends = call('ZSCORE', old .. 'leases', claim[5]) or clock_ms
    local lane = cmsgpack.unpack(call('HGET', old .. 'lanes', string.sub(name, 1, 14)))
    for _, value in ipairs({lane.j, claim[3], claim[1], ends, claim[6] or claim[5]}) do claimed[#claimed + 1] = value end
  end)
  each('gates', function(id, gate)
    if gate[4] > 0 then
      call('HSET', new .. 'gates', id, cmsgpack.pack({gate[1], 0, 0, gate[4], gate[5], gate[6], gate[7], 0}))
      call('ZADD', new .. 'cooling', gate[6] + 1, id)
    end
  end)
end
-- Tickets must not be given out twice, not even after everything was forgotten: the count goes on from the clock.
local tick = math.max(tonumber(known and meta[4] or 0), clock_ms)
call('DEL', root .. ':meta')
call('HSET', root .. ':meta', 'server', server, 'version', version, 'era', era, 'built', 0, 'tick', tick,
  'now', known and meta[5] or 0, 'rebuilds', known and meta[6] or 0)
return {'anew', era, held, claimed}
