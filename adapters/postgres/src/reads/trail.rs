//! Reads the configuration in force and the audit trail.

use std::sync::Arc;

use lockgate_core::audit::{AuditAction, AuditEntry, AuditRow, Block, Seal};
use lockgate_core::ids::{ActorId, TenantId};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_ports::{Active, SnapshotKind, SnapshotRow};
use lockgate_sql::codes::stored;
use tokio_postgres::Row;

use crate::conn::Conn;
use crate::error::StatementError;
use crate::row::{bounded, bytes, get, text};

const AUDIT: &str = "SELECT audit_id, at, tenant, actor, action, subject, detail FROM audit
    WHERE audit_id > $1 ORDER BY audit_id LIMIT $2";
const BLOCKS: &str = "SELECT block_no, first_id, last_id, row_count, previous, seal, sealed_at FROM audit_blocks
    WHERE block_no > $1 ORDER BY block_no LIMIT $2";
const HEAD: &str = "SELECT block_no, first_id, last_id, row_count, previous, seal, sealed_at FROM audit_blocks
    ORDER BY block_no DESC LIMIT 1";

pub(crate) async fn active(conn: &mut Conn, kind: SnapshotKind) -> Result<Option<Active>, StatementError> {
    let rows = conn.rows(include_str!("../../queries/active.sql"), &[&kind.as_str()]).await?;
    let active = |row| {
        let SnapshotRow { version, id, actor, at } = snapshot_row(row)?;
        Ok(Active { version, id, actor, at, text: text(row, 4)? })
    };
    rows.first().map(active).transpose()
}

pub(crate) async fn snapshots(
    conn: &mut Conn,
    kind: SnapshotKind,
    limit: usize,
) -> Result<Vec<SnapshotRow>, StatementError> {
    let sql = include_str!("../../queries/list_snapshots.sql");
    conn.rows(sql, &[&kind.as_str(), &bounded(limit)]).await?.iter().map(snapshot_row).collect()
}

/// Columns: version, id, actor, time.
fn snapshot_row(row: &Row) -> Result<SnapshotRow, StatementError> {
    Ok(SnapshotRow {
        version: get::<i64>(row, 0)?.unsigned_abs(),
        id: text(row, 1)?,
        actor: ActorId::new(text(row, 2)?),
        at: Timestamp::from_millis(get(row, 3)?),
    })
}

pub(crate) async fn snapshot(conn: &mut Conn, kind: SnapshotKind, id: &str) -> Result<Option<Arc<str>>, StatementError> {
    let sql = "SELECT text FROM snapshots WHERE kind = $1 AND id = $2";
    conn.rows(sql, &[&kind.as_str(), &id]).await?.first().map(|row| text(row, 0)).transpose()
}

pub(crate) async fn audit(conn: &mut Conn, after: i64, limit: usize) -> Result<Vec<AuditRow>, StatementError> {
    let audited = |row| {
        let (id, action): (i64, _) = (get(row, 0)?, text(row, 4)?);
        let unknown = || StatementError::Row(format!("audit row {id} has the unknown action {action:?}"));
        let action = AuditAction::parse(&action).ok_or_else(unknown)?;
        let entry = AuditEntry {
            at: Timestamp::from_millis(get(row, 1)?),
            tenant: TenantId::new(text(row, 2)?),
            actor: ActorId::new(text(row, 3)?),
            action,
            subject: text(row, 5)?,
            detail: Json::trusted(text(row, 6)?),
        };
        Ok(AuditRow { id, entry })
    };
    conn.rows(AUDIT, &[&after, &bounded(limit)]).await?.iter().map(audited).collect()
}

pub(crate) async fn blocks(conn: &mut Conn, after: u64, limit: usize) -> Result<Vec<Block>, StatementError> {
    conn.rows(BLOCKS, &[&stored(after), &bounded(limit)]).await?.iter().map(block).collect()
}

pub(crate) async fn head(conn: &mut Conn) -> Result<Option<Block>, StatementError> {
    conn.rows(HEAD, &[]).await?.first().map(block).transpose()
}

fn block(row: &Row) -> Result<Block, StatementError> {
    Ok(Block {
        no: get::<i64>(row, 0)?.unsigned_abs(),
        first: get(row, 1)?,
        last: get(row, 2)?,
        rows: get::<i64>(row, 3)?.unsigned_abs(),
        previous: Seal(bytes(row, 4)?),
        seal: Seal(bytes(row, 5)?),
        sealed_at: Timestamp::from_millis(get(row, 6)?),
    })
}
