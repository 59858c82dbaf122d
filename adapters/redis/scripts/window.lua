-- The jobs of one lane, by id: a set whose members begin with the job's place, so that their order is the order of the lane.
-- Heads that a claim reads at once: twice as many each time it has used them up.
local HEADS, HEADS_MAX = 16, 256

local function look_at_front(lane)
  lane.front = lane.waiting > 0 and place_of(call('ZRANGE', lane.key, 0, 0)[1]) or ''
end

-- Takes jobs that wait in the Store, in order. Those that are known already are left as they are.
function window.add(lane, members)
  local args = {}
  if lane.claimed > 0 then claims.prefetch(lane, members) end
  for _, member in ipairs(members) do
    if not (lane.claimed > 0 and claims.is_current(lane, place_of(member))) then
      args[#args + 1] = '0'
      args[#args + 1] = member
    end
  end
  if args[2] and (lane.front == '' or is_before(args[2], lane.front)) then lane.front = place_of(args[2]) end
  for from = 1, #args, ARGS_MAX do
    local to = math.min(from + ARGS_MAX - 1, #args)
    lane.waiting = lane.waiting + call('ZADD', lane.key, 'NX', unpack(args, from, to))
  end
  lanes.touch(lane)
end

-- The job does not wait any more, if it did. One that the Store alone has is one less to ask for.
function window.remove(lane, at)
  local member = lane.waiting > 0 and call('ZRANGEBYLEX', lane.key, '[' .. at, '(' .. at .. '\255', 'LIMIT', 0, 1)[1]
  if member then
    call('ZREM', lane.key, member)
    lane.waiting = lane.waiting - 1
    if at == lane.front then look_at_front(lane) end
  elseif lane.more == 1 and (lane.after == '' or is_before(lane.after, at)) then
    lane.beyond = math.max(lane.beyond - 1, 0)
  end
  lanes.touch(lane)
end

-- Takes the head. What was taken is cut off at the end of the script, or when more heads are read.
function window.take(lane)
  if not lane.heads then window.read_heads(lane) end
  local member = lane.heads[lane.taken + 1]
  lane.taken = lane.taken + 1
  lane.waiting = lane.waiting - 1
  if lane.waiting > 0 and not lane.heads[lane.taken + 1] then window.read_heads(lane) end
  lane.front = lane.waiting > 0 and place_of(lane.heads[lane.taken + 1]) or ''
  lanes.touch(lane)
  return member
end

function window.read_heads(lane)
  window.cut(lane)
  lane.reading = math.min(lane.reading and 2 * lane.reading or HEADS, HEADS_MAX)
  lane.heads, lane.taken = call('ZRANGE', lane.key, 0, lane.reading - 1), 0
end

function window.cut(lane)
  if lane.heads and lane.taken > 0 then call('ZREMRANGEBYRANK', lane.key, 0, lane.taken - 1) end
  lane.heads, lane.taken = nil, 0
end

-- Takes the Store's answer to the ask with this ticket; any other is ignored. Whether it was taken.
function window.feed(lane, ticket, last, members)
  if lane.more == 0 or lane.ticket ~= ticket then return false end
  lane.ticket, lane.asker = 0, ''
  if last == '' then
    lane.more, lane.after, lane.beyond = 0, '', 0
    call('ZREM', base .. 'hungry', lane.id)
  else
    lane.after = last
    lane.beyond = math.max(lane.beyond - #members, 0)
    call('ZADD', base .. 'hungry', 0, lane.id)
  end
  window.add(lane, members)
  return true
end

-- Everything that waits is in the Store, `count` jobs; nothing is known here. Claims are forgotten: those that are settled
-- later free what they hold, and nothing else.
function window.restart(lane, count)
  call('UNLINK', lane.key)
  lane.waiting, lane.front = 0, ''
  lane.stray, lane.claimed, lane.epoch = lane.stray + lane.claimed, 0, lane.epoch + 1
  lane.more, lane.after, lane.beyond, lane.ticket, lane.asker = 1, '', count, 0, ''
  call('ZADD', base .. 'hungry', 0, lane.id)
  lanes.touch(lane)
end

function window.is_idle(lane)
  return lane.waiting == 0 and lane.claimed == 0 and lane.stray == 0 and lane.more == 0
end
