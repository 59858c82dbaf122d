//! The rows of the in-memory Store.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::audit::{AuditRow, Block};
use lockgate_core::dag::{NodeKey, NodeRun, RunHead};
use lockgate_core::ids::{EdgeId, JobId, JobSeq, RunId, SessionId, TenantId};
use lockgate_core::job::{DeadLetter, Job, JobEvent};
use lockgate_core::request::{Json, RequestHash};
use lockgate_core::schedule::{Schedule, Slot, SlotKey};
use lockgate_core::time::Timestamp;
use lockgate_core::worker::WorkerProfile;

use lockgate_ports::store::{Active, DagRow, KeptLine, MemoKey, OutboxRow, SnapshotKind, StoreError, Unreadable};

#[derive(Clone, Default)]
pub(super) struct Data {
    pub(super) jobs: BTreeMap<JobSeq, JobRow>,
    /// The last sequence number of a job, never reused.
    pub(super) last_seq: i64,
    pub(super) ids: BTreeMap<JobId, JobSeq>,
    pub(super) keys: BTreeMap<(TenantId, Arc<str>), KeyRow>,
    pub(super) letters: BTreeMap<i64, (JobSeq, DeadLetter)>,
    pub(super) last_letter: i64,
    pub(super) outbox: BTreeMap<i64, OutboxRow>,
    pub(super) last_outbox: i64,
    pub(super) logs: BTreeMap<JobSeq, VecDeque<KeptLine>>,
    pub(super) edges: BTreeMap<EdgeId, StoredEdge>,
    pub(super) sessions: BTreeMap<SessionId, StoredSession>,
    pub(super) leases: BTreeMap<String, Lease>,
    pub(super) tries: Option<Arc<str>>,
    /// Every activation of a kind, oldest first.
    pub(super) activations: BTreeMap<SnapshotKind, Vec<Active>>,
    pub(super) audit: Vec<AuditRow>,
    pub(super) blocks: Vec<Block>,
    /// Every version of a definition, oldest first.
    pub(super) dags: BTreeMap<(TenantId, Arc<str>), Vec<DagRow>>,
    pub(super) runs: BTreeMap<RunId, RunRow>,
    /// The last number given to a run.
    pub(super) last_run: i64,
    pub(super) run_keys: BTreeMap<(TenantId, Arc<str>), TakenKey>,
    /// The job that last did the work of a key, and until when its result is valid.
    pub(super) memos: BTreeMap<MemoKey, (JobSeq, Timestamp)>,
    pub(super) news: BTreeMap<i64, UnheardNews>,
    pub(super) last_news: i64,
    pub(super) schedules: BTreeMap<ScheduleRowKey, Schedule>,
    /// Slots, also of deleted schedules.
    pub(super) slots: BTreeMap<ScheduleRowKey, SlotRows>,
    pub(super) credentials: BTreeMap<CredentialId, Credential>,
    /// Tenants that had a job or a run since their last erasure.
    pub(super) tenants: BTreeSet<TenantId>,
    /// Jobs, runs and schedules whose rows cannot be decoded.
    pub(super) spoilt: BTreeSet<JobId>,
    pub(super) spoilt_runs: BTreeSet<RunId>,
    pub(super) spoilt_schedules: BTreeSet<ScheduleRowKey>,
    pub(super) unreadable: Arc<Unreadable>,
    /// Jobs, runs and schedules whose changes are refused.
    pub(super) refused: BTreeSet<JobId>,
    pub(super) refused_runs: BTreeSet<RunId>,
    pub(super) refused_schedules: BTreeSet<ScheduleRowKey>,
    /// How often one of them was not.
    pub(super) refusals: usize,
}

/// Why.
pub(super) const REFUSED: &str = "a trigger is in the way";

/// Tenant and name.
pub(super) type ScheduleRowKey = (TenantId, Arc<str>);

/// Of one schedule.
#[derive(Clone, Default)]
pub(super) struct SlotRows {
    /// With their places.
    pub(super) rows: BTreeMap<SlotKey, (i64, Slot)>,
    pub(super) listed: BTreeSet<(i64, SlotKey)>,
}

#[derive(Clone)]
pub(super) struct JobRow {
    pub(super) job: Job,
    pub(super) events: Vec<JobEvent>,
    pub(super) result: Option<Json>,
    /// SCHEDULED for a time that had not come when it was committed.
    pub(super) delayed: bool,
}

#[derive(Clone)]
pub(super) struct RunRow {
    /// Its place in lists.
    pub(super) no: i64,
    pub(super) head: RunHead,
    /// With the version of the run that last wrote the node.
    pub(super) nodes: BTreeMap<NodeKey, (i64, NodeRun)>,
    pub(super) ended_at: Option<Timestamp>,
}

/// The key of a run.
#[derive(Clone)]
pub(super) struct TakenKey {
    pub(super) run: RunId,
    pub(super) hash: RequestHash,
    pub(super) free_at: Timestamp,
}

/// A message that its run has not taken yet.
#[derive(Clone)]
pub(super) struct UnheardNews {
    pub(super) run: RunId,
    pub(super) of: NewsSource,
    pub(super) at: Timestamp,
}

#[derive(Clone)]
pub(super) enum NewsSource {
    Job(JobSeq),
    Run(RunId),
}

/// An idempotency key and the job it names.
#[derive(Clone)]
pub(super) struct KeyRow {
    pub(super) seq: JobSeq,
    pub(super) free_at: Timestamp,
}

#[derive(Clone)]
pub(super) struct StoredEdge {
    pub(super) expires_at: Timestamp,
    pub(super) closed_at: Option<Timestamp>,
}

#[derive(Clone)]
pub(super) struct StoredSession {
    pub(super) epoch: u64,
    pub(super) edge: EdgeId,
    pub(super) profile: WorkerProfile,
    pub(super) closed_at: Option<Timestamp>,
    pub(super) sent_away: bool,
}

/// The epoch outlives its holder, so that it never goes back.
#[derive(Clone)]
pub(super) struct Lease {
    pub(super) holder: Option<String>,
    pub(super) epoch: u64,
    pub(super) expires_at: Timestamp,
}

impl Data {
    pub(super) fn row(&self, id: &JobId) -> Option<&JobRow> {
        self.jobs.get(self.ids.get(id)?)
    }

    /// Asked of what a list is about to show.
    pub(super) fn is_readable(&self, row: &JobRow) -> bool {
        let id = &row.job.request.job_id;
        let spoilt = self.spoilt.contains(id);
        if spoilt {
            self.unreadable.tell(&format!("job {id}"), &"it was spoilt");
        }
        !spoilt
    }

    /// Asked of a name that a caller gives.
    pub(super) fn decode(&self, ids: &[JobId]) -> Result<(), StoreError> {
        match ids.iter().find(|id| self.spoilt.contains(*id)) {
            Some(id) => Err(StoreError::Corrupt(format!("job {id} was spoilt"))),
            None => Ok(()),
        }
    }

    pub(super) fn decode_runs(&self, ids: &[RunId]) -> Result<(), StoreError> {
        match ids.iter().find(|id| self.spoilt_runs.contains(*id)) {
            Some(id) => Err(StoreError::Corrupt(format!("run {id} was spoilt"))),
            None => Ok(()),
        }
    }

    pub(super) fn holds_jobs(&self, session: &SessionId) -> bool {
        self.jobs.values().any(|row| row.held_by(session))
    }
}

impl JobRow {
    pub(super) fn held_by(&self, session: &SessionId) -> bool {
        self.job.holder().is_some_and(|binding| binding.session == *session)
    }
}
