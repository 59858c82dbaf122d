-- All lanes. What follows from a lane's key and the layout is its `def`, which the caller sends with a lane that is new here:
-- j key as JSON, q first pool ('' when no pool takes it), b bound of that pool (-1 without), p priority, t tenant, f fit,
-- s shape of the fit as JSON, w weight of the tenant, g limits: i id, k key, m bound, r and n rate.
local defs, states = records(base .. 'lanes'), records(base .. 'states')
local lane_objects = {}
-- Names of the state's fields, in the order in which they are stored.
local STATE = {
  'st', 'gate', 'head', 'since', 'demanded', 'claimed', 'stray', 'epoch', 'waiting', 'front', 'more', 'after', 'beyond',
  'ticket', 'asker', 'idle', 'fronted', 'depth',
}
-- st is e (empty), o (open: in its queue with this head) or w (waiting in the line of this gate). `stray` claims were
-- forgotten by a rebuild and are not settled yet. With `more`, the Store has jobs after `after` that are not here.
local NEW = {'e', '', '', 0, 0, 0, 0, 0, 0, '', 0, '', 0, 0, '', 1, '', 0}

local function lane_object(id, def, state)
  local lane = {id = id, def = def}
  for at, name in ipairs(STATE) do lane[name] = state[at] end
  lane.passages = {}
  for at, limit in ipairs(def.g) do
    lane.passages[at] = {i = limit.i, m = limit.m, group = string.format('%010d%d%s', limit.m, def.p, def.f)}
  end
  lane.track = def.p .. ':' .. def.q
  lane.key = base .. 'w:' .. id
  lane_objects[id] = lane
  return lane
end

function lanes.get(id)
  local lane = lane_objects[id]
  if lane == nil then
    local def = defs:get(id)
    lane = def and lane_object(id, def, states:get(id) or NEW)
    lane_objects[id] = lane
  end
  return lane
end

function lanes.prefetch(ids)
  defs:prefetch(ids)
  states:prefetch(ids)
end

function lanes.touch(lane)
  states:mark(lane.id)
end

-- Looks the lanes of a call up: {id, a number, def or nothing}. Those that are neither known nor defined are missing.
function lanes.look(wanted)
  local ids, missing = {}, {}
  for n, entry in ipairs(wanted) do ids[n] = entry[1] end
  lanes.prefetch(ids)
  for _, entry in ipairs(wanted) do
    if not defs:get(entry[1]) and not entry[3] then missing[#missing + 1] = entry[1] end
  end
  return missing
end

-- A lane that is known, or made of its definition.
function lanes.make(id, def)
  local lane = lanes.get(id)
  if lane then return lane end
  lane = lane_object(id, def, NEW)
  defs:set(id, {j = def.j, q = def.q, b = def.b, p = def.p, t = def.t, f = def.f, w = def.w, g = def.g})
  lanes.touch(lane)
  for _, passage in ipairs(def.g) do
    local gate = gates.of(passage)
    gate.lanes = gate.lanes + 1
  end
  fits.count(def, 1)
  shares.lanes(def.t, 1)
  call('ZADD', base .. 'idle', next_tick(), id)
  return lane
end

local function forget(lane)
  for _, passage in ipairs(lane.def.g) do gates.part(passage.i) end
  fits.count(lane.def, -1)
  shares.lanes(lane.def.t, -1)
  lane_objects[lane.id] = false
  defs:set(lane.id, false)
  states:set(lane.id, false)
end

-- Empty lanes are kept for the next job of their kind, up to a point. Each script forgets no more than it may have made.
local IDLE_MAX = 1024
function lanes.sweep()
  local idle = call('ZCARD', base .. 'idle')
  if idle <= math.max(IDLE_MAX, call('HLEN', base .. 'lanes') / 2) then return end
  local oldest = call('ZPOPMIN', base .. 'idle', math.min(idle, #states.order + 64))
  local ids = {}
  for at = 1, #oldest, 2 do ids[#ids + 1] = oldest[at] end
  lanes.prefetch(ids)
  for _, id in ipairs(ids) do
    local lane = lanes.get(id)
    if lane and window.is_idle(lane) then forget(lane) end
  end
end

local function follow_idle(lane)
  local idle = window.is_idle(lane) and 1 or 0
  if idle == lane.idle then return end
  lane.idle = idle
  if idle == 1 then call('ZADD', base .. 'idle', next_tick(), lane.id) else call('ZREM', base .. 'idle', lane.id) end
end

-- The oldest jobs of a tenant, whether a limit holds them back or not.
local function follow_front(lane)
  if lane.front == lane.fronted then return end
  local key = base .. 'a:' .. lane.def.t
  if lane.fronted ~= '' then call('ZREM', key, lane.fronted .. lane.id) end
  if lane.front ~= '' then call('ZADD', key, 0, lane.front .. lane.id) end
  lane.fronted = lane.front
end

local function follow_demand(lane)
  local claimable = lane.st == 'o' and lane.waiting or 0
  if claimable ~= lane.demanded then
    fits.demand(lane.def, claimable - lane.demanded)
    lane.demanded = claimable
  end
end

function lanes.flush()
  local deep, shallow = {}, {}
  for _, id in ipairs(states.order) do
    local lane = lane_objects[id]
    if lane then
      window.cut(lane)
      follow_front(lane)
      follow_demand(lane)
      follow_idle(lane)
      local depth = lane.waiting + lane.claimed + (lane.more == 1 and lane.beyond or 0)
      if depth > 0 and depth ~= lane.depth then
        deep[#deep + 1] = depth
        deep[#deep + 1] = id
      elseif depth == 0 and lane.depth > 0 then
        shallow[#shallow + 1] = id
      end
      lane.depth = depth
      local state = {}
      for at, name in ipairs(STATE) do state[at] = lane[name] end
      states.known[id] = state
    end
  end
  call_many('ZADD', base .. 'depths', deep)
  call_many('ZREM', base .. 'depths', shallow)
  defs:flush()
  states:flush()
end

-- What lanes ask of a worker: {shape as JSON, pool, lanes, claimable jobs}.
local fit_records = records(base .. 'fits')

function fits.count(def, change)
  local fit = fit_records:get(def.f) or {def.s, def.q, 0, 0}
  fit[3] = fit[3] + change
  fit_records:set(def.f, fit[3] > 0 and fit)
end

function fits.demand(def, change)
  local fit = fit_records:get(def.f)
  if not fit then return end
  local before = fit[4]
  fit[4] = before + change
  fit_records:mark(def.f)
  if before == 0 then call('SADD', base .. 'demand', def.f) end
  if fit[4] == 0 then call('SREM', base .. 'demand', def.f) end
end

function fits.get(name)
  return fit_records:get(name)
end

function fits.flush()
  fit_records:flush()
end
