//! Reads the usage of tenants, and which of their jobs may be erased.

use std::collections::BTreeMap;

use lockgate_core::ids::{JobId, TenantId};
use lockgate_ports::Usage;
use tokio_postgres::Row;

use crate::conn::Conn;
use crate::error::StatementError;
use crate::row::{bounded, get, text};

pub(crate) async fn usage(conn: &mut Conn, tenants: &[TenantId]) -> Result<Vec<Usage>, StatementError> {
    let names: Vec<&str> = tenants.iter().map(TenantId::as_str).collect();
    let rows = conn.rows(include_str!("../../queries/usage.sql"), &[&names]).await?;
    let found = rows.iter().map(named).collect::<Result<BTreeMap<TenantId, Usage>, StatementError>>()?;
    Ok(tenants.iter().map(|tenant| found.get(tenant).copied().unwrap_or_default()).collect())
}

pub(crate) async fn tenants(
    conn: &mut Conn,
    after: Option<&TenantId>,
    limit: usize,
) -> Result<Vec<(TenantId, Usage)>, StatementError> {
    let after = after.map_or("", TenantId::as_str);
    let rows = conn.rows(include_str!("../../queries/list_tenants.sql"), &[&after, &bounded(limit)]).await?;
    rows.iter().map(named).collect()
}

fn named(row: &Row) -> Result<(TenantId, Usage), StatementError> {
    let count = |at: usize| -> Result<u64, StatementError> { Ok(u64::try_from(get::<i64>(row, at)?).unwrap_or(0)) };
    let usage = Usage { live: count(1)?, ended: count(2)?, runs: count(3)?, stored_bytes: count(4)? };
    Ok((TenantId::new(text(row, 0)?), usage))
}

/// The tenant's usage, and whether any job or run of it exists.
pub(crate) async fn remains(conn: &mut Conn, tenant: &TenantId) -> Result<(Usage, bool), StatementError> {
    let usage = usage(conn, std::slice::from_ref(tenant)).await?.pop().unwrap_or_default();
    let over = "SELECT 1 FROM runs WHERE tenant = $1 AND state >= 4 ORDER BY run_no LIMIT 1";
    let has_runs = !conn.rows(over, &[&tenant.as_str()]).await?.is_empty();
    Ok((usage, has_runs || usage != Usage::default()))
}

/// Ended jobs read by one statement, which must answer within the deadline.
const LOOKED_AT: i64 = 5_000;

/// A range of ended jobs after a sequence number: those of the tenant that may be erased, and where to continue. None if no
/// job follows.
pub(crate) async fn erasable(
    conn: &mut Conn,
    tenant: &TenantId,
    after: i64,
    limit: usize,
) -> Result<Option<(Vec<JobId>, i64)>, StatementError> {
    let stretch = "SELECT max(seq) FROM (SELECT seq FROM jobs_done WHERE seq > $1 ORDER BY seq LIMIT $2) AS looked_at";
    let rows = conn.rows(stretch, &[&after, &LOOKED_AT]).await?;
    let end: Option<i64> = rows.first().map_or(Ok(None), |row| get(row, 0))?;
    let Some(end) = end else { return Ok(None) };
    let sql = include_str!("../../queries/jobs_to_erase.sql");
    let rows = conn.rows(sql, &[&tenant.as_str(), &after, &end, &bounded(limit)]).await?;
    let jobs = rows.iter().map(|row| Ok(JobId::new(text(row, 0)?))).collect::<Result<Vec<_>, StatementError>>()?;
    let last = rows.last().filter(|_| jobs.len() == limit).map(|row| get(row, 1)).transpose()?;
    Ok(Some((jobs, last.unwrap_or(end))))
}
