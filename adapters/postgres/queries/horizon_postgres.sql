-- What keeps dead rows from being removed, the oldest first: how it is called, and for how many seconds it has been there. Of a slot
-- only the number of transactions since is known. The last column is how many dead rows the tables of jobs have.
SELECT pin.holder, pin.seconds, pin.transactions,
    (SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables WHERE relname IN ('jobs_hot', 'jobs_done', 'outbox'))
FROM (
    SELECT 'the transaction of pid ' || pid || ' ("' || application_name || '", ' || coalesce(state, 'unknown') || ')' AS holder,
        extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds,
        greatest(age(backend_xmin), age(backend_xid))::bigint AS transactions
    FROM pg_stat_activity
    WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'
        AND xact_start IS NOT NULL AND (datname = current_database() OR backend_type = 'walsender')
    UNION ALL
    SELECT 'the prepared transaction ' || gid || ' of ' || owner, extract(epoch FROM clock_timestamp() - prepared)::bigint,
        age(transaction)::bigint
    FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL
    SELECT 'the replication slot ' || slot_name, NULL, greatest(age(xmin), age(catalog_xmin))::bigint
    FROM pg_replication_slots WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL
) pin
ORDER BY pin.transactions DESC NULLS LAST LIMIT 1
