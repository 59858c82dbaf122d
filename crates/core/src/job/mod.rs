//! A job, its current attempt, and every decision about them.

mod action;
mod approve;
mod attempts;
mod audited;
mod bypass;
mod cancel;
mod discard;
mod dispatch;
mod duty;
mod end;
mod event;
mod expire;
mod family;
mod gate;
mod give_up;
mod hasten;
mod judge;
mod labels;
mod late;
mod lose;
mod memo;
mod output;
mod renew;
mod replay;
mod report;
mod restamp;
mod state;
mod submit;
mod transition;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use action::{Action, ActionKind};
pub use approve::{Answer, Approval, Ballot, Sight, Vote};
pub use attempts::{AttemptSummary, attempts};
pub use bypass::Bypass;
pub use discard::Discard;
pub use duty::Duty;
pub use event::{EventKind, JobEvent};
pub use family::{Barrier, Family, OnTimeout, UnknownOnTimeout, WAIT_DEFAULT};
pub use memo::{Earlier, memo_key, memoised};
pub use output::{OutputCheck, OutputStage, Scanned, UnscannedRelease};
pub use report::{AttemptReport, Outcome};
pub use state::{JobState, Phase};
pub use submit::{stillborn, submit};
pub use transition::{DeadLetter, Effect, Evidence, Transition};

use crate::ids::{ActorId, AttemptToken, JobId, JobSeq, RunId, SessionId, WorkerId};
use crate::lane::{LaneKey, ReadyKey, Shape};
use crate::limits::Limits;
use crate::pools::RoutingId;
use crate::request::{JobRequest, Json, RequestHash};
use crate::retry::{Jitter, RetryPolicy};
use crate::time::Timestamp;
use crate::timeouts::Timeouts;
use crate::unknown_name::UnknownName;
use crate::verdict::{Constraints, Judgement, Verdict};

/// A job as the Store holds it: the frozen request and its current life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub seq: JobSeq,
    /// Grows by one with each committed transition; every commit compares it, so that a stale decision changes nothing.
    pub version: i64,
    pub request: Arc<JobRequest>,
    pub hash: RequestHash,
    pub life: Life,
}

/// One life: from submit or replay to a terminal state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// 1 after submit, one more after each replay.
    pub no: u32,
    pub state: JobState,
    pub attempt: Attempt,
    #[serde(default)]
    pub counters: Counters,
    /// When the first life was submitted; equal in all lives.
    pub submitted_at: Timestamp,
    /// When this life began.
    pub began_at: Timestamp,
    /// The job is neither started nor judged again before this time.
    pub due_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Failure>,
    /// The attempt that was declared lost. Its late result still counts until the successor is dispatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostAttempt>,
    /// Of a job of a run: revoked attempts whose success must still be recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<LostAttempt>,
    /// The revoked attempt that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LostAttempt>,
    /// The approval that was asked for in this life, with its votes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The check of the latest result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputCheck>,
    /// The latest attempt of this life that ran without a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypass: Option<Bypass>,
    /// The children that attempts of this life submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// The job whose memoised result stands for this job's work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo_of: Option<JobId>,
    /// An operator said that the dead letter of this life is not to be replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded: Option<Discard>,
    /// How many events were written over all lives; the next event's number is one higher.
    pub events: u64,
}

/// One attempt. Its token fences it: reports with another token change nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Grows over all lives, so that an attempt's number is unique within the job.
    pub no: u32,
    pub token: AttemptToken,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Arc<Verdict>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}

/// Which worker session holds a dispatched attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    pub session: SessionId,
    pub worker: WorkerId,
    pub dispatched_at: Timestamp,
    /// The attempt must have ended by then. Computed at dispatch, and again when it starts.
    pub timeout_at: Timestamp,
    /// The attempt must have started by then.
    pub start_by: Timestamp,
    /// The number of the assignment on its session. A beat lists the latest assignment that the worker received: an older
    /// one that is missing in its inventory is lost.
    pub assignment: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostAttempt {
    pub no: u32,
    pub token: AttemptToken,
    /// Present while the worker may still be working on the revoked attempt; None once it is certainly over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<Leaving>,
}

