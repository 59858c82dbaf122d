-- Settlements: kind, number of the lane, place or member, and the token of what was sent or the number of the claim that ended, if
-- it is said of one. Lanes are {id, 0, def or nothing}.

local function gone(lane, at)
  local claim, current = claims.finish(lane, at, false)
  if not current then window.remove(lane, at) end
  standing.follow(lane)
  standing.settle()
  return claim
end

local function sent(lane, def, at, token)
  local claim = lane and gone(lane, at)
  if claim then
    holds.begin(token, lane, claim)
  elseif def.q ~= '' then
    -- The claim was forgotten: the attempt is held as if it had been running all the time, room or not.
    holds.hold(def, def.q, def.b, token)
  end
end

local function returned(lane, member)
  local claim = claims.finish(lane, place_of(member), false)
  window.add(lane, {member})
  standing.follow(lane)
  standing.settle()
  return claim
end

local function settle(kind, entry, what, token_or_number)
  local lane = lanes.get(entry[1])
  local claim
  if kind == 's' then
    sent(lane, lane and lane.def or entry[3], what, token_or_number)
  elseif lane and token_or_number ~= '' and claims.is_anothers(lane, place_of(what), token_or_number) then
    -- It was claimed again since, and that claim is not this one's to end.
    return
  elseif kind == 'g' then
    claim = lane and gone(lane, what)
  else
    lane = lane or lanes.make(entry[1], entry[3])
    claim = returned(lane, what)
  end
  if claim then claims.free(lane, claim) end
  standing.settle()
end

local function main()
  local missing = lanes.look(body.lanes)
  if missing[1] then return {'missing', missing} end
  local names, tokens = {}, {}
  for at = 4, #ARGV, 4 do
    local id = body.lanes[tonumber(ARGV[at + 1])][1]
    local lane = lanes.get(id)
    names[#names + 1] = id .. place_of(ARGV[at + 2])
    if ARGV[at] == 's' and not (lane and not lane.passages[1]) then tokens[#tokens + 1] = ARGV[at + 3] end
  end
  claims.prefetch_names(names)
  holds.prefetch(tokens)
  for at = 4, #ARGV, 4 do
    settle(ARGV[at], body.lanes[tonumber(ARGV[at + 1])], ARGV[at + 2], ARGV[at + 3])
  end
  lanes.sweep()
  return {'ok'}
end
