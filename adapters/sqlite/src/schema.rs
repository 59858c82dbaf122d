//! Migrations, applied in order, each in one transaction together with its number.

use rusqlite::Connection;

use crate::error::OpenError;

const MIGRATIONS: [&str; 14] = [
    include_str!("../migrations/0001_create_jobs.sql"),
    include_str!("../migrations/0002_create_sessions.sql"),
    include_str!("../migrations/0003_create_governance.sql"),
    include_str!("../migrations/0004_unname_lane_pools.sql"),
    include_str!("../migrations/0005_create_runs.sql"),
    include_str!("../migrations/0006_create_schedules.sql"),
    include_str!("../migrations/0007_create_credentials.sql"),
    include_str!("../migrations/0008_create_tallies.sql"),
    include_str!("../migrations/0009_send_sessions_away.sql"),
    include_str!("../migrations/0010_create_children.sql"),
    include_str!("../migrations/0011_date_outbox.sql"),
    include_str!("../migrations/0012_create_memos.sql"),
    include_str!("../migrations/0013_keep_tries.sql"),
    include_str!("../migrations/0014_count_commits.sql"),
];

/// Migrates the database to the newest schema. Refuses a database with a newer one.
pub(crate) fn migrate(conn: &mut Connection) -> Result<(), OpenError> {
    apply(conn, &MIGRATIONS)
}

fn apply(conn: &mut Connection, migrations: &[&str]) -> Result<(), OpenError> {
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_version (only INTEGER PRIMARY KEY CHECK (only = 1), version INTEGER NOT NULL) STRICT;
         INSERT OR IGNORE INTO schema_version VALUES (1, 0);",
    )?;
    let found: i64 = conn.query_row("SELECT version FROM schema_version", [], |row| row.get(0))?;
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(OpenError::Newer { found, known });
    }
    for (version, sql) in (1..).zip(migrations).filter(|(version, _)| *version > found) {
        let transaction = conn.transaction()?;
        transaction.execute_batch(sql)?;
        transaction.execute("UPDATE schema_version SET version = ?1", [version])?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(conn: &Connection) -> i64 {
        conn.query_row("SELECT version FROM schema_version", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn migrations_are_applied_once_and_in_order() {
        let mut conn = Connection::open_in_memory().unwrap();
        let steps = ["CREATE TABLE a (x) ", "ALTER TABLE a ADD COLUMN y", "INSERT INTO a VALUES (1, 2)"];
        apply(&mut conn, &steps[..1]).unwrap();
        apply(&mut conn, &steps).unwrap();
        apply(&mut conn, &steps).unwrap();
        let rows: i64 = conn.query_row("SELECT COUNT(*) FROM a WHERE y = 2", [], |row| row.get(0)).unwrap();
        assert_eq!((rows, version(&conn)), (1, 3));
    }

    #[test]
    fn a_failed_migration_leaves_the_schema_before_it() {
        let mut conn = Connection::open_in_memory().unwrap();
        let steps = ["CREATE TABLE a (x)", "CREATE TABLE b (x); CREATE TABLE a (x)"];
        assert!(apply(&mut conn, &steps).is_err());
        assert_eq!(version(&conn), 1);
        assert!(conn.prepare("SELECT * FROM b").is_err());
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn).unwrap();
        conn.execute("UPDATE schema_version SET version = 99", []).unwrap();
        let error = migrate(&mut conn).unwrap_err();
        assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
    }
}
