//! What an erased tenant leaves on the disk, and counts that an older schema did not keep.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::audit::AuditEntry;
use lockgate_core::dag::{RunHead, RunState};
use lockgate_core::job::{AttemptReport, Dispatch, Input, Job, Outcome, Scanned, Transition, submit};
use lockgate_core::output::{OutputDecision, OutputStep, OutputVerdict};
use lockgate_core::pools::RoutingId;
use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
use lockgate_ports::store::{NewDag, RunChange, RunStore};
use lockgate_ports::{JobStore, LogLine, Sessions, TenantStore, Upkeep};
use lockgate_sqlite::SqliteStore;

use crate::stage::{Stage, profile};

/// What only the tenant that goes has written.
const MARK: &str = "heron-4711";

struct Life<'s> {
    stage: &'s Stage,
    store: SqliteStore,
    epoch: u64,
}

impl<'s> Life<'s> {
    async fn begin(stage: &'s Stage) -> Self {
        let store = stage.open();
        let epoch = store.attach(&"s".into(), &"edge".into(), &profile()).await.unwrap().unwrap().epoch;
        Self { stage, store, epoch }
    }

    fn birth(&self, tenant: &str, n: usize) -> Transition {
        let new = NewJob {
            job_id: Some(format!("{tenant}-{n}")),
            topic: "job.echo".to_owned(),
            payload: Some(text(tenant, n * 131 % 7_000)),
            idempotency_key: Some(format!("{}-{n}", word(tenant))),
            ..NewJob::default()
        };
        let request = JobRequest::check(new, &Caller::new(tenant, "ann"), || "unnamed".into()).unwrap();
        let hash = request.hash();
        submit(Arc::new(request), hash, &self.stage.env())
    }

    async fn load(&self, tenant: &str, n: usize) -> Job {
        self.store.load(&[format!("{tenant}-{n}").as_str().into()]).await.unwrap().pop().flatten().unwrap()
    }

    async fn step(&self, job: &Job, input: Input) -> Job {
        let next = job.next(input, &self.stage.env()).unwrap();
        self.store.commit(vec![next.into()]).await.unwrap()[0].clone().unwrap();
        self.store.load(std::slice::from_ref(&job.request.job_id)).await.unwrap().pop().flatten().unwrap()
    }

    /// Brings a job to its end, by one of several ways.
    async fn end(&self, tenant: &str, n: usize) {
        let job = self.load(tenant, n).await;
        let (session, worker, routing) = ("s".into(), "worker".into(), RoutingId::default());
        let to = Dispatch { session, epoch: self.epoch, worker, assignment: 1, routing };
        let sent = self.step(&job, Input::Dispatch(to)).await;
        let line = format!("says {}", word(tenant));
        let line =
            LogLine { job_id: job.request.job_id.clone(), attempt: 1, at: self.stage.clock().now(), line: line.into() };
        self.store.append_logs(vec![line]).await.unwrap();
        let output = if n.is_multiple_of(5) { OutputStep::Scan { hold: true } } else { OutputStep::Pass };
        let outcome = match n % 3 {
            0 => Outcome::FailedFatal { error: format!("broken {}", word(tenant)).into() },
            _ => Outcome::Succeeded { result: text(tenant, n * 37 % 5_000) },
        };
        let report = AttemptReport { token: sent.life.attempt.token.clone(), started_at: None, outcome, output };
        let ended = self.step(&sent, Input::Reported(report)).await;
        if ended.in_output_check() {
            let attempt = ended.life.output.as_ref().unwrap().attempt;
            self.step(&ended, Input::Scanned(Scanned { attempt, verdict: redacted(), result: Json::null() })).await;
        } else if n.is_multiple_of(6) {
            let again = self.step(&ended, Input::Replay { actor: "ann".into() }).await;
            self.step(&again, Input::Cancel { actor: "ann".into(), note: None }).await;
        }
    }

    async fn define(&self, tenant: &str) {
        let dag = NewDag {
            tenant: tenant.into(),
            name: "etl".into(),
            snapshot: "s".into(),
            text: word(tenant).into(),
            actor: "ann".into(),
            pins: [].into(),
            audit: audit(),
        };
        self.store.put_dag(dag).await.unwrap();
    }
}

fn redacted() -> Arc<OutputVerdict> {
    Arc::new(OutputVerdict {
        decision: OutputDecision::Redact,
        rule: "o1".into(),
        reason: "a key".into(),
        snapshot: "builtin:allow".into(),
        findings: Vec::new(),
        redacted: Some(Json::trusted("1")),
    })
}

fn word(tenant: &str) -> &str {
    if tenant == "acme" { MARK } else { "other" }
}

fn text(tenant: &str, bytes: usize) -> Json {
    Json::trusted(format!("\"{}\"", format!("{} ", word(tenant)).repeat(1 + bytes / 11)))
}

