-- The lanes of one limit: those that may go on, and those that wait for it, tenant by tenant. A tenant keeps its place while
-- any of its lanes is in the line, let through or not: only being served moves it to the back.
--
-- A group are lanes that stand for each other: the same bound, the same urgency, the same workers. Its name begins with the
-- bound in ten digits.
local GROUP_LENGTH = 10 + 1 + ID

local function bound_of(group)
  return tonumber(string.sub(group, 1, 10))
end

local function waiting_key(gate, group, tenant)
  return base .. 'q:' .. gate.id .. ':' .. group .. ':' .. tenant
end

local function add(gate, name, change)
  local count = line.count(gate, name) + change
  gate.counts[name] = count
  gate.counted[name] = true
  gates.touch(gate)
  return count
end

function line.count(gate, name)
  local count = gate.counts[name]
  if not count then
    count = tonumber(call('HGET', gate.key .. 'n', name) or 0)
    gate.counts[name] = count
  end
  return count
end

function line.opened(gate, lane, group)
  if call('ZADD', gate.key .. 'o', bound_of(group), group .. lane.id) == 1 then
    add(gate, group, 1)
    add(gate, 't' .. lane.def.t, 1)
    ring.join(gate.ring, lane.def.t, '')
  end
end

function line.closed(gate, lane, group)
  if call('ZREM', gate.key .. 'o', group .. lane.id) == 0 then return end
  add(gate, group, -1)
  if add(gate, 't' .. lane.def.t, -1) == 0 then ring.leave(gate.ring, lane.def.t, '') end
end

function line.wait(gate, lane, group)
  call('ZADD', waiting_key(gate, group, lane.def.t), lane.since, lane.id)
  call('ZADD', gate.key .. 'w', bound_of(group), group)
  ring.join(gate.ring, lane.def.t, group)
end

function line.leave(gate, lane, group)
  local key = waiting_key(gate, group, lane.def.t)
  if call('ZREM', key, lane.id) == 0 or call('EXISTS', key) == 1 then return end
  ring.leave(gate.ring, lane.def.t, group)
  if not ring.first(gate.ring, group) then call('ZREM', gate.key .. 'w', group) end
end

function line.waits(gate, group)
  return call('ZSCORE', gate.key .. 'w', group) and true or false
end

-- Groups that wait although their bound is not reached.
function line.waiting_above(gate, held, limit)
  local rest = limit and {'LIMIT', 0, limit} or {}
  return call('ZRANGEBYSCORE', gate.key .. 'w', '(' .. held, '+inf', unpack(rest))
end

-- The next of a group to be let through.
function line.next(gate, group)
  local tenant = ring.first(gate.ring, group)
  return tenant and call('ZRANGE', waiting_key(gate, group, tenant), 0, 0)[1]
end

-- Lanes that were let through and whose bound is `held` or less.
function line.open_up_to(gate, held)
  local open = call('ZRANGEBYSCORE', gate.key .. 'o', '-inf', held)
  for at, member in ipairs(open) do open[at] = string.sub(member, GROUP_LENGTH + 1) end
  return open
end

function line.flush(gate)
  local set, gone = {}, {}
  for name in pairs(gate.counted) do
    if gate.counts[name] > 0 then
      set[#set + 1] = name
      set[#set + 1] = gate.counts[name]
    else
      gone[#gone + 1] = name
    end
  end
  call_many('HSET', gate.key .. 'n', set)
  call_many('HDEL', gate.key .. 'n', gone)
end
