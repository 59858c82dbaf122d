//! Converts rows to core types and back.

use std::sync::Arc;

use lockgate_core::ids::JobSeq;
use lockgate_core::job::Job;
use lockgate_core::lane::Priority;
use lockgate_core::request::{JobRequest, Json, RequestHash};
use lockgate_sql::codes::state;
use lockgate_sql::packed;
use rusqlite::Row;

use crate::error::StatementError;

pub(crate) fn priority_code(priority: Priority) -> usize {
    priority as usize
}

/// Columns: seq, version, state, hash, life, request. The caller supplies the payload.
pub(crate) fn job(row: &Row<'_>, payload: Json) -> Result<Job, StatementError> {
    let mut request: JobRequest = serde_json::from_str(row.get_ref(5)?.as_str()?)?;
    request.payload = payload;
    Ok(Job {
        seq: JobSeq(row.get(0)?),
        version: row.get(1)?,
        hash: RequestHash(row.get(3)?),
        life: packed::read_life(row.get_ref(4)?.as_str()?, state(row.get(2)?)?)?,
        request: Arc::new(request),
    })
}

/// Like [`job`], with the payload in the seventh column.
pub(crate) fn whole_job(row: &Row<'_>) -> Result<Job, StatementError> {
    let payload: Arc<str> = row.get_ref(6)?.as_str()?.into();
    job(row, Json::trusted(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_codes_follow_their_order() {
        for (code, priority) in Priority::ALL.into_iter().enumerate() {
            assert_eq!(priority_code(priority), code);
        }
    }
}
