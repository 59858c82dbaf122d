//! What leaves the system: rows written in the commit they belong to, for sinks outside of us.

use lockgate_core::ids::JobId;
use lockgate_core::job::{DeadLetter, Transition};
use lockgate_core::request::Json;
use lockgate_ports::{JobChange, OutboxEntry, RunChange};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use crate::Inner;

/// Jobs whose rows wait to be relayed by this process. What goes beyond is left to the leader.
const CALLED_MAX: usize = 10_000;

/// Jobs that left something in the outbox a moment ago.
#[derive(Default)]
pub(crate) struct OutboxQueue {
    called: Mutex<Vec<JobId>>,
    pub(crate) wake: Notify,
    /// Why rows that are late could not be delivered, as the latest round found.
    late: Mutex<Option<String>>,
}

impl OutboxQueue {
    pub(crate) fn call(&self, jobs: Vec<JobId>) {
        let mut called = self.called.lock();
        let room = CALLED_MAX - called.len();
        called.extend(jobs.into_iter().take(room));
        drop(called);
        self.wake.notify_one();
    }

    pub(crate) fn take(&self, limit: usize) -> Vec<JobId> {
        let mut called = self.called.lock();
        let count = called.len().min(limit);
        called.drain(..count).collect()
    }

    pub(crate) fn late(&self) -> Option<String> {
        self.late.lock().clone()
    }

    /// Whether this is news.
    pub(crate) fn set_late(&self, why: Option<String>) -> bool {
        let mut late = self.late.lock();
        let news = late.is_some() != why.is_some();
        *late = why;
        news
    }
}

impl Inner {
    /// A dead letter leaves by the commit that makes it, if somebody outside wants to hear of it.
    pub(crate) fn letter_out(&self, transition: &Transition) -> Option<OutboxEntry> {
        let (sink, letter) = (self.settings.dead_letters.as_ref()?, transition.dead_letter.as_ref()?);
        Some(OutboxEntry { sink: sink.clone(), body: told(letter) })
    }

    pub(crate) fn change(&self, transition: Transition) -> JobChange {
        let outbox = self.letter_out(&transition).into_iter().collect();
        JobChange { transition, outbox }
    }

    /// The same for jobs that are born in the step of a run.
    pub(crate) fn letters_out(&self, births: &[Transition]) -> Vec<(JobId, OutboxEntry)> {
        let of = |birth: &Transition| Some((birth.job.request.job_id.clone(), self.letter_out(birth)?));
        births.iter().filter_map(of).collect()
    }
}

/// Jobs with something in the outbox.
pub(crate) fn senders(changes: &[JobChange]) -> Vec<JobId> {
    let sending = changes.iter().filter(|change| !change.outbox.is_empty());
    sending.map(|change| change.transition.job.request.job_id.clone()).collect()
}

pub(crate) fn senders_of_runs(changes: &[RunChange]) -> Vec<JobId> {
    changes.iter().flat_map(|change| change.outbox.iter().map(|(job, _)| job.clone())).collect()
}

/// As the world outside reads it; the fields are those of the API.
fn told(letter: &DeadLetter) -> Json {
    // A letter is published when its job ends: nobody can have discarded it yet.
    let DeadLetter { job_id, tenant, topic, priority, state, reason, message, attempts, life, at, labels, discarded: _ } =
        letter;
    let body = json!({
        "kind": "dead_letter",
        "job_id": job_id.as_str(),
        "tenant": tenant.as_str(),
        "topic": topic.as_str(),
        "priority": priority.as_str(),
        "state": state.as_str(),
        "reason": reason.as_str(),
        "message": &**message,
        "attempts": attempts,
        "life": life,
        "at_ms": at.as_millis(),
        "labels": labels,
    });
    Json::trusted(body.to_string())
}
