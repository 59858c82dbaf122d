//! How connections are set up.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::OpenError;
use crate::folder::private_database;

/// Prepared statements kept per connection; more than there are queries.
const STATEMENTS: usize = 128;

/// How long a connection waits for another's lock.
pub(crate) const BUSY_WITHIN: Duration = Duration::from_secs(5);

/// What is deleted is overwritten where that costs no page more.
pub(crate) const OVERWRITE_USUALLY: &str = "PRAGMA secure_delete = FAST";
/// What is deleted is overwritten wherever it lies.
pub(crate) const OVERWRITE_ALWAYS: &str = "PRAGMA secure_delete = ON";

/// The connection that writes.
pub(crate) fn writing(path: &Path) -> Result<Connection, OpenError> {
    let folder = path.parent().unwrap_or(path);
    private_database(path).map_err(|error| OpenError::Folder { path: folder.to_owned(), error })?;
    let conn = Connection::open_with_flags(path, flags() | OpenFlags::SQLITE_OPEN_CREATE)?;
    let journal: String = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    // A file system without shared memory keeps the old journal, and with it readers would stop the writer.
    if journal != "wal" {
        return Err(OpenError::NoLog(journal));
    }
    set_up(&conn, 32 * 1024)?;
    // What a row said does not outlive it in a page that is written anyway.
    conn.execute_batch(OVERWRITE_USUALLY)?;
    // Copying the log back is the checkpointer's work; see checkpoint.rs.
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(conn)
}

/// A connection that only reads. Its cache is small: every commit of the writer empties it anyway.
pub(crate) fn reading(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, flags())?;
    set_up(&conn, 4 * 1024)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

/// A connection that copies everything into another file.
/// Its cache is small, and that of the file it writes is as small: what is written is seen to grow.
pub(crate) fn copying(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, flags())?;
    set_up(&conn, 256)?;
    Ok(conn)
}

/// A connection to a copy that no server uses.
pub(crate) fn examining(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// A connection that copies the log back.
pub(crate) fn checkpointing(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, flags())?;
    set_up(&conn, 1024)?;
    Ok(conn)
}

/// What this connection writes may not make the file larger.
pub(crate) fn limit(conn: &Connection, bytes: u64) -> rusqlite::Result<()> {
    let page_bytes: i64 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page_bytes;
    // 0 would only ask for the limit.
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
