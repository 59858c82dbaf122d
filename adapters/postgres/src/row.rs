//! Rows to words of `core`, and back.

use std::sync::Arc;

use lockgate_core::dag::RunState;
use lockgate_core::ids::JobSeq;
use lockgate_core::job::{Job, JobState};
use lockgate_core::lane::LaneKey;
use lockgate_core::request::{JobRequest, Json, RequestHash};
use lockgate_ports::packed;
use sha2::{Digest, Sha256};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::error::Fault;

pub(crate) fn state_code(state: JobState) -> i64 {
    state as i64
}

pub(crate) fn state(code: i64) -> Result<JobState, Fault> {
    let found = usize::try_from(code).ok().and_then(|code| JobState::ALL.get(code).copied());
    found.ok_or_else(|| Fault::Row(format!("{code} is not a job state")))
}

pub(crate) fn run_state_code(state: RunState) -> i64 {
    state as i64
}

pub(crate) fn run_state(code: i64) -> Result<RunState, Fault> {
    let found = usize::try_from(code).ok().and_then(|code| RunState::ALL.get(code).copied());
    found.ok_or_else(|| Fault::Row(format!("{code} is not a run state")))
}

/// The node itself has a number that no item has.
pub(crate) fn item_code(item: Option<u32>) -> i64 {
    item.map_or(-1, i64::from)
}

pub(crate) fn item(code: i64) -> Result<Option<u32>, Fault> {
    let item = (code != -1).then(|| u32::try_from(code)).transpose();
    item.map_err(|_| Fault::Row(format!("{code} is not an item")))
}

/// A count as a column holds it.
pub(crate) fn stored(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(crate) fn bounded(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A column, or why the row makes no sense.
pub(crate) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, Fault> {
    row.try_get(column).map_err(|error| Fault::Row(error.to_string()))
}

pub(crate) fn text(row: &Row, column: usize) -> Result<Arc<str>, Fault> {
    Ok(get::<&str>(row, column)?.into())
}

pub(crate) fn bytes(row: &Row, column: usize) -> Result<[u8; 32], Fault> {
    get::<&[u8]>(row, column)?.try_into().map_err(|_| Fault::Row("a hash has another length".to_owned()))
}

/// Columns: seq, version, state, hash, life, request. The payload is given by the caller.
pub(crate) fn job(row: &Row, payload: Json) -> Result<Job, Fault> {
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

/// As [`job`], with the payload in the seventh column.
pub(crate) fn whole_job(row: &Row) -> Result<Job, Fault> {
    job(row, Json::trusted(text(row, 6)?))
}

/// The number of a lane in its index. Clients choose much of a lane's key, so a hash that nobody can aim is needed: two
/// lanes with one number would be one.
pub(crate) fn lane_number(lane: &LaneKey) -> Result<i64, Fault> {
    let digest = Sha256::digest(serde_json::to_vec(lane)?);
    let first = digest.first_chunk::<8>().ok_or_else(|| Fault::Row("a digest is short".to_owned()))?;
    Ok(i64::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_core::lane::{Priority, Shape};

    #[test]
    fn state_codes_are_the_ones_the_schema_names() {
        for (code, state_of) in (0..).zip(JobState::ALL) {
            assert_eq!(state_code(state_of), code);
            assert_eq!(state(code).unwrap(), state_of);
            assert_eq!(state_of.is_terminal(), code >= 5);
        }
        assert_eq!((state_code(JobState::Pending), state_code(JobState::Scheduled)), (0, 2));
        assert!(state(11).is_err());
    }

    #[test]
    fn run_states_and_items_are_the_numbers_the_schema_names() {
        for (code, state) in (0..).zip(RunState::ALL) {
            assert_eq!((run_state_code(state), run_state(code).unwrap()), (code, state));
            assert_eq!(state.is_over(), code >= 4);
        }
        assert!(run_state(9).is_err() && item(-2).is_err());
        for wanted in [None, Some(0), Some(u32::MAX)] {
            assert_eq!(item(item_code(wanted)).unwrap(), wanted);
        }
    }

    /// It is on disk, so it must not move.
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