/// A session that may still be working on a revoked attempt, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    /// Once this session is closed, the attempt counts as over.
    pub session: SessionId,
    /// From then on the attempt counts as over, because its worker had to stop it at its timeout.
    pub until: Timestamp,
    /// The worker reported a success and the output scan holds the result. Only the end of the scan ends this wait: the work
    /// was done, so neither a closed session nor the time may let the run undo what the work used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scan: bool,
}

/// What has been spent. The budgets are separate, so that the platform's faults do not spend the client's retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    #[serde(default)]
    pub failures: u32,
    #[serde(default)]
    pub infra_failures: u32,
    #[serde(default)]
    pub snoozes: u32,
}

/// Why something went wrong: a code for machines and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub reason: Reason,
    pub message: Arc<str>,
}

impl Failure {
    pub fn new(reason: Reason, message: impl Into<Arc<str>>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// Stable reason codes of attempts and dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The handler failed and may be tried again.
    Failed,
    /// The handler failed and said that trying again is useless.
    Fatal,
    /// The attempt ran longer than its timeout.
    ExecutionTimeout,
    /// The job's deadline passed.
    DeadlineExceeded,
    /// The worker holding the attempt went silent or lost it.
    AgentLost,
    /// The attempt was sent and never started.
    #[serde(alias = "dispatch_failed")]
    DispatchLost,
    /// The worker gave the attempt back while shutting down.
    Interrupted,
    /// No pool is configured for the topic, or policy allows none of the topic's pools.
    NoPoolMapping,
    /// No worker of the job's pools can ever take it.
    NoWorkers,
    /// The workers that fit are overloaded. Only shown by `why`: such a job waits until its deadline and never ends for this
    /// reason.
    PoolOverloaded,
    /// A concurrency limit of the tenant is used up. Only shown by `why`, like `PoolOverloaded`.
    TenantLimit,
    /// The handler snoozed more often than allowed.
    SnoozeLimit,
    /// Children were still under way when the parent's wait timed out.
    ChildrenTimeout,
    /// Policy changed and no longer allows the attempt.
    Revoked,
    /// A person cancelled the job.
    Cancelled,
    /// Policy denied the attempt. Rows keep the name of the first release: see [`Reason::stored`].
    #[serde(rename(serialize = "denied", deserialize = "safety_denied"), alias = "denied")]
    Denied,
    /// A person refused the approval that policy asked for.
    ApprovalRejected,
    /// The approval expired unanswered.
    ApprovalExpired,
    /// The result was larger than policy allows.
    OutputTooLarge,
    /// Policy quarantined the result.
    OutputQuarantined,
    /// What a run waited for does not exist any more, or nothing is left that could move the run on.
    Orphaned,
    /// Of a node of a run: its join does not let it run, by how its parents ended.
    Upstream,
    /// The stored description of a compensation cannot be read.
    SagaUnmarshalFailed,
    /// Stored by a newer version: kept as it is, shown by its name, and nothing is concluded from it.
    #[serde(untagged)]
    Unknown(UnknownName),
}

impl Reason {
    /// Those that this version gives.
    pub const ALL: [Self; 23] = [
        Self::Failed,
        Self::Fatal,
        Self::ExecutionTimeout,
        Self::DeadlineExceeded,
        Self::AgentLost,
        Self::DispatchLost,
        Self::Interrupted,
        Self::NoPoolMapping,
        Self::NoWorkers,
        Self::PoolOverloaded,
        Self::TenantLimit,
        Self::SnoozeLimit,
        Self::ChildrenTimeout,
        Self::Revoked,
        Self::Cancelled,
        Self::Denied,
        Self::ApprovalRejected,
        Self::ApprovalExpired,
        Self::OutputTooLarge,
        Self::OutputQuarantined,
        Self::Orphaned,
        Self::Upstream,
        Self::SagaUnmarshalFailed,
    ];

