-- Gives the lock KEYS[1] back if ARGV[1] has it.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
