//! Who may come in: each change is one statement, with its audit row.

use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::audit::AuditEntry;
use lockgate_core::time::Timestamp;

use crate::conn::Conn;
use crate::error::Fault;
use crate::reads::credential_row;

pub(crate) async fn add_credential(conn: &mut Conn, new: &Credential, audit: &AuditEntry) -> Result<bool, Fault> {
    // The end has a column of its own, and is nowhere else.
    let body = serde_json::to_string(&Credential { ends_at: None, ..new.clone() })?;
    let sql = include_str!("../../queries/add_credential.sql");
    let added = conn
        .rows(
            sql,
            &[
                &new.id.as_str(),
                &new.ends_at.map(Timestamp::as_millis),
                &body,
                &audit.at.as_millis(),
                &audit.tenant.as_str(),
                &audit.actor.as_str(),
                &audit.action.as_str(),
                &&*audit.subject,
                &audit.detail.as_str(),
            ],
        )
        .await?;
    Ok(!added.is_empty())
}

/// C-1.
pub(crate) async fn end_credential(
    conn: &mut Conn,
    id: &CredentialId,
    at: Timestamp,
    audit: &AuditEntry,
) -> Result<Option<Credential>, Fault> {
    let sql = include_str!("../../queries/end_credential.sql");
    let ended = conn
        .rows(
            sql,
            &[
                &id.as_str(),
                &at.as_millis(),
                &audit.at.as_millis(),
                &audit.tenant.as_str(),
                &audit.actor.as_str(),
                &audit.action.as_str(),
                &&*audit.subject,
                &audit.detail.as_str(),
            ],
        )
        .await?;
    ended.first().map(credential_row).transpose()
}
