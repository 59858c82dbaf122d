//! What stands behind the doors in tests: knows jobs by their id or key, and can be away.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use lockgate_nats::{Ingress, IngressAnswer, Submission};
use lockgate_proto::v1;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::until;

pub(crate) struct FakeEngine {
    state: Mutex<State>,
    /// Commits wait for it.
    gate: Semaphore,
}

#[derive(Default)]
struct State {
    is_away: bool,
    calls: usize,
    /// How often each job was submitted.
    jobs: BTreeMap<String, usize>,
    tokens: Vec<String>,
    callers: Vec<String>,
}

impl FakeEngine {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), gate: Semaphore::new(Semaphore::MAX_PERMITS) })
    }

    pub(crate) fn closed() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), gate: Semaphore::new(0) })
    }

    pub(crate) fn open(&self) {
        self.gate.add_permits(1_000_000);
    }

    pub(crate) fn set_away(&self, is_away: bool) {
        self.state.lock().is_away = is_away;
    }

    pub(crate) fn calls(&self) -> usize {
        self.state.lock().calls
    }

    pub(crate) fn jobs(&self) -> BTreeMap<String, usize> {
        self.state.lock().jobs.clone()
    }

    pub(crate) fn tokens(&self) -> Vec<String> {
        self.state.lock().tokens.clone()
    }

    pub(crate) fn callers(&self) -> Vec<String> {
        self.state.lock().callers.clone()
    }

    pub(crate) async fn has(&self, jobs: &[&str]) {
        until("the jobs are committed", async || jobs.iter().all(|job| self.jobs().contains_key(*job))).await;
    }

    pub(crate) async fn was_called(&self, times: usize) {
        until("the engine is asked", async || self.calls() >= times).await;
    }

    async fn enter(&self) -> bool {
        self.state.lock().calls += 1;
        self.gate.acquire().await.expect("the gate is never gone").forget();
        !self.state.lock().is_away
    }
}

/// The topic "bad" is refused job by job, "poison" with its whole message; a job of the id "later" is never taken.
fn submit(state: &mut State, submission: Submission) -> IngressAnswer<v1::SubmitJobsResponse> {
    use v1::submit_jobs_response::Item;
    use v1::submit_jobs_response::item::Item::{Error, Job};

    if submission.request.jobs.iter().any(|job| job.topic == "poison") {
        return IngressAnswer::Refused("this is poison".into());
    }
    if submission.request.jobs.iter().any(|job| job.job_id == "later") {
        return IngressAnswer::Later("there is no room for it".into());
    }
    state.callers.push(format!("{}/{}", submission.caller.tenant, submission.caller.actor));
    let mut item = |job: v1::NewJob| {
        if job.topic == "bad" {
            return Error(v1::ItemError {
                code: "invalid_argument".into(),
                message: "the topic is bad".into(),
                retry_after_ms: None,
            });
        }
        let job_id = if job.job_id.is_empty() { job.idempotency_key } else { job.job_id };
        let times = state.jobs.entry(job_id.clone()).or_default();
        *times += 1;
        Job(v1::SubmitJobResponse { job_id, existing: *times > 1, ..v1::SubmitJobResponse::default() })
    };
    let jobs = submission.request.jobs.into_iter().map(|job| Item { item: Some(item(job)) }).collect();
    IngressAnswer::Done(v1::SubmitJobsResponse { jobs })
}

#[async_trait]
impl Ingress for FakeEngine {
    async fn submit(&self, submissions: Vec<Submission>) -> Vec<IngressAnswer<v1::SubmitJobsResponse>> {
        if !self.enter().await {
            return submissions.iter().map(|_| IngressAnswer::Later("the store is away".into())).collect();
        }
        let mut state = self.state.lock();
        submissions.into_iter().map(|submission| submit(&mut state, submission)).collect()
    }

    async fn report(&self, reports: Vec<v1::WorkerMessage>) -> Vec<IngressAnswer<v1::ServerMessage>> {
        if !self.enter().await {
            return reports.iter().map(|_| IngressAnswer::Later("the store is away".into())).collect();
        }
        let mut state = self.state.lock();
        let mut ack = |result: v1::Result| {
            let superseded = state.tokens.contains(&result.token);
            state.tokens.push(result.token.clone());
            v1::ResultAck { token: result.token, superseded }
        };
        let mut answer = |report: v1::WorkerMessage| {
            let acks = report.results.into_iter().map(&mut ack).collect();
            IngressAnswer::Done(v1::ServerMessage { acks, ..v1::ServerMessage::default() })
        };
        reports.into_iter().map(&mut answer).collect()
    }
}
