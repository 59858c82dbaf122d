//! What an edge and a worker say to each other, free of any wire format.

use std::sync::Arc;
use std::time::Duration;

use crate::ids::{AttemptToken, JobId, SessionId};
use crate::job::{Job, Outcome};
use crate::time::Timestamp;
use crate::trace::TraceParent;
use crate::worker::{Load, WorkerProfile};

/// First words of a stream.
#[derive(Clone, Debug)]
pub struct Hello {
    pub session: SessionId,
    pub profile: WorkerProfile,
    /// Assignments it lets wait beside those it runs.
    pub prefetch: u32,
    pub inventory: Vec<InventoryItem>,
    pub highest_assignment: u64,
}

/// An attempt the worker holds: waiting for a place, running, being stopped, or ended with a result not yet acknowledged.
#[derive(Clone, Debug)]
pub struct InventoryItem {
    pub job_id: JobId,
    pub token: AttemptToken,
    pub started: bool,
}

#[derive(Clone, Debug)]
pub struct Welcome {
    pub epoch: u64,
    pub beat_every: Duration,
    pub lost_after: Duration,
}

/// One message of a worker; every part may be empty.
#[derive(Clone, Debug, Default)]
pub struct FromWorker {
    pub beat: Option<Beat>,
    pub starts: Vec<(JobId, AttemptToken)>,
    pub results: Vec<ResultReport>,
    pub progress: Vec<(AttemptToken, AttemptProgress)>,
    pub logs: Vec<LogReport>,
    pub draining: bool,
    /// Attempts that it was told to stop and has nothing of any more.
    pub let_go: Vec<AttemptToken>,
}

impl FromWorker {
    /// Adds what the same worker said next. The later beat says everything that the earlier one did.
    pub fn absorb(&mut self, later: Self) {
        self.beat = later.beat.or_else(|| self.beat.take());
        self.starts.extend(later.starts);
        self.results.extend(later.results);
        self.progress.extend(later.progress);
        self.logs.extend(later.logs);
        self.draining |= later.draining;
        self.let_go.extend(later.let_go);
    }
}

#[derive(Clone, Debug)]
pub struct Beat {
    pub number: u64,
    pub highest_assignment: u64,
    pub inventory: Vec<InventoryItem>,
    /// Slots in use. The inventory also names what waits and what has ended.
    pub active_jobs: u32,
    pub load: Load,
    /// How many it has from now on; none where that is as before.
    pub slots: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct ResultReport {
    pub job_id: JobId,
    pub token: AttemptToken,
    pub outcome: Outcome,
    /// None where the worker does not say, or where its handler never began.
    pub began: Option<Began>,
}

/// What a worker says of the beginning of an attempt together with its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began {
    /// By the worker's clock.
    pub at: Timestamp,
    /// For how long the handler ran.
    pub ran: Option<Duration>,
}

#[derive(Clone, Debug)]
pub struct LogReport {
    pub token: AttemptToken,
    pub at: Timestamp,
    pub line: Arc<str>,
}

/// How far an attempt has come, in the handler's words. Kept in memory only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptProgress {
    pub percent: u32,
    pub message: Arc<str>,
    pub at: Timestamp,
}

/// What an edge tells a worker. Senders may merge neighbours into one message.
#[derive(Clone, Debug)]
pub enum ToWorker {
    Assign(Vec<Assignment>),
    Stop {
        job_id: JobId,
        token: AttemptToken,
        reason: Arc<str>,
    },
    /// Give the attempt back if it has not begun: the answer is a result [`Outcome::Revoked`], or nothing.
    Revoke {
        job_id: JobId,
        token: AttemptToken,
    },
    Acks(Vec<(AttemptToken, Acknowledged)>),
    BeatAck {
        number: u64,
        /// How long ago this process could last tell the others that it is there.
        lease_age: Duration,
    },
    /// An operator wants the worker to leave: it answers by draining.
    Drain,
    /// The draining worker holds nothing and gets nothing more: it may leave.
    Dismissed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    Stored,
    /// The attempt no longer counted.
    Superseded,
}

#[derive(Clone, Debug)]
pub struct Assignment {
    pub number: u64,
    pub job: Arc<Job>,
    pub timeout: Duration,
    /// What the worker's own spans stand below.
    pub trace: Option<TraceParent>,
}

impl Assignment {
    /// Of a job that is bound to a session.
    pub fn of(job: &Arc<Job>, trace: Option<TraceParent>) -> Self {
        let binding = job.life.attempt.binding.as_ref();
        Self {
            number: binding.map_or(0, |b| b.assignment),
            timeout: binding.map(|b| b.timeout_at.since(b.dispatched_at)).unwrap_or_default(),
            job: job.clone(),
            trace,
        }
    }
}
