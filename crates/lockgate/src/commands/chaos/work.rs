//! The kinds of work in the load: besides plain jobs, those that need a server loop until they end.

use std::time::Duration;

use lockgate_core::time::Timestamp;
use lockgate_proto::v1;

/// No worker serves it.
const NOBODY: &str = "chaos.nobody";
const FLAKY: &str = "job.flaky";
const DELAY: Duration = Duration::from_secs(2);
/// More attempts than any fault can cost, so that no job of the load fails for good. The DAG has this number too.
const ATTEMPTS: u32 = 10;
/// How late a busy machine may be without a fault.
const GRACE: Duration = Duration::from_millis(1_500);

pub(super) const DAG: &str = "chaos";
/// A run: needs the loop that takes its steps, and the one that fires its timers.
pub(super) const DAG_TEXT: &str = "version: 1
dag: chaos
nodes:
  first: {topic: job.noop, max_attempts: 10}
  rest: {needs: [first], delay: 1s}
  last: {needs: [rest], topic: job.noop, max_attempts: 10}
";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkKind {
    /// Some are under way at any moment.
    Plain,
    /// A worker holds some at any moment, for as long as its being struck takes to show.
    Long,
    /// Fails once, and is tried again when a second is over.
    Retried,
    /// May not run before its time.
    Delayed,
    /// A job that no worker can take, ended by its deadline.
    Doomed,
    /// A run of the DAG.
    Run,
}

impl WorkKind {
    /// One of fifty is long, two doomed, three each are retried and delayed.
    pub(super) const fn of(serial: usize) -> Self {
        match serial % 50 {
            1 => Self::Long,
            5 | 35 => Self::Doomed,
            7 | 27 | 47 => Self::Retried,
            9 | 29 | 39 => Self::Delayed,
            _ => Self::Plain,
        }
    }

    fn of_topic(topic: &str) -> Self {
        match topic {
            NOBODY => Self::Doomed,
            FLAKY => Self::Retried,
            _ => Self::Plain,
        }
    }

    /// Not for runs, which are no jobs.
    pub(super) fn job(self, id: String, now: Timestamp) -> v1::NewJob {
        let (topic, payload) = match self {
            Self::Plain | Self::Delayed | Self::Run => ("job.sleep", "{\"ms\":40}"),
            Self::Long => ("job.sleep", "{\"ms\":2000}"),
            Self::Retried => (FLAKY, "{\"fail\":1}"),
            Self::Doomed => (NOBODY, "null"),
        };
        v1::NewJob {
            job_id: id,
            topic: topic.to_owned(),
            payload_json: payload.as_bytes().into(),
            max_attempts: Some(ATTEMPTS),
            not_before_ms: (self == Self::Delayed).then(|| (now + DELAY).as_millis()),
            deadline_ms: (self == Self::Doomed).then_some(1_000),
            ..v1::NewJob::default()
        }
    }

    /// How long the work takes without a fault; work that ends by then was not delayed.
    pub(super) fn in_time(self) -> Duration {
        match self {
            Self::Plain => Duration::ZERO,
            Self::Long | Self::Delayed => DELAY + GRACE,
            // The backoff has jitter.
            Self::Retried => Duration::from_millis(1_500) + GRACE,
            // Steps of runs and deadlines are looked for every second.
            Self::Doomed | Self::Run => Duration::from_secs(2) + GRACE,
        }
    }

    const fn attempts(self) -> u32 {
        match self {
            Self::Retried => 2,
            _ => 1,
        }
    }
}

/// Whether a job ended as one of its kind should.
pub(super) fn ended_well(job: &v1::Job) -> bool {
    let end = match WorkKind::of_topic(&job.topic) {
        WorkKind::Doomed => v1::JobState::Timeout,
        _ => v1::JobState::Succeeded,
    };
    job.state() == end
}

/// Whether it was tried more often than one of its kind is.
pub(super) fn ran_again(job: &v1::Job) -> bool {
    job.attempts > WorkKind::of_topic(&job.topic).attempts()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_batch_of_the_load_needs_those_who_look_after_jobs() {
        let kinds: Vec<WorkKind> = (0..50).map(WorkKind::of).collect();
        for kind in [WorkKind::Long, WorkKind::Retried, WorkKind::Delayed, WorkKind::Doomed] {
            assert!(kinds.contains(&kind), "{kind:?}");
        }
        assert_eq!(kinds.iter().filter(|kind| **kind == WorkKind::Plain).count(), 41);
    }

    #[test]
    fn a_job_ends_well_as_its_kind_does() {
        let ended = |kind: WorkKind, state: v1::JobState, attempts: u32| {
            let topic = kind.job("a".to_owned(), Timestamp::from_millis(0)).topic;
            let job = v1::Job { topic, state: state.into(), attempts, ..v1::Job::default() };
            (ended_well(&job), ran_again(&job))
        };
        assert_eq!(ended(WorkKind::Plain, v1::JobState::Succeeded, 1), (true, false));
        assert_eq!(ended(WorkKind::Plain, v1::JobState::Timeout, 2), (false, true));
        assert_eq!(ended(WorkKind::Retried, v1::JobState::Succeeded, 2), (true, false));
        assert_eq!(ended(WorkKind::Retried, v1::JobState::Failed, 3), (false, true));
        assert_eq!(ended(WorkKind::Doomed, v1::JobState::Timeout, 1), (true, false));
        assert_eq!(ended(WorkKind::Doomed, v1::JobState::Scheduled, 1), (false, false));
    }

    #[test]
    fn a_delayed_job_says_when_and_a_doomed_one_by_when() {
        let now = Timestamp::from_millis(1_000);
        let of = |kind: WorkKind| kind.job("a".to_owned(), now);
        assert_eq!((of(WorkKind::Delayed).not_before_ms, of(WorkKind::Delayed).deadline_ms), (Some(3_000), None));
        assert_eq!((of(WorkKind::Doomed).not_before_ms, of(WorkKind::Doomed).deadline_ms), (None, Some(1_000)));
        assert_eq!((of(WorkKind::Plain).not_before_ms, of(WorkKind::Plain).deadline_ms), (None, None));
    }
}
