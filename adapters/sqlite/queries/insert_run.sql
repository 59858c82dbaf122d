INSERT INTO runs (run_id, version, state, wakes_at, ended_at, parent, head, tenant, dag)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
