-- Who holds what of the limits: claims until they are settled, then attempts until they are over.
-- A held record is {lane's key as JSON, pool, bound of the pool (-1 without), gates}.
-- A claim is {job's member, epoch of its lane, pool, bound of the pool, batch, number}; it holds one of every limit of its lane, which
-- is not forgotten before its claims are. Its name is its lane and its place; its number is that of the batch it was made in, as its
-- taker was told. Claims that are made together are leased together: a batch are their names, of which some may be settled, or claimed
-- again in another batch, when its time is up.
local claim_records, attempts = records(base .. 'claims'), records(base .. 'attempts')
local in_pools = {}
local batches, batch, leased = records(base .. 'batches'), nil, {}

-- How many more jobs a pool may run now.
function pools.count(pool)
  if not in_pools[pool] then in_pools[pool] = tonumber(call('HGET', base .. 'pools', pool) or 0) end
  return in_pools[pool]
end

local function enter(pool, change)
  in_pools[pool] = math.max(pools.count(pool) + change, 0)
end

-- One unit of everything that bounds the lane and the pool, room or not. False when nothing does.
function holds.count(def, pool, bound)
  local held = {def.j, pool, bound, {}}
  for _, passage in ipairs(def.g) do
    local gate = gates.of(passage)
    gate.held = gate.held + 1
    gates.stir(passage.i)
    table.insert(held[4], passage.i)
  end
  if bound >= 0 then enter(pool, 1) end
  return (bound >= 0 or #held[4] > 0) and held
end

function holds.free(held, unused)
  if held[3] >= 0 then enter(held[2], -1) end
  for _, gate in ipairs(held[4]) do gates.free(gate, unused) end
end

-- One unit of every limit for a job that is being claimed. L-6.
function holds.take(lane, member, serving, bound)
  local yields_to
  for _, passage in ipairs(lane.passages) do
    local gate = gates.get(passage.i)
    gates.take(gate)
    -- However much room there is, a lane that stayed would be served again and again before those that wait.
    if ring.served(gate.ring, lane.def.t, lane.def.w) and line.waits(gate, passage.group) then yields_to = passage.i end
  end
  if bound >= 0 then enter(serving, 1) end
  claims.begin(lane, member, serving, bound)
  if yields_to then standing.step_back(lane, yields_to) end
end

function claims.prefetch(lane, members)
  local names = {}
  for at, member in ipairs(members) do names[at] = lane.id .. place_of(member) end
  claim_records:prefetch(names)
end

function claims.prefetch_names(names)
  claim_records:prefetch(names)
end

function claims.is_current(lane, at)
  local claim = claim_records:get(lane.id .. at)
  return claim and claim[2] == lane.epoch
end

-- What it took of its lane's limits and of its pool, as an attempt holds it.
function claims.held(lane, claim)
  local held = {lane.def.j, claim[3], claim[4], {}}
  for at, passage in ipairs(lane.passages) do held[4][at] = passage.i end
  return held
end

function claims.begin(lane, member, serving, bound)
  local at = place_of(member)
  local name = lane.id .. at
  -- What an earlier claim of the same job held, if its lane was rebuilt since.
  if lane.stray > 0 then claims.finish(lane, at, true) end
  lane.claimed = lane.claimed + 1
  batch = batch or string.format('%d', next_tick())
  claim_records:set(name, {member, lane.epoch, serving, bound, batch, batch})
  leased[#leased + 1] = name
end

function claims.is_known(lane_id, member)
  return claim_records:get(lane_id .. place_of(member)) and true or false
end

-- The number of the claims of this script.
function claims.number()
  return batch or '0'
end

-- Whether the place is another claim's than the one with this number. Records of earlier versions have no number.
function claims.is_anothers(lane, at, number)
  local claim = claim_records:get(lane.id .. at)
  return claim and (claim[6] or claim[5]) ~= number
end

-- A claim of an earlier layout, with what is left of its time.
function claims.inherit(lane, member, pool, bound, ends, number)
  local name, alone = lane.id .. place_of(member), string.format('%d', next_tick())
  lane.stray = lane.stray + 1
  lanes.touch(lane)
  claim_records:set(name, {member, -1, pool, bound, alone, number})
  batches:set(alone, {name})
  call('ZADD', base .. 'leases', ends, alone)
end

-- A claim is over: its record, and whether its lane knew of it. With `unused` it came to nothing, and what it took is free.
function claims.finish(lane, at, unused)
  local name = lane.id .. at
  local claim = claim_records:get(name)
  if not claim then return nil, false end
  claim_records:set(name, false)
  local current = claim[2] == lane.epoch
  if current then lane.claimed = lane.claimed - 1 else lane.stray = math.max(lane.stray - 1, 0) end
  lanes.touch(lane)
  if unused then claims.free(lane, claim) end
  return claim, current
end

-- It came to nothing: rates are not charged.
function claims.free(lane, claim)
  if claim[4] >= 0 then enter(claim[3], -1) end
  for _, passage in ipairs(lane.passages) do gates.free(passage.i, true) end
end

-- Claims whose time is up go back to their place: whoever took them is gone, or will find that they are not his any more.
local EXPIRED_MAX = 4
function claims.expire(at)
  local expired = call('ZRANGEBYSCORE', base .. 'leases', '-inf', at, 'LIMIT', 0, EXPIRED_MAX)
  for _, number in ipairs(expired) do
    local names = batches:get(number) or {}
    claim_records:prefetch(names)
    for _, name in ipairs(names) do
      local claim = claim_records:get(name)
      local lane = claim and claim[5] == number and lanes.get(string.sub(name, 1, ID))
      if lane then
        local _, current = claims.finish(lane, string.sub(name, ID + 1), true)
        if current then
          window.add(lane, {claim[1]})
          standing.follow(lane)
        end
      end
    end
    batches:set(number, false)
  end
  if expired[1] then call('ZREM', base .. 'leases', unpack(expired)) end
  standing.settle()
end

-- The attempt holds what its claim took.
function holds.begin(token, lane, claim)
  if claim[4] < 0 and not lane.passages[1] then return end
  local held = claims.held(lane, claim)
  if attempts:get(token) then holds.free(held, false) else attempts:set(token, held) end
end

-- Counts an attempt, or counts it anew if it is known to be elsewhere.
function holds.hold(def, pool, bound, token)
  local known = attempts:get(token)
  if known and known[1] == def.j and known[2] == pool then return end
  if known then holds.free(known, false) end
  attempts:set(token, holds.count(def, pool, bound))
end

-- Whether the attempt's pool was full.
function holds.release(token)
  local held = attempts:get(token)
  if not held then return false end
  local full = held[3] >= 0 and pools.count(held[2]) >= held[3]
  attempts:set(token, false)
  holds.free(held, false)
  return full
end

function holds.prefetch(tokens)
  attempts:prefetch(tokens)
end

function holds.flush(lease_until)
  if batch then
    batches:set(batch, leased)
    call('ZADD', base .. 'leases', lease_until, batch)
  end
  batches:flush()
  claim_records:flush()
  attempts:flush()
  for pool, count in pairs(in_pools) do
    if count > 0 then call('HSET', base .. 'pools', pool, count) else call('HDEL', base .. 'pools', pool) end
  end
end
