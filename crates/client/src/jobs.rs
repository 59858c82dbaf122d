//! Submit jobs, and read, cancel and explain them.

use std::collections::HashMap;
use std::time::Duration;

use lockgate_contract::limits::BATCH_JOBS_MAX;
use lockgate_proto::v1;
use lockgate_proto::v1::submit_jobs_response::{Item, item};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::builder::Client;
use crate::error::ClientError;
use crate::new_job::NewJob;
use crate::record::JobRecord;
use crate::state::JobState;
use crate::watch::JobUpdates;

/// About how many bytes of payloads go into one message: servers take 4 MiB.
const BATCH_BYTES: usize = 2 * 1024 * 1024;
const BATCH_JOBS: usize = 1_000;
const _: () = assert!(BATCH_JOBS <= BATCH_JOBS_MAX);

/// A job that was submitted, or one that is known by its id.
#[derive(Clone, Debug)]
pub struct JobHandle {
    pub(crate) client: Client,
    job_id: String,
    existing: bool,
}

/// Why a job is in its state, and what would change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    pub state: JobState,
    /// One sentence for people.
    pub summary: String,
    /// A stable code for programs.
    pub reason: String,
    /// What would start the job. Empty: nothing to do.
    pub next_step: String,
    pub next_at_ms: Option<i64>,
    /// The verdict as `snapshot#rule (reason)`. Empty: none.
    pub rule: String,
}

/// One line of a job's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct JobLogLine {
    /// Grows, not always by one.
    pub no: u64,
    pub attempt: u32,
    pub at_ms: i64,
    pub line: String,
}

impl Client {
    /// Submits a job. It is stored when this returns.
    pub async fn submit(&self, job: NewJob) -> Result<JobHandle, ClientError> {
        let request = v1::SubmitJobRequest { job: Some(job.into_message()?) };
        let mut scheduler = self.scheduler();
        let answer = self.answer(scheduler.submit_job(request)).await?;
        Ok(self.handle(answer))
    }

    /// Submits many jobs; the answers come in the order given, and each job is accepted or refused by itself. A call that fails as a
    /// whole fails this, though earlier parts of a large batch may be stored: jobs with idempotency keys can be submitted again.
    pub async fn submit_many(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
    ) -> Result<Vec<Result<JobHandle, ClientError>>, ClientError> {
        let jobs = jobs.into_iter().map(NewJob::into_message).collect::<Result<Vec<_>, _>>()?;
        let mut answers = Vec::with_capacity(jobs.len());
        for jobs in batches(jobs) {
            let mut scheduler = self.scheduler();
            let answer = self.answer(scheduler.submit_jobs(v1::SubmitJobsRequest { jobs })).await?;
            answers.extend(answer.jobs.into_iter().map(|item| self.one_of_many(item)));
        }
        Ok(answers)
    }

    fn one_of_many(&self, item: Item) -> Result<JobHandle, ClientError> {
        match item.item {
            Some(item::Item::Job(job)) => Ok(self.handle(job)),
            Some(item::Item::Error(error)) => Err(of_item(error)),
            None => Err(ClientError::Server {
                code: "internal".to_owned(),
                message: "the server did not answer for every job".to_owned(),
            }),
        }
    }

    fn handle(&self, answer: v1::SubmitJobResponse) -> JobHandle {
        JobHandle { client: self.clone(), job_id: answer.job_id, existing: answer.existing }
    }

    /// A job known by its id. Nothing is asked of the server.
    pub fn job(&self, job_id: impl Into<String>) -> JobHandle {
        JobHandle { client: self.clone(), job_id: job_id.into(), existing: true }
    }

    /// Everything about one job.
    pub async fn get(&self, job_id: &str) -> Result<JobRecord, ClientError> {
        let mut scheduler = self.scheduler();
        let call = scheduler.get_job(v1::GetJobRequest { job_id: job_id.to_owned() });
        self.answer(call).await.map(Into::into)
    }

    /// A page of jobs of the tenant with all these labels, newest first, and the cursor of the next page if there is one. An empty
    /// topic is any topic.
    pub async fn list(
        &self,
        topic: &str,
        labels: HashMap<String, String>,
        limit: u32,
        cursor: &str,
    ) -> Result<(Vec<JobRecord>, Option<String>), ClientError> {
        let request = v1::ListJobsRequest {
            topic: topic.to_owned(),
            labels,
            limit,
            cursor: cursor.to_owned(),
            ..v1::ListJobsRequest::default()
        };
        let mut scheduler = self.scheduler();
        let page = self.answer(scheduler.list_jobs(request)).await?;
        let next = Some(page.next_cursor).filter(|cursor| !cursor.is_empty());
        Ok((page.jobs.into_iter().map(Into::into).collect(), next))
    }

    /// Cancels a job; its state afterwards. A worker that runs it is told to stop.
    pub async fn cancel(&self, job_id: &str, reason: &str) -> Result<JobState, ClientError> {
        let request = v1::CancelJobRequest { job_id: job_id.to_owned(), reason: reason.to_owned() };
        let mut scheduler = self.scheduler();
        let answer = self.answer(scheduler.cancel_job(request)).await?;
        Ok(JobState::from_wire(answer.state))
    }

    /// Why a job is in its state.
    pub async fn why(&self, job_id: &str) -> Result<Explanation, ClientError> {
        let mut scheduler = self.scheduler();
        let call = scheduler.explain_job(v1::ExplainJobRequest { job_id: job_id.to_owned() });
        let answer = self.answer(call).await?;
        Ok(Explanation {
            state: JobState::from_wire(answer.state),
            summary: answer.summary,
            reason: answer.reason,
            next_step: answer.next_step,
            next_at_ms: answer.next_at_ms,
            rule: answer.rule,
        })
    }