    pub fn as_str(&self) -> &str {
        match self {
            Self::Failed => "failed",
            Self::Fatal => "fatal",
            Self::ExecutionTimeout => "execution_timeout",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::AgentLost => "agent_lost",
            Self::DispatchLost => "dispatch_lost",
            Self::Interrupted => "interrupted",
            Self::NoPoolMapping => "no_pool_mapping",
            Self::NoWorkers => "no_workers",
            Self::PoolOverloaded => "pool_overloaded",
            Self::TenantLimit => "tenant_limit",
            Self::SnoozeLimit => "snooze_limit",
            Self::ChildrenTimeout => "children_timeout",
            Self::Revoked => "revoked",
            Self::Cancelled => "cancelled",
            Self::Denied => "safety_denied",
            Self::ApprovalRejected => "approval_rejected",
            Self::ApprovalExpired => "approval_expired",
            Self::OutputTooLarge => "output_too_large",
            Self::OutputQuarantined => "output_quarantined",
            Self::Orphaned => "orphaned",
            Self::Upstream => "upstream",
            Self::SagaUnmarshalFailed => "saga_unmarshal_failed",
            Self::Unknown(name) => name.as_str(),
        }
    }

    /// The word in the rows of a Store, which stays what it was when the first release wrote it.
    pub fn stored(&self) -> &str {
        match self {
            Self::Denied => "denied",
            other => other.as_str(),
        }
    }
}

/// Everything that a decision may use besides the job and the input.
#[derive(Clone, Debug)]
pub struct Env<'a> {
    pub now: Timestamp,
    /// Minted for the next attempt, should one be needed.
    pub token: AttemptToken,
    pub jitter: Jitter,
    pub limits: &'a Limits,
    pub timeouts: Arc<Timeouts>,
    /// The verdict for the next attempt, should one be needed.
    pub judgement: Judgement,
}

/// An input of the state machine: something that happened to a job.
#[derive(Clone, Debug)]
pub enum Input {
    /// The kernel was asked for a verdict on a job that had none.
    Judged,
    /// A claimed job is sent to a worker.
    Dispatch(Dispatch),
    /// The worker reported that the attempt started.
    Started { token: AttemptToken, at: Timestamp },
    /// The attempt asked whether it may perform one action.
    Checked { token: AttemptToken, action: Action, verdict: Arc<Verdict> },
    /// The attempt is about to submit this many new children.
    Spawned { token: AttemptToken, children: u32 },
    /// The worker reported how the attempt ended.
    Reported(AttemptReport),
    /// None of the children that the next attempt waits for is under way. The token names that attempt, because the
    /// observation says nothing about a later wait.
    Gathered { token: AttemptToken },
    /// This life ended badly, and all its children have been stopped.
    Settled { life: u32 },
    /// The session that holds the attempt is gone, does not have the attempt, or has not started it in time. `turn` delays
    /// the retry, so that many attempts lost at once do not come back at once.
    Lost { token: AttemptToken, reason: Reason, evidence: Evidence, turn: Duration },
    /// No worker can take the job under this configuration, and that was checked often enough.
    GivenUp { reason: Reason, message: Arc<str>, routing: RoutingId },
    /// A revoked attempt is over: the worker says so, or no longer has it, or its session is closed.
    LetGo { token: AttemptToken },
    /// A timer fired.
    Woken,
    /// A client cancels the job.
    Cancel { actor: ActorId, note: Option<Arc<str>> },
    /// A person votes on an approval.
    Vote(Ballot),
    /// The kernel answers again and judges a job that ran without its verdict.
    Rejudged,
    /// The content of the job's result was scanned.
    Scanned(Scanned),
    /// No scanner answers for the held result, and the fail mode lets it out unscanned.
    LetOut(UnscannedRelease),
    /// A person releases a quarantined result.
    Release { actor: ActorId, note: Option<Arc<str>> },
    /// An operator makes a job due that waits for its next attempt.
    Hasten { actor: ActorId, note: Option<Arc<str>> },
    /// An operator replays a dead job.
    Replay { actor: ActorId },
    /// An operator says that a dead job is not to be replayed.
    Discard { actor: ActorId, reason: Arc<str> },
    /// `changed_at` is the stamp of the job's latest event, `right` the time by every clock that was asked.
    Restamped { changed_at: Timestamp, right: Timestamp },
}

