INSERT INTO dags (tenant, name, version, snapshot, actor, at, pins, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
