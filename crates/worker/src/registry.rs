//! The registered handlers, by topic.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lockgate_contract::limits::PAYLOAD_BYTES_MAX;
use lockgate_proto::v1::result::{Outcome, Succeeded};
use serde::Serialize;

use crate::context::Context;
use crate::error::JobError;
use crate::payload::Payload;

type HandlerFn = dyn Fn(Context, Payload) -> BoxFuture<'static, Outcome> + Send + Sync;

/// What happens to running attempts of a topic when the server has been silent for so long that it is about to give them to
/// another worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseLoss {
    /// Finish them, keep the results, and report these when the server is back.
    #[default]
    Continue,
    /// Cancel them before the lease ends, so that two workers never run one job at once. The lease counts from when the
    /// other servers last heard of the server that this worker is attached to.
    Stop,
}

/// One registered handler.
pub(crate) struct Route {
    call: Box<HandlerFn>,
    pub lease_loss: LeaseLoss,
    pub gate: SpawnGate,
}

impl Route {
    pub(crate) fn new<F, Fut, T>(handler: F) -> Self
    where
        F: Fn(Context, Payload) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, JobError>> + Send + 'static,
        T: Serialize + 'static,
    {
        let call = move |context: Context, payload: Payload| handler(context, payload).map(outcome_of).boxed();
        Self { call: Box::new(call), lease_loss: LeaseLoss::Continue, gate: SpawnGate::new() }
    }

    pub(crate) fn call(&self, context: Context, payload: Payload) -> BoxFuture<'static, Outcome> {
        (self.call)(context, payload)
    }
}

fn outcome_of<T: Serialize>(returned: Result<T, JobError>) -> Outcome {
    returned.and_then(|value| encoded(&value)).unwrap_or_else(JobError::into_outcome)
}

fn encoded<T: Serialize>(value: &T) -> Result<Outcome, JobError> {
    let json = serde_json::to_vec(value)
        .map_err(|error| JobError::fatal(format_args!("the handler's result is not valid JSON: {error}")))?;
    if json.len() > PAYLOAD_BYTES_MAX {
        let size = json.len();
        return Err(JobError::fatal(format_args!("the handler's result has {size} bytes, more than {PAYLOAD_BYTES_MAX}")));
    }
    Ok(Outcome::Succeeded(Succeeded { result_json: Bytes::from(json) }))
}

/// Decides whether an attempt is polled once in the task that received it, or gets a task of its own at once.
///
/// The first saves a task per job for handlers that are ready at once. A handler that computes for long in its first poll
/// would delay the others, so after a slow poll attempts are spawned for a while.
pub(crate) struct SpawnGate {
    spawn_next: AtomicU32,
}

impl SpawnGate {
    /// A first poll longer than this delays the others by a hundred times the cost of the task that it saves (about 1 µs).
    const SLOW: Duration = Duration::from_micros(100);
    /// How many attempts are spawned after a slow one before the topic is tried again.
    const PENALTY: u32 = 1_000;

    /// Nothing is known about a new topic, so its first attempt is spawned and measured.
    const fn new() -> Self {
        Self { spawn_next: AtomicU32::new(1) }
    }

    pub(crate) fn polls_inline(&self) -> bool {
        let one_less = |left: u32| left.checked_sub(1);
        self.spawn_next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err()
    }

    pub(crate) fn note_first_poll(&self, took: Duration) {
        if took > Self::SLOW {
            self.spawn_next.store(Self::PENALTY, Ordering::Relaxed);
        }
    }
}

/// Whether the text `topics` selects the handler of a topic or topic pattern: a trailing `*` selects every topic with that
/// beginning.
pub(crate) fn means(topics: &str, topic: &str) -> bool {
    match topics.strip_suffix('*') {
        Some(prefix) => topic.starts_with(prefix),
        None => topics == topic,
    }
}

/// Handlers by topic. A trailing `*` matches any rest; the exact topic wins, then the longest pattern.
#[derive(Default)]
pub(crate) struct Registry {
    routes: BTreeMap<String, Arc<Route>>,
}

impl Registry {
    pub(crate) fn insert(&mut self, topic: String, route: Route) {
        self.routes.insert(topic, Arc::new(route));
    }

