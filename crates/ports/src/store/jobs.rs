//! Jobs: commits and reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::{JobId, JobSeq, SessionId, TenantId, Topic};
use lockgate_core::job::{DeadLetter, Duty, Job, JobEvent, JobState, Reason, Transition};
use lockgate_core::lane::{LaneKey, Priority, ReadyKey};
use lockgate_core::request::{JobRequest, Json};
use lockgate_core::time::Timestamp;

use super::{ChangeError, DuplicateJob, StoreError};

/// A row that cannot be decoded is left out of lists of jobs: the page is filled with the rows behind it, so a short page is
/// still the last one, and [`Upkeep::unreadable`](super::Upkeep::unreadable) reports the row. A call that names such a job
/// gets [`Corrupt`](StoreError::Corrupt).
#[async_trait]
pub trait JobStore: Send + Sync {
    /// Commits each change on its own, and all of them durably before answering; results in the order of `changes`.
    ///
    /// A transition whose job has version 1 inserts a new job, unless its id (S-2) or idempotency key (S-3) is taken. Any
    /// other replaces the row with version − 1. In both cases the evidence must hold. Evidence about a job that this call
    /// changes too may be checked before or after that change.
    ///
    /// Items of one call may change one job in sequence; an item that continues a job inserted by this call has no sequence
    /// number yet. Once an item is refused, later changes of that job in this call are refused too, because they may depend
    /// on it.
    ///
    /// An item that the Store cannot write is [`Refused`](ChangeError::Refused) alone. The call is then done [in
    /// parts](super::in_parts), each of which is a call of its own.
    async fn commit(&self, changes: Vec<JobChange>) -> Result<Vec<Result<JobSeq, ChangeError>>, StoreError>;

    /// Jobs by id, live or ended, in the order of `ids`. If one of them cannot be decoded, the whole call fails.
    async fn load(&self, ids: &[JobId]) -> Result<Vec<Option<Job>>, StoreError>;

    /// The owners of the keys or ids of uncommitted requests, as a commit would find them now; in the order of `requests`.
    async fn find_duplicates(&self, requests: &[Arc<JobRequest>]) -> Result<Vec<Option<DuplicateJob>>, StoreError>;

    /// A job with everything known about it.
    async fn detail(&self, id: &JobId) -> Result<Option<JobDetail>, StoreError>;

    /// Events after a number, oldest first.
    async fn events(&self, id: &JobId, after: u64) -> Result<Option<EventPage>, StoreError>;

    /// Jobs, newest first, without payloads. A page may be short or even empty while `next` is set: reading stops after a
    /// bounded number of rows.
    async fn list(&self, query: JobQuery) -> Result<Listing<Job>, StoreError>;

    /// SCHEDULED jobs of one lane that are due by the Store's clock, in ready order.
    async fn ready(&self, lane: &LaneKey, after: Option<ReadyKey>, limit: usize) -> Result<Vec<Job>, StoreError>;

    /// Lanes with SCHEDULED jobs that are due, and how many each has.
    async fn ready_lanes(&self) -> Result<Vec<(LaneKey, u64)>, StoreError>;

