//! Timeouts: how long attempts may take to start and to run, and how they are retried, by topic; how long runs may take.

mod keys;
mod load;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::config::TopicMap;
use crate::ids::Topic;
use crate::limits::Limits;
use crate::retry::RetrySettings;

/// The snapshot of [`Timeouts::default`].
pub const BUILTIN_TIMEOUTS: &str = "builtin:timeouts";

/// The JSON Schema of `timeouts.yaml`, for editors.
pub const SCHEMA: &str = include_str!("../../timeouts.schema.json");

/// A checked `timeouts.yaml`.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// Identifies the text that it was loaded from.
    snapshot: Arc<str>,
    defaults: TopicRules,
    topics: TopicMap<TopicRules>,
    /// The timeouts of runs whose DAG has none, by the name of the DAG.
    workflows: TopicMap<Duration>,
}

/// The settings of one topic.
#[derive(Clone, Debug, Default)]
struct TopicRules {
    timeouts: TopicTimeouts,
    retry: RetrySettings,
}

/// The timeouts of one topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicTimeouts {
    /// From dispatch until the worker reports that the attempt started.
    pub dispatch: Duration,
    /// How long an attempt may run, for jobs without a timeout of their own.
    pub running: Duration,
}

/// The settings that apply where a client named none.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    pub limits: Limits,
    pub timeouts: Arc<Timeouts>,
}

impl Timeouts {
    pub fn snapshot(&self) -> &Arc<str> {
        &self.snapshot
    }

    pub fn of(&self, topic: &Topic) -> TopicTimeouts {
        self.rules(topic).timeouts
    }

    /// The retry settings of the file for the topic.
    pub fn retry_of(&self, topic: &Topic) -> &RetrySettings {
        &self.rules(topic).retry
    }

    /// The timeout of a run of this DAG, unless the DAG itself has one.
    pub fn of_workflow(&self, name: &str) -> Option<Duration> {
        self.workflows.get(name).copied()
    }

    fn rules(&self, topic: &Topic) -> &TopicRules {
        self.topics.get(topic.as_str()).unwrap_or(&self.defaults)
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        let (topics, workflows) = (TopicMap::default(), TopicMap::default());
        Self { snapshot: BUILTIN_TIMEOUTS.into(), defaults: TopicRules::default(), topics, workflows }
    }
}

/// The defaults without a `timeouts.yaml`.
impl Default for TopicTimeouts {
    fn default() -> Self {
        Self { dispatch: Duration::from_secs(120), running: Duration::from_secs(300) }
    }
}
