//! An observer outside of the installation, which uses its public API and is exempt from faults.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use lockgate_proto::v1;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{Instant, timeout};
use tonic::{Request, Response, Status};

use super::super::bench::traffic::{self, TrafficClient};
use super::load::{AcknowledgedWork, ids};
use super::stage::{ProcessAddress, WORKERS, worker_name};
use super::tally::EndState;
use super::work::{WorkKind, ended_well, ran_again};
use crate::error::CliError;

/// How often the observer reads the jobs that it waits for.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// How often it reads, for a sign that needs every job to be read.
const LOOK_AT_ALL_EVERY: Duration = Duration::from_millis(250);
const CALL_WITHIN: Duration = Duration::from_secs(2);
/// The loop that makes retries and delayed jobs due: its lease, and its name in a process.
const PUMP: (&str, &str) = ("lockgate:retry:pump", "due");
/// Of this many jobs with a single attempt, the whole history of one is read.
const SAMPLE: usize = 10;

pub(super) struct Observer {
    at: ProcessAddress,
    /// Sets the tenant of the calls.
    client: TrafficClient,
    /// The connection in use, and its address.
    line: Mutex<Option<(String, TrafficClient)>>,
}

impl Observer {
    pub(super) async fn at(at: ProcessAddress) -> Result<Self, CliError> {
        let api = at.lock().clone();
        let client = TrafficClient::connect(&api).await?;
        Ok(Self { at, client, line: Mutex::default() })
    }

    /// The observer at another server.
    pub(super) fn moved_to(&self, at: ProcessAddress) -> Self {
        Self { at, client: self.client.clone(), line: Mutex::default() }
    }

    /// The workers whose streams end here, by number, and how many jobs each holds.
    pub(super) async fn held(&self) -> Vec<(usize, u32)> {
        let workers = self.workers().await.unwrap_or_default();
        let attached = workers.iter().filter(|worker| worker.status == "attached");
        let numbered =
            |worker: &v1::WorkerStatus| Some(((0..WORKERS).find(|n| worker_name(*n) == worker.worker_id)?, worker.busy));
        attached.filter_map(numbered).collect()
    }

    /// For other calls of this tenant.
    pub(super) fn client(&self) -> TrafficClient {
        self.client.clone()
    }

    /// Repeats `look` until it returns true or the deadline has passed. Returns when it was true.
    pub(super) async fn until(&self, deadline: Instant, look: impl AsyncFn() -> bool) -> Option<Instant> {
        seen(deadline, LOOK_EVERY, async || look().await.then(Instant::now)).await
    }

