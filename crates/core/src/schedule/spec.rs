//! What a schedule was told to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Rhythm;
use crate::config::snapshot;
use crate::lane::Priority;
use crate::time::Timestamp;

pub const GRACE_MS_DEFAULT: u64 = 60_000;
pub const MISFIRE_WINDOW_MS_DEFAULT: u64 = 24 * 3_600_000;
/// Times that may wait for an earlier one. The head of a schedule holds them all.
pub const QUEUE_MAX: u32 = 100;

/// One schedule as it was applied, with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Arc<str>>,
    pub rhythm: Rhythm,
    pub time_zone: Arc<str>,
    /// The first moment at which a time may lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// The first moment at which no time lies any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Timestamp>,
    /// Each time starts up to so much later.
    pub jitter_ms: u64,
    /// A time that is noticed later than this is missed.
    pub grace_ms: u64,
    pub misfire: Misfire,
    /// What was missed longer ago is not made up for.
    pub misfire_window_ms: u64,
    pub overlap: Overlap,
    /// How many times may wait for an earlier one.
    pub queue: u32,
    /// Whether it begins paused.
    pub paused: bool,
    pub work: ScheduledWork,
}

impl Spec {
    /// Whether each of its times is the other's too, and is started at the same moment.
    pub(super) fn means_the_times_of(&self, other: &Self) -> bool {
        let times = |spec: &Self| (spec.rhythm.clone(), spec.time_zone.clone(), spec.start_at, spec.end_at, spec.jitter_ms);
        times(self) == times(other) && self.paused == other.paused
    }

    /// Names what is the same with the same name.
    pub fn content_id(&self) -> Arc<str> {
        // Maps are sorted and absent fields left out: equal specs are equal texts.
        snapshot("schedule", &serde_json::to_string(self).unwrap_or_default())
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$inner])* $variant),+
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }
    };
}

words!(
    /// What becomes of times that were missed.
    Misfire {
        /// They are only recorded.
        Skip = "skip",
        /// The latest of them is started.
        #[default]
        Latest = "latest",
        /// All of them are started, in order.
        All = "all",
    }
);

words!(
    /// What becomes of a time while what an earlier one started is still at work.
    Overlap {
        /// It starts too.
        Allow = "allow",
        /// It is not started.
        #[default]
        Skip = "skip",
        /// It waits, if there is room in the queue. What waits already is kept.
        Queue = "queue",
        /// What is at work is stopped, and it starts as soon as that has ended.
        Replace = "replace",
    }
);

/// What each time starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduledWork {
    Job(JobWork),
    Dag(DagWork),
}

/// A job. Texts of the payload, labels, environment and concurrency key may have holes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobWork {
    pub topic: Arc<str>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub payload: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub requires: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub risk_tags: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<String>,
}

/// A run of a DAG. Texts of the parameters may have holes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DagWork {
    pub name: Arc<str>,
    /// The newest if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub params: Value,
}
