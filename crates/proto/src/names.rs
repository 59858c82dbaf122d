//! Enumerations, both ways. An unspecified value means absent; an unknown one is refused, never guessed.

use lockgate_core::job::{JobState, Phase};
use lockgate_core::lane::Priority;
use lockgate_core::request::FieldError;

use crate::v1;

impl From<Priority> for v1::Priority {
    fn from(priority: Priority) -> Self {
        match priority {
            Priority::Critical => Self::Critical,
            Priority::High => Self::High,
            Priority::Default => Self::Default,
            Priority::Low => Self::Low,
        }
    }
}

impl From<JobState> for v1::JobState {
    fn from(state: JobState) -> Self {
        match state {
            JobState::Pending => Self::Pending,
            JobState::ApprovalRequired => Self::ApprovalRequired,
            JobState::Scheduled => Self::Scheduled,
            JobState::Dispatched => Self::Dispatched,
            JobState::Running => Self::Running,
            JobState::Succeeded => Self::Succeeded,
            JobState::Failed => Self::Failed,
            JobState::Timeout => Self::Timeout,
            JobState::Cancelled => Self::Cancelled,
            JobState::Denied => Self::Denied,
            JobState::OutputQuarantined => Self::OutputQuarantined,
        }
    }
}

impl From<Phase> for v1::Phase {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Queued => Self::Queued,
            Phase::Running => Self::Running,
            Phase::Succeeded => Self::Succeeded,
            Phase::Failed => Self::Failed,
            Phase::DeadLetter => Self::Deadletter,
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
    Ok(JobState::ALL.into_iter().find(|state| v1::JobState::from(*state) == wire))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_priority_and_state_survives_the_wire() {
        for priority in Priority::ALL {
            assert_eq!(known_priority(v1::Priority::from(priority).into()), Ok(Some(priority)));
        }
        for state in JobState::ALL {
            let wire = v1::JobState::from(state);
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
