//! A client that submits as long as it is let, at whichever gateway answers, and repeats what was not acknowledged.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate_proto::v1;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::super::bench::traffic::Client;
use crate::error::CliError;

/// Jobs in one call, and how often there is one: a load that a busy machine carries without falling behind.
const BATCH: usize = 10;
const EVERY: Duration = Duration::from_millis(50);
/// Long enough for some to be under way at any moment.
const JOB: &str = "{\"ms\":40}";
/// A call that takes longer is given up and made elsewhere.
const CALL_WITHIN: Duration = Duration::from_secs(2);
/// How long something may take that must happen for a drill to make sense.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Record {
    acknowledged: Vec<(Instant, String)>,
    failures: Vec<Instant>,
}

/// Ends when dropped.
pub(super) struct Load {
    record: Arc<Mutex<Record>>,
    submitting: AbortHandle,
}

impl Load {
    /// `client` says for which tenant; the ways lead to the gateways.
    pub(super) fn start(client: Client, ways: Vec<String>, prefix: String) -> Self {
        let record = Arc::new(Mutex::new(Record::default()));
        let submitting = tokio::spawn(keep_submitting(client, ways, prefix, record.clone())).abort_handle();
        Self { record, submitting }
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

    pub(super) fn acknowledged(&self) -> BTreeSet<String> {
        self.record.lock().acknowledged.iter().map(|(_, id)| id.clone()).collect()
    }

    /// The first job acknowledged for a call that was made after `since`.
    pub(super) fn acknowledged_since(&self, since: Instant) -> Option<String> {
        let record = self.record.lock();
        record.acknowledged.iter().find(|(made, _)| *made > since).map(|(_, id)| id.clone())
    }

    /// When a call first failed after `since`.
    pub(super) fn failed_since(&self, since: Instant) -> Option<Instant> {
        self.record.lock().failures.iter().copied().find(|at| *at > since)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.submitting.abort();
    }
}

async fn keep_submitting(client: Client, ways: Vec<String>, prefix: String, record: Arc<Mutex<Record>>) {
    let mut pace = interval(EVERY);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut serial = 0;
    for way in ways.iter().cycle() {
        pace.tick().await;
        let Ok(Ok(client)) = timeout(CALL_WITHIN, client.again(way)).await else {
            record.lock().failures.push(Instant::now());
            continue;
        };
        loop {
            pace.tick().await;
            let made = Instant::now();
            // The same ids again elsewhere: a submit that was taken and not acknowledged is the same job.
            let batch = (serial..serial + BATCH).map(|n| job(&format!("{prefix}-{n}"))).collect();
            let Some(ids) = submit(&client, batch).await else {
                record.lock().failures.push(Instant::now());
                break;
            };
            serial += BATCH;
            record.lock().acknowledged.extend(ids.into_iter().map(|id| (made, id)));
        }
    }
}

/// The ids, if every job was acknowledged.
async fn submit(client: &Client, jobs: Vec<v1::NewJob>) -> Option<Vec<String>> {
    let mut stub = client.stub();
    let call = stub.submit_jobs(client.request(v1::SubmitJobsRequest { jobs }));
    let answer = timeout(CALL_WITHIN, call).await.ok()?.ok()?.into_inner();
    let id = |item: v1::submit_jobs_response::Item| match item.item {
        Some(v1::submit_jobs_response::item::Item::Job(job)) => Some(job.job_id),
        _ => None,
    };
    answer.jobs.into_iter().map(id).collect()
}

fn job(id: &str) -> v1::NewJob {
    v1::NewJob {
        job_id: id.to_owned(),
        topic: "job.sleep".to_owned(),
        payload_json: JOB.as_bytes().into(),
        ..v1::NewJob::default()
    }
}
