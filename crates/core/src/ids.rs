//! Names and ids. Cheap to clone, checked once where they enter the system.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

pub use lockgate_contract::names::{NAME_BYTES_MAX, NameError, check_name};

/// Longest id or token that anything here makes: those of the parts of a run hold its id and more. Workers only say them back.
pub const ID_BYTES_MAX: usize = 4 * NAME_BYTES_MAX;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
    };
}

name!(
    /// Identifies one job in the whole installation. Chosen by the client or a UUIDv7.
    JobId
);
name!(
    /// Whose job it is.
    TenantId
);
name!(
    /// Who asked for something.
    ActorId
);
name!(
    /// What kind of work a job is.
    Topic
);
name!(
    /// A named group of workers.
    PoolName
);
name!(
    /// A worker process as its operator names it. Not unique over time; a session is.
    WorkerId
);
name!(
    /// One life of a worker process. Survives reconnects.
    SessionId
);
name!(
    /// One life of a gateway process, the holder of worker streams.
    EdgeId
);
name!(
    /// The fence of one attempt: unguessable, carried by every report.
    AttemptToken
);

name!(
    /// One execution of a DAG: `run-` and a UUIDv7. Or the saga of a workflow of plain jobs, by tenant and workflow.
    RunId
);

impl JobId {
    /// Begins the id of every job that a schedule starts. Clients cannot choose job ids that begin with it.
    pub const SCHEDULED_PREFIX: &str = "cron-";
}

impl RunId {
    /// Begins every run id. Clients cannot choose job ids that begin with it.
    pub const PREFIX: &str = "run-";

    /// Begins the id of the saga of plain jobs that share a workflow.
    pub const SAGA_PREFIX: &str = "run-saga-";

    /// Whether it is the saga of plain jobs, and not a run of a DAG.
    pub fn is_saga(&self) -> bool {
        self.as_str().starts_with(Self::SAGA_PREFIX)
    }

    /// The run that a bell's id names, if it is one. Ids of the jobs of a run begin with its id and go on after it.
    pub fn of(id: &JobId) -> Option<Self> {
        let text = id.as_str();
        (text.starts_with(Self::PREFIX) && !text.contains('~')).then(|| Self::new(text))
    }
}

/// Position of a job in the Store's commit order. Assigned by the Store, stable for all lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobSeq(pub i64);

/// Builds a UUIDv7 from the given time and randomness.
pub fn uuid_v7(now: Timestamp, random: [u8; 10]) -> String {
    let millis = u64::try_from(now.as_millis()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string()
}

/// Builds a token from 128 random bits.
pub fn token(random: [u8; 16]) -> AttemptToken {
    AttemptToken::new(format!("{:032x}", u128::from_be_bytes(random)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_from_the_jobs_of_a_run() {
        assert_eq!(RunId::of(&"run-1".into()), Some("run-1".into()));
        assert_eq!(RunId::of(&"run-1.3~0".into()), None);
        assert_eq!(RunId::of(&"order-7".into()), None);
    }

    #[test]
    fn uuids_sort_by_time() {
        let early = uuid_v7(Timestamp::from_millis(1_000), [255; 10]);
        let late = uuid_v7(Timestamp::from_millis(1_001), [0; 10]);
        assert!(early < late);
        assert_eq!(early.as_bytes()[14], b'7');
    }
}
