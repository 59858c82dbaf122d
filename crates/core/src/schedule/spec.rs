//! The spec of a schedule.

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
/// The most slots that may queue: the head of the schedule holds them all.
pub const QUEUE_MAX: u32 = 100;

/// A schedule as applied, with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Arc<str>>,
    pub rhythm: Rhythm,
    pub time_zone: Arc<str>,
    /// The first possible time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// Times at and after this are not part of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Timestamp>,
    /// Each start is delayed by up to this much.
    pub jitter_ms: u64,
    /// A time that is noticed later than this is missed.
    pub grace_ms: u64,
    pub misfire: Misfire,
    /// Times missed longer ago than this are not started.
    pub misfire_window_ms: u64,
    pub overlap: Overlap,
    /// How many slots may wait for an earlier target.
    pub queue: u32,
    /// Whether the schedule begins paused.
    pub paused: bool,
    pub work: ScheduledWork,
}

impl Spec {
    /// Whether both specs have equal times, including the jitter.
    pub(super) fn means_the_times_of(&self, other: &Self) -> bool {
        let times = |spec: &Self| (spec.rhythm.clone(), spec.time_zone.clone(), spec.start_at, spec.end_at, spec.jitter_ms);
        times(self) == times(other) && self.paused == other.paused
    }

    /// A hash of the content: equal specs have equal ids.
    pub fn content_id(&self) -> Arc<str> {
        // Maps are sorted and absent fields left out, so equal specs have equal texts.
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
    /// Which missed times are started.
    Misfire {
        /// Missed times are only recorded.
        Skip = "skip",
        /// The latest missed time is started.
        #[default]
        Latest = "latest",
        /// All missed times are started, in order.
        All = "all",
    }
);

words!(
    /// What happens to a time while the target of an earlier one is running.
    Overlap {
        /// The time starts too.
        Allow = "allow",
        /// The time is skipped.
        #[default]
        Skip = "skip",
        /// The time queues if there is room. Slots queued before stay.
        Queue = "queue",
        /// The running target is stopped, and the time starts as soon as that has ended.
        Replace = "replace",
    }
);

/// The job or run that each time starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduledWork {
    Job(JobWork),
    Dag(DagWork),
}

/// A job. Texts of the payload, labels, environment and concurrency key may contain expressions.
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

/// A run of a DAG. Texts of the parameters may contain expressions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DagWork {
    pub name: Arc<str>,
    /// The newest version if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub params: Value,
}
