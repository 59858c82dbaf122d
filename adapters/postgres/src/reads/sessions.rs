//! Sessions, the outbox and the counts.

use lockgate_core::ids::{EdgeId, JobId, SessionId};
use lockgate_core::request::Json;
use lockgate_ports::{LeaseRow, OutboxEntry, OutboxRow, SessionRow, Totals};
use tokio_postgres::Row;

use crate::conn::Conn;
use crate::error::Fault;
use crate::row::{bounded, get, text};

pub(crate) async fn open_sessions(conn: &mut Conn) -> Result<Vec<SessionRow>, Fault> {
    sessions(&conn.rows(include_str!("../../queries/open_sessions.sql"), &[]).await?)
}

pub(crate) async fn closed_holding(conn: &mut Conn) -> Result<Vec<SessionRow>, Fault> {
    sessions(&conn.rows(include_str!("../../queries/closed_holding.sql"), &[]).await?)
}

/// In the order of their names, which is ours and not the database's.
fn sessions(rows: &[Row]) -> Result<Vec<SessionRow>, Fault> {
    let mut sessions = rows.iter().map(session).collect::<Result<Vec<_>, Fault>>()?;
    sessions.sort_unstable_by(|a, b| a.session.cmp(&b.session));
    Ok(sessions)
}

fn session(row: &Row) -> Result<SessionRow, Fault> {
    Ok(SessionRow {
        session: SessionId::from(get::<&str>(row, 0)?),
        epoch: get::<i64>(row, 1)?.unsigned_abs(),
        edge: EdgeId::from(get::<&str>(row, 2)?),
        edge_closed: get(row, 3)?,
        profile: serde_json::from_str(get(row, 4)?)?,
        sent_away: get(row, 5)?,
    })
}

/// Absent: the server's clock counts.
pub(crate) async fn leases(conn: &mut Conn, now: Option<i64>) -> Result<Vec<LeaseRow>, Fault> {
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
    let mut leases = rows.iter().map(lease).collect::<Result<Vec<_>, Fault>>()?;
    leases.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(leases)
}

pub(crate) async fn outbox(conn: &mut Conn, limit: usize) -> Result<Vec<OutboxRow>, Fault> {
    let sql = "SELECT outbox_id, job_id, sink, body FROM outbox ORDER BY outbox_id LIMIT $1";
    let entry = |row| {
        let entry = OutboxEntry { sink: text(row, 2)?, body: Json::trusted(text(row, 3)?) };
        Ok(OutboxRow { id: get(row, 0)?, job_id: JobId::new(text(row, 1)?), entry })
    };
    conn.rows(sql, &[&bounded(limit)]).await?.iter().map(entry).collect()
}

pub(crate) async fn totals(conn: &mut Conn) -> Result<Totals, Fault> {
    let rows = conn.rows(include_str!("../../queries/totals.sql"), &[]).await?;
    let row = rows.first().ok_or_else(|| Fault::Row("the counts are gone".to_owned()))?;
    let count = |at: usize| -> Result<u64, Fault> {
        let n: i64 = get(row, at)?;
        u64::try_from(n).map_err(|_| Fault::Row(format!("a count is {n}")))
    };
    let four = |at: usize| -> Result<[u64; 4], Fault> { Ok([count(at)?, count(at + 1)?, count(at + 2)?, count(at + 3)?]) };
    Ok(Totals { live: four(0)?, dead_letters: four(4)?, ended: count(8)? })
}
