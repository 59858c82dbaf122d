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

/// A row that cannot be decoded is left out of whatever lists jobs: a page is filled with the rows behind it, so a short page is
/// still the last one, and the Store tells of it by [`Upkeep::unreadable`](super::Upkeep::unreadable). Whoever names it is told
/// that it is [`Corrupt`](StoreError::Corrupt).
#[async_trait]
pub trait JobStore: Send + Sync {
    /// Commits each change alone and all of them durably before answering; results in the order sent.
    ///
    /// A transition whose job has version 1 inserts a new job, unless its id (S-2) or idempotency key (S-3) is taken.
    /// Any other replaces the row with version − 1. Of both kinds the evidence must hold. Evidence about a job that the
    /// same call changes may be looked at before or after that change.
    ///
    /// Items of one call may touch the same job in sequence; one that continues a job inserted by the same call has no
    /// sequence number yet. Once an item is refused, later changes of the same job in the same call are too: they may
    /// build on it.
    ///
    /// An item that the Store cannot write is [`Refused`](ChangeError::Refused) alone. Its call is then done
    /// [in parts](super::in_parts), each of them a call of its own.
    async fn commit(&self, changes: Vec<JobChange>) -> Result<Vec<Result<JobSeq, ChangeError>>, StoreError>;

    /// Jobs by id, live or ended, in the order asked. If one of them cannot be decoded, none is told.
    async fn load(&self, ids: &[JobId]) -> Result<Vec<Option<Job>>, StoreError>;

    /// Who has the key or the id of requests that are not committed, as a commit of them would find it now; in the order asked.
    async fn find_duplicates(&self, requests: &[Arc<JobRequest>]) -> Result<Vec<Option<DuplicateJob>>, StoreError>;

    /// A job with everything known about it.
    async fn detail(&self, id: &JobId) -> Result<Option<JobDetail>, StoreError>;

    /// Events after a number, oldest first.
    async fn events(&self, id: &JobId, after: u64) -> Result<Option<EventPage>, StoreError>;

    /// Jobs newest first. Payloads are left out. A page may be short, even empty, while `next` is set: reading stops
    /// after a bounded number of rows.
    async fn list(&self, query: JobQuery) -> Result<Listing<Job>, StoreError>;

    /// SCHEDULED jobs of one lane that are due by the Store's clock, in ready order.
    async fn ready(&self, lane: &LaneKey, after: Option<ReadyKey>, limit: usize) -> Result<Vec<Job>, StoreError>;

    /// Lanes with SCHEDULED jobs that are due, and how many.
    async fn ready_lanes(&self) -> Result<Vec<(LaneKey, u64)>, StoreError>;

