//! How urgent a job is, in four words.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

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
