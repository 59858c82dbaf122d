//! Somebody outside who looks at an installation through its public API, and whom no fault concerns.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use lockgate_proto::v1;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tonic::{Request, Response, Status};

use super::super::bench::traffic::{self, Client};
use super::ledger::Found;
use super::stage::{Place, WORKERS, worker_name};
use crate::error::CliError;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(25);
const CALL_WITHIN: Duration = Duration::from_secs(2);
/// Every so many jobs the whole history is read although there was only one attempt.
const SAMPLE: usize = 10;

pub(super) struct Observer {
    at: Place,
    /// Says for which tenant.
    client: Client,
    /// The connection in use, and where it leads.
    line: Mutex<Option<(String, Client)>>,
}

impl Observer {
    pub(super) async fn at(at: Place) -> Result<Self, CliError> {
        let api = at.lock().clone();
        let client = Client::connect(&api).await?;
        Ok(Self { at, client, line: Mutex::default() })
    }

    /// At the gateway that holds the stream of the worker about to be struck, if that can be seen; else at the first.
    pub(super) async fn beside_worker(places: Vec<Place>) -> Result<Self, CliError> {
        let mut first = None;
        for place in places {
            let observer = Self::at(place).await?;
            if observer.holds_worker().await {
                return Ok(observer);
            }
            first.get_or_insert(observer);
        }
        first.ok_or_else(|| CliError::Server("the installation has no gateway".to_owned()))
    }

    /// Whether the first worker's stream ends here.
    pub(super) async fn holds_worker(&self) -> bool {
        let held = |worker: &v1::WorkerStatus| worker.worker_id == worker_name(0) && worker.status == "attached";
        self.workers().await.is_some_and(|workers| workers.iter().any(held))
    }

    /// For others who act for the same tenant.
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Looks again and again until `look` sees something or it is too late. When it saw it.
    pub(super) async fn until(&self, deadline: Instant, look: impl AsyncFn() -> bool) -> Option<Instant> {
        while Instant::now() < deadline {
            if look().await {
                return Some(Instant::now());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        None
    }

    /// One call, at wherever the process is now. None: no answer.
    async fn ask<M, T, F>(&self, message: M, call: impl FnOnce(Client, Request<M>) -> F) -> Option<T>
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

    async fn line(&self) -> Option<Client> {
        let at = self.at.lock().clone();
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

    /// Sessions of the workers of this installation that are attached somewhere. None: nobody could be asked.
    async fn sessions(&self) -> Option<Vec<(String, String)>> {
        let attached = |worker: &v1::WorkerStatus| ["attached", "elsewhere"].contains(&worker.status.as_str());
        let workers = self.workers().await?.into_iter().filter(attached);
        Some(workers.map(|worker| (worker.worker_id, worker.session)).collect())
    }

    /// Waits until every worker is there.
    pub(super) async fn until_complete(&self, deadline: Instant) -> Option<Instant> {
        let complete = async || {
            let sessions = self.sessions().await.unwrap_or_default();
            (0..WORKERS).all(|n| sessions.iter().any(|(name, _)| *name == worker_name(n)))
        };
        self.until(deadline, complete).await
    }

    /// The session of the worker that is about to be struck.
    pub(super) async fn struck_session(&self) -> Option<String> {
        let sessions = self.sessions().await?;
        sessions.into_iter().find(|(name, _)| *name == worker_name(0)).map(|(_, session)| session)
    }

    pub(super) async fn is_detached(&self, session: &str) -> bool {
        self.sessions().await.is_some_and(|sessions| !sessions.iter().any(|(_, attached)| attached == session))
    }

    /// Whether the process says that something is wrong with it.
    pub(super) async fn is_troubled(&self) -> bool {
        let url = format!("{}/readyz", self.at.lock());
        let answer = timeout(CALL_WITHIN, traffic::get(&url)).await;
        !answer.is_ok_and(|answer| answer.is_ok_and(|body| body.contains("\"status\":\"ready\"")))
    }

    pub(super) async fn has_ended(&self, id: &str) -> bool {
        let request = v1::GetJobRequest { job_id: id.to_owned() };
        let job = self.ask(request, async |client, request| client.stub().get_job(request).await).await;
        job.is_some_and(|job| is_over(&job))
    }

    /// Every job of the tenant. None: the list could not be read to its end.
    pub(super) async fn found(&self) -> Option<Vec<Found>> {
        let mut found: Vec<Found> = Vec::new();
        let mut request = v1::ListJobsRequest { limit: 1_000, ..v1::ListJobsRequest::default() };
        loop {
            let page = self.ask(request.clone(), async |client, request| client.stub().list_jobs(request).await).await?;
            for job in page.jobs {
                let succeeded = job.state() == v1::JobState::Succeeded;
                found.push(Found { id: job.job_id, succeeded, attempts: job.attempts, ends: None });
            }
            if page.next_cursor.is_empty() {
                return Some(found);
            }
            request.cursor = page.next_cursor;
        }
    }

    /// Waits until all of them ended.
    pub(super) async fn until_ended(&self, jobs: &BTreeSet<String>, deadline: Instant) -> Option<Instant> {
        let all = async || {
            let found = self.found().await.unwrap_or_default();
            let ended: BTreeSet<&str> = found.iter().filter(|job| job.succeeded).map(|job| job.id.as_str()).collect();
            jobs.iter().all(|id| ended.contains(id.as_str()))
        };
        self.until(deadline, all).await
    }

    /// Reads the histories of jobs that were tried more than once, and of some others: only those can have ended twice.
    pub(super) async fn read_ends(&self, found: &mut [Found]) -> Option<()> {
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

fn is_over(job: &v1::Job) -> bool {
    use v1::JobState::{Cancelled, Denied, Failed, OutputQuarantined, Succeeded, Timeout};
    matches!(job.state(), Succeeded | Failed | Timeout | Cancelled | Denied | OutputQuarantined)
}
