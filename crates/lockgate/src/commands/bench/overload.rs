//! Ten times more load than capacity: how long admitted jobs wait, and what happens to the refused ones.
//!
//! The capacity is set by the worker, which sleeps, so that the figures measure admission and not the machine.

use std::sync::Arc;
use std::time::Duration;

use lockgate_proto::v1;
use lockgate_proto::v1::submit_jobs_response::item::Item;
use lockgate_worker::{Worker, WorkerError};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::report::{BenchReport, percentile};
use super::server::{Bed, BenchServer};
use super::traffic::TrafficClient;
use crate::error::CliError;

const TOPIC: &str = "bench.overload";
const SLOTS: u32 = 8;
const NAP: Duration = Duration::from_millis(20);
/// Jobs a second that the worker can do.
const CAPACITY: u64 = 400;
/// Submit calls a second.
const CALLS: u64 = 50;
const QUOTAS: &str = "ceilings: {wait: 1s}\n";
/// One job in so many is critical.
const CRITICAL_EVERY: u64 = 100;
/// The most refused jobs that are sent again after their `Retry-After`.
const OBEDIENT_MAX: usize = 200;

pub(super) async fn measure(bed: &Bed, quick: bool, report: &mut BenchReport) -> Result<(), CliError> {
    let seconds = if quick { 4 } else { 30 };
    report.note(&format!(
        "overload: {CAPACITY} jobs/s can be done, as many and ten times as many are offered for {seconds} s"
    ));
    let server = BenchServer::start_on(bed).await?;
    let (client, began) = (server.client().await?, Instant::now());
    put_quotas(&server).await?;
    let sleeper = Sleeper::attach(&server, began);
    let storm = Storm { client: client.clone(), began };
    // The pace must be measured before submits can be refused by it.
    storm.blow(CAPACITY, 3).await?;
    let full = storm.blow(CAPACITY * 6 / 5, seconds).await?;
    let at_capacity = sleeper.waits(&client).await?;
    let before = server.usage();
    let tenfold = storm.blow(CAPACITY * 10, seconds).await?;
    let after = server.usage();
    let in_storm = sleeper.waits(&client).await?;
    let kept = storm.come_back(&tenfold).await?;
    sleeper.leave().await?;

    let name = |figure: &str| format!("{}.overload_{figure}", bed.name);
    report.add(name("full_wait_p99_ms"), percentile(&at_capacity, 0.99), "ms, offered 1.2 times what can be done");
    report.add(name("wait_p99_ms"), percentile(&in_storm, 0.99), "ms, offered 10 times");
    report.add(name("wait_ratio"), percentile(&in_storm, 0.99) / percentile(&at_capacity, 0.99).max(1.0), "times");
    report.add(name("accepted_per_s"), tenfold.accepted as f64 / seconds as f64, "jobs/s");
    report.add(name("critical_accepted"), tenfold.critical_share(), "of critical jobs");
    report.add(name("refused_full"), full.refused as f64 / seconds as f64, "jobs/s, offered 1.2 times");
    report.add(name("came_back"), kept, "of those who came back as told were let in");
    report.add(name("rss_growth_mb"), after.rss_megabytes - before.rss_megabytes, "MB");
    Ok(())
}

async fn put_quotas(server: &BenchServer) -> Result<(), CliError> {
    let channel = super::traffic::channel(&server.api).await?;
    let request = v1::ActivateConfigRequest {
        kind: v1::ConfigKind::Quotas.into(),
        file: "quotas.yaml".to_owned(),
        text: QUOTAS.to_owned(),
        expected_version: None,
    };
    let activated = v1::pools_client::PoolsClient::new(channel).activate_config(request).await;
    activated.map(drop).map_err(|status| CliError::from_status(&status, &server.api))
}

/// A worker whose jobs take a known time, and how long each waited for it.
struct Sleeper {
    waits: Arc<Mutex<Vec<f64>>>,
    stop: oneshot::Sender<()>,
    working: JoinHandle<Result<(), WorkerError>>,
}

impl Sleeper {
    fn attach(server: &BenchServer, began: Instant) -> Self {
        let waits: Arc<Mutex<Vec<f64>>> = Arc::default();
        let taken = waits.clone();
        let worker = Worker::connect(server.api.as_str()).slots(SLOTS).prefetch(0).handle(TOPIC, move |_, payload| {
            let (now, sent, taken) = (began.elapsed(), payload.json::<f64>(), taken.clone());
            async move {
                taken.lock().push(now.as_secs_f64() * 1e3 - sent?);
                tokio::time::sleep(NAP).await;
                Ok(())
            }
        });
        let (stop, stopping) = oneshot::channel::<()>();
        let working = tokio::spawn(worker.run_until(async move {
            let _ = stopping.await;
        }));
        Self { waits, stop, working }
    }

