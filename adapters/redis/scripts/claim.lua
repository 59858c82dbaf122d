-- One claim: turns go round until the seats, the limits or the jobs are used up.

-- How much older than the latest claim's a claim's time may be because it was overtaken, or because clocks of several
-- machines differ. More than that means that the clock was set back.
local OVERTAKEN_MAX = 30000
local COOLED_MAX = 500

local function set_back()
  for _, id in ipairs(call('HKEYS', base .. 'gates')) do
    local gate = gates.get(id)
    if gate.rate > 0 then
      bucket.set_back(gate)
      gates.touch(gate)
      gates.stir(id)
    end
  end
end

-- Limits by time may have room again.
local function pass_time(at)
  local before = now
  if at < before and before - at <= OVERTAKEN_MAX then at = before end
  now = at
  for _, id in ipairs(call('ZRANGEBYSCORE', base .. 'cooling', '-inf', now, 'LIMIT', 0, COOLED_MAX)) do
    call('ZREM', base .. 'cooling', id)
    local gate = gates.get(id)
    if gate then gates.forget_if_unused(gate) end
  end
  if at < before then
    set_back()
  else
    for _, id in ipairs(call('ZRANGEBYSCORE', base .. 'due', '-inf', now)) do gates.stir(id) end
  end
  standing.settle()
end

-- The tenants whose turn it is, by priority, kept while nothing changes them.
local tiers = {}

local function want(tier, fit)
  if seats.has(fit) and not tier.wants[fit] then
    tier.wants[fit] = true
    table.insert(tier.wanted, fit)
  end
end

local function begin_turns()
  for p = 1, 4 do
    local tier = queue.tier(p - 1, body.pool)
    tier.wants, tier.wanted, tier.joined = {}, {}, {}
    for _, fits_of_seat in ipairs(body.fits) do
      for _, fit in ipairs(fits_of_seat) do want(tier, fit) end
    end
    tiers[p] = tier
  end
end

-- Whose turn it is in one tier. Fits that have no seat or no jobs left are not asked for again until a lane joins.
local function look_at(tier)
  local best, best_place, left = nil, nil, false
  for _, fit in ipairs(tier.wanted) do
    local tenant, place
    if seats.has(fit) then tenant, place = ring.first(tier.ring, fit) end
    if not tenant then
      tier.wants[fit], left = nil, true
    elseif not best or place < best_place then
      best, best_place = tenant, place
    end
  end
  if left then
    local still = {}
    for _, fit in ipairs(tier.wanted) do
      if tier.wants[fit] then still[#still + 1] = fit end
    end
    tier.wanted = still
  end
  tier.next, tier.moved = best, false
end

-- Goes on after a job was taken; `closed` when some fit has no seat left.
local function look(closed)
  for p = 1, 4 do
    local tier = tiers[p]
    if tier.joined[1] then
      for _, fit in ipairs(tier.joined) do want(tier, fit) end
      tier.joined = {}
    end
    if closed or tier.moved then look_at(tier) end
  end
end

local taken = {lanes = {}, numbers = {}, claims = {}, count = 0}

local function answer_with(seat, lane, member)
  local number = taken.numbers[lane.id]
  if not number then
    number = #taken.lanes / 2 + 1
    taken.numbers[lane.id] = number
    table.insert(taken.lanes, lane.id)
    table.insert(taken.lanes, lane.def.j)
  end
  local list, count = taken.claims, taken.count
  list[count + 1], list[count + 2], list[count + 3] = seat, number, member
  taken.count = count + 3
end

-- Takes the head of a claimable lane for a seat, with its limits. Whether some fit has no seat left now.
local function claim_head(lane)
  local seat, closed = seats.take(lane.def.f)
  lane.since = next_tick()
  shares.claimed(lane.track, lane.def.t)
  queue.served(lane)
  local member = window.take(lane)
  standing.follow(lane)
  holds.take(lane, member, body.serving, body.bound)
  standing.settle()
  answer_with(seat, lane, member)
  return closed
end

local function claim_all()
  local limit = body.limit
  if body.bound >= 0 then limit = math.min(limit, body.bound - pools.count(body.serving)) end
  begin_turns()
  look(true)
  for _ = 1, limit do
    local p = turns.take(body.pool, body.weights, tiers)
    local lane = p and queue.oldest(tiers[p], tiers[p].next, seats.has)
    if not lane then break end
    look(claim_head(lane))
  end
  turns.flush()
end

local function main()
  local clock = call('TIME')
  local clock_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
  lease_until = clock_ms + body.lease
  claims.expire(clock_ms)
  pass_time(body.now)
  -- Until everything that is held was counted again, there might be less room than there seems to be.
  if meta[6] ~= '0' and body.pool ~= '' then claim_all() end
  if taken.count > 0 then call('HINCRBY', base .. 'taken', body.pool, taken.count / 3) end
  local due = call('ZRANGE', base .. 'due', 0, 0, 'WITHSCORES')
  return {'ok', tonumber(due[2]) or -1, claims.number(), taken.lanes, taken.claims}
end