/// The session that a claimed job is sent to.
#[derive(Clone, Debug)]
pub struct Dispatch {
    pub session: SessionId,
    pub epoch: u64,
    pub worker: WorkerId,
    pub assignment: u64,
    /// The configuration under which the worker was chosen.
    pub routing: RoutingId,
}

/// The input does not apply to the job in its present state. Nothing changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    /// J-3, A-2: the report is of an attempt that no longer counts.
    #[error("superseded: the attempt no longer counts")]
    Superseded,
    #[error("the job has already ended as {0}")]
    Terminal(JobState),
    #[error("{input} is not possible while the job is {state}")]
    State { input: &'static str, state: JobState },
    #[error("the job is {0} and does not wait for the time of a retry; `lockgate why` says what it waits for")]
    NoRetryWaits(JobState),
    /// No timer of the job has fired.
    #[error("nothing is due yet")]
    NotDue,
    #[error("this person has voted already")]
    AlreadyVoted,
    #[error("the submitter cannot approve their own job; ask somebody else")]
    SelfApproval,
    /// The ballot is for another request or another rule.
    #[error("the approval is for another {0}; look at the job again before you approve it")]
    StaleApproval(&'static str),
    #[error("the approval was not given in time; the job is being denied")]
    ApprovalExpired,
    #[error(
        "your credential does not show the payload of this job; send acknowledge_hidden: true to approve it unseen, or use a \
         credential that may see payloads"
    )]
    PayloadHidden,
    #[error("the work is done and its result is being checked; look again in a moment")]
    OutputCheck,
    #[error("the job belongs to {0}; rerun the run from this node instead")]
    OfRun(RunId),
    #[error("the job undoes another one's work; `lockgate saga resolve --retry` tries it once more")]
    Undoes,
    #[error("the workflow {0:?} is closed: what its jobs did is undone, and nothing of it starts any more")]
    ClosedSaga(Arc<str>),
    #[error("its dead letter was discarded by {0} and is not replayed; submit a new job if the work is wanted after all")]
    Discarded(ActorId),
    #[error("its children are being stopped; try again in a moment")]
    Disowning,
}

impl Job {
    /// Removes the fields that only readers trusted with payloads may see.
    pub fn hide(&mut self) {
        let request = Arc::make_mut(&mut self.request);
        request.payload = Json::null();
        request.env.clear();
        request.compensation = None;
    }

    pub fn state(&self) -> JobState {
        self.life.state
    }

    /// The session that holds the current attempt. None once the outcome of the attempt is stored: from then on the slot is
    /// free.
    pub fn holder(&self) -> Option<&Binding> {
        self.life.attempt.binding.as_ref().filter(|_| self.life.state.is_held() && !self.in_output_check())
    }

    /// Where the job waits while it is SCHEDULED.
    pub fn lane(&self) -> LaneKey {
        LaneKey { priority: self.request.priority(), tenant: self.request.tenant.clone(), shape: Arc::new(self.shape()) }
    }

    /// What the current attempt requires of a worker, within the constraints of its verdict.
    pub fn shape(&self) -> Shape {
        let Constraints { allowed_pools, max_concurrent, .. } = self.constraints();
        Shape { allowed_pools: allowed_pools.clone(), max_concurrent: *max_concurrent, ..self.request.shape() }
    }

    pub fn ready_key(&self) -> ReadyKey {
        ReadyKey { due_at: self.life.due_at, seq: self.seq }
    }

    /// The number of the latest dispatched attempt over all lives; 0 before the first.
    pub fn attempts_made(&self) -> u32 {
        let attempt = &self.life.attempt;
        if attempt.binding.is_some() { attempt.no } else { attempt.no.saturating_sub(1) }
    }

    /// The time before which the loops skip the waiting job. None while a worker holds it and after it has ended.
    pub fn waits_until(&self) -> Option<Timestamp> {
        let waits = !self.life.state.is_terminal() && !self.life.state.is_held();
        waits.then_some(self.life.due_at)
    }

