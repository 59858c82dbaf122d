//! A data folder, a clock, and jobs to put into it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::job::{AttemptReport, Dispatch, Env, Input, Job, Outcome, submit};
use lockgate_core::limits::Limits;
use lockgate_core::output::OutputStep;
use lockgate_core::pools::RoutingId;
use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
use lockgate_core::retry::Jitter;
use lockgate_core::verdict::{BUILTIN_ALLOW, Decision, Judgement, Verdict};
use lockgate_core::worker::WorkerProfile;
use lockgate_model::ManualClock;
use lockgate_ports::{Activation, Clock, JobChange, JobQuery, JobStore, SnapshotKind};
use lockgate_sqlite::SqliteStore;

pub(crate) struct Stage {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    limits: Limits,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, clock: Arc::new(ManualClock::default()), limits: Limits::default() }
    }

    pub(crate) fn open(&self) -> SqliteStore {
        SqliteStore::open(self.folder(), self.clock()).unwrap()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    pub(crate) fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }

    /// Births and ends, two changes per job.
    pub(crate) fn ended_lives(&self, name: &str, count: usize) -> Vec<JobChange> {
        let births = births(self, name, count);
        let end = |birth: JobChange| {
            let cancel = Input::Cancel { actor: "ann".into(), note: None };
            let ended = birth.transition.job.next(cancel, &self.env()).unwrap();
            [birth, ended.into()]
        };
        births.into_iter().flat_map(end).collect()
    }

    pub(crate) fn dispatch(&self, job: &Job, epoch: u64) -> JobChange {
        let to =
            Dispatch { session: "s".into(), epoch, worker: "worker".into(), assignment: 1, routing: RoutingId::default() };
        job.next(Input::Dispatch(to), &self.env()).unwrap().into()
    }

    /// Sent to a worker, which succeeds; the result waits for the scan.
    pub(crate) fn held(&self, job: &Job, epoch: u64) -> Vec<JobChange> {
        let sent = self.dispatch(job, epoch);
        let report = AttemptReport {
            token: sent.transition.job.life.attempt.token.clone(),
            started_at: None,
            outcome: Outcome::Succeeded { result: Json::trusted("1") },
            output: OutputStep::Scan { hold: true },
        };
        let held = sent.transition.job.next(Input::Reported(report), &self.env()).unwrap();
        vec![sent, held.into()]
    }

    /// The first policy.
    pub(crate) fn activation(&self, id: &str) -> Activation {
        let audit = AuditEntry {
            at: self.clock.now(),
            tenant: "acme".into(),
            actor: "ann".into(),
            action: AuditAction::PolicyActivated,
            subject: id.into(),
            detail: Json::null(),
        };
        let kind = SnapshotKind::Policy;
        Activation { kind, id: id.into(), text: "rules: []".into(), actor: "ann".into(), expected: 0, audit }
    }

    /// Jobs the Store lists, over all pages.
    pub(crate) async fn count(&self, store: &SqliteStore) -> u64 {
        let (mut count, mut query) = (0, JobQuery { limit: 1_000, ..JobQuery::default() });
        loop {
            let page = store.list(query.clone()).await.unwrap();
            count += page.items.len() as u64;
            query.cursor = page.next;
            if query.cursor.is_none() {
                return count;
            }
        }
    }

    pub(crate) fn env(&self) -> Env<'_> {
        let verdict = Verdict::plain(Decision::Allow, "r", "because", BUILTIN_ALLOW.into());
        Env {
            now: self.clock.now(),
            token: "token".into(),
            jitter: Jitter::from_bits(0),
            limits: &self.limits,
            timeouts: Arc::default(),
            judgement: Judgement::Decided(Arc::new(verdict)),
        }
    }
}

pub(crate) fn births(stage: &Stage, name: &str, count: usize) -> Vec<JobChange> {
    let caller = Caller::new("acme", "ann");
    let birth = |n: usize| {
        let payload = Some(Json::trusted(format!("\"{}\"", "p".repeat(n * 97 % 3_000))));
        let new =
            NewJob { job_id: Some(format!("{name}-{n}")), topic: format!("job.t{}", n % 3), payload, ..NewJob::default() };
        let request = JobRequest::check(new, &caller, || "unnamed".into()).unwrap();
        let hash = request.hash();
        submit(Arc::new(request), hash, &stage.env()).into()
    };
    (0..count).map(birth).collect()
}

pub(crate) fn profile() -> WorkerProfile {
    WorkerProfile {
        worker: "worker".into(),
        pool: "default".into(),
        topics: vec!["*".into()],
        capabilities: [].into(),
        labels: [].into(),
        slots: 1,
        in_process: false,
        lost_after_ms: None,
        owner: None,
    }
}
