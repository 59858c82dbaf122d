//! Erases a tenant.

use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::{JobId, TenantId};

use super::transact;
use super::upkeep::SHARD;
use crate::conn::{Conn, SqlCall, SqlParam};
use crate::error::StatementError;
use crate::reads;
use crate::row::{bounded, get};
use crate::writer::{KEEP_AUDIT, audit_columns};

/// Deletes ended jobs found by an earlier read. Returns how many.
pub(crate) async fn erase_jobs(
    conn: &mut Conn,
    begin: &str,
    tenant: &TenantId,
    jobs: &[JobId],
) -> Result<u64, StatementError> {
    let begin = format!("{begin}; SELECT 1 FROM totals WHERE shard = {SHARD} FOR UPDATE");
    let ids: Vec<&str> = jobs.iter().map(JobId::as_str).collect();
    let params: Vec<SqlParam<'_>> = vec![Box::new(ids), Box::new(tenant.as_str()), Box::new(SHARD)];
    let sql = concat!(
        include_str!("../../queries/erase_jobs.sql"),
        include_str!("../../queries/forget_jobs.sql"),
        include_str!("../../queries/forget_untold.sql"),
        include_str!("../../queries/tally.sql"),
        "SELECT count(*) FROM gone"
    );
    let rows = transact(conn, &begin, &[SqlCall { sql, params }]).await?;
    let gone = rows.first().and_then(|rows| rows.first()).map_or(Ok(0), |row| get::<i64>(row, 0))?;
    Ok(gone.unsigned_abs())
}

/// Deletes slots. Returns whether more are left than the last step may delete.
pub(crate) async fn erase_slots(conn: &mut Conn, tenant: &TenantId, limit: usize) -> Result<bool, StatementError> {
    let (tenant, limit) = (tenant.as_str(), bounded(limit));
    let past = "SELECT 1 FROM schedule_slots WHERE tenant = $1 ORDER BY schedule, series, nominal LIMIT 1 OFFSET $2";
    if conn.rows(past, &[&tenant, &limit]).await?.is_empty() {
        return Ok(false);
    }
    conn.rows(include_str!("../../queries/erase_slots.sql"), &[&tenant, &limit]).await?;
    Ok(true)
}

/// Deletes what remains of a tenant without jobs and runs, and writes the audit row. False if a job or run came meanwhile.
pub(crate) async fn erase_rest(
    conn: &mut Conn,
    begin: &str,
    tenant: &TenantId,
    audit: &AuditEntry,
    gone: u64,
) -> Result<bool, StatementError> {
    // The locks on all rows of `totals` wait for every transaction that could create a job or a run, and block new ones
    // until this one ends.
    conn.say(&format!("{begin}; SELECT 1 FROM totals ORDER BY shard FOR UPDATE")).await?;
    if reads::remains(conn, tenant).await?.1 {
        conn.say("ROLLBACK").await?;
        return Ok(false);
    }
    let rows = conn.rows(include_str!("../../queries/erase_rest.sql"), &[&tenant.as_str()]).await?;
    let rest = rows.first().map_or(Ok(0), |row| get::<i64>(row, 0))?;
    let mut calls = Vec::new();
    if gone > 0 || rest > 0 {
        calls.push(SqlCall { sql: KEEP_AUDIT, params: audit_columns(&[audit]) });
    }
    let (_, committed) = conn.together(None, &calls, Some("COMMIT")).await?.split()?;
    committed.map(|()| true)
}
