//! Reads the configuration in force and the audit trail.

use std::sync::Arc;

use lockgate_core::audit::{AuditAction, AuditEntry, AuditRow, Block, Seal};
use lockgate_core::ids::{ActorId, TenantId};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_ports::{Active, SnapshotKind, SnapshotRow};
use lockgate_sql::codes::stored;
use rusqlite::{Connection, Row};

use super::{bounded, collect, text};
use crate::error::StatementError;

pub(super) const AUDIT: &str = "SELECT audit_id, at, tenant, actor, action, subject, detail FROM audit
    WHERE audit_id > ?1 ORDER BY audit_id LIMIT ?2";
pub(super) const BLOCKS: &str = "SELECT block_no, first_id, last_id, rows, previous, seal, sealed_at FROM audit_blocks
    WHERE block_no > ?1 ORDER BY block_no LIMIT ?2";
pub(super) const HEAD: &str = "SELECT block_no, first_id, last_id, rows, previous, seal, sealed_at FROM audit_blocks
    ORDER BY block_no DESC LIMIT 1";

pub(crate) fn active(conn: &Connection, kind: SnapshotKind) -> Result<Option<Active>, StatementError> {
    let found = collect(conn, include_str!("../../queries/active.sql"), [kind.as_str()], |row| {
        let SnapshotRow { version, id, actor, at } = snapshot_row(row)?;
        Ok(Active { version, id, actor, at, text: text(row, 4)? })
    })?;
    Ok(found.into_iter().next())
}

pub(crate) fn snapshots(conn: &Connection, kind: SnapshotKind, limit: usize) -> Result<Vec<SnapshotRow>, StatementError> {
    let params = rusqlite::params![kind.as_str(), bounded(limit)];
    collect(conn, include_str!("../../queries/list_snapshots.sql"), params, snapshot_row)
}

/// Columns: version, id, actor, time.
fn snapshot_row(row: &Row<'_>) -> Result<SnapshotRow, StatementError> {
    let version: i64 = row.get(0)?;
    Ok(SnapshotRow {
        version: version.unsigned_abs(),
        id: text(row, 1)?,
        actor: ActorId::new(text(row, 2)?),
        at: Timestamp::from_millis(row.get(3)?),
    })
}

pub(crate) fn snapshot(conn: &Connection, kind: SnapshotKind, id: &str) -> Result<Option<Arc<str>>, StatementError> {
    let sql = "SELECT text FROM snapshots WHERE kind = ?1 AND id = ?2";
    Ok(collect(conn, sql, [kind.as_str(), id], |row| text(row, 0))?.pop())
}

pub(crate) fn audit(conn: &Connection, after: i64, limit: usize) -> Result<Vec<AuditRow>, StatementError> {
    collect(conn, AUDIT, [after, bounded(limit)], |row| {
        let (id, action): (i64, _) = (row.get(0)?, text(row, 4)?);
        let unknown = || StatementError::Row(format!("audit row {id} has the unknown action {action:?}"));
        let action = AuditAction::parse(&action).ok_or_else(unknown)?;
        let entry = AuditEntry {
            at: Timestamp::from_millis(row.get(1)?),
            tenant: TenantId::new(text(row, 2)?),
            actor: ActorId::new(text(row, 3)?),
            action,
            subject: text(row, 5)?,
            detail: Json::trusted(text(row, 6)?),
        };
        Ok(AuditRow { id, entry })
    })
}

pub(crate) fn blocks(conn: &Connection, after: u64, limit: usize) -> Result<Vec<Block>, StatementError> {
    collect(conn, BLOCKS, [stored(after), bounded(limit)], block)
}

pub(crate) fn head(conn: &Connection) -> Result<Option<Block>, StatementError> {
    Ok(collect(conn, HEAD, [], block)?.pop())
}

fn block(row: &Row<'_>) -> Result<Block, StatementError> {
    let (no, rows): (i64, i64) = (row.get(0)?, row.get(3)?);
    Ok(Block {
        no: no.unsigned_abs(),
        first: row.get(1)?,
        last: row.get(2)?,
        rows: rows.unsigned_abs(),
        previous: Seal(row.get(4)?),
        seal: Seal(row.get(5)?),
        sealed_at: Timestamp::from_millis(row.get(6)?),
    })
}
