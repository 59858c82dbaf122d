SELECT sum(live_critical)::bigint, sum(live_high)::bigint, sum(live_default)::bigint, sum(live_low)::bigint,
    sum(dead_critical)::bigint, sum(dead_high)::bigint, sum(dead_default)::bigint, sum(dead_low)::bigint, sum(ended)::bigint
FROM totals
