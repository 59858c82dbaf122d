//! Rows that cannot be decoded are left out of lists: one of them must not stop its neighbours.

use lockgate_core::job::Job;
use lockgate_ports::Unreadable;
use rusqlite::{Connection, Params};

use crate::error::StatementError;
use crate::row;

/// To SQLite this is no limit: who reads stops by itself, for rows that cannot be read must not take the place of those that can.
pub(super) const EVERY_ROW: i64 = -1;

/// The first jobs of a query that can be read.
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

/// What a job with this number is called where rows that cannot be read are told of.
pub(super) fn name_of(conn: &Connection, seq: i64) -> String {
    let id = conn
        .prepare_cached("SELECT job_id FROM jobs WHERE seq = ?1")
        .and_then(|mut query| query.query_row([seq], |row| row.get(0)));
    // Whatever keeps the name away is told of by whoever needs more than a name.
    id.map_or_else(|_| format!("job number {seq}"), |id: String| format!("job {id}"))
}

/// The newest row of each table of jobs: a B-tree whose root cannot be read has none.
pub(crate) fn newest(conn: &rusqlite::Transaction<'_>) -> Result<(), StatementError> {
    for table in ["jobs", "jobs_hot", "jobs_done"] {
        conn.prepare_cached(&format!("SELECT seq FROM {table} ORDER BY seq DESC LIMIT 1"))?.query([])?.next()?;
    }
    Ok(())
}
