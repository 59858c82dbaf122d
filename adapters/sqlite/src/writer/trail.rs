//! Writes the configuration in force and the audit trail.

use std::sync::Arc;

use lockgate_core::audit::{AuditEntry, Block};
use lockgate_core::pools::RoutingId;
use lockgate_ports::{Activation, Outdated, SnapshotKind};
use lockgate_sql::codes::stored;
use rusqlite::{Connection, OptionalExtension, params};

use super::WriteTx;
use super::write_tx::ActiveIds;
use crate::error::StatementError;

impl ActiveIds {
    pub(super) fn read(conn: &Connection) -> rusqlite::Result<Self> {
        let routing =
            RoutingId { pools: active(conn, SnapshotKind::Pools)?, states: active(conn, SnapshotKind::PoolStates)? };
        Ok(Self { policy: active(conn, SnapshotKind::Policy)?, routing })
    }
}

fn active(conn: &Connection, kind: SnapshotKind) -> rusqlite::Result<Arc<str>> {
    let sql = "SELECT id FROM activations WHERE kind = ?1 ORDER BY version DESC LIMIT 1";
    let found: Option<String> = conn.query_row(sql, [kind.as_str()], |row| row.get(0)).optional()?;
    Ok(found.map_or_else(|| kind.builtin().into(), Arc::from))
}

impl WriteTx<'_> {
    pub(crate) fn activate(&mut self, change: &Activation) -> Result<Result<u64, Outdated>, StatementError> {
        let kind = change.kind.as_str();
        let latest = "SELECT version FROM activations WHERE kind = ?1 ORDER BY version DESC LIMIT 1";
        let in_force = self.number(latest, [kind])?.unwrap_or(0);
        if in_force.unsigned_abs() != change.expected {
            return Ok(Err(Outdated { in_force: in_force.unsigned_abs() }));
        }
        // An empty text means that the text is stored elsewhere; the first known text is kept for ever.
        let keep = "INSERT INTO snapshots (kind, id, text) VALUES (?1, ?2, ?3) \
                    ON CONFLICT DO UPDATE SET text = excluded.text WHERE text = ''";
        self.conn.prepare_cached(keep)?.execute(params![kind, &*change.id, &*change.text])?;
        let version = in_force + 1;
        let sql = "INSERT INTO activations (kind, version, id, actor, at) VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = params![kind, version, &*change.id, change.actor.as_str(), self.now.as_millis()];
        self.conn.prepare_cached(sql)?.execute(row)?;
        match change.kind {
            SnapshotKind::Policy => self.in_force.policy = Arc::clone(&change.id),
            SnapshotKind::Pools => self.in_force.routing.pools = Arc::clone(&change.id),
            SnapshotKind::PoolStates => self.in_force.routing.states = Arc::clone(&change.id),
            // No commit checks these against its evidence, so the writer need not know them.
            SnapshotKind::Timeouts | SnapshotKind::Quotas => {}
        }
        self.keep_audit(std::slice::from_ref(&change.audit))?;
        Ok(Ok(version.unsigned_abs()))
    }

    pub(crate) fn keep_audit(&self, entries: &[AuditEntry]) -> Result<(), StatementError> {
        if entries.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO audit (at, tenant, actor, action, subject, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let mut insert = self.conn.prepare_cached(sql)?;
        for entry in entries {
            insert.execute(params![
                entry.at.as_millis(),
                entry.tenant.as_str(),
                entry.actor.as_str(),
                entry.action.as_str(),
                &*entry.subject,
                entry.detail.as_str(),
            ])?;
        }
        Ok(())
    }

    /// The statement itself checks that the block continues the head.
    pub(crate) fn seal(&mut self, block: &Block) -> Result<bool, StatementError> {
        let mut insert = self.conn.prepare_cached(include_str!("../../queries/seal_block.sql"))?;
        let added = insert.execute(params![
            stored(block.no),
            block.first,
            block.last,
            stored(block.rows),
            block.previous.0,
            block.seal.0,
            block.sealed_at.as_millis(),
        ])?;
        Ok(added == 1)
    }
}
