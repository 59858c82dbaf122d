-- Whose turn it is among the four priorities: {credits of this round, since when passed over, turns so far}. A priority
-- without eligible work yields its turn and keeps its credit. Whoever waited longest without credit while others used up
-- the round goes first in the next one. Without weights the most urgent always comes first.
local turn_records = records(base .. 'turns')
local turns = {}

-- First those that were passed over, the one that waited longest before the others; then by urgency.
local function next_priority(credits, passed, tiers)
  local owed, urgent
  for p = 4, 1, -1 do
    if tiers[p].next and credits[p] > 0 then
      urgent = p
      if passed[p] > 0 and (not owed or passed[p] < passed[owed]) then owed = p end
    end
  end
  return owed or urgent
end

local function begin_round(state, weights)
  for p = 1, 4 do state[1][p] = weights[p] end
end

-- Picks the next priority among the tiers with somebody whose turn it is, and charges it one turn.
function turns.take(pool, weights, tiers)
  local urgent = tiers[1].next and 1 or tiers[2].next and 2 or tiers[3].next and 3 or tiers[4].next and 4
  if not urgent or #weights == 0 then return urgent end
  local state = turn_records:get(pool)
  if not state then
    state = {{}, {0, 0, 0, 0}, 0}
    begin_round(state, weights)
  end
  turn_records:set(pool, state)
  local credits, passed = state[1], state[2]
  local p = next_priority(credits, passed, tiers)
  if not p then
    begin_round(state, weights)
    p = next_priority(credits, passed, tiers)
  end
  state[3] = state[3] + 1
  for other = 1, 4 do
    if credits[other] == 0 and passed[other] == 0 and tiers[other].next then passed[other] = state[3] end
  end
  passed[p] = 0
  credits[p] = credits[p] - 1
  return p
end

function turns.flush()
  turn_records:flush()
end
