//! Reads credentials.

use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::time::Timestamp;
use tokio_postgres::Row;

use crate::conn::Conn;
use crate::error::StatementError;
use crate::row::{bounded, get};

pub(crate) const CREDENTIAL: &str = "SELECT ends_at, body FROM credentials WHERE id = $1";

pub(crate) async fn credential(conn: &mut Conn, id: &CredentialId) -> Result<Option<Credential>, StatementError> {
    let rows = conn.rows(CREDENTIAL, &[&id.as_str()]).await?;
    rows.first().map(credential_row).transpose()
}

pub(crate) async fn credentials(
    conn: &mut Conn,
    after: Option<&CredentialId>,
    limit: usize,
) -> Result<Vec<Credential>, StatementError> {
    let sql = "SELECT ends_at, body FROM credentials WHERE id > $1 ORDER BY id LIMIT $2";
    let rows = conn.rows(sql, &[&after.map_or("", CredentialId::as_str), &bounded(limit)]).await?;
    rows.iter().map(credential_row).collect()
}

/// Columns: end, body.
pub(crate) fn credential_row(row: &Row) -> Result<Credential, StatementError> {
    let mut credential: Credential = serde_json::from_str(get(row, 1)?)?;
    credential.ends_at = get::<Option<i64>>(row, 0)?.map(Timestamp::from_millis);
    Ok(credential)
}
