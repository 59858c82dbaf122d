-- Which lanes are claimable: those with a job that every limit lets through. A lane that a limit refuses leaves its queue and
-- waits in that limit's line, so what waits costs a claim nothing. It moves when the limit does.

local function passage_of(lane, gate)
  for _, passage in ipairs(lane.passages) do
    if passage.i == gate then return passage end
  end
end

local function leave_line(lane, id)
  local passage, gate = passage_of(lane, id), gates.get(id)
  if passage and gate then line.leave(gate, lane, passage.group) end
end

local function wait_at(lane, passage)
  line.wait(gates.get(passage.i), lane, passage.group)
  lane.st, lane.gate = 'w', passage.i
  lanes.touch(lane)
end

local function open(lane)
  lane.st, lane.gate, lane.head = 'o', '', lane.front
  lanes.touch(lane)
  openings = openings + 1
  if queue.join(lane) then shares.begin(lane.track, lane.def.t, lane.def.w) end
  for _, passage in ipairs(lane.passages) do
    line.opened(gates.get(passage.i), lane, passage.group)
  end
end

local function close(lane)
  if queue.leave(lane) then shares.finish(lane.track, lane.def.t) end
  lane.st, lane.head = 'e', ''
  lanes.touch(lane)
  for _, passage in ipairs(lane.passages) do
    line.closed(gates.get(passage.i), lane, passage.group)
    gates.stir(passage.i)
  end
end

-- A lane that has jobs enters its queue, or the line of the first limit that refuses it. `called` by a limit, it has waited
-- there long enough.
local function admit(lane, called)
  for _, passage in ipairs(lane.passages) do
    if passage.i ~= called and gates.refuses(gates.get(passage.i), passage) then
      wait_at(lane, passage)
      gates.stir(passage.i)
      return
    end
  end
  open(lane)
end

-- Brings a lane's standing in line with its window.
function standing.follow(lane)
  if lane.st == 'e' and lane.front ~= '' then
    lane.since = next_tick()
    admit(lane)
  elseif lane.st == 'o' and lane.front == '' then
    close(lane)
  elseif lane.st == 'o' and lane.front ~= lane.head then
    local before = lane.head
    lane.head = lane.front
    queue.head_changed(lane, before)
  elseif lane.st == 'w' and lane.front == '' then
    leave_line(lane, lane.gate)
    gates.stir(lane.gate)
    lane.st, lane.gate = 'e', ''
  end
  lanes.touch(lane)
end

-- A claimable lane waits for a limit. It enters the line before it leaves its queue, so that its tenant keeps its place.
function standing.step_back(lane, gate)
  if not lane or lane.st ~= 'o' then return end
  local passage = passage_of(lane, gate)
  line.wait(gates.get(gate), lane, passage.group)
  close(lane)
  lane.st, lane.gate = 'w', gate
end

-- Lets limits that changed close and call lanes until nothing is left to do.
function standing.settle()
  local id = gates.next_stirred()
  while id do
    local gate = gates.get(id)
    if gate then
      for _, at in ipairs(gates.crowded_out(gate)) do standing.step_back(lanes.get(at), id) end
      for _, group in ipairs(gates.callable(gate)) do
        local at = gates.next(gate, group)
        while at do
          -- Another limit may refuse it now. It leaves this line last, so that its tenant keeps its place.
          local lane = lanes.get(at)
          admit(lane, id)
          leave_line(lane, id)
          at = gates.next(gate, group)
        end
      end
      gates.note_due(gate)
    end
    id = gates.next_stirred()
  end
end
