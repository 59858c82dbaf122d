//! Sessions and the outbox.

use lockgate_core::ids::{EdgeId, JobId, SessionId};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_ports::{LeaseRow, OutboxEntry, OutboxRow, SessionRow};
use rusqlite::{Connection, Row};

use super::{bounded, collect, text};
use crate::error::Fault;

pub(crate) fn open_sessions(conn: &Connection) -> Result<Vec<SessionRow>, Fault> {
    collect(conn, include_str!("../../queries/open_sessions.sql"), [], session)
}

pub(crate) fn closed_holding(conn: &Connection) -> Result<Vec<SessionRow>, Fault> {
    collect(conn, include_str!("../../queries/closed_holding.sql"), [], session)
}

fn session(row: &Row<'_>) -> Result<SessionRow, Fault> {
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

pub(crate) fn leases(conn: &Connection, now: Timestamp) -> Result<Vec<LeaseRow>, Fault> {
    let sql = "SELECT name, holder, epoch, expires_at FROM leases ORDER BY name";
    collect(conn, sql, [], |row| {
        let (epoch, expires_at): (i64, i64) = (row.get(2)?, row.get(3)?);
        let left_ms = expires_at - now.as_millis();
        Ok(LeaseRow { name: row.get(0)?, holder: row.get(1)?, epoch: epoch.unsigned_abs(), left_ms })
    })
}

pub(crate) fn outbox(conn: &Connection, limit: usize) -> Result<Vec<OutboxRow>, Fault> {
    let sql = "SELECT outbox_id, job_id, sink, body FROM outbox ORDER BY outbox_id LIMIT ?1";
    collect(conn, sql, [bounded(limit)], |row| {
        let entry = OutboxEntry { sink: text(row, 2)?, body: Json::trusted(text(row, 3)?) };
        Ok(OutboxRow { id: row.get(0)?, job_id: JobId::new(text(row, 1)?), entry })
    })
}
