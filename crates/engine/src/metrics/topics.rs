//! Metric families by topic.
//!
//! Clients choose topics, so only the first hundred get series of their own; the others share one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::Topic;
use lockgate_core::job::JobState;
use parking_lot::RwLock;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::catalogue::MetricFamilies;
use super::latency;

const TOPICS_MAX: usize = 100;
const OTHERS: &str = "_other";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByTopic {
    topic: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByType {
    r#type: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStatus {
    topic: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPhase {
    topic: String,
    phase: &'static str,
}

/// How far a result was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultPhase {
    /// Before the commit that ends the attempt.
    Metadata,
    Content,
}

impl ResultPhase {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Content => "content",
        }
    }
}

/// Handles of one topic, resolved once: every job passes here.
struct OfTopic {
    label: Arc<str>,
    received: Counter,
    dispatched: Counter,
    dispatch_latency: Histogram,
    run_seconds: Histogram,
    /// In the order of `JobState::ALL`; none for states that are no end.
    completed: [Option<Counter>; JobState::ALL.len()],
    denied: Counter,
    unavailable: Counter,
    fail_open: Counter,
    replayed: Counter,
    checked: Counter,
    quarantined: Counter,
    skipped: Counter,
}

#[derive(Clone)]
pub(crate) struct TopicMetrics {
    received: Family<ByTopic, Counter>,
    dispatched: Family<ByTopic, Counter>,
    completed: Family<ByStatus, Counter>,
    dispatch_latency: Family<ByTopic, Histogram>,
    run_seconds: Family<ByType, Histogram>,
    denied: Family<ByTopic, Counter>,
    unavailable: Family<ByTopic, Counter>,
    fail_open: Family<ByTopic, Counter>,
    replayed: Family<ByTopic, Counter>,
    checked: Family<ByTopic, Counter>,
    quarantined: Family<ByTopic, Counter>,
    skipped: Family<ByTopic, Counter>,
    check_seconds: Family<ByPhase, Histogram>,
    known: Arc<RwLock<TopicSeries>>,
}

#[derive(Default)]
struct TopicSeries {
    topics: BTreeMap<Topic, Arc<OfTopic>>,
    others: Option<Arc<OfTopic>>,
}

