//! Enumerations, both ways. An unspecified value means absent; an unknown one is refused, never guessed.

use lockgate_core::job::{JobState, Phase};
use lockgate_core::lane::Priority;
use lockgate_core::request::FieldError;

use crate::ToWire;
use lockgate_proto::v1;

impl ToWire for Priority {
    type Wire = v1::Priority;

    fn to_wire(&self) -> v1::Priority {
        match self {
            Priority::Critical => v1::Priority::Critical,
            Priority::High => v1::Priority::High,
            Priority::Default => v1::Priority::Default,
            Priority::Low => v1::Priority::Low,
        }
    }
}

impl ToWire for JobState {
    type Wire = v1::JobState;

    fn to_wire(&self) -> v1::JobState {
        match self {
            JobState::Pending => v1::JobState::Pending,
            JobState::ApprovalRequired => v1::JobState::ApprovalRequired,
            JobState::Scheduled => v1::JobState::Scheduled,
            JobState::Dispatched => v1::JobState::Dispatched,
            JobState::Running => v1::JobState::Running,
            JobState::Succeeded => v1::JobState::Succeeded,
            JobState::Failed => v1::JobState::Failed,
            JobState::Timeout => v1::JobState::Timeout,
            JobState::Cancelled => v1::JobState::Cancelled,
            JobState::Denied => v1::JobState::Denied,
            JobState::OutputQuarantined => v1::JobState::OutputQuarantined,
        }
    }
}

impl ToWire for Phase {
    type Wire = v1::Phase;

    fn to_wire(&self) -> v1::Phase {
        match self {
            Phase::Queued => v1::Phase::Queued,
            Phase::Running => v1::Phase::Running,
            Phase::Succeeded => v1::Phase::Succeeded,
            Phase::Failed => v1::Phase::Failed,
            Phase::DeadLetter => v1::Phase::Deadletter,
        }
    }
}

/// The priority a client named, if any.
pub fn known_priority(number: i32) -> Result<Option<Priority>, FieldError> {
    match v1::Priority::try_from(number) {
        Ok(v1::Priority::Unspecified) => Ok(None),
        Ok(v1::Priority::Critical) => Ok(Some(Priority::Critical)),
        Ok(v1::Priority::High) => Ok(Some(Priority::High)),
        Ok(v1::Priority::Default) => Ok(Some(Priority::Default)),
        Ok(v1::Priority::Low) => Ok(Some(Priority::Low)),
        Err(_) => Err(FieldError::new("priority", format_args!("{number} is not a priority"))),
    }
}

/// The state a client named, if any.
pub fn known_state(number: i32) -> Result<Option<JobState>, FieldError> {
    let Ok(wire) = v1::JobState::try_from(number) else {
        return Err(FieldError::new("state", format_args!("{number} is not a job state")));
    };
    Ok(JobState::ALL.into_iter().find(|state| state.to_wire() == wire))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_priority_and_state_survives_the_wire() {
        for priority in Priority::ALL {
            assert_eq!(known_priority(priority.to_wire().into()), Ok(Some(priority)));
        }
        for state in JobState::ALL {
            let wire = state.to_wire();
            assert_eq!(known_state(wire.into()), Ok(Some(state)));
            assert_eq!(wire.as_str_name().strip_prefix("JOB_STATE_"), Some(state.as_str()));
        }
    }

    #[test]
    fn unspecified_is_absent_and_unknown_is_refused() {
        assert_eq!(known_priority(0), Ok(None));
        assert_eq!(known_state(0), Ok(None));
        assert!(known_priority(9).is_err());
        assert!(known_state(99).is_err());
    }
}
