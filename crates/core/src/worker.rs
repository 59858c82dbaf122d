//! What a worker can do, and whether a shape fits it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{PoolName, Topic, WorkerId};
use crate::lane::Shape;

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
}

/// Why a worker cannot take a shape. The texts are reason codes shown by `why`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("topic_not_served")]
    Topic,
    #[error("missing_capability:{0}")]
    Capability(Arc<str>),
}

impl WorkerProfile {
    /// The feasibility chain: the first check that fails names the reason.
    pub fn check(&self, shape: &Shape) -> Result<(), Unfit> {
        if !self.topics.iter().any(|pattern| matches(pattern, &shape.topic)) {
            return Err(Unfit::Topic);
        }
        match shape.requires.difference(&self.capabilities).next() {
            Some(missing) => Err(Unfit::Capability(missing.clone())),
            None => Ok(()),
        }
    }
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
        }
    }

    #[test]
    fn topic_then_capability_decide() {
        let shape = Shape { topic: "job.echo".into(), requires: BTreeSet::from([Arc::from("gpu")]) };
        assert_eq!(worker(&["job.noop"], &["gpu"]).check(&shape), Err(Unfit::Topic));
        assert_eq!(worker(&["job.*"], &[]).check(&shape), Err(Unfit::Capability("gpu".into())));
        assert_eq!(worker(&["*"], &["gpu", "ssd"]).check(&shape), Ok(()));
    }
}
