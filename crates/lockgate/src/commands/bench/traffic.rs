//! A client that submits fast and waits for the end.

use std::collections::BTreeSet;
use std::time::Duration;

use lockgate_proto::v1;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use lockgate_proto::v1::scheduler_client::SchedulerClient;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Request;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::{Channel, Endpoint};

use crate::error::CliError;

/// Jobs in one submit call.
const BATCH: usize = 1_000;
/// Connections and calls in flight while submitting: one connection does not scale over cores.
const CONNECTIONS: usize = 2;
/// A run that takes longer is stuck.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often the server is asked whether it is done. Its error on a run of a second is small.
const LOOK: Duration = Duration::from_millis(4);

#[derive(Clone)]
pub(in crate::commands) struct TrafficClient {
    api: String,
    /// A tenant of its own, so that other jobs in a shared database are not counted.
    tenant: AsciiMetadataValue,
    channels: Vec<SchedulerClient<Channel>>,
    orchestrator: OrchestratorClient<Channel>,
}

/// Large windows: a batch of a thousand jobs is one message.
fn endpoint(api: &str) -> Result<Endpoint, CliError> {
    let endpoint = Endpoint::from_shared(api.to_owned()).map_err(|error| CliError::Usage(error.to_string()))?;
    Ok(endpoint.tcp_nodelay(true).initial_stream_window_size(2 << 20).initial_connection_window_size(4 << 20))
}

pub(super) async fn channel(api: &str) -> Result<Channel, CliError> {
    endpoint(api)?.connect().await.map_err(|error| CliError::Server(error.to_string()))
}

impl TrafficClient {
    pub(in crate::commands) async fn connect(api: &str) -> Result<Self, CliError> {
        let first = channel(api).await?;
        let orchestrator = OrchestratorClient::new(first.clone());
        let mut channels = vec![SchedulerClient::new(first).max_decoding_message_size(32 << 20)];
        while channels.len() < CONNECTIONS {
            channels.push(SchedulerClient::new(channel(api).await?).max_decoding_message_size(32 << 20));
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| CliError::Server(error.to_string()))?;
        let tenant = format!("bench-{:016x}", u64::from_be_bytes(random));
        let tenant = tenant.parse().map_err(|_| CliError::Server("a tenant's name is plain text".to_owned()))?;
        Ok(Self { api: api.to_owned(), tenant, channels, orchestrator })
    }

    /// The client, connected to a server that was restarted, perhaps at another address.
    pub(in crate::commands) async fn again(&self, api: &str) -> Result<Self, CliError> {
        Ok(Self { tenant: self.tenant.clone(), ..Self::connect(api).await? })
    }

    pub(in crate::commands) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("x-lockgate-tenant", self.tenant.clone());
        request
    }

    pub(in crate::commands) fn stub(&self) -> SchedulerClient<Channel> {
        self.channels[0].clone()
    }

    pub(in crate::commands) fn orchestrator(&self) -> OrchestratorClient<Channel> {
        self.orchestrator.clone()
    }

    /// Submits `count` no-ops. The acknowledged ids.
    pub(super) async fn submit(&self, count: usize) -> Result<Vec<String>, CliError> {
        let mut calls = JoinSet::new();
        let mut ids = Vec::with_capacity(count);
        let mut sent = 0;
        while sent < count || !calls.is_empty() {
            if sent < count && calls.len() < CONNECTIONS {
                let size = BATCH.min(count - sent);
                let mut stub = self.channels[(sent / BATCH) % CONNECTIONS].clone();
                let jobs = (sent..sent + size).map(noop).collect();
                let request = self.request(v1::SubmitJobsRequest { jobs });
                sent += size;
                calls.spawn(async move { stub.submit_jobs(request).await });
                continue;
            }
            let Some(answer) = calls.join_next().await else { break };
            let answer = answer.map_err(|error| CliError::Server(error.to_string()))?;
            let answer = answer.map_err(|status| CliError::from_status(&status, &self.api))?.into_inner();
            for item in answer.jobs {
                match item.item {
                    Some(v1::submit_jobs_response::item::Item::Job(job)) => ids.push(job.job_id),
                    other => return Err(CliError::Server(format!("a job was refused: {other:?}"))),
                }
            }
        }
        Ok(ids)
    }

    pub(super) async fn queues(&self) -> Result<v1::ListQueuesResponse, CliError> {
        let answer = self.stub().list_queues(v1::ListQueuesRequest {}).await;
        Ok(answer.map_err(|status| CliError::from_status(&status, &self.api))?.into_inner())
    }

    /// Waits for a condition on the queues, and returns when it held.
    pub(super) async fn until(&self, holds: impl Fn(&v1::ListQueuesResponse) -> bool) -> Result<Instant, CliError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let queues = self.queues().await?;
            let now = Instant::now();
            if holds(&queues) {
                return Ok(now);
            }
            if now > deadline {
                return Err(CliError::Server(format!(
                    "stuck: {} live, {} held, {} ended",
                    queues.live, queues.held, queues.ended
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Exact delivery: every acknowledged job ended once, with success, on its first attempt, and there is no other.
    pub(super) async fn check_exact(&self, acknowledged: &[String]) -> Result<(), CliError> {
        let mut missing: BTreeSet<&str> = acknowledged.iter().map(String::as_str).collect();
        if missing.len() != acknowledged.len() {
            return Err(CliError::Server("an id was acknowledged twice".into()));
        }
        let mut request = v1::ListJobsRequest { limit: 1_000, ..v1::ListJobsRequest::default() };
        loop {
            let page = self.stub().list_jobs(self.request(request.clone())).await;
            let page = page.map_err(|status| CliError::from_status(&status, &self.api))?.into_inner();
            for job in &page.jobs {
                let state = job.state();
                if state != v1::JobState::Succeeded || job.attempts != 1 {
                    let (id, attempts) = (&job.job_id, job.attempts);
                    return Err(CliError::Server(format!("{id} is {} after {attempts} attempts", state.as_str_name())));
                }
                if !missing.remove(job.job_id.as_str()) {
                    return Err(CliError::Server(format!("{} is there twice or was never acknowledged", job.job_id)));
                }
            }
            if page.next_cursor.is_empty() {
                break;
            }
            request.cursor = page.next_cursor;
        }
        match missing.first() {
            None => Ok(()),
            Some(id) => Err(CliError::Server(format!("{} acknowledged jobs are missing, {id} among them", missing.len()))),
        }
    }
}

fn noop(n: usize) -> v1::NewJob {
    v1::NewJob {
        topic: "job.noop".to_owned(),
        payload_json: format!("{{\"i\":{n},\"t\":\"0123456789\"}}").into_bytes().into(),
        ..v1::NewJob::default()
    }
}

/// The body of a plain HTTP answer.
pub(in crate::commands) async fn get(url: &str) -> Result<String, CliError> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host).await?;
    stream.write_all(format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
}
