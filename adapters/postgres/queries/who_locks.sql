SELECT l.relation::regclass || ' is locked (' || l.mode || ') by pid ' || l.pid || ' ("' || coalesce(a.application_name, '') || '", '
    || coalesce(a.state, 'unknown') || ', its transaction began '
    || coalesce(extract(epoch FROM clock_timestamp() - a.xact_start)::bigint::text, '?') || ' s ago)'
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.locktype = 'relation' AND l.relation IN ('jobs_hot'::regclass, 'jobs_done'::regclass)
    AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
ORDER BY a.xact_start LIMIT 3
