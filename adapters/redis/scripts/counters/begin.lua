-- Takes a message in hand for ARGV[1] milliseconds, unless it is done (KEYS[1]) or in hand (KEYS[2]). A repeat of either leaves both
-- marks as they are. Answers 0: done, 1: taken, 2: in hand.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
return redis.call('SET', KEYS[2], 1, 'NX', 'PX', ARGV[1]) and 1 or 2
