//! What a worker can do, and whether a shape fits it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{ActorId, PoolName, Topic, WorkerId};
use crate::lane::Shape;
use crate::pools::Pool;

pub use lockgate_contract::Load;

/// What a worker stated when it attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerProfile {
    pub worker: WorkerId,
    pub pool: PoolName,
    /// Topics that it handles; a trailing `*` matches any rest.
    pub topics: Vec<Arc<str>>,
    #[serde(default)]
    pub capabilities: BTreeSet<Arc<str>>,
    #[serde(default)]
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Jobs that it runs at once.
    pub slots: u32,
    /// The worker lives in the server's own process and dies with it.
    #[serde(default)]
    pub in_process: bool,
    /// The silence after which the worker counts as lost, if it differs from the installation's setting: for workers that
    /// connect by messages instead of a stream. In stored rows it is always set, to what the worker was promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_after_ms: Option<u64>,
    /// The actor of the credential that it authenticated with, if authentication is on. Set by the gateway, not stated by
    /// the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ActorId>,
}

/// Why a worker cannot take a shape, now or later. The texts are reason codes that `why` shows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unfit {
    #[error("topic_not_served")]
    Topic,
    #[error("missing_capability:{0}")]
    Capability(Arc<str>),
    #[error("placement_mismatch:{0}")]
    Placement(Arc<str>),
}

/// Prefixes of a job's labels that a worker's labels must match. Workers may leave the prefix out.
const LABEL_PREFIXES: [&str; 3] = ["placement.", "node.", "constraint."];

impl WorkerProfile {
    /// The silence after which the worker counts as lost.
    pub fn lost_after(&self, usual: Duration) -> Duration {
        self.lost_after_ms.map_or(usual, Duration::from_millis)
    }

    /// C-2: whether a new session may take over from an earlier one of this name. Without credentials any worker may.
    pub fn may_follow(&self, before: &Self) -> bool {
        self.owner.is_none() || before.owner.is_none() || self.owner == before.owner
    }

    /// Checks the worker without a pool's additions: the first failed check is the reason.
    pub fn check(&self, shape: &Shape) -> Result<(), Unfit> {
        self.lacks(shape, None).next().map_or(Ok(()), Err)
    }

    /// Everything that the worker lacks for the shape, in the order of the checks. Lazy: computed as far as it is read.
    pub fn lacks<'a>(&'a self, shape: &'a Shape, pool: Option<&'a Pool>) -> impl Iterator<Item = Unfit> + 'a {
        let topic = (!serves(&self.topics, &shape.topic)).then_some(Unfit::Topic);
        topic.into_iter().chain(self.lacks_of(&shape.requires, &shape.placement, pool))
    }

    /// The checks that do not depend on the topic.
    pub(crate) fn lacks_of<'a>(
        &'a self,
        requires: &'a BTreeSet<Arc<str>>,
        placement: &'a BTreeMap<Arc<str>, Arc<str>>,
        pool: Option<&'a Pool>,
    ) -> impl Iterator<Item = Unfit> + 'a {
        let missing = requires.iter().filter(move |name| !self.can(name, pool)).cloned().map(Unfit::Capability);
        let differs = move |(label, value): &(&Arc<str>, &Arc<str>)| !self.is_placed(label, value, pool);
        missing.chain(placement.iter().filter(differs).map(|(label, _)| Unfit::Placement(label.clone())))
    }

    fn can(&self, capability: &str, pool: Option<&Pool>) -> bool {
        self.capabilities.contains(capability) || pool.is_some_and(|pool| pool.capabilities.contains(capability))
    }

    fn is_placed(&self, label: &str, value: &str, pool: Option<&Pool>) -> bool {
        let constraint = label.strip_prefix("constraint.").filter(|_| value == "true");
        if constraint.is_some_and(|capability| self.can(capability, pool)) {
            return true;
        }
        let found = labelled(&self.labels, label).or_else(|| labelled(&pool?.labels, label));
        found.is_some_and(|found| **found == *value)
    }
}

/// Whether one of the worker's patterns matches the topic.
pub(crate) fn serves(patterns: &[Arc<str>], topic: &Topic) -> bool {
    patterns.iter().any(|pattern| matches(pattern, topic))
}

/// The worker's label of the full name, or else of the name without its prefix.
fn labelled<'a>(labels: &'a BTreeMap<Arc<str>, Arc<str>>, label: &str) -> Option<&'a Arc<str>> {
    labels.get(label).or_else(|| labels.get(LABEL_PREFIXES.iter().find_map(|prefix| label.strip_prefix(prefix))?))
}

fn matches(pattern: &str, topic: &Topic) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => topic.as_str().starts_with(prefix),
        None => topic.as_str() == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(topics: &[&str], capabilities: &[&str]) -> WorkerProfile {
        WorkerProfile {
            worker: "w".into(),
            pool: "default".into(),
            topics: topics.iter().map(|t| Arc::from(*t)).collect(),
            capabilities: capabilities.iter().map(|c| Arc::from(*c)).collect(),
            labels: BTreeMap::new(),
            slots: 1,
            in_process: false,
            lost_after_ms: None,
            owner: None,
        }
    }

    #[test]
    fn topic_then_capability_then_labels_decide() {
        let zone = BTreeMap::from([(Arc::from("node.zone"), Arc::from("eu"))]);
        let mut shape = Shape { requires: BTreeSet::from([Arc::from("gpu")]), ..Shape::of("job.echo") };
        assert_eq!(worker(&["job.noop"], &["gpu"]).check(&shape), Err(Unfit::Topic));
        assert_eq!(worker(&["job.*"], &[]).check(&shape), Err(Unfit::Capability("gpu".into())));
        assert_eq!(worker(&["*"], &["gpu", "ssd"]).check(&shape), Ok(()));
        shape.placement = zone.clone();
        assert_eq!(worker(&["*"], &["gpu"]).check(&shape), Err(Unfit::Placement("node.zone".into())));
        assert_eq!(WorkerProfile { labels: zone, ..worker(&["*"], &["gpu"]) }.check(&shape), Ok(()));
    }
}