fn audit() -> AuditEntry {
    serde_json::from_str(r#"{"at":0,"tenant":"ops","actor":"ann","action":"job_denied","subject":"acme"}"#).unwrap()
}

/// How often the files of the Store say something.
fn said(stage: &Stage, what: &str) -> usize {
    let files = std::fs::read_dir(stage.folder()).unwrap().map(|entry| entry.unwrap().path());
    let count = |path| std::fs::read(path).unwrap().windows(what.len()).filter(|at| *at == what.as_bytes()).count();
    files.filter(|path| path.is_file()).map(count).sum()
}

async fn erase(store: &SqliteStore, limit: usize) {
    for _ in 0..100 {
        let erased = store.erase(&"acme".into(), limit, &audit()).await.unwrap();
        assert_eq!((erased.live_jobs, erased.live_runs), (0, 0));
        if erased.done {
            return;
        }
    }
    panic!("it never ended");
}

#[tokio::test]
async fn what_an_erased_tenant_said_is_in_no_file() {
    let stage = Stage::new();
    let life = Life::begin(&stage).await;
    for n in 0..120 {
        let births = ["acme", "other"].map(|tenant| life.birth(tenant, n).into());
        life.store.commit(births.into()).await.unwrap();
    }
    // Ended out of their order, so that rows lie where others were before.
    for n in (0..120).map(|n| n * 7 % 120) {
        life.end("acme", n).await;
        life.end("other", n).await;
    }
    life.define("acme").await;
    stage.advance(Duration::from_secs(1));
    assert_eq!(life.store.prune(Duration::ZERO, 40).await.unwrap(), 40);
    assert!(said(&stage, MARK) > 1_000);
    erase(&life.store, 25).await;
    assert_eq!(said(&stage, MARK), 0, "while the Store is open");
    assert_eq!(life.store.usage(&["other".into()]).await.unwrap()[0].ended, 100);
    drop(life);
    assert_eq!(said(&stage, MARK), 0, "and after it was closed");
}

fn run(id: &str, state: RunState) -> RunChange {
    let text = r#"{"id":"run","dag":{"name":"etl","version":1},"tenant":"acme","actor":"ann","params":"{}","began_at":0}"#;
    let head: RunHead = serde_json::from_str(text).unwrap();
    let head = RunHead { id: id.into(), version: 1, state, ..head };
    RunChange {
        head,
        nodes: Vec::new(),
        jobs: Vec::new(),
        heard: Vec::new(),
        key: None,
        audit: Vec::new(),
        outbox: Vec::new(),
    }
}

#[tokio::test]
async fn tallies_are_filled_from_what_an_older_schema_has() {
    let stage = Stage::new();
    let life = Life::begin(&stage).await;
    for n in 0..9 {
        let births = ["acme", "other"].map(|tenant| life.birth(tenant, n).into());
        life.store.commit(births.into()).await.unwrap();
        if n < 6 {
            life.end("acme", n).await;
        }
    }
    let held = stage.held(&life.load("other", 0).await, life.epoch);
    assert!(life.store.commit(held).await.unwrap().iter().all(Result::is_ok));
    let runs = vec![run("a", RunState::Running), run("b", RunState::Paused), run("c", RunState::Failed)];
    assert!(life.store.advance(runs).await.unwrap().iter().all(Result::is_ok));
    let before = life.store.tenants(None, 10).await.unwrap();
    let acme = before[0].1;
    assert_eq!((before.len(), acme.live, acme.ended, acme.runs), (2, 3, 6, 2));
    assert!(acme.stored_bytes > 3_000 && before[1].1.live == 9, "{before:?}");
    drop(life);
    let conn = rusqlite::Connection::open(stage.folder().join("lockgate.db")).unwrap();
    let back = "DROP TABLE placing_tries; DROP TABLE tallies; DROP TABLE blanks; DROP TABLE children; DROP TABLE memos; DROP INDEX runs_over; DROP INDEX outbox_job; ALTER TABLE outbox DROP COLUMN at;
        ALTER TABLE sessions DROP COLUMN sent_away_at; ALTER TABLE book DROP COLUMN installation; ALTER TABLE book DROP COLUMN commits;
        ALTER TABLE book DROP COLUMN accepted_loss; UPDATE schema_version SET version = 7";
    conn.execute_batch(back).unwrap();
    drop(conn);
    // Versions of that time had none.
    std::fs::remove_file(stage.folder().join("commit.mark")).unwrap();
    let store = stage.open();
    assert_eq!(store.tenants(None, 10).await.unwrap(), before);
    stage.advance(Duration::from_secs(1));
    assert_eq!(store.prune(Duration::ZERO, 100).await.unwrap(), 6 + 1);
    let after = store.usage(&["acme".into()]).await.unwrap()[0];
    assert_eq!((after.live, after.ended, after.runs), (3, 0, 2));
}
