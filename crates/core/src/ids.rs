//! Names and ids. Cheap to clone, and checked once where they enter the system.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

pub use lockgate_contract::names::{NAME_BYTES_MAX, NameError, check_name};

/// The longest id or token that Lockgate makes: ids of parts of a run contain the run's id and more. Workers only repeat
/// them.
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
    /// Identifies one job in the whole installation. Chosen by the client, or a UUIDv7.
    JobId
);
name!(
    /// The tenant that a job belongs to.
    TenantId
);
name!(
    /// The person or service that a call is made by.
    ActorId
);
name!(
    /// The kind of work of a job.
    Topic
);
name!(
    /// A named group of workers.
    PoolName
);
name!(
    /// A worker process as its operator named it. Not unique over time; a session is.
    WorkerId
);
name!(
    /// One life of a worker process. Survives reconnects.
    SessionId
);
name!(
    /// One life of a gateway process, which holds streams of workers.
    EdgeId
);
name!(
    /// The fence of one attempt: unguessable, and required in every report.
    AttemptToken
);

name!(
    /// One execution of a DAG: `run-` and a UUIDv7. For the saga of a workflow of plain jobs it is derived from tenant and
    /// workflow.
    RunId
);

impl JobId {
    /// The prefix of ids of jobs that a schedule starts. Clients cannot choose ids with it.
    pub const SCHEDULED_PREFIX: &str = "cron-";
}

impl RunId {
    /// The prefix of every run id. Clients cannot choose job ids with it.
    pub const PREFIX: &str = "run-";

    /// The prefix of the ids of sagas of plain jobs.
    pub const SAGA_PREFIX: &str = "run-saga-";

    /// Whether the run is the saga of plain jobs, and not a run of a DAG.
    pub fn is_saga(&self) -> bool {
        self.as_str().starts_with(Self::SAGA_PREFIX)
    }

    /// The run that an id belongs to, if any. Ids of a run's jobs consist of the run's id and a suffix.
    pub fn of(id: &JobId) -> Option<Self> {
        let text = id.as_str();
        (text.starts_with(Self::PREFIX) && !text.contains('~')).then(|| Self::new(text))
    }
}

/// The position of a job in the Store's commit order. Assigned by the Store, and kept through all lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobSeq(pub i64);

/// Makes a UUIDv7 from a time and random bytes.
pub fn uuid_v7(now: Timestamp, random: [u8; 10]) -> String {
    let millis = u64::try_from(now.as_millis()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string()
}

/// Makes a token from 128 random bits.
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
