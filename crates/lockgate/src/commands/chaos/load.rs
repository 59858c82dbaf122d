//! A client that submits continuously, at any gateway that answers, and repeats unacknowledged calls.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate_ports::clock::Clock;
use lockgate_proto::v1;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tonic::{Code, Status};

use super::super::bench::traffic::TrafficClient;
use super::work::{DAG, DAG_TEXT, WorkKind};
use crate::clock::SystemClock;
use crate::error::CliError;

/// Jobs in one call, and how often there is one: a load that a busy machine carries without falling behind.
const BATCH: usize = 10;
const EVERY: Duration = Duration::from_millis(50);
const RUN_EVERY: Duration = Duration::from_millis(500);
/// A call that takes longer is repeated at another gateway.
const CALL_WITHIN: Duration = Duration::from_secs(2);
/// The timeout for preconditions of a drill.
const PATIENCE: Duration = Duration::from_secs(60);

/// A job or a run that was acknowledged.
#[derive(Clone, Debug)]
pub(super) struct AcknowledgedWork {
    /// When the call was made.
    pub(super) made: Instant,
    pub(super) id: String,
    pub(super) kind: WorkKind,
}

impl AcknowledgedWork {
    /// Work that ends by then was not delayed.
    pub(super) fn in_time(&self) -> Instant {
        self.made + self.kind.in_time()
    }
}

#[derive(Default)]
struct LoadRecord {
    acknowledged: Vec<AcknowledgedWork>,
    failures: Vec<(Instant, CallFailure)>,
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallFailure {
    /// The server says that it is full.
    NoRoom,
    Other,
}

impl LoadRecord {
    fn fail(&mut self, failure: CallFailure) {
        self.failures.push((Instant::now(), failure));
    }

    fn first_failure(&self, since: Instant, wanted: impl Fn(CallFailure) -> bool) -> Option<Instant> {
        self.failures.iter().find(|(at, failure)| *at > since && wanted(*failure)).map(|(at, _)| *at)
    }
}

/// Ends when dropped.
pub(super) struct BackgroundLoad {
    record: Arc<Mutex<LoadRecord>>,
    calling: [AbortHandle; 2],
}

impl BackgroundLoad {
    /// `client` sets the tenant and is exempt from faults; `ways` are the addresses of the gateways.
    pub(super) async fn start(client: TrafficClient, ways: Vec<String>, prefix: String) -> Result<Self, CliError> {
        let dag = v1::PutDagRequest { file: "chaos.yaml".to_owned(), text: DAG_TEXT.to_owned() };
        let stored = client.orchestrator().put_dag(client.request(dag)).await;
        stored.map_err(|status| CliError::Server(format!("the DAG of the load was refused: {}", status.message())))?;
        let record = Arc::new(Mutex::new(LoadRecord::default()));
        let starting = keep_starting(client.clone(), ways.clone(), prefix.clone(), record.clone());
        let submitting = keep_submitting(client, ways, prefix, record.clone());
        let calling = [tokio::spawn(starting).abort_handle(), tokio::spawn(submitting).abort_handle()];
        Ok(Self { record, calling })
    }

    /// Waits until this many more jobs were acknowledged.
    pub(super) async fn go_on(&self, more: usize) -> Result<(), CliError> {
        let count = || self.record.lock().acknowledged.len();
        let (wanted, deadline) = (count() + more, Instant::now() + PATIENCE);
        while count() < wanted {
            if Instant::now() > deadline {
                return Err(CliError::Server("the load came to a halt: nothing is acknowledged any more".to_owned()));
            }
            tokio::time::sleep(EVERY).await;
        }
        Ok(())
    }

    pub(super) fn acknowledged(&self) -> Vec<AcknowledgedWork> {
        self.record.lock().acknowledged.clone()
    }

    /// The first plain job acknowledged for a call that was made after `since`.
    pub(super) fn acknowledged_since(&self, since: Instant) -> Option<AcknowledgedWork> {
        let record = self.record.lock();
        record.acknowledged.iter().find(|work| work.made > since && work.kind == WorkKind::Plain).cloned()
    }

    /// When a call first failed after `since`.
    pub(super) fn failed_since(&self, since: Instant) -> Option<Instant> {
        self.record.lock().first_failure(since, |_| true)
    }

