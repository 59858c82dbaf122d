//! Numeric codes of columns. They are stored, so they must not change.

use lockgate_core::dag::RunState;
use lockgate_core::job::JobState;

/// A code that no version of this program has written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} is not {what}")]
pub struct UnknownCode {
    code: i64,
    what: &'static str,
}

pub fn state_code(state: JobState) -> i64 {
    state as i64
}

pub fn state(code: i64) -> Result<JobState, UnknownCode> {
    known(&JobState::ALL, code, "a job state")
}

pub fn run_state_code(state: RunState) -> i64 {
    state as i64
}

pub fn run_state(code: i64) -> Result<RunState, UnknownCode> {
    known(&RunState::ALL, code, "a run state")
}

/// A node without items has the code -1, which no item has.
pub fn item_code(item: Option<u32>) -> i64 {
    item.map_or(-1, i64::from)
}

pub fn item(code: i64) -> Result<Option<u32>, UnknownCode> {
    let item = (code != -1).then(|| u32::try_from(code)).transpose();
    item.map_err(|_| UnknownCode { code, what: "an item" })
}

/// A count as a column stores it.
pub fn stored(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn known<T: Copy>(all: &[T], code: i64, what: &'static str) -> Result<T, UnknownCode> {
    let found = usize::try_from(code).ok().and_then(|place| all.get(place).copied());
    found.ok_or(UnknownCode { code, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_codes_are_the_ones_the_schemas_name() {
        for (code, state_of) in (0..).zip(JobState::ALL) {
            assert_eq!(state_code(state_of), code);
            assert_eq!(state(code), Ok(state_of));
            assert_eq!(state_of.is_terminal(), code >= 5);
            assert_eq!(state_of.is_held(), code == 3 || code == 4);
        }
        assert_eq!((state_code(JobState::Pending), state_code(JobState::Scheduled)), (0, 2));
        assert_eq!(state(11).map_err(|error| error.to_string()), Err("11 is not a job state".to_owned()));
    }

    #[test]
    fn run_states_and_items_are_the_numbers_the_schemas_name() {
        for (code, state) in (0..).zip(RunState::ALL) {
            assert_eq!((run_state_code(state), run_state(code)), (code, Ok(state)));
            assert_eq!(state.is_over(), code >= 4);
        }
        assert!(run_state(9).is_err() && item(-2).is_err());
        for wanted in [None, Some(0), Some(u32::MAX)] {
            assert_eq!(item(item_code(wanted)), Ok(wanted));
        }
    }
}
