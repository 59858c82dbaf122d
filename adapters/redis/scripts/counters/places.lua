-- The place of each job in its velocity window. KEYS[i] is the window of the i-th job; ARGV has its id, the window's span
-- in milliseconds, and 1 if it enters. Members are ordered by the time they entered, so a place is a rank.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local places = {}

local function whole(number)
  return string.format('%.0f', number)
end

-- Later than all that are in, whatever the clock says: equal scores would be ordered by name.
local function entry_time(window)
  local last = redis.call('ZRANGE', window, -1, -1, 'WITHSCORES')[2]
  return whole(math.max(now, last and tonumber(last) + 1 or 0))
end

for i, window in ipairs(KEYS) do
  local job, span_ms, enters = ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1]), ARGV[3 * i] == '1'
  redis.call('ZREMRANGEBYSCORE', window, '-inf', whole(now - span_ms * 1000))
  local rank = redis.call('ZRANK', window, job)
  if not rank then
    rank = redis.call('ZCARD', window)
    if enters then
      redis.call('ZADD', window, entry_time(window), job)
      redis.call('PEXPIRE', window, span_ms)
    end
  end
  places[i] = rank + 1
end
return places