    /// Removes and returns the handlers of the selected topics.
    pub(crate) fn split_off(&mut self, wanted: impl Fn(&str) -> bool) -> Self {
        let (own, rest) = std::mem::take(&mut self.routes).into_iter().partition(|(topic, _)| wanted(topic));
        self.routes = rest;
        Self { routes: own }
    }

    /// Sets the choice for every selected handler. False if there is none.
    pub(crate) fn set_lease_loss(&mut self, topics: &str, choice: LeaseLoss) -> bool {
        let mut found = false;
        for route in self.routes.iter_mut().filter(|(topic, _)| means(topics, topic)).map(|(_, route)| route) {
            if let Some(route) = Arc::get_mut(route) {
                route.lease_loss = choice;
                found = true;
            }
        }
        found
    }

    pub(crate) fn has(&self, topics: &str) -> bool {
        self.routes.keys().any(|topic| means(topics, topic))
    }

    pub(crate) fn topics(&self) -> Vec<String> {
        self.routes.keys().cloned().collect()
    }

    pub(crate) fn find(&self, topic: &str) -> Option<&Arc<Route>> {
        self.routes.get(topic).or_else(|| self.find_pattern(topic))
    }

    fn find_pattern(&self, topic: &str) -> Option<&Arc<Route>> {
        let fits = |pattern: &str| pattern.strip_suffix('*').is_some_and(|prefix| topic.starts_with(prefix));
        self.routes
            .iter()
            .filter(|(pattern, _)| fits(pattern))
            .max_by_key(|(pattern, _)| pattern.len())
            .map(|(_, route)| route)
    }

    pub(crate) fn stops_on_lease_loss(&self, topic: &str) -> bool {
        self.find(topic).is_some_and(|route| route.lease_loss == LeaseLoss::Stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(topics: &[&str]) -> Registry {
        let mut registry = Registry::default();
        for topic in topics {
            registry.insert((*topic).to_owned(), Route::new(|_, payload| async { Ok(payload) }));
        }
        registry
    }

    #[test]
    fn the_exact_topic_wins_then_the_longest_pattern() {
        let registry = registry(&["*", "mail.*", "mail.send"]);
        let find = |topic| registry.find(topic).map(Arc::as_ptr);
        let by_name = |name: &str| registry.routes.get(name).map(Arc::as_ptr);
        assert_eq!(find("mail.send"), by_name("mail.send"));
        assert_eq!(find("mail.open"), by_name("mail.*"));
        assert_eq!(find("other"), by_name("*"));
    }

    #[test]
    fn what_is_said_of_a_beginning_holds_for_every_topic_with_it_until_more_is_said() {
        let mut registry = registry(&["mail.*", "mail.send", "other"]);
        assert!(registry.set_lease_loss("mail.*", LeaseLoss::Stop));
        let stops =
            |registry: &Registry| ["mail.open", "mail.send", "other"].map(|topic| registry.stops_on_lease_loss(topic));
        assert_eq!(stops(&registry), [true, true, false]);
        assert!(registry.set_lease_loss("mail.send", LeaseLoss::Continue));
        assert_eq!(stops(&registry), [true, false, false]);
        for unknown in ["mail.open", "job.*", ""] {
            assert!(!registry.has(unknown) && !registry.set_lease_loss(unknown, LeaseLoss::Stop), "{unknown}");
        }
    }

    #[test]
    fn a_slow_first_poll_gives_the_next_attempts_their_own_task() {
        let gate = SpawnGate::new();
        assert!(!gate.polls_inline(), "an unknown topic is measured first");
        assert!(gate.polls_inline());
        gate.note_first_poll(Duration::from_millis(5));
        for _ in 0..SpawnGate::PENALTY {
            assert!(!gate.polls_inline());
        }
        assert!(gate.polls_inline());
    }

    #[test]
    fn a_result_beyond_the_limit_is_a_fatal_failure() {
        let outcome = outcome_of(Ok("x".repeat(PAYLOAD_BYTES_MAX)));
        assert!(matches!(outcome, Outcome::FailedFatal(_)));
    }
}
