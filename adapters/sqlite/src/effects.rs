//! Effects that happen once: the table of the built-in `db_tx` handler, in a database of its own.

use std::path::Path;
use std::sync::Arc;

use lockgate_ports::StoreError;
use parking_lot::Mutex;
use rusqlite::{Connection, params};

use crate::connection;
use crate::error::{OpenError, StatementError, failed_commit};

/// Inserts rows at most once per key, however often a job is tried. Cheap to clone.
#[derive(Clone)]
pub struct SqliteEffects {
    conn: Arc<Mutex<Connection>>,
}

impl SqliteEffects {
    /// Opens `effects.db` in the data folder, which must exist.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let conn = connection::writing(&folder.join("effects.db"))?;
        conn.pragma_update(None, "wal_autocheckpoint", 1000)?;
        conn.execute_batch(
            "CREATE TABLE IF NOT EXISTS effects (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
        )?;
        Ok(Self { conn: Arc::new(Mutex::new(conn)) })
    }

    /// Inserts the row unless its key exists. Returns whether it was inserted now; durable on return.
    pub async fn insert_once(&self, key: &str, value: &str) -> Result<bool, StoreError> {
        let (conn, key, value) = (Arc::clone(&self.conn), key.to_owned(), value.to_owned());
        let insert = move || {
            let conn = conn.lock();
            let sql = "INSERT INTO effects (key, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            let mut statement = conn.prepare_cached(sql).map_err(|error| StatementError::from(error).before_commit())?;
            // A single statement is its own transaction, so its failure is a failure to commit.
            Ok(statement.execute(params![key, value]).map_err(failed_commit)? == 1)
        };
        let ended = |error: tokio::task::JoinError| StoreError::UnknownOutcome(error.to_string());
        tokio::task::spawn_blocking(insert).await.map_err(ended)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_is_inserted_once_even_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let effects = SqliteEffects::open(folder.path()).unwrap();
        assert!(effects.insert_once("k", "first").await.unwrap());
        assert!(!effects.insert_once("k", "second").await.unwrap());
        assert!(effects.insert_once("other", "first").await.unwrap());
        drop(effects);
        let effects = SqliteEffects::open(folder.path()).unwrap();
        assert!(!effects.insert_once("k", "third").await.unwrap());
        let value: String =
            effects.conn.lock().query_row("SELECT value FROM effects WHERE key = 'k'", [], |row| row.get(0)).unwrap();
        assert_eq!(value, "first");
    }
}
