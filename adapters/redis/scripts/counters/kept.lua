-- What KEYS[1] holds, and for how many milliseconds more. Together, or the one may belong to another than the other.
return { redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1]) }
