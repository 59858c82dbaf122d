//! A server for all tests, a schema of its own for each, and jobs to put into it.

#![allow(dead_code, reason = "each program uses its part")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lockgate_conformance::store::{Spoiling, Spoilt};
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
use lockgate_ports::{Activation, Clock, JobChange, SnapshotKind};
use lockgate_postgres::{ConnectOptions, PostgresStore, StoreTime, migrate};
use lockgate_testbed::SharedPostgres;
use tokio_postgres::{Client, Config, NoTls};

pub(crate) fn server() -> &'static SharedPostgres {
    static SERVER: OnceLock<SharedPostgres> = OnceLock::new();
    SERVER.get_or_init(|| SharedPostgres::get().unwrap())
}

/// A client of its own, to look at what the Store left.
pub(crate) async fn client(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A new, empty place in a server, not migrated.
pub(crate) async fn place(url: &str) -> Config {
    static PLACES: AtomicU64 = AtomicU64::new(0);
    // Other processes make places in the same server.
    let name = format!("place_{}_{}", std::process::id(), PLACES.fetch_add(1, Ordering::Relaxed));
    let mut config: Config = url.parse().unwrap();
    client(&config).await.batch_execute(&format!("CREATE SCHEMA {name}")).await.unwrap();
    config.options(format!("-c search_path={name}"));
    config
}

/// How a row is spoilt behind the Store's back.
pub(crate) fn spoils(config: &Config) -> impl Fn(Spoilt) -> Spoiling + Send + Sync + 'static {
    let config = config.clone();
    move |row: Spoilt| -> Spoiling {
        let config = config.clone();
        Box::pin(async move {
            let client = client(&config).await;
            match row {
                Spoilt::Job(id) => {
                    for table in ["jobs_hot", "jobs_done"] {
                        let sql = format!("UPDATE {table} SET life = '?' WHERE job_id = $1");
                        client.execute(&sql, &[&id.as_str()]).await.unwrap();
                    }
                }
                Spoilt::Text { job, old, new } => {
                    for table in ["jobs_hot", "jobs_done"] {
                        let sql = format!(
                            "UPDATE {table} SET life = replace(life, $2, $3), events = replace(events, $2, $3) WHERE job_id = $1"
                        );
                        client.execute(&sql, &[&job.as_str(), &old, &new]).await.unwrap();
                    }
                }
                Spoilt::Schedule { tenant, name } => {
                    let sql = "UPDATE schedules SET body = '?' WHERE tenant = $1 AND name = $2";
                    client.execute(sql, &[&tenant.as_str(), &&*name]).await.unwrap();
                }
            }
        })
    }
}

pub(crate) struct Stage {
    pub(crate) config: Config,
    pub(crate) clock: Arc<ManualClock>,
    limits: Limits,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::on(server().url()).await
    }

    pub(crate) async fn on(url: &str) -> Self {
        let config = place(url).await;
        migrate(&ConnectOptions::new(config.clone())).await.unwrap();
        Self { config, clock: Arc::new(ManualClock::default()), limits: Limits::default() }
    }

    pub(crate) fn options(&self) -> ConnectOptions {
        let store_time = StoreTime::Given(Arc::clone(&self.clock) as Arc<dyn Clock>);
        ConnectOptions { store_time, ..ConnectOptions::new(self.config.clone()) }
    }

    /// For tests of what is done, not of how soon: they share their machine.
    pub(crate) fn patient(&self) -> ConnectOptions {
        ConnectOptions { deadline: Duration::from_secs(20), ..self.options() }
    }

    pub(crate) async fn connect(&self) -> PostgresStore {
        PostgresStore::connect(self.options()).await.unwrap()
    }

    pub(crate) fn births(&self, name: &str, count: usize) -> Vec<JobChange> {
        let birth = |n: usize| {
            let payload = Some(Json::trusted(format!("\"{}\"", "p".repeat(n * 97 % 500))));
            let job_id = Some(format!("{name}-{n:05}"));
            self.birth(NewJob { job_id, topic: "job.echo".to_owned(), payload, ..NewJob::default() }, "unnamed")
        };
        (0..count).map(birth).collect()
    }

    pub(crate) fn birth(&self, new: NewJob, id: &str) -> JobChange {
        let request = JobRequest::check(new, &Caller::new("acme", "ann"), || id.into()).unwrap();
        let hash = request.hash();
        submit(Arc::new(request), hash, &self.env(BUILTIN_ALLOW)).into()
    }

    pub(crate) fn dispatch(&self, job: &Job, epoch: u64) -> JobChange {
        let to =
            Dispatch { session: "s".into(), epoch, worker: "worker".into(), assignment: 1, routing: RoutingId::default() };
        job.next(Input::Dispatch(to), &self.env(BUILTIN_ALLOW)).unwrap().into()
    }

    pub(crate) fn end(&self, job: &Job) -> JobChange {
        self.report(job, OutputStep::Pass)
    }

    /// The result waits for the scan.
    pub(crate) fn hold(&self, job: &Job) -> JobChange {
        self.report(job, OutputStep::Scan { hold: true })
    }

    fn report(&self, job: &Job, output: OutputStep) -> JobChange {
        let report = AttemptReport {
            token: job.life.attempt.token.clone(),
            started_at: None,
            outcome: Outcome::Succeeded { result: Json::trusted("1") },
            output,
        };
        job.next(Input::Reported(report), &self.env(BUILTIN_ALLOW)).unwrap().into()
    }

    pub(crate) fn cancel(&self, job: &Job) -> JobChange {
        let cancel = Input::Cancel { actor: "ann".into(), note: None };
        job.next(cancel, &self.env(BUILTIN_ALLOW)).unwrap().into()
    }

    pub(crate) fn activation(&self, id: &str, expected: u64) -> Activation {
        let audit = AuditEntry {
            at: self.clock.now(),
            tenant: "acme".into(),
            actor: "ann".into(),
            action: AuditAction::PolicyActivated,
            subject: id.into(),
            detail: Json::null(),
        };
        let kind = SnapshotKind::Policy;
        Activation { kind, id: id.into(), text: "rules: []".into(), actor: "ann".into(), expected, audit }
    }

    fn env(&self, policy: &str) -> Env<'_> {
        let verdict = Verdict::plain(Decision::Allow, "r", "because", policy.into());
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
