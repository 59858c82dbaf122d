//! Migrations, applied in order, each in one transaction together with its number.
//!
//! Processes that start together take turns by one row with an expiry. Every migration locks that row first, so that a
//! process which was suspended beyond its expiry notices before it changes anything.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::error::{UnusableDatabase, told};
use crate::options::{ConnectOptions, Dialect};

struct Migration {
    version: i64,
    sql: &'static str,
    /// The oldest schema version whose processes may keep working on a database with this migration: that of the previous
    /// release if the migration only adds, its own version if it removes something that older processes use.
    needs: i64,
}

const fn migration(version: i64, sql: &'static str) -> Migration {
    // Before the first release there was no installation to upgrade, so each migration needs itself.
    Migration { version, sql, needs: version }
}

/// Migrations of both dialects; versions not listed here have a variant for each dialect.
const COMMON: [Migration; 11] = [
    migration(1, include_str!("../migrations/0001_create_jobs.sql")),
    migration(2, include_str!("../migrations/0002_create_sessions.sql")),
    migration(3, include_str!("../migrations/0003_create_governance.sql")),
    migration(5, include_str!("../migrations/0005_create_runs.sql")),
    migration(7, include_str!("../migrations/0007_create_schedules.sql")),
    migration(8, include_str!("../migrations/0008_create_credentials.sql")),
    migration(10, include_str!("../migrations/0010_create_tallies.sql")),
    migration(12, include_str!("../migrations/0012_add_quotas.sql")),
    Migration { version: 13, sql: include_str!("../migrations/0013_send_sessions_away.sql"), needs: 12 },
    Migration { version: 15, sql: include_str!("../migrations/0015_date_outbox.sql"), needs: 12 },
    Migration { version: 17, sql: include_str!("../migrations/0017_keep_tries.sql"), needs: 12 },
];
const POSTGRES: [Migration; 6] = [
    migration(4, include_str!("../migrations/0004_tune_postgres.sql")),
    migration(6, include_str!("../migrations/0006_tune_runs_postgres.sql")),
    migration(9, include_str!("../migrations/0009_index_schedules_postgres.sql")),
    migration(11, include_str!("../migrations/0011_index_tenants_postgres.sql")),
    Migration { version: 14, sql: include_str!("../migrations/0014_create_children_postgres.sql"), needs: 12 },
    Migration { version: 16, sql: include_str!("../migrations/0016_create_memos_postgres.sql"), needs: 12 },
];
const COCKROACH: [Migration; 6] = [
    migration(4, include_str!("../migrations/0004_shard_cockroach.sql")),
    migration(6, include_str!("../migrations/0006_shard_runs_cockroach.sql")),
    migration(9, include_str!("../migrations/0009_index_schedules_cockroach.sql")),
    migration(11, include_str!("../migrations/0011_index_tenants_cockroach.sql")),
    Migration { version: 14, sql: include_str!("../migrations/0014_create_children_cockroach.sql"), needs: 12 },
    Migration { version: 16, sql: include_str!("../migrations/0016_create_memos_cockroach.sql"), needs: 12 },
];
const KNOWN: i64 = 17;

/// How long one process may migrate before another takes over: far longer than any migration takes.
const LOCK_LIFE: Duration = Duration::from_secs(60);
/// How long to wait while other processes migrate.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK_AGAIN: Duration = Duration::from_millis(25);

const LEDGER: &str = "
    CREATE TABLE IF NOT EXISTS migrations (version BIGINT PRIMARY KEY, checksum TEXT NOT NULL);
    ALTER TABLE migrations ADD COLUMN IF NOT EXISTS needs BIGINT;
    CREATE TABLE IF NOT EXISTS migration_lock (one BIGINT PRIMARY KEY CHECK (one = 1), holder TEXT, expires_at BIGINT NOT NULL);
    INSERT INTO migration_lock (one, holder, expires_at) VALUES (1, NULL, 0) ON CONFLICT (one) DO NOTHING;";
const TAKE: &str = "UPDATE migration_lock
    SET holder = $1, expires_at = floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2
    WHERE holder IS NULL OR expires_at <= floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const LEAVE: &str = "UPDATE migration_lock SET holder = NULL WHERE holder = $1";
const STILL_OURS: &str = "SELECT 1 FROM migration_lock WHERE holder = $1 FOR UPDATE";

/// Migrates the database to the newest schema. Safe if many processes call it at once. Refuses a database with a newer
/// schema.
pub async fn migrate(options: &ConnectOptions) -> Result<(), UnusableDatabase> {
    let ConnectOptions { config, wire, dialect, .. } = options;
    let dialect = *dialect;
    let (mut client, _driver) = wire.dial(config).await.map_err(UnusableDatabase::Unreachable)?;
    make_ledger(&client).await?;
    if found(&client).await? >= KNOWN {
        return verify(&client, dialect).await;
    }
    let holder = format!("lockgate-{:016x}", RandomState::new().hash_one(LEDGER));
    take_lock(&client, &holder).await?;
    let applied = apply(&mut client, &holder, dialect).await;
    if let Err(error) = client.execute(LEAVE, &[&holder]).await {
        tracing::warn!(error = %told(&error), "the lock on migrations could not be given back; it expires by itself");
    }
    applied
}

/// Refuses a database whose schema this binary cannot use.
pub(crate) async fn check(client: &Client, dialect: Dialect) -> Result<(), UnusableDatabase> {
    match found(client).await? {
        found if found < KNOWN => Err(UnusableDatabase::Older { found, known: KNOWN }),
        _ => verify(client, dialect).await,
    }
}

