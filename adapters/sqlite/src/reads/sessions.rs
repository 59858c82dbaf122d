//! Reads sessions and the outbox.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{EdgeId, JobId, SessionId};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_ports::{EdgeRow, LeaseRow, OutboxBacklog, OutboxEntry, OutboxRow, SessionRow, Unreadable};
use rusqlite::{Connection, Row};

use super::{bounded, collect, text};
use crate::error::StatementError;

pub(crate) fn open_edges(conn: &Connection) -> Result<Vec<EdgeRow>, StatementError> {
    collect(conn, "SELECT edge, expires_at FROM edges WHERE closed_at IS NULL ORDER BY edge", [], |row| {
        let expires_at = Timestamp::from_millis(row.get(1)?);
        Ok(EdgeRow { edge: EdgeId::from(row.get_ref(0)?.as_str()?), expires_at })
    })
}

pub(crate) fn open_sessions(conn: &Connection, unreadable: &Unreadable) -> Result<Vec<SessionRow>, StatementError> {
    sessions(conn, unreadable, include_str!("../../queries/open_sessions.sql"))
}

pub(crate) fn closed_holding(conn: &Connection, unreadable: &Unreadable) -> Result<Vec<SessionRow>, StatementError> {
    sessions(conn, unreadable, include_str!("../../queries/closed_holding.sql"))
}

fn sessions(conn: &Connection, unreadable: &Unreadable, sql: &str) -> Result<Vec<SessionRow>, StatementError> {
    let found = collect(conn, sql, [], |row| {
        let name = text(row, 0)?;
        unreadable.or_told(|| format!("session {name}"), session(row))
    })?;
    Ok(found.into_iter().flatten().collect())
}

fn session(row: &Row<'_>) -> Result<SessionRow, StatementError> {
    let epoch: i64 = row.get(1)?;
    Ok(SessionRow {
        session: SessionId::from(row.get_ref(0)?.as_str()?),
        epoch: epoch.unsigned_abs(),
        edge: EdgeId::from(row.get_ref(2)?.as_str()?),
        edge_closed: row.get(3)?,
        profile: serde_json::from_str(row.get_ref(4)?.as_str()?)?,
        sent_away: row.get(5)?,
    })
}

pub(crate) fn leases(conn: &Connection, now: Timestamp) -> Result<Vec<LeaseRow>, StatementError> {
    let sql = "SELECT name, holder, epoch, expires_at FROM leases ORDER BY name";
    collect(conn, sql, [], |row| {
        let (epoch, expires_at): (i64, i64) = (row.get(2)?, row.get(3)?);
        let left_ms = expires_at - now.as_millis();
        Ok(LeaseRow { name: row.get(0)?, holder: row.get(1)?, epoch: epoch.unsigned_abs(), left_ms })
    })
}

pub(crate) fn kept_tries(conn: &Connection) -> Result<Option<Arc<str>>, StatementError> {
    let kept = collect(conn, "SELECT tries FROM placing_tries", [], |row| Ok(row.get::<_, String>(0)?))?;
    Ok(kept.into_iter().next().map(Arc::from))
}

const OUTBOX: &str = "outbox_id, job_id, sink, body, at";

/// Outbox rows committed up to then.
pub(crate) fn outbox(
    conn: &Connection,
    after: i64,
    until: Timestamp,
    limit: usize,
) -> Result<Vec<OutboxRow>, StatementError> {
    let sql = format!("SELECT {OUTBOX} FROM outbox WHERE outbox_id > ?1 AND at <= ?2 ORDER BY outbox_id LIMIT ?3");
    collect(conn, &sql, (after, until.as_millis(), bounded(limit)), outbox_row)
}

pub(crate) fn outbox_of(conn: &Connection, jobs: &[JobId]) -> Result<Vec<OutboxRow>, StatementError> {
    let sql = format!("SELECT {OUTBOX} FROM outbox WHERE job_id = ?1");
    let mut rows = Vec::new();
    for job in jobs {
        rows.extend(collect(conn, &sql, [job.as_str()], outbox_row)?);
    }
    rows.sort_unstable_by_key(|row| row.id);
    rows.dedup_by_key(|row| row.id);
    Ok(rows)
}

pub(crate) fn backlog(conn: &Connection, now: Timestamp, limit: usize) -> Result<OutboxBacklog, StatementError> {
    let sql = "SELECT COUNT(*), MIN(at) FROM (SELECT at FROM outbox ORDER BY outbox_id LIMIT ?1)";
    let (rows, oldest): (i64, Option<i64>) =
        conn.prepare_cached(sql)?.query_row([bounded(limit)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let oldest = oldest.map_or(Duration::ZERO, |at| now.since(Timestamp::from_millis(at)));
    Ok(OutboxBacklog { rows: rows.unsigned_abs(), oldest })
}

fn outbox_row(row: &Row<'_>) -> Result<OutboxRow, StatementError> {
    let entry = OutboxEntry { sink: text(row, 2)?, body: Json::trusted(text(row, 3)?) };
    let at = Timestamp::from_millis(row.get(4)?);
    Ok(OutboxRow { id: row.get(0)?, job_id: JobId::new(text(row, 1)?), at, entry })
}
