//! Finds the owners of ids and keys, for callers that only read.

use std::sync::Arc;

use lockgate_core::ids::{JobId, RunId, TenantId};
use lockgate_core::request::{JobRequest, RequestHash};
use lockgate_ports::DuplicateJob;
use lockgate_sql::codes;

use crate::conn::Conn;
use crate::error::StatementError;
use crate::row::{bytes, get};

pub(crate) async fn duplicates(
    conn: &mut Conn,
    now: Option<i64>,
    requests: &[Arc<JobRequest>],
) -> Result<Vec<Option<DuplicateJob>>, StatementError> {
    let ids: Vec<&str> = requests.iter().map(|request| request.job_id.as_str()).collect();
    let tenants: Vec<&str> = requests.iter().map(|request| request.tenant.as_str()).collect();
    let keys: Vec<Option<&str>> = requests.iter().map(|request| request.idempotency_key.as_deref()).collect();
    let mut found: Vec<Option<DuplicateJob>> = requests.iter().map(|_| None).collect();
    for row in conn.rows(include_str!("../../queries/taken.sql"), &[&now, &ids, &tenants, &keys]).await? {
        let place = usize::try_from(get::<i64>(&row, 0)? - 1).ok().and_then(|place| found.get_mut(place));
        let owner = DuplicateJob {
            by_key: get(&row, 1)?,
            job_id: JobId::from(get::<&str>(&row, 2)?),
            tenant: TenantId::from(get::<&str>(&row, 3)?),
            hash: RequestHash(bytes(&row, 4)?),
            state: codes::state(get(&row, 5)?)?,
        };
        if let Some(place) = place {
            *place = Some(owner);
        }
    }
    Ok(found)
}

pub(crate) async fn run_of_key(
    conn: &mut Conn,
    now: Option<i64>,
    tenant: &TenantId,
    key: &str,
) -> Result<Option<(RunId, RequestHash)>, StatementError> {
    let rows = conn.rows(include_str!("../../queries/run_of_key.sql"), &[&now, &tenant.as_str(), &key]).await?;
    rows.first().map(|row| Ok((RunId::from(get::<&str>(row, 0)?), RequestHash(bytes(row, 1)?)))).transpose()
}
