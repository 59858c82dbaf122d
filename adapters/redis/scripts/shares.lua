-- What tenants got of the turns they were entitled to. A track is one pool's tenants of one priority; it counts turns per
-- unit of weight, and a tenant reads the count when its work begins and ends.
-- A pace is {turns per weight, weight}; a share is {claims, entitled on tracks it left, tracks it is on, lanes}.
local paces, tenants = records(base .. 'paces'), records(base .. 'shares')
local claimed_now = {}

function shares.of(tenant)
  local share = tenants:get(tenant) or {0, 0, {}, 0}
  tenants:set(tenant, share)
  return share
end

-- The tenant has claimable work from now on.
function shares.begin(track, tenant, weight)
  local pace = paces:get(track) or {0, 0}
  pace[2] = pace[2] + weight
  paces:set(track, pace)
  shares.of(tenant)[3][track] = {weight, pace[1]}
end

local function running(on, track)
  local pace = paces:get(track) or {0, 0}
  return on[1] * (pace[1] - on[2])
end

function shares.finish(track, tenant)
  local share, pace = shares.of(tenant), paces:get(track)
  local on = share[3][track]
  if not on or not pace then return end
  share[2] = share[2] + running(on, track)
  share[3][track] = nil
  pace[2] = pace[2] - on[1]
  paces:mark(track)
end

function shares.claimed(track, tenant)
  local pace = paces:get(track)
  if pace and pace[2] > 0 then
    pace[1] = pace[1] + 1 / pace[2]
    paces:mark(track)
  end
  local share = shares.of(tenant)
  share[1] = share[1] + 1
  claimed_now[tenant] = share
end

-- Claims and turns entitled to, of a tenant that ever had work.
function shares.view(tenant)
  local share = tenants:get(tenant)
  if not share then return nil end
  local entitled, active = share[2], false
  for track, on in pairs(share[3]) do
    entitled, active = entitled + running(on, track), true
  end
  if share[1] == 0 and entitled == 0 and not active then return nil end
  return share[1], entitled
end

-- A lane of the tenant is known, or forgotten; a tenant without any is forgotten too.
function shares.lanes(tenant, change)
  local share = shares.of(tenant)
  share[4] = share[4] + change
  if share[4] > 0 then
    call('ZADD', base .. 'served', 'NX', 0, tenant)
  else
    tenants:set(tenant, false)
    call('ZREM', base .. 'served', tenant)
  end
end

function shares.flush()
  local served = {}
  for tenant, share in pairs(claimed_now) do
    served[#served + 1] = share[1]
    served[#served + 1] = tenant
  end
  call_many('ZADD', base .. 'served', served)
  paces:flush()
  tenants:flush()
end
