-- The limits that lanes pass: how much of each is used, and who waits for it. Only those exist that some lane knows,
-- something is held of, or whose rate remembers what was started lately.
--
-- Two things hold between scripts. No lane is let through by a limit without room. If a group waits, its bound is reached,
-- or as many of its lanes were let through as there is room, at least one.
local gate_records = records(base .. 'gates')
local gate_objects = {}
local stirred, stirred_set = {}, {}

local function gate_object(id, record)
  local gate = {id = id, key = base .. 'g:' .. id .. ':', counts = {}, counted = {}}
  gate.name, gate.held, gate.lanes, gate.rate, gate.window = record[1], record[2], record[3], record[4], record[5]
  gate.full_ms, gate.full_part, gate.due = record[6], record[7], record[8]
  gate.ring = ring.at(gate.key .. 'm', gate.key .. 'r:')
  gate_objects[id] = gate
  return gate
end

local function gate_record(gate)
  return {gate.name, gate.held, gate.lanes, gate.rate, gate.window, gate.full_ms, gate.full_part, gate.due}
end

function gates.get(id)
  local gate = gate_objects[id]
  if gate == nil then
    local record = gate_records:get(id)
    gate = record and gate_object(id, record)
    gate_objects[id] = gate
  end
  return gate
end

function gates.touch(gate)
  gate_records:mark(gate.id)
end

-- The gate of a passage, made if need be.
function gates.of(passage)
  local gate = gates.get(passage.i) or gate_object(passage.i, {passage.k, 0, 0, passage.r, passage.n, 0, 0, 0})
  if gate.rate ~= passage.r or gate.window ~= passage.n then
    gate.rate, gate.window, gate.full_ms, gate.full_part = passage.r, passage.n, 0, 0
  end
  gates.touch(gate)
  return gate
end

-- Its room or its line changed: it is looked at before the script ends.
function gates.stir(id)
  if not stirred_set[id] then
    stirred_set[id] = true
    stirred[#stirred + 1] = id
  end
end

function gates.next_stirred()
  if not stirred[1] then return nil end
  local id = table.remove(stirred, 1)
  stirred_set[id] = nil
  return id
end

function gates.room(gate, bound)
  return math.min(math.max(bound - gate.held, 0), bucket.tokens(gate))
end

-- Whether a lane that comes now must wait: others wait already, or were let through to all the room there is.
function gates.refuses(gate, passage)
  return line.count(gate, passage.group) >= gates.room(gate, passage.m) or line.waits(gate, passage.group)
end

-- Groups that wait although there is room.
function gates.callable(gate)
  return bucket.tokens(gate) == 0 and {} or line.waiting_above(gate, gate.held)
end

-- The next lane of a group, while fewer were let through than there is room.
function gates.next(gate, group)
  local room = gates.room(gate, tonumber(string.sub(group, 1, 10)))
  return line.count(gate, group) < room and line.next(gate, group)
end

-- Lanes that were let through and find no room any more.
function gates.crowded_out(gate)
  return line.open_up_to(gate, bucket.tokens(gate) == 0 and '+inf' or gate.held)
end

-- One unit for a job that is being claimed.
function gates.take(gate)
  gate.held = gate.held + 1
  bucket.take(gate)
  gates.touch(gate)
  gates.stir(gate.id)
end

-- One unit comes back; `unused` when nothing was started, so that no rate is charged.
function gates.free(id, unused)
  local gate = gates.get(id)
  if not gate then return end
  gate.held = math.max(gate.held - 1, 0)
  if unused then bucket.give_back(gate) end
  gates.touch(gate)
  gates.stir(id)
  gates.forget_if_unused(gate)
end

-- A lane that passed it is forgotten.
function gates.part(id)
  local gate = gates.get(id)
  if not gate then return end
  gate.lanes = gate.lanes - 1
  gates.touch(gate)
  gates.forget_if_unused(gate)
end

function gates.forget_if_unused(gate)
  if gate.lanes > 0 or gate.held > 0 then return end
  local full_at = bucket.full_at(gate)
  if full_at > now then
    call('ZADD', base .. 'cooling', full_at, gate.id)
  else
    call('ZREM', base .. 'due', gate.id)
    gate_objects[gate.id] = false
    gate_records:set(gate.id, false)
  end
end

-- Notes when the rate has room again, if somebody waits for nothing else.
function gates.note_due(gate)
  local due = 0
  if gate.rate > 0 and line.waiting_above(gate, gate.held, 1)[1] then due = bucket.again_at(gate) or 0 end
  if due == gate.due then return end
  gate.due = due
  gates.touch(gate)
  if due == 0 then call('ZREM', base .. 'due', gate.id) else call('ZADD', base .. 'due', due, gate.id) end
end

function gates.flush()
  for _, id in ipairs(gate_records.order) do
    local gate = gate_objects[id]
    if gate then
      gate_records.known[id] = gate_record(gate)
      line.flush(gate)
    end
  end
  gate_records:flush()
end