    /// One call, at the present address of the process. None: no answer.
    async fn ask<M, T, F>(&self, message: M, call: impl FnOnce(TrafficClient, Request<M>) -> F) -> Option<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let asked = async {
            let client = self.line().await?;
            let request = client.request(message);
            call(client, request).await.ok().map(Response::into_inner)
        };
        let answer = timeout(CALL_WITHIN, asked).await.ok().flatten();
        if answer.is_none() {
            *self.line.lock() = None;
        }
        answer
    }

    async fn line(&self) -> Option<TrafficClient> {
        let at = self.api();
        let known = self.line.lock().as_ref().filter(|(to, _)| *to == at).map(|(_, client)| client.clone());
        if known.is_some() {
            return known;
        }
        let client = self.client.again(&at).await.ok()?;
        *self.line.lock() = Some((at, client.clone()));
        Some(client)
    }

    async fn workers(&self) -> Option<Vec<v1::WorkerStatus>> {
        let asked = self.ask(v1::ListWorkersRequest {}, async |client, request| client.stub().list_workers(request).await);
        Some(asked.await?.workers)
    }

    /// Sessions of this installation's workers that are attached to some server. None if no server answered.
    async fn sessions(&self) -> Option<Vec<(String, String)>> {
        let attached = |worker: &v1::WorkerStatus| ["attached", "elsewhere"].contains(&worker.status.as_str());
        let workers = self.workers().await?.into_iter().filter(attached);
        Some(workers.map(|worker| (worker.worker_id, worker.session)).collect())
    }

    /// Waits until every worker is attached.
    pub(super) async fn until_complete(&self, deadline: Instant) -> Option<Instant> {
        let complete = async || {
            let sessions = self.sessions().await.unwrap_or_default();
            (0..WORKERS).all(|n| sessions.iter().any(|(name, _)| *name == worker_name(n)))
        };
        self.until(deadline, complete).await
    }

    /// The session of a worker.
    pub(super) async fn session_of(&self, worker: &str) -> Option<String> {
        let sessions = self.sessions().await?;
        sessions.into_iter().find(|(name, _)| name == worker).map(|(_, session)| session)
    }

    pub(super) async fn is_detached(&self, session: &str) -> bool {
        self.sessions().await.is_some_and(|sessions| !sessions.iter().any(|(_, attached)| attached == session))
    }

    /// The address that the observer uses.
    pub(super) fn api(&self) -> String {
        self.at.lock().clone()
    }

    /// The leader of the loop that makes jobs due.
    pub(super) async fn leader(&self) -> Option<String> {
        let health = health(&self.api()).await?;
        let held = health["leaders"].as_array()?.iter().find(|leader| leader["lease"] == PUMP.0)?;
        held["holder"].as_str().map(str::to_owned)
    }

    pub(super) async fn has_ended(&self, work: &AcknowledgedWork) -> bool {
        if work.kind == WorkKind::Run {
            return self.run(&work.id).await.is_some_and(|run| run.ended_at_ms.is_some());
        }
        let request = v1::GetJobRequest { job_id: work.id.clone() };
        let job = self.ask(request, async |client, request| client.stub().get_job(request).await).await;
        job.is_some_and(|job| is_over(&job))
    }

    async fn run(&self, id: &str) -> Option<v1::DagRun> {
        let request = v1::GetDagRunRequest { run_id: id.to_owned() };
        self.ask(request, async |client, request| client.orchestrator().get_dag_run(request).await).await
    }

    /// The runs of the load. None: a run could not be read.
    pub(super) async fn found_runs(&self, works: &[AcknowledgedWork]) -> Option<Vec<EndState>> {
        let mut found = Vec::new();
        for work in works.iter().filter(|work| work.kind == WorkKind::Run) {
            let well = self.run(&work.id).await?.state() == v1::RunState::Succeeded;
            found.push(EndState { id: work.id.clone(), well, attempts: 1, again: false, ends: None });
        }
        Some(found)
    }

    /// Every job of the tenant. None: the list could not be read to its end.
    pub(super) async fn found(&self) -> Option<Vec<EndState>> {
        let mut found: Vec<EndState> = Vec::new();
        let mut request = v1::ListJobsRequest { limit: 1_000, ..v1::ListJobsRequest::default() };
        loop {
            let page = self.ask(request.clone(), async |client, request| client.stub().list_jobs(request).await).await?;
            for job in page.jobs {
                let (well, again) = (ended_well(&job), ran_again(&job));
                found.push(EndState { id: job.job_id, well, attempts: job.attempts, again, ends: None });
            }
            if page.next_cursor.is_empty() {
                return Some(found);
            }
            request.cursor = page.next_cursor;
        }
    }

    /// Waits until all of them ended as they should.
    pub(super) async fn until_ended(&self, works: &[AcknowledgedWork], deadline: Instant) -> Option<()> {
        let all = async || {
            let found = [self.found().await?, self.found_runs(works).await?].concat();
            let ended: BTreeSet<&str> = found.iter().filter(|found| found.well).map(|found| found.id.as_str()).collect();
            ids(works).iter().all(|id| ended.contains(id.as_str())).then_some(())
        };
        seen(deadline, LOOK_AT_ALL_EVERY, all).await
    }

    /// Reads the histories of jobs that were tried more than once, and of some others: only those can have ended twice.
    pub(super) async fn read_ends(&self, found: &mut [EndState]) -> Option<()> {
        for (n, job) in found.iter_mut().enumerate() {
            if job.attempts > 1 || n % SAMPLE == 0 {
                job.ends = Some(self.ends(&job.id).await?);
            }
        }
        Some(())
    }

    /// Ends in the whole history of a job that is over.
    async fn ends(&self, id: &str) -> Option<usize> {
        let request = v1::WatchJobRequest { job_id: id.to_owned(), after: 0 };
        let mut events = self.ask(request, async |client, request| client.stub().watch_job(request).await).await?;
        let mut ends = 0;
        while let Some(item) = timeout(CALL_WITHIN, events.message()).await.ok()?.ok()? {
            let Some(v1::watch_job_response::Item::Event(event)) = item.item else { continue };
            let is_end = ["succeeded", "failed", "timed_out", "cancelled", "denied"].contains(&event.kind.as_str());
            ends += usize::from(is_end);
        }
        Some(ends)
    }
}

/// Repeats `look` until it finds something or the deadline has passed.
pub(super) async fn seen<T>(deadline: Instant, every: Duration, look: impl AsyncFn() -> Option<T>) -> Option<T> {
    while Instant::now() < deadline {
        let seen = look().await;
        if seen.is_some() {
            return seen;
        }
        tokio::time::sleep(every).await;
    }
    None
}

/// Which of these processes leads.
pub(super) async fn leading(apis: &[String]) -> Option<usize> {
    for (n, api) in apis.iter().enumerate() {
        let Some(health) = health(api).await else { continue };
        let leads = |own: &Value| own["name"] == PUMP.1 && own["leads"] == "leads";
        if health["loops"].as_array().is_some_and(|loops| loops.iter().any(leads)) {
            return Some(n);
        }
    }
    None
}

/// Whether a process reports a health problem.
pub(super) async fn is_troubled(api: &str) -> bool {
    let answer = timeout(CALL_WITHIN, traffic::get(&format!("{api}/readyz"))).await;
    !answer.is_ok_and(|answer| answer.is_ok_and(|body| body.contains("\"status\":\"ready\"")))
}

/// The health report of a process.
async fn health(api: &str) -> Option<Value> {
    let body = timeout(CALL_WITHIN, traffic::get(&format!("{api}/monitor/health"))).await.ok()?.ok()?;
    serde_json::from_str(&body).ok()
}

fn is_over(job: &v1::Job) -> bool {
    use v1::JobState::{Cancelled, Denied, Failed, OutputQuarantined, Succeeded, Timeout};
    matches!(job.state(), Succeeded | Failed | Timeout | Cancelled | Denied | OutputQuarantined)
}