    /// The last 1,000 log lines of a job with a number greater than `after`.
    pub async fn logs(&self, job_id: &str, after: u64) -> Result<Vec<JobLogLine>, ClientError> {
        let mut scheduler = self.scheduler();
        let call = scheduler.get_job_logs(v1::GetJobLogsRequest { job_id: job_id.to_owned(), after });
        let lines = self.answer(call).await?.lines.into_iter();
        let line = |line: v1::get_job_logs_response::Line| JobLogLine {
            no: line.no,
            attempt: line.attempt,
            at_ms: line.at_ms,
            line: line.line,
        };
        Ok(lines.map(line).collect())
    }
}

impl JobHandle {
    pub fn id(&self) -> &str {
        &self.job_id
    }

    /// The submit found this job under its id or idempotency key; nothing was created.
    pub const fn existed(&self) -> bool {
        self.existing
    }

    /// Everything about the job.
    pub async fn get(&self) -> Result<JobRecord, ClientError> {
        self.client.get(&self.job_id).await
    }

    /// What happens to the job, from its first event until it ends.
    pub fn watch(&self) -> JobUpdates {
        JobUpdates::new(self.client.clone(), self.job_id.clone(), 0)
    }

    /// Waits until the job has ended, also over a restart of the server; the job as it ended.
    pub async fn wait(&self) -> Result<JobRecord, ClientError> {
        let mut updates = self.watch();
        while updates.next().await?.is_some() {}
        self.get().await
    }

    /// Waits for the job and reads its result. A job that ended without success is [`ClientError::JobFailed`].
    pub async fn result<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        let job = self.wait().await?;
        if !job.succeeded() {
            return Err(ClientError::JobFailed(Box::new(job)));
        }
        if job.payload_hidden {
            let message = format!("the result of job {} is hidden: the credential may not see payloads", self.job_id);
            return Err(ClientError::NotAllowed { code: "payload_hidden".to_owned(), message });
        }
        let json = job.result.as_deref().map_or("null", |result| result.get());
        serde_json::from_str(json)
            .map_err(|error| ClientError::Result { job_id: self.job_id.clone(), message: error.to_string() })
    }

    /// Like [`result`](Self::result), for as long as this.
    pub async fn result_within<T: DeserializeOwned>(&self, within: Duration) -> Result<T, ClientError> {
        let timed_out = |_| ClientError::TimedOut { server: self.client.server.to_string(), within };
        tokio::time::timeout(within, self.result()).await.map_err(timed_out)?
    }

    /// Cancels the job; its state afterwards.
    pub async fn cancel(&self, reason: &str) -> Result<JobState, ClientError> {
        self.client.cancel(&self.job_id, reason).await
    }

    /// Why the job is in its state.
    pub async fn why(&self) -> Result<Explanation, ClientError> {
        self.client.why(&self.job_id).await
    }

    /// The last 1,000 lines of its log.
    pub async fn logs(&self) -> Result<Vec<JobLogLine>, ClientError> {
        self.client.logs(&self.job_id, 0).await
    }
}

/// The refusal of one job of a batch, by its code as the error of a single submit would be by its status.
fn of_item(error: v1::ItemError) -> ClientError {
    let v1::ItemError { code, message, retry_after_ms } = error;
    match (code.as_str(), retry_after_ms) {
        ("invalid_argument", _) => ClientError::Invalid { message, fields: Vec::new() },
        ("permission_denied", _) => ClientError::NotAllowed { code, message },
        ("internal" | "row_damaged", _) => ClientError::Server { code, message },
        ("unavailable", _) | (_, Some(_)) => {
            ClientError::Busy { code, message, retry_after: retry_after_ms.map(Duration::from_millis) }
        }
        _ => ClientError::Conflict { code, message },
    }
}

fn batches(jobs: Vec<v1::NewJob>) -> Vec<Vec<v1::NewJob>> {
    let mut batches: Vec<Vec<v1::NewJob>> = Vec::new();
    let mut bytes = 0;
    for job in jobs {
        let size = job.payload_json.len();
        match batches.last_mut().filter(|batch| batch.len() < BATCH_JOBS && bytes + size <= BATCH_BYTES) {
            Some(batch) => {
                bytes += size;
                batch.push(job);
            }
            None => {
                bytes = size;
                batches.push(vec![job]);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_by_number_and_by_bytes() {
        let job = |bytes: usize| v1::NewJob { payload_json: vec![b'1'; bytes].into(), ..v1::NewJob::default() };
        let sizes = |jobs: Vec<v1::NewJob>| batches(jobs).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes((0..2_500).map(|_| job(1)).collect()), [1_000, 1_000, 500]);
        assert_eq!(sizes((0..5).map(|_| job(1_000_000)).collect()), [2, 2, 1]);
    }

    #[test]
    fn a_refused_job_of_a_batch_is_the_error_of_a_single_submit() {
        let kind = |code: &str, retry_after_ms| {
            of_item(v1::ItemError { code: code.to_owned(), message: "m".to_owned(), retry_after_ms }).kind()
        };
        assert_eq!(kind("invalid_argument", None), "invalid");
        assert_eq!(kind("idempotency_conflict", None), "conflict");
        assert_eq!((kind("unavailable", None), kind("quota_jobs", Some(5))), ("busy", "busy"));
    }
}
