-- Takes a token for each of ARGV[1] from every bucket, for as many as all of them have tokens for. KEYS[i] is a bucket; ARGV
-- has its size and the milliseconds in which it fills. A bucket is kept as the time at which it is full again. Answers with how many
-- there were tokens for, when there is one again, and which bucket had too few; 0 if none.
local time = redis.call('TIME')
-- Milliseconds since a day not long ago: a token may be a thousandth of one, and a number has sixteen digits.
local now = (tonumber(time[1]) - 1750000000) * 1000 + tonumber(time[2]) / 1000
local granted, short = tonumber(ARGV[1]), 0
local full_at, token = {}, {}

for i, key in ipairs(KEYS) do
  local size, window = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  token[i] = window / size
  -- A clock that was set back leaves a bucket empty at worst.
  full_at[i] = math.min(math.max(tonumber(redis.call('GET', key) or now), now), now + window)
  local tokens = math.floor(size - (full_at[i] - now) / token[i] + 0.0001)
  if tokens < granted then
    granted, short = math.max(tokens, 0), i
  end
end

local again = 0
for i, key in ipairs(KEYS) do
  local size = tonumber(ARGV[2 * i])
  local filled = full_at[i] + granted * token[i]
  if granted > 0 then
    redis.call('SET', key, string.format('%.6f', filled), 'PX', math.ceil(filled - now) + 1)
  end
  -- The first token is there when all others are still missing.
  again = math.max(again, filled - (size - 1) * token[i] - now)
end
return { granted, math.max(math.ceil(again - 0.0001), 0), short }
