//! Reads credentials.

use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::time::Timestamp;
use rusqlite::{Connection, Row, params};

use super::{bounded, collect};
use crate::error::StatementError;

pub(crate) fn credential(conn: &Connection, id: &CredentialId) -> Result<Option<Credential>, StatementError> {
    Ok(collect(conn, "SELECT ends_at, body FROM credentials WHERE id = ?1", [id.as_str()], row)?.pop())
}

pub(crate) fn credentials(
    conn: &Connection,
    after: Option<&CredentialId>,
    limit: usize,
) -> Result<Vec<Credential>, StatementError> {
    let sql = "SELECT ends_at, body FROM credentials WHERE id > ?1 ORDER BY id LIMIT ?2";
    collect(conn, sql, params![after.map_or("", CredentialId::as_str), bounded(limit)], row)
}

fn row(row: &Row<'_>) -> Result<Credential, StatementError> {
    let mut credential: Credential = serde_json::from_str(row.get_ref(1)?.as_str()?)?;
    credential.ends_at = row.get::<_, Option<i64>>(0)?.map(Timestamp::from_millis);
    Ok(credential)
}
