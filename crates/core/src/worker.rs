//! What a worker can do, and whether a shape fits it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{ActorId, PoolName, Topic, WorkerId};
use crate::lane::Shape;
use crate::pools::Pool;

pub use lockgate_contract::Load;

/// What a worker said of itself when it attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerProfile {
    pub worker: WorkerId,
    pub pool: PoolName,
    /// Topics it handles; a trailing `*` matches any rest.
    pub topics: Vec<Arc<str>>,
    #[serde(default)]
    pub capabilities: BTreeSet<Arc<str>>,
    #[serde(default)]
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Jobs it runs at once.
    pub slots: u32,
    /// Lives in the server's own process, so it dies with it.
    #[serde(default)]
    pub in_process: bool,
    /// Silence that is borne, where it is not what the installation says: of those who are spoken with by messages. Rows of the
    /// Store have it for everyone, as it was promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_after_ms: Option<u64>,
    /// Whose credential it came in with, where one is asked for. Not what it says of itself: the gate says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ActorId>,
}

/// Why a worker cannot take a shape, now or later. The texts are reason codes shown by `why`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unfit {
    #[error("topic_not_served")]
    Topic,
    #[error("missing_capability:{0}")]
    Capability(Arc<str>),
    #[error("placement_mismatch:{0}")]
    Placement(Arc<str>),
}

/// What a job's labels begin with when they are meant for the worker. Workers may leave the prefix out.
const LABEL_PREFIXES: [&str; 3] = ["placement.", "node.", "constraint."];

impl WorkerProfile {
    /// Silence after which it counts as lost.
    pub fn lost_after(&self, usual: Duration) -> Duration {
        self.lost_after_ms.map_or(usual, Duration::from_millis)
    }

    /// C-2: whether who comes now may go on as who came before. Without credentials everybody may, as they may do all else.
    pub fn may_follow(&self, before: &Self) -> bool {
        self.owner.is_none() || before.owner.is_none() || self.owner == before.owner
    }

    /// The feasibility chain without a pool's help: the first check that fails names the reason.
    pub fn check(&self, shape: &Shape) -> Result<(), Unfit> {
        self.lacks(shape, None).next().map_or(Ok(()), Err)
    }

    /// Everything the worker lacks for the shape, in the order of the chain. Computed as far as it is read.
    pub fn lacks<'a>(&'a self, shape: &'a Shape, pool: Option<&'a Pool>) -> impl Iterator<Item = Unfit> + 'a {
        let topic = (!serves(&self.topics, &shape.topic)).then_some(Unfit::Topic);
        topic.into_iter().chain(self.lacks_of(&shape.requires, &shape.placement, pool))
    }

    /// The part of the chain that does not depend on the topic.
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

/// Whether one of the patterns of a worker takes the topic.
pub(crate) fn serves(patterns: &[Arc<str>], topic: &Topic) -> bool {
    patterns.iter().any(|pattern| matches(pattern, topic))
}

/// The label of the full name, or else of the part after the prefix.
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
