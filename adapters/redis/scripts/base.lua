-- What every script begins with. KEYS[1] names the installation and is its hash tag; ARGV[1] is the server this connection
-- leads to, ARGV[2] the version of the layout the caller follows. Whoever means another server's memory or another layout
-- is refused before anything is looked at.
--
-- All scripts work alike: what they touch is loaded once into tables, changed there by the rules of the lanes, and written
-- back at the end.
local call, pack, unpacked = redis.call, cmsgpack.pack, cmsgpack.unpack
local root = KEYS[1]
local meta = call('HMGET', root .. ':meta', 'server', 'version', 'era', 'tick', 'now', 'built')
if meta[1] ~= ARGV[1] then return {'blank'} end
if meta[2] ~= ARGV[2] then return {'stale'} end

-- Keys of an earlier layout have another era, so that nothing of them can be met here.
local base = root .. ':' .. meta[3] .. ':'
local body = cjson.decode(ARGV[3])
local bucket, claims, fits, gates, holds, lanes, line, pools, queue, ring, shares, standing, window =
  {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}

-- Characters of a job's place in its lane, and of the id of a lane, a fit or a limit. Together they stay below 32: of longer
-- strings Lua's hash leaves characters out, and ten thousand places that differ in those would be one chain to walk.
local PLACE, ID = 16, 14

local function place_of(member)
  return string.sub(member, 1, PLACE)
end

-- Places compare by byte, as they do in sets. Lua's own comparison follows the server's locale.
local function is_before(a, b)
  for at = 1, PLACE do
    local x, y = string.byte(a, at), string.byte(b, at)
    if x ~= y then return x < y end
  end
  return false
end

-- One count for everything that needs an order: places in rings, arrivals, tickets.
local tick = tonumber(meta[4])
local function next_tick()
  tick = tick + 1
  return tick
end

-- The time of the latest claim, for limits by time.
local now = tonumber(meta[5])
-- Times that a lane became claimable in this script.
local openings = 0
-- Until when the claims of this script are their taker's.
local lease_until = 0

-- Redis takes a few thousand arguments from a script at once.
local ARGS_MAX = 1000
local function call_many(command, key, args)
  for from = 1, #args, ARGS_MAX do
    call(command, key, unpack(args, from, math.min(from + ARGS_MAX - 1, #args)))
  end
end

-- Records of one hash: loaded once, written back if marked. A record that is set to false is deleted.
local Records = {}
Records.__index = Records

local function records(key)
  return setmetatable({key = key, known = {}, marked = {}, order = {}}, Records)
end

function Records:get(name)
  local record = self.known[name]
  if record == nil then
    local raw = call('HGET', self.key, name)
    record = raw and unpacked(raw) or false
    self.known[name] = record
  end
  return record
end

function Records:prefetch(names)
  local missing = {}
  for _, name in ipairs(names) do
    if self.known[name] == nil then missing[#missing + 1] = name end
  end
  for from = 1, #missing, ARGS_MAX do
    local to = math.min(from + ARGS_MAX - 1, #missing)
    for at, raw in ipairs(call('HMGET', self.key, unpack(missing, from, to))) do
      self.known[missing[from + at - 1]] = raw and unpacked(raw) or false
    end
  end
end

function Records:mark(name)
  if not self.marked[name] then
    self.marked[name] = true
    self.order[#self.order + 1] = name
  end
end

function Records:set(name, record)
  self.known[name] = record
  self:mark(name)
end

function Records:flush()
  local set, gone = {}, {}
  for _, name in ipairs(self.order) do
    local record = self.known[name]
    if record then
      set[#set + 1] = name
      set[#set + 1] = pack(record)
    else
      gone[#gone + 1] = name
    end
  end
  call_many('HSET', self.key, set)
  call_many('HDEL', self.key, gone)
end
