//! The fixture of the cases: a Store, its clock, and short functions for common operations.

use std::any::Any;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, EdgeId, JobId, JobSeq, SessionId, TenantId};
use lockgate_core::job::{
    Answer, AttemptReport, Ballot, Dispatch, Env, Input, Job, Outcome, Scanned, Sight, Transition, submit,
};
use lockgate_core::limits::Limits;
use lockgate_core::output::{OutputDecision, OutputStep, OutputVerdict};
use lockgate_core::pools::RoutingId;
use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
use lockgate_core::retry::Jitter;
use lockgate_core::verdict::{ApprovalTerms, BUILTIN_ALLOW, Decision, Judgement, Verdict};
use lockgate_core::worker::WorkerProfile;

use lockgate_model::ManualClock;
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{ChangeError, JobChange, Store};

/// A case passes or says what went wrong.
pub type Proof = Result<(), Box<dyn Error + Send + Sync>>;
pub(super) type Found<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Whose row is written over.
#[derive(Clone, Debug)]
pub enum Spoilt {
    Job(JobId),
    /// What a newer version would have written: texts in the job's rows, in place of others. Stores that keep no texts write as much.
    Text {
        job: JobId,
        old: &'static str,
        new: &'static str,
    },
    Schedule {
        tenant: TenantId,
        name: Arc<str>,
    },
}

/// A row is being written over.
pub type Spoiling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A new, empty Store that reads the given clock.
pub struct StoreHarness {
    pub store: Arc<dyn Store>,
    pub clock: Arc<ManualClock>,
    limits: Limits,
    minted: AtomicU64,
    spoils: Option<Box<dyn Fn(Spoilt) -> Spoiling + Send + Sync>>,
    /// Values that must outlive the Store, such as its folder.
    _ground: Box<dyn Any + Send + Sync>,
}

impl StoreHarness {
    pub fn new(store: Arc<dyn Store>, clock: Arc<ManualClock>, ground: impl Any + Send + Sync) -> Self {
        let limits = Limits::default();
        Self { store, clock, limits, minted: AtomicU64::new(0), spoils: None, _ground: Box::new(ground) }
    }

    /// How to make a row undecodable.
    #[must_use]
    pub fn spoiling(self, spoils: impl Fn(Spoilt) -> Spoiling + Send + Sync + 'static) -> Self {
        Self { spoils: Some(Box::new(spoils)), ..self }
    }

    pub(super) async fn spoil(&self, id: &str) -> Proof {
        self.spoil_row(Spoilt::Job(id.into())).await
    }

    /// Puts one text in the place of another in the rows of a job.
    pub(super) async fn rewrite(&self, id: &str, old: &'static str, new: &'static str) -> Proof {
        self.spoil_row(Spoilt::Text { job: id.into(), old, new }).await
    }

    pub(super) async fn spoil_row(&self, row: Spoilt) -> Proof {
        let spoils = self.spoils.as_ref().ok_or("nobody said how a row is spoilt")?;
        spoils(row).await;
        Ok(())
    }

    /// An env at the clock's time with a fresh token.
    pub(super) fn env(&self, judgement: Judgement) -> Env<'_> {
        let n = self.minted.fetch_add(1, Ordering::Relaxed);
        Env {
            now: self.clock.now(),
            token: AttemptToken::from(format!("token-{n}")),
            jitter: Jitter::from_bits(0),
            limits: &self.limits,
            timeouts: Arc::default(),
            judgement,
        }
    }

    pub(super) fn advance_ms(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }

    pub(super) async fn commit(&self, change: impl Into<JobChange>) -> Found<Result<JobSeq, ChangeError>> {
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

    pub(super) async fn attach(&self, session: &str) -> Found<u64> {
        let session = SessionId::from(session);
        let attached = self.store.attach(&session, &EdgeId::from("edge"), &profile("worker")).await?;
        Ok(attached?.epoch)
    }

    pub(super) async fn dispatch(&self, job: &Job, session: &str, epoch: u64) -> Found<Job> {
        self.step(job, dispatch_to(session, epoch)).await
    }

    /// Attaches a session and brings the job to an end through it.
    pub(super) async fn run(&self, job: &Job, outcome: Outcome) -> Found<Job> {
        self.run_checked(job, outcome, OutputStep::Pass).await
    }

    /// Like `run`, with the outcome of the check of the result's metadata.
    pub(super) async fn run_checked(&self, job: &Job, outcome: Outcome, output: OutputStep) -> Found<Job> {
        let epoch = self.attach("runner").await?;
        let held = self.dispatch(job, "runner", epoch).await?;
        self.step(&held, checked(&held, outcome, output)).await
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
        lost_after_ms: Some(90_000),
        owner: None,
    }
}

