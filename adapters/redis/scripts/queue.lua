-- The claimable lanes of one pool: of each priority a ring of tenants, and of each tenant and fit its lanes, the one with
-- the oldest head first.
local queue_tiers = {}

-- Seats may be fit for what waits in other pools: a ring knows only its own pool's tenants.
function queue.tier(p, pool)
  local name = p .. ':' .. pool
  local tier = queue_tiers[name]
  if not tier then
    tier = {p = p, ring = ring.at(base .. 'm:' .. name, base .. 'r:' .. name .. ':'), heads = {}, joined = {}, moved = true}
    queue_tiers[name] = tier
  end
  return tier
end

local function tier_of(lane)
  if not lane.tier then lane.tier = queue.tier(lane.def.p, lane.def.q) end
  return lane.tier
end

-- Lanes of one tenant and fit, by their heads: a set of head and lane. The first is kept, and the second's head: while the
-- first one's stays before it, nothing needs to be written until the end.
local head_order = {}

local function heads_of(tier, fit, tenant)
  local by_tenant = tier.heads[fit]
  if not by_tenant then
    by_tenant = {}
    tier.heads[fit] = by_tenant
  end
  local heads = by_tenant[tenant]
  if not heads then
    heads = {key = base .. 'h:' .. tier.p .. ':' .. fit .. ':' .. tenant}
    by_tenant[tenant] = heads
    head_order[#head_order + 1] = heads
  end
  return heads
end

local function heads_of_lane(lane)
  if not lane.heads_set then lane.heads_set = heads_of(tier_of(lane), lane.def.f, lane.def.t) end
  return lane.heads_set
end

local function read(heads)
  if not heads.known then
    local two = call('ZRANGE', heads.key, 0, 1)
    heads.known, heads.head, heads.second = true, two[1] and place_of(two[1]), two[2]
    heads.lane, heads.stored = two[1] and string.sub(two[1], PLACE + 1), heads.head
  end
end

-- What is kept is written, and read again when it is needed.
local function write(heads)
  if heads.known and heads.stored ~= heads.head then
    call('ZREM', heads.key, heads.stored .. heads.lane)
    call('ZADD', heads.key, '0', heads.head .. heads.lane)
  end
  heads.known = false
end

-- True when the lane is the first of its tenant and priority.
function queue.join(lane)
  local tier, heads = tier_of(lane), heads_of_lane(lane)
  local first = not ring.has(tier.ring, lane.def.t)
  ring.join(tier.ring, lane.def.t, lane.def.f)
  write(heads)
  call('ZADD', heads.key, '0', lane.head .. lane.id)
  tier.moved = true
  tier.joined[#tier.joined + 1] = lane.def.f
  return first
end

-- True when the lane was the last of its tenant and priority.
function queue.leave(lane)
  local tier, heads = tier_of(lane), heads_of_lane(lane)
  write(heads)
  call('ZREM', heads.key, lane.head .. lane.id)
  read(heads)
  if not heads.head then ring.leave(tier.ring, lane.def.t, lane.def.f) end
  tier.moved = true
  return not ring.has(tier.ring, lane.def.t)
end

function queue.head_changed(lane, before)
  local heads = heads_of_lane(lane)
  read(heads)
  if heads.lane == lane.id and (not heads.second or is_before(lane.head, heads.second)) then
    heads.head = lane.head
    return
  end
  write(heads)
  call('ZREM', heads.key, before .. lane.id)
  call('ZADD', heads.key, '0', lane.head .. lane.id)
end

-- The lane with the oldest head of a tenant, among the fits that have a seat.
function queue.oldest(tier, tenant, has_seat)
  local oldest
  for _, fit in ipairs(ring.kinds_of(tier.ring, tenant)) do
    if has_seat(fit) then
      local heads = heads_of(tier, fit, tenant)
      read(heads)
      if heads.head and (not oldest or is_before(heads.head, oldest.head)) then oldest = heads end
    end
  end
  return oldest and lanes.get(oldest.lane)
end

function queue.served(lane)
  local tier = tier_of(lane)
  local _, moved = ring.served(tier.ring, lane.def.t, lane.def.w)
  if moved then tier.moved = true end
end

function queue.flush()
  for _, heads in ipairs(head_order) do write(heads) end
end