    /// When the next timer of the waiting job fires, if it has one.
    pub fn deadline(&self) -> Option<Timestamp> {
        let asked = self.life.approval.as_ref().filter(|_| self.life.state == JobState::ApprovalRequired);
        let waits = self.barrier().map(|barrier| barrier.until);
        let deadlines = [self.life.deadline_at, asked.and_then(Approval::expires_at), waits];
        deadlines.into_iter().flatten().min().filter(|_| !self.life.state.is_terminal() && !self.in_output_check())
    }

    /// The job's key in the index of deadlines.
    pub fn deadline_key(&self) -> Option<ReadyKey> {
        Some(ReadyKey { due_at: self.deadline()?, seq: self.seq })
    }

    /// The state machine: one total function for live work, recovery and the simulator.
    pub fn next(&self, input: Input, env: &Env<'_>) -> Result<Transition, Illegal> {
        match input {
            Input::Judged => self.judged(env),
            Input::Dispatch(dispatch) => self.dispatched(dispatch, env),
            Input::Started { token, at } => self.started(&token, at, env),
            Input::Checked { token, action, verdict } => self.checked(&token, &action, &verdict, env),
            Input::Spawned { token, children } => self.spawned(&token, children, env),
            Input::Reported(report) => self.reported(report, env),
            Input::Gathered { token } => self.gathered(&token, env),
            Input::Settled { life } => self.settled(life),
            Input::Lost { token, reason, evidence, turn } => self.lost(&token, reason, evidence, turn, env),
            Input::GivenUp { reason, message, routing } => self.given_up(reason, message, routing, env),
            Input::LetGo { token } => self.let_go(&token),
            Input::Woken => self.woken(env),
            Input::Cancel { actor, note } => self.cancelled(actor, note, env),
            Input::Vote(ballot) => self.voted(ballot, env),
            Input::Rejudged => self.rejudged(env),
            Input::Scanned(scanned) => self.scanned(scanned, env),
            Input::LetOut(let_out) => self.let_out(let_out, env),
            Input::Release { actor, note } => self.released(actor, note.as_deref(), env),
            Input::Hasten { actor, note } => self.hastened(actor, note.as_deref(), env),
            Input::Replay { actor } => self.replayed(actor, env),
            Input::Discard { actor, reason } => self.discarded(actor, &reason, env),
            Input::Restamped { changed_at, right } => self.restamped(changed_at, right, env),
        }
    }

    fn live(&self) -> Result<(), Illegal> {
        if self.life.state.is_terminal() { Err(Illegal::Terminal(self.life.state)) } else { Ok(()) }
    }

    fn attempt_timeout(&self, env: &Env<'_>) -> Timestamp {
        let constrained = self.constraints().max_runtime_ms.map(Duration::from_millis);
        let timeout = self.request.timeout(&env.timeouts);
        let timeout_at = env.now + constrained.map_or(timeout, |max| timeout.min(max));
        self.life.deadline_at.map_or(timeout_at, |deadline| deadline.min(timeout_at))
    }

    /// The constraints of the current attempt's verdict.
    pub fn constraints(&self) -> &Constraints {
        const NONE: &Constraints = &Constraints::NONE;
        self.life.attempt.verdict.as_ref().map_or(NONE, |verdict| &verdict.constraints)
    }

    /// The effective retry policy: the job's own settings over those of its topic and of the installation, within what
    /// policy allows.
    pub fn retry_policy(&self, limits: &Limits, timeouts: &Timeouts) -> RetryPolicy {
        let asked = self.request.retry_policy(limits, timeouts);
        let retries = self.constraints().max_retries;
        RetryPolicy { attempts: retries.map_or(asked.attempts, |max| asked.attempts.min(max.saturating_add(1))), ..asked }
    }

    fn start_by(&self, env: &Env<'_>) -> Timestamp {
        let start_by = env.now + env.timeouts.of(&self.request.topic).dispatch;
        self.life.deadline_at.map_or(start_by, |deadline| deadline.min(start_by))
    }
}

/// Cuts an error text, so that a worker cannot bloat the row.
fn clipped(text: &str) -> Arc<str> {
    let max = crate::limits::ERROR_BYTES_MAX;
    if text.len() <= max {
        return text.into();
    }
    let end = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text[..end].into()
}
