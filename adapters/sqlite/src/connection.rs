//! Opens connections and sets their pragmas.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::OpenError;
use crate::folder::private_database;

/// Prepared statements kept per connection: more than there are queries.
const STATEMENTS: usize = 128;

/// How long a connection waits for the lock of another.
pub(crate) const BUSY_WITHIN: Duration = Duration::from_secs(5);

/// Deleted data is overwritten where that writes no additional page.
pub(crate) const OVERWRITE_USUALLY: &str = "PRAGMA secure_delete = FAST";
/// Deleted data is overwritten everywhere.
pub(crate) const OVERWRITE_ALWAYS: &str = "PRAGMA secure_delete = ON";

/// The only connection that writes.
pub(crate) fn writing(path: &Path) -> Result<Connection, OpenError> {
    let folder = path.parent().unwrap_or(path);
    private_database(path).map_err(|error| OpenError::Folder { path: folder.to_owned(), error })?;
    let conn = Connection::open_with_flags(path, flags() | OpenFlags::SQLITE_OPEN_CREATE)?;
    let journal: String = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    // A file system without shared memory keeps the rollback journal, under which readers would block the writer.
    if journal != "wal" {
        return Err(OpenError::NoLog(journal));
    }
    set_up(&conn, 32 * 1024)?;
    // Deleted rows are overwritten in pages that are written anyway.
    conn.execute_batch(OVERWRITE_USUALLY)?;
    // The checkpointer copies the log back; see checkpoint.rs.
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(conn)
}

/// A read-only connection. Its cache is small, because every commit of the writer invalidates it.
pub(crate) fn reading(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, flags())?;
    set_up(&conn, 4 * 1024)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

/// A connection that copies the whole database into another file. Its cache is small, and so is that of the target, so that
/// the target grows while the copy is paced.
pub(crate) fn copying(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, flags())?;
    set_up(&conn, 256)?;
    Ok(conn)
}

/// A read-only connection to a copy that no server uses.
pub(crate) fn examining(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// The checkpointer's connection.
pub(crate) fn checkpointing(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, flags())?;
    set_up(&conn, 1024)?;
    Ok(conn)
}

/// Limits the database file to about `bytes`. Writes that need more fail.
pub(crate) fn limit(conn: &Connection, bytes: u64) -> rusqlite::Result<()> {
    let page_bytes: i64 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page_bytes;
    // The pragma treats 0 as a query.
    conn.pragma_update(None, "max_page_count", pages.max(1))
}

fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn set_up(conn: &Connection, cache_kib: i64) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.busy_timeout(BUSY_WITHIN)?;
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "cache_size", -cache_kib)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "mmap_size", 0)?;
    Ok(())
}
