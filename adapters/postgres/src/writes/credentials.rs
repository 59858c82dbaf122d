//! Writes credentials: each change is one commit, with its audit row.

use std::collections::BTreeSet;

use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::audit::AuditEntry;
use lockgate_core::time::Timestamp;
use lockgate_ports::store::GoesOn;

use crate::conn::{Conn, SqlCall};
use crate::error::StatementError;
use crate::reads::{CREDENTIAL, credential_row};

pub(crate) async fn add_credential(conn: &mut Conn, new: &Credential, audit: &AuditEntry) -> Result<bool, StatementError> {
    // The end is stored in a column of its own and not in the body, so that ending a credential needs no rewrite of it.
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

/// C-1, C-3. Both rows are locked before the statement reads them: of two calls that each end the credential which is the
/// other's evidence, the second sees what the first did.
pub(crate) async fn end_credential(
    conn: &mut Conn,
    begin: &str,
    id: &CredentialId,
    at: Timestamp,
    given: Option<&GoesOn>,
    audit: &AuditEntry,
) -> Result<Option<Credential>, StatementError> {
    let id = id.as_str();
    let (other, good_at) = (given.map(|given| given.id.as_str()), given.map(|given| given.at.as_millis()));
    // Every call locks in one order, so that two calls cannot wait for each other.
    let locked: Vec<&str> = other.into_iter().chain([id]).collect::<BTreeSet<_>>().into_iter().collect();
    let end = SqlCall {
        sql: include_str!("../../queries/end_credential.sql"),
        params: vec![
            Box::new(id),
            Box::new(at.as_millis()),
            Box::new(other),
            Box::new(good_at),
            Box::new(audit.at.as_millis()),
            Box::new(audit.tenant.as_str()),
            Box::new(audit.actor.as_str()),
            Box::new(audit.action.as_str()),
            Box::new(&*audit.subject),
            Box::new(audit.detail.as_str()),
        ],
    };
    let calls = [
        SqlCall { sql: include_str!("../../queries/lock_credentials.sql"), params: vec![Box::new(locked)] },
        end,
        SqlCall { sql: CREDENTIAL, params: vec![Box::new(id)] },
    ];
    let (rows, committed) = conn.together(Some(begin), &calls, Some("COMMIT")).await?.split()?;
    committed?;
    rows.last().and_then(|found| found.first()).map(credential_row).transpose()
}
