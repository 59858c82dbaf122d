-- Members that take turns, each with work of one or more kinds: who was served longest ago comes first. A member that
-- weighs more than one keeps its place until it was served as often as it weighs.
-- A member is {place, served, kinds}. The kind '' keeps a place and is never asked for.
-- A view is the front of one kind's members as they were read, and what changed since: who moved, left or came. An entry
-- counts while it is its member's present place. Each time the front is used up twice as many are read; once all are known,
-- who moves to the back is put there, and nothing is read again.
local rings, ring_order = {}, {}
local FRONT, FRONT_MAX = 16, 1024

function ring.at(members, kinds)
  local known = rings[members]
  if not known then
    known = {members = records(members), kinds = kinds, views = {}, order = {}, came = 0}
    rings[members] = known
    ring_order[#ring_order + 1] = known
  end
  return known
end

local function view_of(r, kind)
  local view = r.views[kind]
  if not view then
    view = {key = r.kinds .. kind, front = {}, at = 1, size = FRONT, whole = false, places = {}, changed = {}}
    r.views[kind] = view
    r.order[#r.order + 1] = view
  end
  return view
end

-- A member has this place among those of a kind, or none.
local function put(r, who, kind, place)
  if kind == '' then return end
  local view = view_of(r, kind)
  if view.places[who] == nil then view.changed[#view.changed + 1] = who end
  view.places[who] = place
end

local function write(view)
  local set, gone = {}, {}
  for _, who in ipairs(view.changed) do
    local place = view.places[who]
    if place then
      set[#set + 1] = place
      set[#set + 1] = who
    else
      gone[#gone + 1] = who
    end
  end
  call_many('ZADD', view.key, set)
  call_many('ZREM', view.key, gone)
  view.places, view.changed = {}, {}
end

local function read(view)
  write(view)
  view.front, view.at = call('ZRANGE', view.key, 0, view.size - 1, 'WITHSCORES'), 1
  view.whole = #view.front < 2 * view.size
  view.size = math.min(2 * view.size, FRONT_MAX)
end

function ring.has(r, who)
  return r.members:get(who) and true or false
end

function ring.kinds_of(r, who)
  local member = r.members:get(who)
  return member and member[3] or {}
end

-- A member moved or came to the back of those with this kind of work.
local function put_back(r, who, kind, place)
  put(r, who, kind, place)
  local view = r.views[kind]
  if view and view.whole then
    table.insert(view.front, who)
    table.insert(view.front, place)
  end
end

-- A member that had no work waits for everyone already in the ring.
function ring.join(r, who, kind)
  local member = r.members:get(who)
  if not member then
    member = {next_tick(), 0, {kind}}
    r.members:set(who, member)
    r.came = r.came + 1
    put_back(r, who, kind, member[1])
    return
  end
  for _, known in ipairs(member[3]) do
    if known == kind then return end
  end
  table.insert(member[3], kind)
  r.members:mark(who)
  put(r, who, kind, member[1])
  -- It may lie before what was read of those with this kind of work.
  local view = r.views[kind]
  if view then view.front, view.at, view.size, view.whole = {}, 1, FRONT, false end
end

function ring.leave(r, who, kind)
  local member = r.members:get(who)
  if not member then return end
  for at, known in ipairs(member[3]) do
    if known == kind then
      table.remove(member[3], at)
      put(r, who, kind, false)
      break
    end
  end
  r.members:set(who, #member[3] > 0 and member)
  if #member[3] == 0 then r.came = r.came - 1 end
end

-- Whose turn it is among those with work of this kind, and its place.
function ring.first(r, kind)
  local view = view_of(r, kind)
  while true do
    if not view.front[view.at] and not view.whole then read(view) end
    local who = view.front[view.at]
    if not who then return nil end
    local place = tonumber(view.front[view.at + 1])
    local changed = view.places[who]
    if changed == nil or changed == place then return who, place end
    view.at = view.at + 2
  end
end

-- Nobody else is there. What came and left in this script is not written yet.
local function is_alone(r)
  r.stored = r.stored or call('HLEN', r.members.key)
  return r.stored + r.came == 1
end

-- The member had a turn. Whether it goes to the back, and whether it was anywhere else.
function ring.served(r, who, weight)
  local member = r.members:get(who)
  if not member then return false end
  member[2] = member[2] + 1
  r.members:mark(who)
  if member[2] < weight then return false end
  member[2] = 0
  if is_alone(r) then return true, false end
  member[1] = next_tick()
  for _, kind in ipairs(member[3]) do put_back(r, who, kind, member[1]) end
  return true, true
end

function ring.flush()
  for _, r in ipairs(ring_order) do
    r.members:flush()
    for _, view in ipairs(r.order) do write(view) end
  end
end