    /// SCHEDULED jobs that became due after `after`, in ready order: all whose due time the Store's clock had yet to reach when
    /// they were committed, and no others. So whoever asks for its time after a commit
    /// ([`Schedules::next_schedule`](super::Schedules::next_schedule)) knows what will be here.
    async fn due(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError>;

    /// PENDING jobs that are due for judging, in ready order.
    async fn pending(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError>;

    /// Live jobs whose deadline has passed, oldest deadline first, after one ([`Job::deadline_key`]).
    async fn expired(&self, after: ReadyKey, limit: usize) -> Result<Vec<Job>, StoreError>;

    /// S-5: jobs that owe something, oldest first.
    async fn owing(&self, duty: Duty, after: JobSeq, limit: usize) -> Result<Vec<Job>, StoreError>;

    /// Of each of these lives, how many children it has and how many of them have not ended; in the order asked. Reads a row for
    /// each of them.
    async fn family(&self, lives: &[(JobId, u32)]) -> Result<Vec<Kin>, StoreError>;

    /// F-2: of each of these lives, the child that was submitted last of those that have not ended; in the order asked. It stops
    /// at the first one that it meets, so a large family is looked at as often as a small one.
    async fn under_way(&self, lives: &[(JobId, u32)]) -> Result<Vec<Option<JobSeq>>, StoreError>;

    /// Children of one life of a job in commit order. Payloads are left out. `next` is set if there may be more.
    async fn children(&self, query: ChildQuery) -> Result<Listing<ChildJob>, StoreError>;

    /// Those children of one life of a job that have not ended, in commit order, after a number.
    async fn live_children(
        &self,
        parent: &JobId,
        life: u32,
        after: JobSeq,
        limit: usize,
    ) -> Result<Vec<(JobSeq, JobId)>, StoreError>;

    /// DISPATCHED and RUNNING jobs bound to a session.
    async fn held(&self, session: &SessionId) -> Result<Vec<Job>, StoreError>;

    /// Which jobs are bound to these sessions (DISPATCHED and RUNNING ones), in the order asked and of each in commit order.
    async fn bound(&self, sessions: &[SessionId]) -> Result<Vec<(SessionId, JobId)>, StoreError>;

    /// Dead letters newest first.
    async fn dead_letters(&self, query: DeadLetterQuery) -> Result<Listing<DeadLetter>, StoreError>;

    /// Keeps log lines of attempts, the last [`LOG_LINES_MAX`](super::LOG_LINES_MAX) of each job. Lines of unknown jobs
    /// are dropped.
    async fn append_logs(&self, lines: Vec<LogLine>) -> Result<(), StoreError>;

    /// The last `limit` log lines of a job among those after a number, oldest first. 0 is before all of them.
    async fn logs(&self, id: &JobId, after: u64, limit: usize) -> Result<Vec<KeptLine>, StoreError>;
}

/// A decision to be made durable, with what must leave the system because of it.
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

/// A message for a sink outside of us, delivered at least once, in order per job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    pub sink: Arc<str>,
    pub body: Json,
}

#[derive(Clone, Debug)]
pub struct JobDetail {
    pub job: Job,
    pub events: Vec<JobEvent>,
    /// Also of a job whose result is held or quarantined: ask [`Job::result_is_out`] before showing it.
    pub result: Option<Json>,
}

#[derive(Clone, Debug)]
pub struct EventPage {
    pub events: Vec<JobEvent>,
    /// The state after the last event of the page.
    pub state: JobState,
}

/// The children of one life of a job.
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
    /// Only if it is out.
    pub result: Option<Json>,
}

impl ChildJob {
    /// How long what it says is: its result, or why there is none.
    pub fn bytes(&self) -> usize {
        let error = self.job.life.last_error.as_ref().map_or(0, |failure| failure.message.len());
        error + self.result.as_ref().map_or(0, |result| result.as_str().len())
    }
}

/// Some children of one life of a job.
#[derive(Clone, Debug)]
pub struct ChildQuery {
    pub parent: JobId,
    pub life: u32,
    /// Only later ones.
    pub after: JobSeq,
    pub limit: usize,
    /// How many bytes of results and error texts they may have together. The first is read in any case. A Store may count what
    /// lies beside the texts as well.
    pub bytes: usize,
}

/// Where a listing goes on; opaque to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub i64);

#[derive(Clone, Debug)]
pub struct Listing<T> {
    pub items: Vec<T>,
    pub next: Option<Cursor>,
}

/// Whether each wanted label is there with its value.
pub fn has_labels(labels: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(name, value)| labels.get(name) == Some(value))
}

#[derive(Clone, Debug, Default)]
pub struct JobQuery {
    pub tenant: Option<TenantId>,
    pub topic: Option<Topic>,
    pub state: Option<JobState>,
    /// Of the client, or of the platform (`safety_bypassed`).
    pub labels: BTreeMap<String, String>,
    /// Only children of this job, of any of its lives.
    pub parent: Option<JobId>,
    pub trace_id: Option<Arc<str>>,
    pub cursor: Option<Cursor>,
    pub limit: usize,
}

impl JobQuery {
    /// Whether a job has what no column of its row says: each wanted label, the client's own or one that the platform set, and the
    /// trace.
    pub fn fits(&self, job: &Job) -> bool {
        let labels = &job.request.labels;
        let labelled =
            |(name, value): (&String, &String)| labels.get(name) == Some(value) || job.life.has_platform_label(name, value);
        self.labels.iter().all(labelled) && self.trace_id.as_ref().is_none_or(|id| job.request.trace_id.as_ref() == Some(id))
    }
}

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

/// A log line as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLine {
    /// Grows with every line of the job, not always by one. What a reader resumes from.
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
