-- A limit by time: a bucket of `rate` tokens that fills evenly, one whole bucket in `window` milliseconds. Kept as the
-- moment at which it is full again: whole milliseconds, and parts of one, `rate` of them to a millisecond. In these parts a
-- token takes exactly `window` to come back, so nothing is ever rounded.

-- How far the bucket is from full, in parts.
local function parts_missing(gate)
  return math.max((gate.full_ms - now) * gate.rate + gate.full_part, 0)
end

local function set_parts_missing(gate, parts)
  gate.full_ms = now + math.floor(parts / gate.rate)
  gate.full_part = parts % gate.rate
end

function bucket.tokens(gate)
  if gate.rate == 0 then return math.huge end
  return math.max(gate.rate - math.ceil(parts_missing(gate) / gate.window), 0)
end

function bucket.take(gate)
  if gate.rate > 0 then set_parts_missing(gate, parts_missing(gate) + gate.window) end
end

-- A token that was taken was not used.
function bucket.give_back(gate)
  if gate.rate > 0 then set_parts_missing(gate, math.max(parts_missing(gate) - gate.window, 0)) end
end

-- When the next token is there, if there is none now.
function bucket.again_at(gate)
  if gate.rate == 0 then return nil end
  local parts = parts_missing(gate) - (gate.rate - 1) * gate.window
  return parts > 0 and now + math.ceil(parts / gate.rate) or nil
end

-- When there is nothing left to remember.
function bucket.full_at(gate)
  return gate.rate == 0 and now or now + math.ceil(parts_missing(gate) / gate.rate)
end

-- The clock was set back: the bucket is empty at worst.
function bucket.set_back(gate)
  set_parts_missing(gate, math.min(parts_missing(gate), gate.window * gate.rate))
end
