//! How long an attempt may take to start and to run, and how it is tried again, by topic; how long a run may take.

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

/// `timeouts.yaml`, checked and ready to be asked.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// Names the text it came from.
    snapshot: Arc<str>,
    defaults: TopicRules,
    topics: TopicMap<TopicRules>,
    /// How long runs may take whose DAG says nothing, by the name of the DAG.
    workflows: TopicMap<Duration>,
}

/// What holds for one topic.
#[derive(Clone, Debug, Default)]
struct TopicRules {
    timeouts: TopicTimeouts,
    retry: RetrySettings,
}

/// The timeouts of one topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicTimeouts {
    /// From dispatch until the worker says that the attempt started.
    pub dispatch: Duration,
    /// How long an attempt may run, for jobs that name no timeout of their own.
    pub running: Duration,
}

/// What holds where a client named nothing.
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

    /// What the file says about retries of the topic.
    pub fn retry_of(&self, topic: &Topic) -> &RetrySettings {
        &self.rules(topic).retry
    }

    /// How long a run of this DAG may take, unless the DAG itself says so.
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

/// The numbers of the requirement documents.
impl Default for TopicTimeouts {
    fn default() -> Self {
        Self { dispatch: Duration::from_secs(120), running: Duration::from_secs(300) }
    }
}