impl TopicMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let mut counter = |name, help| {
            let family = Family::<ByTopic, Counter>::default();
            registry.register(name, help, family.clone());
            family
        };
        let received = counter("jobs_received", "Jobs accepted, by topic");
        let dispatched = counter("jobs_dispatched", "Attempts dispatched to workers, by topic");
        let denied = counter("safety_denied", "Verdicts that denied an attempt");
        let unavailable = counter("safety_unavailable", "Attempts that nobody could judge when they were to be judged");
        let fail_open = counter("scheduler_input_fail_open", "Attempts let through unjudged");
        let replayed = counter("orphan_replayed", "Jobs that had no verdict and got one when they were looked at again");
        let checked = counter("output_policy_checked", "Results that policy looked at");
        let quarantined = counter("output_policy_quarantined", "Results that policy holds back");
        let skipped = counter("output_policy_skipped", "Results that came out unchecked because nobody could look");
        let completed = Family::<ByStatus, Counter>::default();
        registry.register("jobs_completed", "Jobs that came to an end, by topic and by which", completed.clone());
        let dispatch_latency = Family::<ByTopic, Histogram>::new_with_constructor(latency);
        registry.register("dispatch_latency_seconds", "From ready to dispatched, by topic", dispatch_latency.clone());
        let run_seconds = Family::<ByType, Histogram>::new_with_constructor(latency);
        registry.register("task_run_seconds", "Running time of attempts; the type is the topic", run_seconds.clone());
        let check_seconds = Family::<ByPhase, Histogram>::new_with_constructor(latency);
        let help = "How long a check of results took, by what was looked at";
        registry.register("output_check_latency_seconds", help, check_seconds.clone());
        Self {
            received,
            dispatched,
            completed,
            dispatch_latency,
            run_seconds,
            denied,
            unavailable,
            fail_open,
            replayed,
            checked,
            quarantined,
            skipped,
            check_seconds,
            known: Arc::default(),
        }
    }

    fn of(&self, topic: &Topic) -> Arc<OfTopic> {
        let seen = {
            let known = self.known.read();
            let full = known.topics.len() >= TOPICS_MAX;
            known.topics.get(topic).or_else(|| known.others.as_ref().filter(|_| full)).cloned()
        };
        seen.unwrap_or_else(|| self.meet(topic))
    }

    /// A topic that was not seen before. Those that come too late are not remembered: they may be any number.
    fn meet(&self, topic: &Topic) -> Arc<OfTopic> {
        let mut known = self.known.write();
        if known.topics.len() < TOPICS_MAX || known.topics.contains_key(topic) {
            let of = || Arc::new(self.resolve(topic.as_str()));
            return known.topics.entry(topic.clone()).or_insert_with(of).clone();
        }
        known.others.get_or_insert_with(|| Arc::new(self.resolve(OTHERS))).clone()
    }

    /// Every counter of a topic is there from its first job on: an increase sees nothing of a series that begins with its
    /// first count.
    fn resolve(&self, label: &str) -> OfTopic {
        let by_topic = ByTopic { topic: label.to_owned() };
        let completed = |state: JobState| {
            let label = || ByStatus { topic: label.to_owned(), status: state.as_str() };
            state.is_terminal().then(|| self.completed.get_or_create_owned(&label()))
        };
        for phase in [ResultPhase::Metadata, ResultPhase::Content] {
            drop(self.check_seconds.get_or_create(&ByPhase { topic: label.to_owned(), phase: phase.as_str() }));
        }
        OfTopic {
            label: label.into(),
            received: self.received.get_or_create_owned(&by_topic),
            dispatched: self.dispatched.get_or_create_owned(&by_topic),
            dispatch_latency: self.dispatch_latency.get_or_create_owned(&by_topic),
            run_seconds: self.run_seconds.get_or_create_owned(&ByType { r#type: label.to_owned() }),
            completed: JobState::ALL.map(completed),
            denied: self.denied.get_or_create_owned(&by_topic),
            unavailable: self.unavailable.get_or_create_owned(&by_topic),
            fail_open: self.fail_open.get_or_create_owned(&by_topic),
            replayed: self.replayed.get_or_create_owned(&by_topic),
            checked: self.checked.get_or_create_owned(&by_topic),
            quarantined: self.quarantined.get_or_create_owned(&by_topic),
            skipped: self.skipped.get_or_create_owned(&by_topic),
        }
    }

    fn label(&self, topic: &Topic) -> ByTopic {
        ByTopic { topic: self.of(topic).label.to_string() }
    }

    pub(super) fn received(&self, topic: &Topic) {
        self.of(topic).received.inc();
    }

    pub(super) fn dispatched(&self, topic: &Topic, waited: Option<Duration>) {
        let of = self.of(topic);
        of.dispatched.inc();
        if let Some(waited) = waited {
            of.dispatch_latency.observe(waited.as_secs_f64());
        }
    }

    pub(super) fn completed(&self, topic: &Topic, state: JobState) {
        let of = self.of(topic);
        if let Some(completed) = &of.completed[state as usize] {
            completed.inc();
        }
        if state == JobState::OutputQuarantined {
            of.quarantined.inc();
        }
    }

    pub(super) fn ran(&self, topic: &Topic, span: Duration) {
        self.of(topic).run_seconds.observe(span.as_secs_f64());
    }

    pub(super) fn denied(&self, topic: &Topic) {
        self.of(topic).denied.inc();
    }

    pub(super) fn unavailable(&self, topic: &Topic) {
        self.of(topic).unavailable.inc();
    }

    pub(crate) fn let_through(&self, topic: &Topic) {
        self.of(topic).fail_open.inc();
    }

    pub(crate) fn replayed(&self, topic: &Topic) {
        self.of(topic).replayed.inc();
    }

    pub(crate) fn skipped(&self, topic: &Topic) {
        self.of(topic).skipped.inc();
    }

    /// Policy is done with a result: once for each, in however many phases it was looked at.
    pub(super) fn checked(&self, topic: &Topic) {
        self.of(topic).checked.inc();
    }

    /// Policy looked at a result, or at one of several in this time.
    pub(crate) fn looked(&self, topic: &Topic, phase: ResultPhase, took: Duration) {
        let ByTopic { topic } = self.label(topic);
        self.check_seconds.get_or_create(&ByPhase { topic, phase: phase.as_str() }).observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn topics_beyond_the_first_hundred_share_a_series() {
        let mut registry = Registry::default();
        let metrics = TopicMetrics::new(&mut MetricFamilies::new(&mut registry));
        for number in 0..TOPICS_MAX + 50 {
            metrics.received(&Topic::from(format!("job.{number}").as_str()));
        }
        metrics.received(&Topic::from("job.0"));
        let mut text = String::new();
        encode(&mut text, &registry).expect("encoded");
        let series: Vec<&str> = text.lines().filter(|line| line.starts_with("jobs_received_total{")).collect();
        assert_eq!(series.len(), TOPICS_MAX + 1);
        assert!(series.contains(&r#"jobs_received_total{topic="_other"} 50"#), "{series:?}");
        assert!(series.contains(&r#"jobs_received_total{topic="job.0"} 2"#), "{series:?}");
    }
}
