-- What became of a call. ARGV: its ticket, and 1 if it succeeded.
local ticket_epoch, probe, succeeded = ARGV[7], ARGV[8], ARGV[9] == '1'

if ticket_epoch == epoch then
  if state == 'closed' and succeeded then
    redis.call('DEL', FAILURES)
  elseif state == 'closed' then
    local failures = redis.call('INCR', FAILURES)
    redis.call('PEXPIRE', FAILURES, KEPT_MS)
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
