//! Converts rows to core types and back.

use std::sync::Arc;

use lockgate_core::ids::JobSeq;
use lockgate_core::job::Job;
use lockgate_core::lane::LaneKey;
use lockgate_core::request::{JobRequest, Json, RequestHash};
use lockgate_sql::codes::state;
use lockgate_sql::packed;
use sha2::{Digest, Sha256};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::error::StatementError;

pub(crate) fn bounded(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Reads a column; the error says why the row cannot be decoded.
pub(crate) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, StatementError> {
    row.try_get(column).map_err(|error| StatementError::Row(error.to_string()))
}

pub(crate) fn text(row: &Row, column: usize) -> Result<Arc<str>, StatementError> {
    Ok(get::<&str>(row, column)?.into())
}

pub(crate) fn bytes(row: &Row, column: usize) -> Result<[u8; 32], StatementError> {
    get::<&[u8]>(row, column)?.try_into().map_err(|_| StatementError::Row("a hash has another length".to_owned()))
}

/// Columns: seq, version, state, hash, life, request. The caller supplies the payload.
pub(crate) fn job(row: &Row, payload: Json) -> Result<Job, StatementError> {
    let mut request: JobRequest = serde_json::from_str(get(row, 5)?)?;
    request.payload = payload;
    Ok(Job {
        seq: JobSeq(get(row, 0)?),
        version: get(row, 1)?,
        hash: RequestHash(bytes(row, 3)?),
        life: packed::read_life(get(row, 4)?, state(get(row, 2)?)?)?,
        request: Arc::new(request),
    })
}

/// Like [`job`], with the payload in the seventh column.
pub(crate) fn whole_job(row: &Row) -> Result<Job, StatementError> {
    job(row, Json::trusted(text(row, 6)?))
}

/// The number of a lane in the index of ready jobs. Clients choose much of a lane's key, so the hash must be
/// collision-resistant: two lanes with equal numbers would be one.
pub(crate) fn lane_number(lane: &LaneKey) -> Result<i64, StatementError> {
    let digest = Sha256::digest(serde_json::to_vec(lane)?);
    let first = digest.first_chunk::<8>().ok_or_else(|| StatementError::Row("a digest is short".to_owned()))?;
    Ok(i64::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_core::lane::{Priority, Shape};

    /// The number is stored, so it must not change between versions.
    #[test]
    fn a_lane_keeps_its_number() {
        let lane = LaneKey { priority: Priority::High, tenant: "acme".into(), shape: Arc::new(Shape::of("job.echo")) };
        let other = LaneKey { tenant: "other".into(), ..lane.clone() };
        assert_ne!(lane_number(&lane).unwrap(), lane_number(&other).unwrap());
        assert_eq!(
            serde_json::to_string(&lane).unwrap(),
            r#"{"priority":"high","tenant":"acme","shape":{"topic":"job.echo"}}"#
        );
    }
}