fn migrations(dialect: Dialect) -> impl Iterator<Item = Migration> {
    let own = match dialect {
        Dialect::Postgres => POSTGRES,
        Dialect::Cockroach => COCKROACH,
    };
    let mut all: Vec<Migration> = COMMON.into_iter().chain(own).collect();
    all.sort_unstable_by_key(|migration| migration.version);
    all.into_iter()
}

/// Two processes may create the tables at once; the server then tells one of them that they exist, which is success too.
async fn make_ledger(client: &Client) -> Result<(), UnusableDatabase> {
    let mut made = client.batch_execute(LEDGER).await;
    for _ in 0..3 {
        let Err(error) = &made else { break };
        let raced = [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT];
        if !error.code().is_some_and(|code| raced.contains(code)) {
            break;
        }
        made = client.batch_execute(LEDGER).await;
    }
    Ok(made?)
}

/// The newest applied version; 0 without any.
async fn found(client: &Client) -> Result<i64, UnusableDatabase> {
    match client.query_one("SELECT COALESCE(max(version), 0) FROM migrations", &[]).await {
        Ok(row) => Ok(row.try_get(0)?),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

async fn verify(client: &Client, dialect: Dialect) -> Result<(), UnusableDatabase> {
    fits(client).await?;
    let applied = "SELECT version, checksum FROM migrations WHERE version <= $1 ORDER BY version";
    for row in client.query(applied, &[&KNOWN]).await? {
        let (version, stored): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
        let ours = migrations(dialect).find(|migration| migration.version == version);
        if ours.is_none_or(|migration| checksum(migration.sql) != stored) {
            return Err(UnusableDatabase::Changed { version });
        }
    }
    Ok(())
}

/// Whether this binary may use a database with a newer schema, as it must while an installation is being upgraded.
async fn fits(client: &Client) -> Result<(), UnusableDatabase> {
    let newer = "SELECT version, needs FROM migrations WHERE version > $1 ORDER BY version DESC";
    let rows = client.query(newer, &[&KNOWN]).await?;
    let Some(newest) = rows.first() else { return Ok(()) };
    let found: i64 = newest.try_get(0)?;
    for row in &rows {
        let needs: Option<i64> = row.try_get(1)?;
        if needs.is_none_or(|needs| needs > KNOWN) {
            return Err(UnusableDatabase::Newer { found, known: KNOWN });
        }
    }
    tracing::warn!(found, known = KNOWN, "the database is newer than this process, and still fits it: finish the upgrade");
    Ok(())
}

fn checksum(sql: &str) -> String {
    lockgate_core::hex::write(&Sha256::digest(sql))
}

async fn take_lock(client: &Client, holder: &str) -> Result<(), UnusableDatabase> {
    let end = Instant::now() + PATIENCE;
    let life = i64::try_from(LOCK_LIFE.as_millis()).unwrap_or(i64::MAX);
    while client.execute(TAKE, &[&holder, &life]).await? == 0 {
        if Instant::now() >= end {
            let row = client.query_one("SELECT COALESCE(holder, 'nobody') FROM migration_lock", &[]).await?;
            return Err(UnusableDatabase::Locked { holder: row.try_get(0)? });
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

async fn apply(client: &mut Client, holder: &str, dialect: Dialect) -> Result<(), UnusableDatabase> {
    verify(client, dialect).await?;
    let found = found(client).await?;
    for Migration { version, sql, needs } in migrations(dialect).filter(|migration| migration.version > found) {
        let failed = |error| UnusableDatabase::Migration { version, error };
        let transaction = client.transaction().await?;
        if transaction.query(STILL_OURS, &[&holder]).await?.is_empty() {
            return Err(UnusableDatabase::Locked { holder: "another process".to_owned() });
        }
        transaction.batch_execute(sql).await.map_err(failed)?;
        let record = "INSERT INTO migrations (version, checksum, needs) VALUES ($1, $2, $3)";
        transaction.execute(record, &[&version, &checksum(sql), &needs]).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_ports::SnapshotKind;

    #[test]
    fn versions_are_numbered_without_gaps() {
        for dialect in [Dialect::Postgres, Dialect::Cockroach] {
            let versions: Vec<i64> = migrations(dialect).map(|migration| migration.version).collect();
            assert_eq!(versions, (1..=KNOWN).collect::<Vec<_>>());
        }
    }

    /// The schema of the last release. Set to [`KNOWN`] with each release.
    const RELEASED: i64 = 12;
    /// Statements that processes of the previous release cannot cope with.
    const TAKES_AWAY: [&str; 7] =
        ["DROP ", "RENAME ", " TYPE ", "SET NOT NULL", "DELETE FROM", "TRUNCATE", "ADD CONSTRAINT"];

    /// Expand, then contract: what a release adds must not disturb the previous one, and what it removes waits until the
    /// previous release does not use it.
    #[test]
    fn a_migration_that_takes_something_away_says_so() {
        for dialect in [Dialect::Postgres, Dialect::Cockroach] {
            for Migration { version, sql, needs } in migrations(dialect).filter(|migration| migration.version > RELEASED) {
                let said: String = sql.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
                let takes = TAKES_AWAY.iter().find(|words| said.to_uppercase().contains(**words));
                match takes {
                    Some(words) => {
                        assert_eq!(needs, version, "{version} has {words:?}: the release before must do without it");
                    }
                    None => assert!(needs <= RELEASED, "{version} only adds: processes of the last release may go on"),
                }
            }
        }
    }

    #[test]
    fn what_is_built_in_is_in_force_in_a_new_database() {
        for kind in SnapshotKind::ALL {
            let row = format!("('{}', 0, '{}')", kind.as_str(), kind.builtin());
            assert!(COMMON.iter().any(|migration| migration.sql.contains(&row)), "{row}");
        }
    }
}
