-- What became of a call. ARGV: its ticket, and 1 if it succeeded.
local ticket_epoch, probe, succeeded = ARGV[8], ARGV[9], ARGV[10] == '1'

if ticket_epoch == epoch then
  if state == 'closed' and succeeded then
    redis.call('DEL', FAILURES)
  elseif state == 'closed' then
    local failures = redis.call('INCR', FAILURES)
    -- From the first failure on, so that a few a day never add up. One that an older version counted for a day counts no longer either.
    if failures == 1 or redis.call('PTTL', FAILURES) > COUNTED_MS then
      redis.call('PEXPIRE', FAILURES, COUNTED_MS)
    end
    redis.call('PEXPIRE', STATE, KEPT_MS)
    if failures >= BUDGET then
      open()
    end
  elseif state == 'half_open' and succeeded then
    redis.call('ZREM', PROBES, probe)
    if redis.call('HINCRBY', STATE, 'successes', 1) >= CLOSE_AFTER then
      close()
    end
  elseif state == 'half_open' then
    open()
  end
end
return { standing() }
