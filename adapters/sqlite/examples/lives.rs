//! Whole job lives a second through the Store's `commit`: submit, dispatch, end; one caller, one batch at a time.
//!
//! `cargo run --release -p lockgate-sqlite --example lives [jobs] [batch]` prints one line per batch size. Time spent deciding
//! is left out; what remains is the Store and this disk.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId, uuid_v7};
use lockgate_core::job::{AttemptReport, Dispatch, Env, Input, Job, Outcome, submit};
use lockgate_core::limits::Limits;
use lockgate_core::output::OutputStep;
use lockgate_core::pools::RoutingId;
use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
use lockgate_core::retry::Jitter;
use lockgate_core::verdict::{Decision, Judgement, Verdict};
use lockgate_core::worker::WorkerProfile;
use lockgate_model::ManualClock;
use lockgate_ports::{Clock, JobChange, JobStore, Sessions, StoreError};
use lockgate_sqlite::SqliteStore;
use tokio::time::Instant;

type ProbeError = Box<dyn std::error::Error>;

struct Probe {
    store: SqliteStore,
    clock: Arc<ManualClock>,
    limits: Limits,
    judgement: Judgement,
    epoch: u64,
    minted: u64,
}

/// Time in `commit`, by step.
#[derive(Default)]
struct Spent {
    submit: Duration,
    dispatch: Duration,
    end: Duration,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ProbeError> {
    let jobs: usize = std::env::args().nth(1).map_or(Ok(200_000), |jobs| jobs.parse())?;
    println!("{:>6} {:>10} {:>12} {:>12} {:>12} {:>12}", "batch", "jobs", "submits/s", "dispatches/s", "ends/s", "lives/s");
    let only: Option<usize> = std::env::args().nth(2).map(|batch| batch.parse()).transpose()?;
    for batch in only.map_or_else(|| vec![1, 100, 1_000], |batch| vec![batch]) {
        let jobs = jobs.min(batch * 2_000);
        let folder = tempfile::tempdir()?;
        let mut probe = Probe::open(folder.path()).await?;
        let mut spent = Spent::default();
        for _ in 0..jobs.div_ceil(batch) {
            probe.lives(batch, &mut spent).await?;
        }
        let rate = |time: Duration| jobs as f64 / time.as_secs_f64();
        let whole = spent.submit + spent.dispatch + spent.end;
        println!(
            "{batch:>6} {jobs:>10} {:>12.0} {:>12.0} {:>12.0} {:>12.0}",
            rate(spent.submit),
            rate(spent.dispatch),
            rate(spent.end),
            rate(whole)
        );
    }
    Ok(())
}

impl Probe {
    async fn open(folder: &std::path::Path) -> Result<Self, ProbeError> {
        let clock = Arc::new(ManualClock::default());
        let store = SqliteStore::open(folder, Arc::clone(&clock) as Arc<dyn Clock>)?;
        let verdict = Verdict::plain(Decision::Allow, "default", "no policy configured", "builtin:allow".into());
        let profile = WorkerProfile {
            worker: "probe".into(),
            pool: "default".into(),
            topics: vec!["*".into()],
            capabilities: [].into(),
            labels: [].into(),
            slots: 1,
            in_process: true,
            lost_after_ms: None,
            owner: None,
        };
        let epoch = store.attach(&"session".into(), &"edge".into(), &profile).await??.epoch;
        let judgement = Judgement::Decided(Arc::new(verdict));
        Ok(Self { store, clock, limits: Limits::default(), judgement, epoch, minted: 0 })
    }

    /// Brings `batch` jobs through their whole life.
    async fn lives(&mut self, batch: usize, spent: &mut Spent) -> Result<(), ProbeError> {
        self.clock.advance(Duration::from_millis(1));
        let births: Vec<JobChange> = (0..batch).map(|_| self.birth()).collect::<Result<_, _>>()?;
        let jobs = self.commit(births, &mut spent.submit).await?;
        let dispatch = Dispatch {
            session: "session".into(),
            epoch: self.epoch,
            worker: "probe".into(),
            assignment: 1,
            routing: RoutingId::default(),
        };
        let sent = self.decide(&jobs, |_| Input::Dispatch(dispatch.clone()))?;
        let jobs = self.commit(sent, &mut spent.dispatch).await?;
        let now = self.clock.now();
        let ended = self.decide(&jobs, |job| {
            let outcome = Outcome::Succeeded { result: Json::trusted(r#"{"ok":true}"#) };
            Input::Reported(AttemptReport {
                token: job.life.attempt.token.clone(),
                started_at: Some(now),
                outcome,
                output: OutputStep::Pass,
            })
        })?;
        self.commit(ended, &mut spent.end).await?;
        Ok(())
    }

    fn birth(&mut self) -> Result<JobChange, ProbeError> {
        self.minted += 1;
        let random: [u8; 8] = self.minted.to_be_bytes();
        let id = uuid_v7(
            self.clock.now(),
            [0, 0, random[0], random[1], random[2], random[3], random[4], random[5], random[6], random[7]],
        );
        let payload = Json::trusted(format!("{{\"n\":{},\"text\":\"{}\"}}", self.minted, "x".repeat(100)));
        let new = NewJob { topic: "job.noop".to_owned(), payload: Some(payload), ..NewJob::default() };
        let caller = Caller::new("default", "anonymous");
        let request = JobRequest::check(new, &caller, || JobId::from(id)).map_err(|errors| format!("{errors:?}"))?;
        let hash = request.hash();
        Ok(submit(Arc::new(request), hash, &self.env()).into())
    }

    fn decide(&self, jobs: &[Job], input: impl Fn(&Job) -> Input) -> Result<Vec<JobChange>, ProbeError> {
        jobs.iter().map(|job| Ok(job.next(input(job), &self.env())?.into())).collect()
    }

    fn env(&self) -> Env<'_> {
        Env {
            now: self.clock.now(),
            token: AttemptToken::from(format!("{:032x}", self.minted)),
            jitter: Jitter::from_bits(0),
            limits: &self.limits,
            timeouts: Arc::default(),
            judgement: self.judgement.clone(),
        }
    }

    /// Commits and returns the jobs as they are now.
    async fn commit(&self, changes: Vec<JobChange>, spent: &mut Duration) -> Result<Vec<Job>, ProbeError> {
        let jobs: Vec<Job> = changes.iter().map(|change| change.transition.job.clone()).collect();
        let start = Instant::now();
        let results: Result<Vec<_>, StoreError> = self.store.commit(changes).await;
        *spent += start.elapsed();
        jobs.into_iter().zip(results?).map(|(job, seq)| Ok(Job { seq: seq?, ..job })).collect()
    }
}
