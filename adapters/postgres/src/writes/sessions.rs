//! Writes edges, sessions and leases.

use std::time::Duration;

use lockgate_core::ids::{EdgeId, SessionId};
use lockgate_core::worker::WorkerProfile;
use lockgate_ports::store::LEASE_AHEAD_MAX;
use lockgate_ports::{AttachedSession, EdgeRow, Unattached};
use lockgate_sql::codes::stored;
use tokio_postgres::Row;

use super::millis;
use crate::conn::Conn;
use crate::error::StatementError;
use crate::options::Now;
use crate::row::get;

pub(crate) async fn renew_edge(conn: &mut Conn, now: Now, edge: &EdgeId, ttl: Duration) -> Result<bool, StatementError> {
    let sql = include_str!("../../queries/renew_edge.sql");
    Ok(!conn.rows(sql, &[&now, &edge.as_str(), &millis(ttl)]).await?.is_empty())
}

pub(crate) async fn close_edges(
    conn: &mut Conn,
    now: Now,
    seen: &[EdgeRow],
    grace: Duration,
) -> Result<Vec<EdgeId>, StatementError> {
    let edges: Vec<&str> = seen.iter().map(|row| row.edge.as_str()).collect();
    let ends: Vec<i64> = seen.iter().map(|row| row.expires_at.as_millis()).collect();
    let sql = include_str!("../../queries/close_edges.sql");
    let rows = conn.rows(sql, &[&now, &millis(grace), &edges, &ends, &millis(LEASE_AHEAD_MAX)]).await?;
    let mut closed =
        rows.iter().map(|row| Ok(EdgeId::from(get::<&str>(row, 0)?))).collect::<Result<Vec<_>, StatementError>>()?;
    closed.sort_unstable();
    Ok(closed)
}

pub(crate) async fn attach(
    conn: &mut Conn,
    now: Now,
    session: &SessionId,
    edge: &EdgeId,
    profile: &WorkerProfile,
) -> Result<Result<AttachedSession, Unattached>, StatementError> {
    let profile = serde_json::to_string(profile)?;
    let sql = include_str!("../../queries/attach.sql");
    let rows = conn.rows(sql, &[&now, &session.as_str(), &edge.as_str(), &profile]).await?;
    let row = rows.first().ok_or_else(|| StatementError::Row("an attach has no answer".to_owned()))?;
    Ok(match (get::<bool>(row, 0)?, get::<Option<i64>>(row, 1)?) {
        (true, _) => Err(Unattached::EdgeClosed),
        (false, None) => Err(Unattached::AnotherOwner),
        (false, Some(epoch)) => Ok(AttachedSession { epoch: epoch.unsigned_abs(), sent_away: get(row, 2)? }),
    })
}

pub(crate) async fn send_away(conn: &mut Conn, now: Now, sessions: &[SessionId]) -> Result<(), StatementError> {
    let names: Vec<&str> = sessions.iter().map(SessionId::as_str).collect();
    conn.rows(include_str!("../../queries/send_away.sql"), &[&now, &names]).await?;
    Ok(())
}

pub(crate) async fn keep_tries(conn: &mut Conn, text: &str) -> Result<(), StatementError> {
    conn.rows(include_str!("../../queries/keep_tries.sql"), &[&text]).await?;
    Ok(())
}

pub(crate) async fn close_session(
    conn: &mut Conn,
    now: Now,
    session: &SessionId,
    epoch: u64,
) -> Result<bool, StatementError> {
    let sql = include_str!("../../queries/close_session.sql");
    Ok(!conn.rows(sql, &[&now, &session.as_str(), &stored(epoch)]).await?.is_empty())
}

pub(crate) async fn acquire(
    conn: &mut Conn,
    now: Now,
    name: &str,
    holder: &str,
    ttl: Duration,
) -> Result<Option<u64>, StatementError> {
    let sql = include_str!("../../queries/acquire_lease.sql");
    epoch(&conn.rows(sql, &[&now, &name, &holder, &millis(ttl), &millis(LEASE_AHEAD_MAX)]).await?)
}

pub(crate) async fn release(conn: &mut Conn, name: &str, holder: &str) -> Result<(), StatementError> {
    conn.rows(include_str!("../../queries/release_lease.sql"), &[&name, &holder]).await?;
    Ok(())
}

fn epoch(rows: &[Row]) -> Result<Option<u64>, StatementError> {
    rows.first().map(|row| Ok(get::<i64>(row, 0)?.unsigned_abs())).transpose()
}
