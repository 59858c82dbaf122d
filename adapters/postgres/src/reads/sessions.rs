//! Reads sessions, the outbox and the counts.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{EdgeId, JobId, SessionId};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_ports::{EdgeRow, LeaseRow, OutboxBacklog, OutboxEntry, OutboxRow, Pinned, SessionRow, Totals, Unreadable};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::conn::Conn;
use crate::error::StatementError;
use crate::options::Now;
use crate::row::{bounded, get, text};

pub(crate) async fn open_edges(conn: &mut Conn) -> Result<Vec<EdgeRow>, StatementError> {
    let rows = conn.rows(include_str!("../../queries/open_edges.sql"), &[]).await?;
    let edge = |row: &Row| -> Result<EdgeRow, StatementError> {
        Ok(EdgeRow { edge: EdgeId::from(get::<&str>(row, 0)?), expires_at: Timestamp::from_millis(get(row, 1)?) })
    };
    let mut edges = rows.iter().map(edge).collect::<Result<Vec<_>, StatementError>>()?;
    edges.sort_unstable_by(|a, b| a.edge.cmp(&b.edge));
    Ok(edges)
}

pub(crate) async fn open_sessions(conn: &mut Conn, unreadable: &Unreadable) -> Result<Vec<SessionRow>, StatementError> {
    sessions(unreadable, &conn.rows(include_str!("../../queries/open_sessions.sql"), &[]).await?)
}

pub(crate) async fn closed_holding(conn: &mut Conn, unreadable: &Unreadable) -> Result<Vec<SessionRow>, StatementError> {
    sessions(unreadable, &conn.rows(include_str!("../../queries/closed_holding.sql"), &[]).await?)
}

/// Sorted by name in Rust, because the database's collation may order names differently.
fn sessions(unreadable: &Unreadable, rows: &[Row]) -> Result<Vec<SessionRow>, StatementError> {
    let mut sessions = Vec::with_capacity(rows.len());
    for row in rows {
        let name = text(row, 0)?;
        sessions.extend(unreadable.or_told(|| format!("session {name}"), session(row))?);
    }
    sessions.sort_unstable_by(|a, b| a.session.cmp(&b.session));
    Ok(sessions)
}

fn session(row: &Row) -> Result<SessionRow, StatementError> {
    Ok(SessionRow {
        session: SessionId::from(get::<&str>(row, 0)?),
        epoch: get::<i64>(row, 1)?.unsigned_abs(),
        edge: EdgeId::from(get::<&str>(row, 2)?),
        edge_closed: get(row, 3)?,
        profile: serde_json::from_str(get(row, 4)?)?,
        sent_away: get(row, 5)?,
    })
}

/// If `now` is absent, the server's clock counts.
pub(crate) async fn leases(conn: &mut Conn, now: Option<i64>) -> Result<Vec<LeaseRow>, StatementError> {
    let lease = |row: &Row| {
        let holder: Option<&str> = get(row, 1)?;
        Ok(LeaseRow {
            name: get::<&str>(row, 0)?.to_owned(),
            holder: holder.map(str::to_owned),
            epoch: get::<i64>(row, 2)?.unsigned_abs(),
            left_ms: get(row, 3)?,
        })
    };
    let rows = conn.rows(include_str!("../../queries/leases.sql"), &[&now]).await?;
    let mut leases = rows.iter().map(lease).collect::<Result<Vec<_>, StatementError>>()?;
    leases.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(leases)
}

pub(crate) async fn kept_tries(conn: &mut Conn) -> Result<Option<Arc<str>>, StatementError> {
    let rows = conn.rows("SELECT tries FROM placing_tries", &[]).await?;
    rows.first().map(|row| Ok(Arc::from(get::<&str>(row, 0)?))).transpose()
}

pub(crate) async fn outbox(
    conn: &mut Conn,
    now: Now,
    after: i64,
    age: i64,
    limit: usize,
) -> Result<Vec<OutboxRow>, StatementError> {
    let params: [&(dyn ToSql + Sync); 4] = [&now, &after, &age, &bounded(limit)];
    conn.rows(include_str!("../../queries/outbox.sql"), &params).await?.iter().map(outbox_row).collect()
}

pub(crate) async fn outbox_of(conn: &mut Conn, jobs: &[JobId]) -> Result<Vec<OutboxRow>, StatementError> {
    let jobs: Vec<&str> = jobs.iter().map(JobId::as_str).collect();
    let rows = conn.rows(include_str!("../../queries/outbox_of.sql"), &[&jobs]).await?;
    let mut rows = rows.iter().map(outbox_row).collect::<Result<Vec<_>, StatementError>>()?;
    rows.sort_unstable_by_key(|row| row.id);
    Ok(rows)
}

pub(crate) async fn backlog(conn: &mut Conn, now: Now, limit: usize) -> Result<OutboxBacklog, StatementError> {
    let rows = conn.rows(include_str!("../../queries/backlog.sql"), &[&now, &bounded(limit)]).await?;
    let row = rows.first().ok_or_else(|| StatementError::Row("the outbox cannot be counted".to_owned()))?;
    let (rows, oldest): (i64, Option<i64>) = (get(row, 0)?, get(row, 1)?);
    let oldest = Duration::from_millis(u64::try_from(oldest.unwrap_or_default()).unwrap_or_default());
    Ok(OutboxBacklog { rows: rows.unsigned_abs(), oldest })
}

/// What pins the xmin horizon, if anything does.
pub(crate) async fn pinned(conn: &mut Conn) -> Result<Option<Pinned>, StatementError> {
    let rows = conn.rows(include_str!("../../queries/horizon_postgres.sql"), &[]).await?;
    rows.first().map(pinned_by).transpose()
}

fn pinned_by(row: &Row) -> Result<Pinned, StatementError> {
    let (seconds, transactions): (Option<i64>, Option<i64>) = (get(row, 1)?, get(row, 2)?);
    let count = |n: i64| u64::try_from(n).unwrap_or_default();
    Ok(Pinned {
        holder: text(row, 0)?.to_string(),
        held_for: seconds.map(|seconds| Duration::from_secs(count(seconds))),
        transactions: transactions.map_or(0, count),
        dead_rows: count(get(row, 3)?),
    })
}

fn outbox_row(row: &Row) -> Result<OutboxRow, StatementError> {
    let entry = OutboxEntry { sink: text(row, 2)?, body: Json::trusted(text(row, 3)?) };
    let at = Timestamp::from_millis(get(row, 4)?);
    Ok(OutboxRow { id: get(row, 0)?, job_id: JobId::new(text(row, 1)?), at, entry })
}

pub(crate) async fn totals(conn: &mut Conn) -> Result<Totals, StatementError> {
    let rows = conn.rows(include_str!("../../queries/totals.sql"), &[]).await?;
    let row = rows.first().ok_or_else(|| StatementError::Row("the counts are gone".to_owned()))?;
    let count = |at: usize| -> Result<u64, StatementError> {
        let n: i64 = get(row, at)?;
        u64::try_from(n).map_err(|_| StatementError::Row(format!("a count is {n}")))
    };
    let four =
        |at: usize| -> Result<[u64; 4], StatementError> { Ok([count(at)?, count(at + 1)?, count(at + 2)?, count(at + 3)?]) };
    Ok(Totals { live: four(0)?, dead_letters: four(4)?, ended: count(8)? })
}
