//! Rows that cannot be decoded are left out of lists, and told of once: one of them must not stop its neighbours.

use lockgate_core::job::Job;
use lockgate_ports::Unreadable;
use rusqlite::{Connection, OptionalExtension, Params};

use crate::error::Fault;
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
) -> Result<Vec<Job>, Fault> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut jobs = Vec::new();
    while jobs.len() < limit
        && let Some(row) = rows.next()?
    {
        jobs.extend(or_left_out(conn, unreadable, row.get(0)?, row::whole_job(row))?);
    }
    Ok(jobs)
}

/// What was read of the job with this number, if it could be.
pub(super) fn or_left_out<T>(
    conn: &Connection,
    unreadable: &Unreadable,
    seq: i64,
    read: Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    let name = || -> Result<String, Fault> {
        let mut query = conn.prepare_cached("SELECT job_id FROM jobs WHERE seq = ?1")?;
        let id: Option<String> = query.query_row([seq], |row| row.get(0)).optional()?;
        Ok(id.map_or_else(|| format!("job number {seq}"), |id| format!("job {id}")))
    };
    match read {
        Ok(found) => Ok(Some(found)),
        Err(fault) if fault.is_of_one_row() => {
            tell(unreadable, &name()?, &fault);
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// What was read of a row that is no job, if it could be.
pub(super) fn or_told<T>(
    unreadable: &Unreadable,
    name: impl FnOnce() -> String,
    read: Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(fault) if fault.is_of_one_row() => {
            tell(unreadable, &name(), &fault);
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

fn tell(unreadable: &Unreadable, row: &str, fault: &Fault) {
    if unreadable.meet(row, fault) {
        tracing::error!(
            row,
            %fault,
            "a row cannot be read and is left out; its neighbours go on. Was it written by a newer version, or by hand? Upgrade \
             this process, or mend the row"
        );
    }
}
