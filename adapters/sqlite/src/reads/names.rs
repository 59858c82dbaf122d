//! Finds the owners of ids and keys, for callers that only read and for the writer inside its transaction.

use std::sync::Arc;

use lockgate_core::ids::{RunId, TenantId};
use lockgate_core::request::{JobRequest, RequestHash};
use lockgate_core::time::Timestamp;
use lockgate_ports::DuplicateJob;
use lockgate_sql::codes;
use rusqlite::{Connection, OptionalExtension, params};

use super::{collect, jobs};
use crate::error::StatementError;

pub(crate) fn duplicates(
    conn: &Connection,
    requests: &[Arc<JobRequest>],
    now: Timestamp,
) -> Result<Vec<Option<DuplicateJob>>, StatementError> {
    requests.iter().map(|request| in_the_way(conn, request, now)).collect()
}

/// Checks S-3 before S-2, in the order of a commit.
fn in_the_way(conn: &Connection, request: &JobRequest, now: Timestamp) -> Result<Option<DuplicateJob>, StatementError> {
    if let Some(key) = &request.idempotency_key
        && let Some(seq) = key_owner(conn, request.tenant.as_str(), key, now)?
    {
        return owner(conn, seq, true);
    }
    jobs::seq_of(conn, &request.job_id)?.map_or(Ok(None), |seq| owner(conn, seq, false))
}

/// The job that an idempotency key names, if the key has not expired.
pub(crate) fn key_owner(conn: &Connection, tenant: &str, key: &str, now: Timestamp) -> Result<Option<i64>, StatementError> {
    let mut query = conn.prepare_cached("SELECT seq FROM idempotency WHERE tenant = ?1 AND key = ?2 AND free_at > ?3")?;
    Ok(query.query_row(params![tenant, key, now.as_millis()], |row| row.get(0)).optional()?)
}

pub(crate) fn owner(conn: &Connection, seq: i64, by_key: bool) -> Result<Option<DuplicateJob>, StatementError> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(DuplicateJob {
            job_id: row.get_ref(0)?.as_str()?.into(),
            tenant: row.get_ref(1)?.as_str()?.into(),
            hash: RequestHash(row.get(2)?),
            state: codes::state(row.get(3)?)?,
            by_key,
        })
    };
    Ok(collect(conn, include_str!("../../queries/taken.sql"), [seq], read)?.pop())
}

/// The run that a key names, if the key has not expired.
pub(crate) fn run_of_key(
    conn: &Connection,
    tenant: &TenantId,
    key: &str,
    now: Timestamp,
) -> Result<Option<(RunId, RequestHash)>, StatementError> {
    let sql = "SELECT run_id, hash FROM run_keys WHERE tenant = ?1 AND key = ?2 AND free_at > ?3";
    let read = |row: &rusqlite::Row<'_>| Ok((RunId::from(row.get_ref(0)?.as_str()?), RequestHash(row.get(1)?)));
    Ok(collect(conn, sql, params![tenant.as_str(), key, now.as_millis()], read)?.pop())
}
