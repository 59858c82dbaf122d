//! Rows that cannot be decoded are left out of lists, so that one of them does not hide the others.

use lockgate_core::job::Job;
use lockgate_ports::Unreadable;
use rusqlite::{Connection, Params};

use crate::error::StatementError;
use crate::row;

/// No limit for SQLite: the caller stops by itself, because undecodable rows must not take the place of others.
pub(super) const EVERY_ROW: i64 = -1;

/// The first jobs of a query that can be decoded.
pub(super) fn readable(
    conn: &Connection,
    unreadable: &Unreadable,
    sql: &str,
    params: impl Params,
    limit: usize,
) -> Result<Vec<Job>, StatementError> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut jobs = Vec::new();
    while jobs.len() < limit
        && let Some(row) = rows.next()?
    {
        let seq = row.get(0)?;
        jobs.extend(unreadable.or_told(|| name_of(conn, seq), row::whole_job(row))?);
    }
    Ok(jobs)
}

/// The name of the job with this number, for reports of undecodable rows.
pub(super) fn name_of(conn: &Connection, seq: i64) -> String {
    let id = conn
        .prepare_cached("SELECT job_id FROM jobs WHERE seq = ?1")
        .and_then(|mut query| query.query_row([seq], |row| row.get(0)));
    // An error here is ignored: a read that needs more than the name reports it.
    id.map_or_else(|_| format!("job number {seq}"), |id: String| format!("job {id}"))
}

/// Reads the newest row of each table of jobs, which fails if the root page of its B-tree is damaged.
pub(crate) fn newest(conn: &rusqlite::Transaction<'_>) -> Result<(), StatementError> {
    for table in ["jobs", "jobs_hot", "jobs_done"] {
        conn.prepare_cached(&format!("SELECT seq FROM {table} ORDER BY seq DESC LIMIT 1"))?.query([])?.next()?;
    }
    Ok(())
}
