-- May one call be made? Answers with the ticket, or how long to wait; and with the standing.
local function refused(wait_ms)
  return { 0, '0', 0, wait_ms, standing() }
end

if not epoch then
  become('closed')
end
if state == 'open' then
  if left > 0 then
    return refused(left)
  end
  become('half_open')
end
local probe = 0
if state == 'half_open' then
  redis.call('ZREMRANGEBYSCORE', PROBES, '-inf', now_ms - PROBE_MS)
  if redis.call('ZCARD', PROBES) >= PROBES_MAX then
    local oldest = redis.call('ZRANGE', PROBES, 0, 0, 'WITHSCORES')
    return refused(tonumber(oldest[2]) + PROBE_MS - now_ms)
  end
  probe = redis.call('HINCRBY', STATE, 'asked', 1)
  redis.call('ZADD', PROBES, now_ms, probe)
  redis.call('PEXPIRE', STATE, KEPT_MS)
  redis.call('PEXPIRE', PROBES, KEPT_MS)
end
return { 1, epoch, probe, 0, standing() }
