//! Rows to words of `core`, and back.

use std::sync::Arc;

use lockgate_core::dag::RunState;
use lockgate_core::ids::JobSeq;
use lockgate_core::job::{Job, JobState};
use lockgate_core::lane::Priority;
use lockgate_core::request::{JobRequest, Json, RequestHash};
use lockgate_ports::packed;
use rusqlite::Row;

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

pub(crate) fn priority_code(priority: Priority) -> usize {
    priority as usize
}

/// A count as a column holds it.
pub(crate) fn stored(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Columns: seq, version, state, hash, life, request. The payload is given by the caller.
pub(crate) fn job(row: &Row<'_>, payload: Json) -> Result<Job, Fault> {
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

/// As [`job`], with the payload in the seventh column.
pub(crate) fn whole_job(row: &Row<'_>) -> Result<Job, Fault> {
    let payload: Arc<str> = row.get_ref(6)?.as_str()?.into();
    job(row, Json::trusted(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_codes_are_the_ones_the_schema_names() {
        for (code, state_of) in (0..).zip(JobState::ALL) {
            assert_eq!(state_code(state_of), code);
            assert_eq!(state(code).unwrap(), state_of);
            assert_eq!(state_of.is_terminal(), code >= 5);
            assert_eq!(state_of.is_held(), code == 3 || code == 4);
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

    #[test]
    fn priority_codes_follow_their_order() {
        for (code, priority) in Priority::ALL.into_iter().enumerate() {
            assert_eq!(priority_code(priority), code);
        }
    }
}
