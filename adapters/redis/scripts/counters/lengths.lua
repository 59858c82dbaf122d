-- Makes the list KEYS[1] ARGV[1] long, for ARGV[2] milliseconds: autoscalers know LLEN and little else. What is in it means
-- nothing. Costs what the length changed.
local want, has = tonumber(ARGV[1]), redis.call('LLEN', KEYS[1])
if want == 0 then
  redis.call('DEL', KEYS[1])
  return 0
end
if want < has then
  redis.call('LTRIM', KEYS[1], 0, want - 1)
end
while has < want do
  local some = {}
  for at = 1, math.min(want - has, 1000) do some[at] = '' end
  redis.call('RPUSH', KEYS[1], unpack(some))
  has = has + #some
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return want
