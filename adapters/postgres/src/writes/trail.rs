//! Writes the configuration in force and the audit trail.

use lockgate_core::audit::{AuditEntry, Block, Seal};
use lockgate_ports::{Activation, Outdated};
use lockgate_sql::codes::stored;

use super::transact;
use crate::conn::{Conn, SqlCall};
use crate::error::StatementError;
use crate::row::get;
use crate::writer::{KEEP_AUDIT, audit_columns};

/// The most audit rows numbered by one call.
const NUMBERED_MAX: i64 = 10_000;

/// Activations run one at a time. Each waits for every open transaction with changes, so that everything committed
/// afterwards was checked against the configuration that it activates.
pub(crate) async fn activate(
    conn: &mut Conn,
    now: Option<i64>,
    begin: &str,
    change: &Activation,
) -> Result<Result<u64, Outdated>, StatementError> {
    let (audit, kind) = (&change.audit, change.kind.as_str());
    let fence = SqlCall { sql: include_str!("../../queries/fence_writers.sql"), params: Vec::new() };
    let activate = SqlCall {
        sql: include_str!("../../queries/activate.sql"),
        params: vec![
            Box::new(now),
            Box::new(kind),
            Box::new(&*change.id),
            Box::new(stored(change.expected)),
            Box::new(&*change.text),
            Box::new(change.actor.as_str()),
            Box::new(audit.at.as_millis()),
            Box::new(audit.tenant.as_str()),
            Box::new(audit.actor.as_str()),
            Box::new(audit.action.as_str()),
            Box::new(&*audit.subject),
            Box::new(audit.detail.as_str()),
        ],
    };
    let begin = format!("{begin}; SELECT 1 FROM in_force ORDER BY kind FOR UPDATE");
    let rows = transact(conn, &begin, &[fence, activate]).await?;
    if let Some(row) = rows.last().and_then(|rows| rows.first()) {
        return Ok(Ok(get::<i64>(row, 0)?.unsigned_abs()));
    }
    let rows = conn.rows("SELECT version FROM in_force WHERE kind = $1", &[&kind]).await?;
    let row = rows.first().ok_or_else(|| StatementError::Row(format!("nothing is in force as {kind}")))?;
    Ok(Err(Outdated { in_force: get::<i64>(row, 0)?.unsigned_abs() }))
}

pub(crate) async fn append_audit(conn: &mut Conn, entries: &[AuditEntry]) -> Result<(), StatementError> {
    let entries: Vec<&AuditEntry> = entries.iter().collect();
    let columns = audit_columns(&entries);
    let params: Vec<_> = columns.iter().map(|column| &**column as &(dyn tokio_postgres::types::ToSql + Sync)).collect();
    conn.rows(KEEP_AUDIT, &params).await?;
    Ok(())
}

/// Assigns final numbers to audit rows that have none.
pub(crate) async fn number_audit(conn: &mut Conn, begin: &str) -> Result<(), StatementError> {
    if conn.rows("SELECT 1 FROM audit_inbox ORDER BY inbox_id LIMIT 1", &[]).await?.is_empty() {
        return Ok(());
    }
    let begin = format!("{begin}; SELECT 1 FROM audit_head FOR UPDATE");
    let number = SqlCall { sql: include_str!("../../queries/number_audit.sql"), params: vec![Box::new(NUMBERED_MAX)] };
    transact(conn, &begin, &[number]).await?;
    Ok(())
}

/// The statement itself checks that the block continues the head, so two sealers cannot both succeed.
pub(crate) async fn seal(conn: &mut Conn, block: &Block) -> Result<bool, StatementError> {
    let nothing_before = Seal::default();
    let rows = conn
        .rows(
            include_str!("../../queries/seal_block.sql"),
            &[
                &stored(block.no),
                &block.first,
                &block.last,
                &stored(block.rows),
                &block.previous.0.as_slice(),
                &block.seal.0.as_slice(),
                &block.sealed_at.as_millis(),
                &nothing_before.0.as_slice(),
            ],
        )
        .await?;
    Ok(!rows.is_empty())
}
