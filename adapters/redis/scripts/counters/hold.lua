-- Takes the lock KEYS[1] for ARGV[1] if it is free, keeps it if ARGV[1] has it, for ARGV[2] milliseconds. Whether it has it.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
