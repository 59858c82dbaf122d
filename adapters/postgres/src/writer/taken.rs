//! Finds the owner of an id or key that a new job wanted.

use std::collections::BTreeMap;

use lockgate_core::ids::{JobId, TenantId};
use lockgate_core::request::RequestHash;
use lockgate_ports::{ChangeError, DuplicateJob};
use lockgate_sql::codes;

use crate::conn::Conn;
use crate::encoded_change::EncodedChange;
use crate::error::StatementError;
use crate::row::{bytes, get};

/// Which of the two was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InTheWay {
    Id,
    Key,
}

/// One answer for each refused birth, in order. If the owner is gone, the answer is a conflict.
pub(super) async fn owners(
    conn: &mut Conn,
    refused: &[(&EncodedChange, InTheWay)],
) -> Result<Vec<ChangeError>, StatementError> {
    let (mut tenants, mut keys) = (Vec::new(), Vec::new());
    for (sheet, _) in refused.iter().filter(|(_, way)| *way == InTheWay::Key) {
        if let Some((tenant, key)) = sheet.key() {
            tenants.push(tenant);
            keys.push(key);
        }
    }
    let mut named = BTreeMap::new();
    for row in conn.rows(include_str!("../../queries/owner_by_key.sql"), &[&tenants, &keys]).await? {
        named.insert((get::<String>(&row, 0)?, get::<String>(&row, 1)?), get::<String>(&row, 2)?);
    }
    let by_key = |(tenant, key): (&str, &str)| named.get(&(tenant.to_owned(), key.to_owned())).cloned();
    let wanted: Vec<Option<String>> = refused
        .iter()
        .map(|(sheet, way)| match way {
            InTheWay::Id => Some(sheet.id().to_string()),
            InTheWay::Key => sheet.key().and_then(by_key),
        })
        .collect();
    let ids: Vec<&str> = wanted.iter().flatten().map(String::as_str).collect();
    let mut found = BTreeMap::new();
    for row in conn.rows(include_str!("../../queries/owner_by_id.sql"), &[&ids]).await? {
        let owner = DuplicateJob {
            job_id: JobId::from(get::<&str>(&row, 0)?),
            tenant: TenantId::from(get::<&str>(&row, 1)?),
            hash: RequestHash(bytes(&row, 2)?),
            state: codes::state(get(&row, 3)?)?,
            by_key: false,
        };
        found.insert(get::<String>(&row, 0)?, owner);
    }
    let answer = |(id, (_, way)): (Option<String>, &(&EncodedChange, InTheWay))| {
        let owner = id.and_then(|id| found.get(&id).cloned());
        let by_key = *way == InTheWay::Key;
        owner.map_or(ChangeError::Conflict, |owner| ChangeError::Taken(Box::new(DuplicateJob { by_key, ..owner })))
    };
    Ok(wanted.into_iter().zip(refused).map(answer).collect())
}
