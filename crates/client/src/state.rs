//! States as the server names them.

use std::fmt;

use lockgate_proto::v1;
use serde::{Serialize, Serializer};

macro_rules! states {
    ($(#[$about:meta])* $name:ident, $wire:ident, $prefix:literal, { $($variant:ident),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($variant,)+
            /// One that this version of the client does not know.
            Unknown,
        }

        impl $name {
            pub(crate) fn from_wire(state: i32) -> Self {
                match v1::$wire::try_from(state) {
                    $(Ok(v1::$wire::$variant) => Self::$variant,)+
                    _ => Self::Unknown,
                }
            }

            /// As the server writes it, such as `SUCCEEDED`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                let wire = match self {
                    $(Self::$variant => v1::$wire::$variant,)+
                    Self::Unknown => return "UNKNOWN",
                };
                wire.as_str_name().trim_start_matches($prefix)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

states!(
    /// State of a job.
    JobState, JobState, "JOB_STATE_",
    {
        Pending, ApprovalRequired, Scheduled, Dispatched, Running, Succeeded, Failed, Timeout, Cancelled, Denied,
        OutputQuarantined,
    }
);

states!(
    /// State of a run of a workflow.
    RunState, RunState, "RUN_STATE_",
    {
        Running, Paused, Compensating, CompensationStuck, Succeeded, SucceededWithFailures, Failed, Canceled, Compensated,
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_written_as_the_server_writes_them() {
        assert_eq!(JobState::from_wire(v1::JobState::OutputQuarantined.into()).as_str(), "OUTPUT_QUARANTINED");
        assert_eq!(RunState::SucceededWithFailures.to_string(), "SUCCEEDED_WITH_FAILURES");
        assert_eq!(JobState::from_wire(999), JobState::Unknown);
        assert_eq!(serde_json::to_string(&JobState::Denied).unwrap(), r#""DENIED""#);
    }
}
