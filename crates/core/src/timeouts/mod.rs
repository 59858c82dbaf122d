//! How long an attempt may take to start and to run, by topic.

mod keys;
mod load;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::config::TopicMap;
use crate::ids::Topic;
use crate::limits::Limits;

/// The snapshot of [`Timeouts::default`].
pub const BUILTIN_TIMEOUTS: &str = "builtin:timeouts";

/// The JSON Schema of `timeouts.yaml`, for editors.
pub const SCHEMA: &str = include_str!("../../timeouts.schema.json");

/// `timeouts.yaml`, checked and ready to be asked.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// Names the text it came from.
    snapshot: Arc<str>,
    defaults: TopicTimeouts,
    topics: TopicMap<TopicTimeouts>,
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
        self.topics.get(topic.as_str()).copied().unwrap_or(self.defaults)
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { snapshot: BUILTIN_TIMEOUTS.into(), defaults: TopicTimeouts::default(), topics: TopicMap::default() }
    }
}

/// The numbers of the requirement documents.
impl Default for TopicTimeouts {
    fn default() -> Self {
        Self { dispatch: Duration::from_secs(120), running: Duration::from_secs(300) }
    }
}