fn decided(decision: Decision) -> Judgement {
    under(BUILTIN_ALLOW, decision)
}

/// A decision by the policy with this id.
pub(super) fn under(policy: &str, decision: Decision) -> Judgement {
    Judgement::Decided(Arc::new(Verdict::plain(decision, "r1", "because", policy.into())))
}

/// A rule that requires an approval.
pub(super) fn ask(terms: ApprovalTerms) -> Judgement {
    let verdict = Verdict::plain(Decision::RequireApproval, "r2", "ask first", BUILTIN_ALLOW.into());
    Judgement::Decided(Arc::new(verdict.but(|verdict| {
        verdict.rule_hash = "h2".into();
        verdict.approval = Some(terms);
    })))
}

pub(super) fn vote(job: &Job, actor: &str, answer: Answer) -> Input {
    let rule_hash = job.life.approval.as_ref().map_or_else(|| "none".into(), |asked| asked.rule_hash.clone());
    Input::Vote(Ballot { actor: actor.into(), answer, note: None, request_hash: job.hash, rule_hash, sight: Sight::Whole })
}

/// The scan verdict on the job's latest result, `result`.
pub(super) fn scanned(job: &Job, decision: OutputDecision, result: Json) -> Input {
    let attempt = job.life.output.as_ref().map_or(0, |check| check.attempt);
    Input::Scanned(Scanned { attempt, verdict: Arc::new(verdict_on_output(decision)), result })
}

pub(super) fn verdict_on_output(decision: OutputDecision) -> OutputVerdict {
    OutputVerdict {
        decision,
        rule: "o1".into(),
        reason: "a key".into(),
        snapshot: BUILTIN_ALLOW.into(),
        findings: Vec::new(),
        redacted: (decision == OutputDecision::Redact).then(|| Json::trusted(r#"{"ok":"[redacted]"}"#)),
    }
}

pub(super) fn allow() -> Judgement {
    decided(Decision::Allow)
}

pub(super) fn deny() -> Judgement {
    decided(Decision::Deny)
}

pub(super) fn dispatch_to(session: &str, epoch: u64) -> Input {
    Input::Dispatch(Dispatch {
        session: session.into(),
        epoch,
        worker: "worker".into(),
        assignment: 1,
        routing: RoutingId::default(),
    })
}

pub(super) fn report(job: &Job, outcome: Outcome) -> Input {
    checked(job, outcome, OutputStep::Pass)
}

/// A report with what the check of the metadata said about it.
pub(super) fn checked(job: &Job, outcome: Outcome, output: OutputStep) -> Input {
    Input::Reported(AttemptReport { token: job.life.attempt.token.clone(), started_at: None, outcome, output })
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

pub(super) fn release() -> Input {
    Input::Release { actor: "bob".into(), note: None }
}

pub(super) fn discard() -> Input {
    Input::Discard { actor: "ann".into(), reason: "paid by hand".into() }
}

pub(super) fn replay() -> Input {
    Input::Replay { actor: "ann".into() }
}

pub(super) fn ids<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Vec<&'a str> {
    jobs.into_iter().map(|job| job.request.job_id.as_str()).collect()
}
