//! What the cases stand on: a Store, its clock, and short words for common moves.

use std::any::Any;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate_core::ids::{ActorId, AttemptToken, EdgeId, JobId, JobSeq, SessionId, TenantId};
use lockgate_core::job::{Dispatch, Env, Input, Job, Outcome, Report, Transition, submit};
use lockgate_core::limits::Limits;
use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
use lockgate_core::retry::Jitter;
use lockgate_core::verdict::{Decision, Judgement, Verdict};
use lockgate_core::worker::WorkerProfile;

use crate::clock::Clock;
use crate::memory::ManualClock;
use crate::store::{Change, ChangeError, Store, StoreError};

/// A case passes or says what went wrong.
pub type Proof = Result<(), Box<dyn Error + Send + Sync>>;
pub(super) type Found<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A new, empty Store that reads the given clock.
pub struct StoreHarness {
    pub store: Arc<dyn Store>,
    pub clock: Arc<ManualClock>,
    limits: Limits,
    minted: AtomicU64,
    /// What must outlive the Store, such as its folder.
    _ground: Box<dyn Any + Send + Sync>,
}

impl StoreHarness {
    pub fn new(store: Arc<dyn Store>, clock: Arc<ManualClock>, ground: impl Any + Send + Sync) -> Self {
        let limits = Limits::default();
        Self { store, clock, limits, minted: AtomicU64::new(0), _ground: Box::new(ground) }
    }

    /// An env at the clock's time with a fresh token.
    pub(super) fn env(&self, judgement: Judgement) -> Env<'_> {
        let n = self.minted.fetch_add(1, Ordering::Relaxed);
        Env {
            now: self.clock.now(),
            token: AttemptToken::from(format!("token-{n}")),
            jitter: Jitter::from_bits(0),
            limits: &self.limits,
            judgement,
        }
    }

    pub(super) fn advance_ms(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }

    pub(super) async fn commit(&self, change: impl Into<Change>) -> Found<Result<JobSeq, ChangeError>> {
        let mut results = self.store.commit(vec![change.into()]).await?;
        results.pop().ok_or_else(|| "the commit was not answered".into())
    }

    pub(super) async fn load(&self, id: &str) -> Found<Job> {
        let job = self.store.load(&[JobId::from(id)]).await?.pop().flatten();
        job.ok_or_else(|| format!("job {id} is not there").into())
    }

    pub(super) async fn submit(&self, new: NewJob) -> Found<Job> {
        self.submit_as("acme", new, allow()).await
    }

    pub(super) async fn submit_as(&self, tenant: &str, new: NewJob, judgement: Judgement) -> Found<Job> {
        let transition = self.birth(tenant, new, judgement)?;
        let id = transition.job.request.job_id.clone();
        self.commit(transition).await??;
        self.load(id.as_str()).await
    }

    /// The transition of a submit, not committed.
    pub(super) fn birth(&self, tenant: &str, new: NewJob, judgement: Judgement) -> Found<Transition> {
        let caller = Caller::new(tenant, "ann");
        let request = JobRequest::check(new, &caller, || JobId::from("unnamed")).map_err(|errors| format!("{errors:?}"))?;
        let hash = request.hash();
        Ok(submit(Arc::new(request), hash, &self.env(judgement)))
    }

    /// Decides and commits; the job as stored afterwards.
    pub(super) async fn step(&self, job: &Job, input: Input) -> Found<Job> {
        let transition = job.next(input, &self.env(allow()))?;
        self.commit(transition).await??;
        self.load(job.request.job_id.as_str()).await
    }

    pub(super) async fn attach(&self, session: &str) -> Result<u64, StoreError> {
        let session = SessionId::from(session);
        self.store.attach(&session, &EdgeId::from("edge"), &profile("worker")).await
    }

    pub(super) async fn dispatch(&self, job: &Job, session: &str, epoch: u64) -> Found<Job> {
        self.step(job, dispatch_to(session, epoch)).await
    }

    /// Attaches a session and brings the job to an end through it.
    pub(super) async fn run(&self, job: &Job, outcome: Outcome) -> Found<Job> {
        let epoch = self.attach("runner").await?;
        let held = self.dispatch(job, "runner", epoch).await?;
        self.step(&held, report(&held, outcome)).await
    }
}

pub(super) fn new_job(id: &str) -> NewJob {
    NewJob { job_id: Some(id.to_owned()), topic: "job.echo".to_owned(), ..NewJob::default() }
}

pub(super) fn profile(worker: &str) -> WorkerProfile {
    WorkerProfile {
        worker: worker.into(),
        pool: "default".into(),
        topics: vec!["*".into()],
        capabilities: ["gpu".into()].into(),
        labels: [("zone".into(), "a".into())].into(),
        slots: 4,
        in_process: false,
    }
}

fn decided(decision: Decision) -> Judgement {
    let verdict = Verdict::plain(decision, "r1", "because", "test".into());
    Judgement::Decided(Arc::new(verdict))
}

pub(super) fn allow() -> Judgement {
    decided(Decision::Allow)
}

pub(super) fn deny() -> Judgement {
    decided(Decision::Deny)
}

pub(super) fn dispatch_to(session: &str, epoch: u64) -> Input {
    Input::Dispatch(Dispatch { session: session.into(), epoch, worker: "worker".into(), assignment: 1 })
}

pub(super) fn report(job: &Job, outcome: Outcome) -> Input {
    Input::Reported(Report { token: job.life.attempt.token.clone(), started_at: None, outcome })
}

pub(super) fn success() -> Outcome {
    Outcome::Succeeded { result: Json::trusted(r#"{"ok":true}"#) }
}

pub(super) fn fatal() -> Outcome {
    Outcome::FailedFatal { error: "broken".into() }
}

pub(super) fn cancel() -> Input {
    Input::Cancel { actor: "ann".into(), note: None }
}

pub(super) fn replay() -> Input {
    Input::Replay { actor: "ann".into() }
}

pub(super) fn ids<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Vec<&'a str> {
    jobs.into_iter().map(|job| job.request.job_id.as_str()).collect()
}
