-- A circuit breaker with the rules of core's, on the server's clock.
--
-- KEYS[1] is what operators read: GET says how many calls failed in a row; TTL of a closed breaker says how long those count, and
-- of an open one when it lets probes through. It is also what the rules go by, so that deleting it means what it looks like: nothing failed, try again now.
-- KEYS[2] has the state, KEYS[3] the probes in flight by the time they were let through.
local FAILURES, STATE, PROBES = KEYS[1], KEYS[2], KEYS[3]
local BUDGET, OPEN_MS, PROBES_MAX = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local CLOSE_AFTER, PROBE_MS, KEPT_MS = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local COUNTED_MS = tonumber(ARGV[7])

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now_ms = math.floor(now_us / 1000)

-- Numbers of this size lose digits when Lua writes them by itself.
local function whole(number)
  return string.format('%.0f', number)
end

local known = redis.call('HMGET', STATE, 'epoch', 'state')
local epoch, state = known[1], known[2] or 'closed'

-- How long an open breaker stays so; a counter that is gone or never ends keeps nobody out. The server's clock goes on while
-- it answers, so this is read once: what is decided and what is told of it are of one moment.
local left = state == 'open' and math.max(redis.call('PTTL', FAILURES), 0) or 0

-- Epochs grow with the clock, so that a ticket from before a wipe of the server fits no breaker after it.
local function become(next)
  epoch = whole(math.max(tonumber(epoch or 0) + 1, now_us))
  state, left = next, 0
  redis.call('HSET', STATE, 'epoch', epoch, 'state', state, 'successes', 0)
  redis.call('PEXPIRE', STATE, KEPT_MS)
  redis.call('DEL', PROBES)
end

local function open()
  become('open')
  left = OPEN_MS
  if OPEN_MS > 0 then
    redis.call('SET', FAILURES, BUDGET, 'PX', OPEN_MS)
  else
    redis.call('DEL', FAILURES)
  end
end

local function close()
  become('closed')
  redis.call('DEL', FAILURES)
end

local function standing()
  if state == 'closed' then
    return 'closed', tonumber(redis.call('GET', FAILURES) or 0), 0
  end
  return left > 0 and 'open' or 'half_open', BUDGET, left
end
