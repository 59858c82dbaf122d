//! What happens to a job, as it happens.

use std::time::Duration;

use lockgate_proto::v1;
use lockgate_proto::v1::watch_job_response::Item;
use serde::Serialize;
use tokio::time::{Instant, sleep};
use tonic::Streaming;

use crate::builder::Client;
use crate::error::ClientError;

/// How long a server may be away before a watch gives up. A restart takes a second or two.
const AWAY_MAX: Duration = Duration::from_secs(30);
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// One thing that happened to a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum JobUpdate {
    Event(JobEvent),
    Progress(Progress),
}

/// One event in the history of a job. What does not apply to the kind is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct JobEvent {
    /// 1, 2, 3 … without gaps over the whole job.
    pub n: u64,
    pub at_ms: i64,
    /// A stable code such as `submitted`, `attempt_failed` or `succeeded`.
    pub kind: String,
    pub attempt: u32,
    pub worker_id: String,
    pub reason: String,
    pub message: String,
    /// When the next attempt may start.
    pub until_ms: Option<i64>,
    pub actor: String,
    pub rule: String,
}

/// How far a handler says it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    pub percent: u32,
    pub message: String,
    pub at_ms: i64,
}

/// Follows a job to its end, over restarts of the server: each event once, and progress as it comes.
#[derive(Debug)]
pub struct JobUpdates {
    client: Client,
    job_id: String,
    after: u64,
    stream: Option<Streaming<v1::WatchJobResponse>>,
    away_since: Option<Instant>,
}

impl JobUpdates {
    pub(crate) const fn new(client: Client, job_id: String, after: u64) -> Self {
        Self { client, job_id, after, stream: None, away_since: None }
    }

    /// Leaves out the events up to this number.
    #[must_use]
    pub const fn after(mut self, number: u64) -> Self {
        self.after = number;
        self
    }

    /// What happened next; none when the job has ended.
    pub async fn next(&mut self) -> Result<Option<JobUpdate>, ClientError> {
        loop {
            match self.try_next().await {
                Ok(Some(update)) => {
                    self.away_since = None;
                    return Ok(Some(update));
                }
                Ok(None) => {
                    self.stream = None;
                    // A server that stops ends its streams too; only the job itself says whether there is more to come.
                    match self.client.get(&self.job_id).await {
                        Ok(job) if job.has_ended() => return Ok(None),
                        Ok(_) => self.away_since = None,
                        Err(error) => self.bear(error)?,
                    }
                }
                Err(error) => {
                    self.stream = None;
                    self.bear(error)?;
                }
            }
            sleep(RETRY_AFTER).await;
        }
    }

    async fn try_next(&mut self) -> Result<Option<JobUpdate>, ClientError> {
        if self.stream.is_none() {
            let request = v1::WatchJobRequest { job_id: self.job_id.clone(), after: self.after };
            let mut scheduler = self.client.scheduler();
            self.stream = Some(self.client.answer(scheduler.watch_job(request)).await?);
        }
        let Some(stream) = &mut self.stream else { return Ok(None) };
        loop {
            let message = stream.message().await;
            let message = message.map_err(|status| ClientError::from_broken_stream(&status, &self.client.server))?;
            match message.map(|message| message.item) {
                None => return Ok(None),
                Some(Some(Item::Event(event))) => {
                    self.after = event.n;
                    return Ok(Some(JobUpdate::Event(event.into())));
                }
                Some(Some(Item::Progress(progress))) => return Ok(Some(JobUpdate::Progress(progress.into()))),
                // A kind of message that a newer server knows.
                Some(None) => {}
            }
        }
    }

    /// Gives the error back when waiting does not help, or has not helped for long enough.
    fn bear(&mut self, error: ClientError) -> Result<(), ClientError> {
        let since = *self.away_since.get_or_insert_with(Instant::now);
        if error.is_retryable() && since.elapsed() < AWAY_MAX { Ok(()) } else { Err(error) }
    }
}

impl From<v1::JobEvent> for JobEvent {
    fn from(event: v1::JobEvent) -> Self {
        Self {
            n: event.n,
            at_ms: event.at_ms,
            kind: event.kind,
            attempt: event.attempt,
            worker_id: event.worker_id,
            reason: event.reason,
            message: event.message,
            until_ms: event.until_ms,
            actor: event.actor,
            rule: event.rule,
        }
    }
}

impl From<v1::Progress> for Progress {
    fn from(progress: v1::Progress) -> Self {
        Self { percent: progress.percent, message: progress.message, at_ms: progress.at_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_away_is_borne_with_for_half_a_minute() {
        let client = Client::connect("http://127.0.0.1:1").open().unwrap();
        let mut updates = client.job("a").watch();
        let away = || ClientError::Unreachable { server: "s".to_owned(), cause: "gone".to_owned() };
        assert!(updates.bear(away()).is_ok());
        assert!(updates.bear(ClientError::NotFound { what: "job".to_owned(), message: String::new() }).is_err());
        sleep(AWAY_MAX).await;
        assert!(updates.bear(away()).is_err());
    }
}
