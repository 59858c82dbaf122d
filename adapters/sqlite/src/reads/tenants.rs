//! Reads the usage of tenants, and which of their jobs may be erased.

use lockgate_core::ids::TenantId;
use lockgate_ports::Usage;
use rusqlite::{Connection, Row, params};

use super::{bounded, collect};
use crate::error::StatementError;

pub(super) const USAGE: &str = "SELECT live, ended, runs, stored_bytes FROM tallies WHERE tenant = ?1";

pub(crate) fn usage(conn: &Connection, tenants: &[TenantId]) -> Result<Vec<Usage>, StatementError> {
    let one = |tenant: &TenantId| Ok(collect(conn, USAGE, [tenant.as_str()], counts)?.pop().unwrap_or_default());
    tenants.iter().map(one).collect()
}

pub(crate) fn tenants(
    conn: &Connection,
    after: Option<&TenantId>,
    limit: usize,
) -> Result<Vec<(TenantId, Usage)>, StatementError> {
    let params = params![after.map_or("", TenantId::as_str), bounded(limit)];
    collect(conn, include_str!("../../queries/list_tenants.sql"), params, |row| {
        Ok((TenantId::from(row.get_ref(4)?.as_str()?), counts(row)?))
    })
}

fn counts(row: &Row<'_>) -> Result<Usage, StatementError> {
    let count = |at: usize| -> Result<u64, StatementError> { Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or(0)) };
    Ok(Usage { live: count(0)?, ended: count(1)?, runs: count(2)?, stored_bytes: count(3)? })
}

/// Jobs read by one call. A longer read would keep the log from restarting.
const LOOKED_AT: i64 = 50_000;

/// A range of jobs after a sequence number: the ended ones of the tenant that may be erased, and where to continue. None if
/// no job follows.
pub(crate) fn erasable(
    conn: &Connection,
    tenant: &TenantId,
    after: i64,
    limit: usize,
) -> Result<Option<(Vec<i64>, i64)>, StatementError> {
    let stretch = "SELECT MAX(seq) FROM (SELECT seq FROM jobs WHERE seq > ?1 ORDER BY seq LIMIT ?2)";
    let end: Option<i64> = conn.prepare_cached(stretch)?.query_row([after, LOOKED_AT], |row| row.get(0))?;
    let Some(end) = end else { return Ok(None) };
    let params = params![tenant.as_str(), after, end, bounded(limit)];
    let seqs: Vec<i64> = collect(conn, include_str!("../../queries/jobs_to_erase.sql"), params, |row| Ok(row.get(0)?))?;
    let next = seqs.last().copied().filter(|_| seqs.len() == limit).unwrap_or(end);
    Ok(Some((seqs, next)))
}