    /// When a submit was first refused after `since` because the server was full.
    pub(super) fn refused_since(&self, since: Instant) -> Option<Instant> {
        self.record.lock().first_failure(since, |failure| failure == CallFailure::NoRoom)
    }
}

impl Drop for BackgroundLoad {
    fn drop(&mut self) {
        self.calling.iter().for_each(AbortHandle::abort);
    }
}

pub(super) fn ids(works: &[AcknowledgedWork]) -> BTreeSet<String> {
    works.iter().map(|work| work.id.clone()).collect()
}

async fn keep_submitting(client: TrafficClient, ways: Vec<String>, prefix: String, record: Arc<Mutex<LoadRecord>>) {
    let mut pace = interval(EVERY);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut serial = 0;
    let mut batch = next_batch(&prefix, serial);
    for way in ways.iter().cycle() {
        pace.tick().await;
        let Ok(Ok(client)) = timeout(CALL_WITHIN, client.again(way)).await else {
            record.lock().fail(CallFailure::Other);
            continue;
        };
        loop {
            pace.tick().await;
            let made = Instant::now();
            // The jobs again, at another server: if the first submit was stored without an acknowledgement, their ids make
            // this a repeat.
            let ids = match submit(&client, batch.clone()).await {
                Ok(ids) => ids,
                Err(failure) => {
                    record.lock().fail(failure);
                    break;
                }
            };
            let work = |(n, id): (usize, String)| AcknowledgedWork { made, id, kind: WorkKind::of(serial + n) };
            record.lock().acknowledged.extend(ids.into_iter().enumerate().map(work));
            serial += BATCH;
            batch = next_batch(&prefix, serial);
        }
    }
}

fn next_batch(prefix: &str, serial: usize) -> Vec<v1::NewJob> {
    let now = SystemClock.now();
    (serial..serial + BATCH).map(|n| WorkKind::of(n).job(format!("{prefix}-{n}"), now)).collect()
}

/// The ids, in the order of the jobs, if every one was acknowledged.
async fn submit(client: &TrafficClient, jobs: Vec<v1::NewJob>) -> Result<Vec<String>, CallFailure> {
    let mut stub = client.stub();
    let call = stub.submit_jobs(client.request(v1::SubmitJobsRequest { jobs }));
    let answered = timeout(CALL_WITHIN, call).await.map_err(|_| CallFailure::Other)?;
    let answer = answered.map_err(|status| failure(&status))?.into_inner();
    let id = |item: v1::submit_jobs_response::Item| match item.item {
        Some(v1::submit_jobs_response::item::Item::Job(job)) => Some(job.job_id),
        _ => None,
    };
    answer.jobs.into_iter().map(id).collect::<Option<_>>().ok_or(CallFailure::Other)
}

/// A full Store reports that it is full. A call refused for another reason must not get this error.
fn failure(status: &Status) -> CallFailure {
    let is_full = status.code() == Code::ResourceExhausted && status.message().contains("the store is full");
    if is_full { CallFailure::NoRoom } else { CallFailure::Other }
}

async fn keep_starting(client: TrafficClient, ways: Vec<String>, prefix: String, record: Arc<Mutex<LoadRecord>>) {
    let mut pace = interval(RUN_EVERY);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut serial = 0;
    for way in ways.iter().cycle() {
        pace.tick().await;
        let Ok(Ok(client)) = timeout(CALL_WITHIN, client.again(way)).await else { continue };
        loop {
            pace.tick().await;
            let made = Instant::now();
            let Some(id) = start_run(&client, format!("{prefix}-run-{serial}")).await else { break };
            serial += 1;
            record.lock().acknowledged.push(AcknowledgedWork { made, id, kind: WorkKind::Run });
        }
    }
}

/// A repeated key finds the run that was started with it.
async fn start_run(client: &TrafficClient, key: String) -> Option<String> {
    let mut stub = client.orchestrator();
    let request = v1::StartDagRequest { dag: DAG.to_owned(), idempotency_key: key, ..v1::StartDagRequest::default() };
    let call = stub.start_dag(client.request(request));
    Some(timeout(CALL_WITHIN, call).await.ok()?.ok()?.into_inner().run_id)
}