    /// SCHEDULED jobs that became due after `after`, in ready order: exactly those whose due time lay ahead of the Store's
    /// clock when they were committed. So a caller that asks for the Store's time after a commit
    /// ([`Schedules::next_schedule`](super::Schedules::next_schedule)) knows which jobs will appear here.
    async fn due(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError>;

    /// PENDING jobs that are due for judging, in ready order.
    async fn pending(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError>;

    /// Live jobs whose deadline has passed, oldest deadline first, after one ([`Job::deadline_key`]).
    async fn expired(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError>;

    /// S-5: jobs with a duty, oldest first.
    async fn owing(&self, duty: Duty, after: JobSeq, limit: usize) -> Result<Vec<Job>, StoreError>;

    /// For each of these lives, how many children it has and how many of them have not ended; in the order of `lives`. Reads
    /// a row for each child.
    async fn family(&self, lives: &[(JobId, u32)]) -> Result<Vec<Kin>, StoreError>;

    /// F-2: for each of these lives, the latest child that has not ended; in the order of `lives`. Stops at the first such
    /// child, so it costs the same for a large family as for a small one.
    async fn under_way(&self, lives: &[(JobId, u32)]) -> Result<Vec<Option<JobSeq>>, StoreError>;

    /// Children of one life of a job in commit order, without payloads. `next` is set if there may be more.
    async fn children(&self, query: ChildQuery) -> Result<Listing<ChildJob>, StoreError>;

    /// Children of one life that have not ended, in commit order, after a sequence number.
    async fn live_children(
        &self,
        parent: &JobId,
        life: u32,
        after: JobSeq,
        limit: usize,
    ) -> Result<Vec<(JobSeq, JobId)>, StoreError>;

    /// DISPATCHED and RUNNING jobs bound to a session.
    async fn held(&self, session: &SessionId) -> Result<Vec<Job>, StoreError>;

    /// The ids of DISPATCHED and RUNNING jobs bound to these sessions, in the order of `sessions` and of each in commit
    /// order.
    async fn bound(&self, sessions: &[SessionId]) -> Result<Vec<(SessionId, JobId)>, StoreError>;

    /// Dead letters, newest first.
    async fn dead_letters(&self, query: DeadLetterQuery) -> Result<Listing<DeadLetter>, StoreError>;

    /// Stores log lines of attempts, the last [`LOG_LINES_MAX`](super::LOG_LINES_MAX) of each job. Lines of unknown jobs are
    /// dropped.
    async fn append_logs(&self, lines: Vec<LogLine>) -> Result<(), StoreError>;

    /// The last `limit` log lines of a job after a number, oldest first. 0 is before the first line.
    async fn logs(&self, id: &JobId, after: u64, limit: usize) -> Result<Vec<KeptLine>, StoreError>;
}

/// A decision to be made durable, with the outbox entries that follow from it.
#[derive(Clone, Debug)]
pub struct JobChange {
    pub transition: Transition,
    pub outbox: Vec<OutboxEntry>,
}

impl From<Transition> for JobChange {
    fn from(transition: Transition) -> Self {
        Self { transition, outbox: Vec::new() }
    }
}

/// A message for a sink outside of Lockgate, delivered at least once and in order per job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    pub sink: Arc<str>,
    pub body: Json,
}

#[derive(Clone, Debug)]
pub struct JobDetail {
    pub job: Job,
    pub events: Vec<JobEvent>,
    /// Also set while the result is held or quarantined: ask [`Job::result_is_out`] before showing it.
    pub result: Option<Json>,
}

#[derive(Clone, Debug)]
pub struct EventPage {
    pub events: Vec<JobEvent>,
    /// The job's state after the last event of the page.
    pub state: JobState,
}

/// The children of one life of a job, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kin {
    pub total: u64,
    /// How many have not ended.
    pub live: u64,
    /// The latest of those.
    pub latest: Option<JobSeq>,
}

/// A child as its parent may see it.
#[derive(Clone, Debug)]
pub struct ChildJob {
    pub job: Job,
    /// Only if the result is exposed.
    pub result: Option<Json>,
}

impl ChildJob {
    /// The length of its result, or of its error text.
    pub fn bytes(&self) -> usize {
        let error = self.job.life.last_error.as_ref().map_or(0, |failure| failure.message.len());
        error + self.result.as_ref().map_or(0, |result| result.as_str().len())
    }
}

/// A query for children of one life of a job.
#[derive(Clone, Debug)]
pub struct ChildQuery {
    pub parent: JobId,
    pub life: u32,
    /// Only children after this one.
    pub after: JobSeq,
    pub limit: usize,
    /// The most bytes of results and error texts in total. The first child is returned in any case. A Store may count other
    /// columns too.
    pub bytes: usize,
}

/// The position where a listing continues; opaque to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub i64);

#[derive(Clone, Debug)]
pub struct Listing<T> {
    pub items: Vec<T>,
    pub next: Option<Cursor>,
}

/// Whether each wanted label is present with its value.
pub fn has_labels(labels: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(name, value)| labels.get(name) == Some(value))
}

#[derive(Clone, Debug, Default)]
pub struct JobQuery {
    pub tenant: Option<TenantId>,
    pub topic: Option<Topic>,
    pub state: Option<JobState>,
    /// Labels of the client or of the platform (`safety_bypassed`).
    pub labels: BTreeMap<String, String>,
    /// Only children of this job, of any of its lives.
    pub parent: Option<JobId>,
    pub trace_id: Option<Arc<str>>,
    /// Only jobs whose dead letter was discarded.
    pub discarded: bool,
    pub cursor: Option<Cursor>,
    pub limit: usize,
}

impl JobQuery {
    /// Checks the parts of the query that no column can answer: labels of the client or the platform, the trace, and the discard
    /// of the dead letter.
    pub fn fits(&self, job: &Job) -> bool {
        let labels = &job.request.labels;
        let labelled =
            |(name, value): (&String, &String)| labels.get(name) == Some(value) || job.life.has_platform_label(name, value);
        let traced = |id: &Arc<str>| job.request.trace_id.as_ref() == Some(id);
        let discarded = !self.discarded || job.life.discarded.is_some();
        discarded && self.labels.iter().all(labelled) && self.trace_id.as_ref().is_none_or(traced)
    }
}

/// A query for open dead letters: those that an operator discarded are found through their jobs.
#[derive(Clone, Debug, Default)]
pub struct DeadLetterQuery {
    pub tenant: Option<TenantId>,
    pub topic: Option<Topic>,
    pub priority: Option<Priority>,
    pub reason: Option<Reason>,
    pub labels: BTreeMap<String, String>,
    pub cursor: Option<Cursor>,
    pub limit: usize,
}

/// A stored log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLine {
    /// Grows with every line of the job, possibly with gaps. Readers resume from it.
    pub no: u64,
    pub line: LogLine,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub job_id: JobId,
    pub attempt: u32,
    pub at: Timestamp,
    pub line: Arc<str>,
}