    /// How long jobs waited since the last call, in milliseconds, once all of them are done.
    async fn waits(&self, client: &TrafficClient) -> Result<Vec<f64>, CliError> {
        client.until(|queues| queues.live == 0).await?;
        let mut waits = std::mem::take(&mut *self.waits.lock());
        waits.sort_by(f64::total_cmp);
        Ok(waits)
    }

    async fn leave(self) -> Result<(), CliError> {
        drop(self.stop);
        let ended = self.working.await.map_err(|error| CliError::Server(error.to_string()))?;
        ended.map_err(|error| CliError::Server(error.to_string()))
    }
}

#[derive(Default)]
struct OverloadOutcome {
    accepted: u64,
    refused: u64,
    critical: (u64, u64),
    /// The retry times of some of the refused jobs.
    back_at: Vec<Instant>,
}

impl OverloadOutcome {
    fn critical_share(&self) -> f64 {
        self.critical.0 as f64 / (self.critical.1 as f64).max(1.0)
    }

    fn count(&mut self, n: u64, item: Option<&Item>) {
        let accepted = matches!(item, Some(Item::Job(_)));
        self.accepted += u64::from(accepted);
        self.refused += u64::from(!accepted);
        if is_critical(n) {
            self.critical = (self.critical.0 + u64::from(accepted), self.critical.1 + 1);
        }
        if let Some(Item::Error(error)) = item {
            let wait = Duration::from_millis(error.retry_after_ms.unwrap_or_default());
            self.back_at.push(Instant::now() + wait);
        }
    }
}

const fn is_critical(n: u64) -> bool {
    n.is_multiple_of(CRITICAL_EVERY)
}

/// Submits jobs on a timetable, regardless of the answers.
struct Storm {
    client: TrafficClient,
    began: Instant,
}

impl Storm {
    async fn blow(&self, rate: u64, seconds: u64) -> Result<OverloadOutcome, CliError> {
        let (size, start) = (rate / CALLS, Instant::now());
        let mut calls = JoinSet::new();
        for call in 0..CALLS * seconds {
            tokio::time::sleep_until(start + Duration::from_secs_f64(call as f64 / CALLS as f64)).await;
            let first = call * size;
            let jobs = (first..first + size).map(|n| self.job(n)).collect();
            let (mut stub, request) = (self.client.stub(), self.client.request(v1::SubmitJobsRequest { jobs }));
            calls.spawn(async move { (first, stub.submit_jobs(request).await) });
        }
        let mut outcome = OverloadOutcome::default();
        while let Some(answered) = calls.join_next().await {
            let (first, answer) = answered.map_err(|error| CliError::Server(error.to_string()))?;
            let answer = answer.map_err(|status| CliError::Server(status.to_string()))?.into_inner();
            for (n, item) in (first..).zip(&answer.jobs) {
                outcome.count(n, item.item.as_ref());
            }
        }
        Ok(outcome)
    }

    /// Sends some of the refused jobs again at their retry times, after the overload. Returns the share that was admitted.
    async fn come_back(&self, outcome: &OverloadOutcome) -> Result<f64, CliError> {
        let now = Instant::now();
        let mut back_at: Vec<Instant> = outcome.back_at.iter().copied().filter(|at| *at > now).collect();
        back_at.sort();
        back_at.truncate(OBEDIENT_MAX);
        let mut accepted = 0;
        for at in &back_at {
            tokio::time::sleep_until(*at).await;
            let request = self.client.request(v1::SubmitJobsRequest { jobs: vec![self.job(1)] });
            let answer = self.client.stub().submit_jobs(request).await;
            let answer = answer.map_err(|status| CliError::Server(status.to_string()))?.into_inner();
            accepted += usize::from(matches!(answer.jobs.first().and_then(|item| item.item.as_ref()), Some(Item::Job(_))));
        }
        Ok(accepted as f64 / (back_at.len() as f64).max(1.0))
    }

    fn job(&self, n: u64) -> v1::NewJob {
        let sent_ms = self.began.elapsed().as_secs_f64() * 1e3;
        let priority = if is_critical(n) { v1::Priority::Critical } else { v1::Priority::Default };
        v1::NewJob {
            topic: TOPIC.to_owned(),
            payload_json: format!("{sent_ms}").into_bytes().into(),
            priority: priority.into(),
            ..v1::NewJob::default()
        }
    }
}
