//! Where a ready job waits: sub-queues per pool, priority, shape and tenant.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{JobSeq, PoolName, TenantId, Topic};
use crate::time::Timestamp;

/// How urgent a job is. The order is the order of service within one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    Critical,
    High,
    #[default]
    Default,
    Low,
}

impl Priority {
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Default, Self::Low];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Default => "default",
            Self::Low => "low",
        }
    }

    /// Claims this priority gets in one round when every priority has work.
    pub const fn weight(self) -> u32 {
        match self {
            Self::Critical => 64,
            Self::High => 16,
            Self::Default => 4,
            Self::Low => 1,
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text was not one of the four priorities.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of critical, high, default, low; not {0:?}")]
pub struct UnknownPriority(pub String);

impl FromStr for Priority {
    type Err = UnknownPriority;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|p| p.as_str() == text).ok_or_else(|| UnknownPriority(text.to_owned()))
    }
}

/// What a job asks of a worker. Jobs of one shape are interchangeable for placement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shape {
    pub topic: Topic,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub requires: BTreeSet<Arc<str>>,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.topic)?;
        for (i, capability) in self.requires.iter().enumerate() {
            write!(f, "{}{capability}", if i == 0 { "+" } else { "," })?;
        }
        Ok(())
    }
}

/// One sub-queue. FIFO inside, fair between.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaneKey {
    pub pool: PoolName,
    pub priority: Priority,
    pub tenant: TenantId,
    pub shape: Arc<Shape>,
}

/// Order inside a lane: by when the job became ready, then by commit order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadyKey {
    pub due_at: Timestamp,
    pub seq: JobSeq,
}
