//! Rows to words of `core`, and back.

use std::sync::Arc;

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
    fn priority_codes_follow_their_order() {
        for (code, priority) in Priority::ALL.into_iter().enumerate() {
            assert_eq!(priority_code(priority), code);
        }
    }
}
