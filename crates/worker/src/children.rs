//! Jobs that a handler submits as children of its own, and what became of them.
//!
//! ```no_run
//! use std::time::Duration;
//! use lockgate_worker::{Child, JobError, Wait, Worker};
//!
//! # async fn example() -> Result<(), lockgate_worker::WorkerError> {
//! Worker::connect("http://127.0.0.1:8080")
//!     .handle("book.render", |ctx, payload| async move {
//!         if ctx.gathered().is_none() {
//!             let pages: u32 = payload.json()?;
//!             let page = |n| Child::new(format!("page-{n}"), "page.render").payload(&n);
//!             ctx.submit_children((1..=pages).map(page)).await?;
//!             return Err(JobError::await_children(Wait::up_to(Duration::from_secs(600)).or_review()));
//!         }
//!         let done = ctx.children().await?.into_iter().filter(|page| page.succeeded()).count();
//!         Ok(format!("{done} pages"))
//!     })
//!     .run()
//!     .await
//! # }
//! ```

use std::time::Duration;

use bytes::Bytes;
use lockgate_proto::v1::submit_jobs_response::item::Item;
use lockgate_proto::v1::worker_client::WorkerClient;
use lockgate_proto::v1::{self, ItemError, JobState, ListChildrenRequest, NewChild, NewJob, SubmitChildrenRequest, result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Code, Request, Status};

use crate::context::Context;
use crate::error::{JobError, millis};
use lockgate_tls::grpc::BearerChannel;

/// The most children sent in one call, and about how many bytes of payloads.
const BATCH: usize = 1_000;
const BATCH_BYTES: usize = 2 * 1024 * 1024;
/// After this time the call counts as failed.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Children without room are sent again after the time that the server names, and not earlier than this.
const AGAIN_AT_LEAST: Duration = Duration::from_millis(50);

/// A job to be submitted as a child.
#[derive(Clone, Debug)]
pub struct Child(Result<NewChild, String>);

impl Child {
    /// `key` is what the parent calls it: letters, digits and `. _ - :`, unique among its children. An attempt that submits
    /// the same key again gets the same child, so a retried handler may begin from the start.
    pub fn new(key: impl Into<String>, topic: impl Into<String>) -> Self {
        let job = NewJob { topic: topic.into(), ..NewJob::default() };
        Self(Ok(NewChild { key: key.into(), job: Some(job) }))
    }

    #[must_use]
    pub fn payload(mut self, payload: &impl Serialize) -> Self {
        match serde_json::to_vec(payload) {
            Ok(json) => self.set(|job| job.payload_json = json.into()),
            Err(error) => self.0 = Err(format!("the payload of a child is not valid JSON: {error}")),
        }
        self
    }

    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(|job| _ = job.labels.insert(name.into(), value.into()));
        self
    }

    /// How many attempts may fail.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.set(|job| job.max_attempts = Some(attempts));
        self
    }

    /// How long one attempt may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.set(|job| job.timeout_ms = Some(millis(timeout)));
        self
    }

    /// A capability that the child's worker must have.
    #[must_use]
    pub fn requires(mut self, capability: impl Into<String>) -> Self {
        self.set(|job| job.requires.push(capability.into()));
        self
    }

    /// Sets any other field of the job. `job_id` and `idempotency_key` must stay empty, because the key names the child.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut NewJob)) -> Self {
        self.set(change);
        self
    }

    fn set(&mut self, change: impl FnOnce(&mut NewJob)) {
        if let Ok(child) = &mut self.0 {
            change(child.job.get_or_insert_default());
        }
    }
}

/// How long to wait for children, and what happens if some are still under way then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    timeout: Option<Duration>,
    review: bool,
}

impl Wait {
    /// After the timeout the job fails, unless [`or_review`](Self::or_review) is set. The default is a day.
    pub fn up_to(timeout: Duration) -> Self {
        Self { timeout: Some(timeout), review: false }
    }

    /// After the timeout a person decides whether the job continues with the children that have ended.
    #[must_use]
    pub fn or_review(mut self) -> Self {
        self.review = true;
        self
    }
}

impl From<Wait> for result::AwaitChildren {
    fn from(wait: Wait) -> Self {
        let on_timeout = if wait.review { "review" } else { "fail" };
        Self { timeout_ms: wait.timeout.map(millis), on_timeout: on_timeout.to_owned() }
    }
}

/// The job has waited for its children and was called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// How often it has waited in this life.
    pub rounds: u32,
    /// The last wait ended before all children had, because a person let the job continue.
    pub partial: bool,
}

/// The outcome of a child.
#[derive(Clone, Debug)]
pub struct ChildOutcome {
    pub key: String,
    pub job_id: String,
    /// A state such as SUCCEEDED.
    pub state: &'static str,
    /// Why it did not succeed: a reason code and a text.
    pub failure: Option<(String, String)>,
    result: Bytes,
}

impl ChildOutcome {
    pub fn succeeded(&self) -> bool {
        self.state == "SUCCEEDED"
    }

    /// The child's result as JSON text; null unless it succeeded and policy exposed the result.
    pub fn result_json(&self) -> &[u8] {
        if self.result.is_empty() { b"null" } else { &self.result }
    }

    /// The child's result as `T`.
    pub fn result<T: DeserializeOwned>(&self) -> Result<T, JobError> {
        serde_json::from_slice(self.result_json())
            .map_err(|error| JobError::fatal(format_args!("the result of child {}: {error}", self.key)))
    }
}

impl From<v1::ChildOutcome> for ChildOutcome {
    fn from(child: v1::ChildOutcome) -> Self {
        let name = JobState::try_from(child.state).unwrap_or_default().as_str_name();
        Self {
            state: name.strip_prefix("JOB_STATE_").unwrap_or(name),
            key: child.key,
            job_id: child.job_id,
            failure: child.failure.map(|failure| (failure.reason, failure.message)),
            result: child.result_json,
        }
    }
}

impl Context {
    /// Submits children of this job and returns their ids in order. They have its tenant and its submitter, and obey policy
    /// and quotas like every job. Children without room are sent again when the server says so, as long as the attempt
    /// lasts. A child that is refused for good is a fatal error; the other children exist nevertheless.
    ///
    /// Children do not delay the job: end the attempt with [`JobError::await_children`] to be called again after them.
    /// Children still under way when the job fails, times out, is denied or cancelled are cancelled too.
    pub async fn submit_children(&self, children: impl IntoIterator<Item = Child>) -> Result<Vec<String>, JobError> {
        let children = children.into_iter().map(|child| child.0.map_err(JobError::fatal));
        let mut ids = Vec::new();
        for batch in batches(children.collect::<Result<Vec<_>, _>>()?) {
            ids.extend(self.submit_batch(batch).await?);
        }
        Ok(ids)
    }

    async fn submit_batch(&self, children: Vec<NewChild>) -> Result<Vec<String>, JobError> {
        let mut ids: Vec<Option<String>> = vec![None; children.len()];
        let mut waiting: Vec<(usize, NewChild)> = children.into_iter().enumerate().collect();
        while !waiting.is_empty() {
            let request = SubmitChildrenRequest {
                job_id: self.job_id().to_owned(),
                token: self.token().to_owned(),
                children: waiting.iter().map(|(_, child)| child.clone()).collect(),
            };
            let request = self.of_tenant(request)?;
            let mut client = self.client()?;
            let reply = answered(client.submit_children(request).await.map_err(Box::new))?.into_inner();
            let (mut again, mut again_in) = (Vec::new(), AGAIN_AT_LEAST);
            for ((place, child), item) in waiting.into_iter().zip(reply.jobs) {
                match item.item {
                    Some(Item::Job(job)) => ids[place] = Some(job.job_id),
                    Some(Item::Error(ItemError { retry_after_ms: Some(ms), .. })) => {
                        again_in = again_in.max(Duration::from_millis(ms));
                        again.push((place, child));
                    }
                    Some(Item::Error(error)) if error.code == "unavailable" => {
                        return Err(JobError::retryable(format_args!("child {}: {}", child.key, error.message)));
                    }
                    Some(Item::Error(error)) => {
                        return Err(JobError::fatal(format_args!(
                            "child {}: {} ({})",
                            child.key, error.message, error.code
                        )));
                    }
                    None => return Err(JobError::retryable("the server did not answer for every child")),
                }
            }
            waiting = again;
            if !waiting.is_empty() {
                tokio::time::sleep(again_in).await;
            }
        }
        Ok(ids.into_iter().flatten().collect())
    }

    /// The outcomes of the children of this life, in the order of submission, including those still under way. Results that
    /// policy holds back are left out.
    pub async fn children(&self) -> Result<Vec<ChildOutcome>, JobError> {
        let (mut children, mut cursor) = (Vec::new(), String::new());
        loop {
            let (job_id, token) = (self.job_id().to_owned(), self.token().to_owned());
            let request = self.of_tenant(ListChildrenRequest { job_id, token, cursor })?;
            let mut client = self.client()?;
            let page = answered(client.list_children(request).await.map_err(Box::new))?.into_inner();
            children.extend(page.children.into_iter().map(ChildOutcome::from));
            if page.next_cursor.is_empty() {
                return Ok(children);
            }
            cursor = page.next_cursor;
        }
    }

    fn client(&self) -> Result<WorkerClient<BearerChannel>, JobError> {
        let channel = self.channel().ok_or_else(|| JobError::retryable("not attached to a server that could be asked"))?;
        Ok(WorkerClient::new(channel))
    }

    fn of_tenant<T>(&self, message: T) -> Result<Request<T>, JobError> {
        let mut request = Request::new(message);
        request.set_timeout(ANSWER_WITHIN);
        let tenant = AsciiMetadataValue::try_from(self.tenant()).map_err(JobError::fatal)?;
        request.metadata_mut().insert("x-lockgate-tenant", tenant);
        Ok(request)
    }
}

/// An invalid request stays invalid; every other error may be temporary.
fn answered<T>(answer: Result<T, Box<Status>>) -> Result<T, JobError> {
    answer.map_err(|status| {
        let text = format!("children: {}", status.message());
        if status.code() == Code::InvalidArgument { JobError::fatal(text) } else { JobError::retryable(text) }
    })
}

fn batches(children: Vec<NewChild>) -> Vec<Vec<NewChild>> {
    let mut batches: Vec<Vec<NewChild>> = Vec::new();
    let mut bytes = 0;
    for child in children {
        let size = child.job.as_ref().map_or(0, |job| job.payload_json.len());
        match batches.last_mut().filter(|batch| batch.len() < BATCH && bytes + size <= BATCH_BYTES) {
            Some(batch) => {
                bytes += size;
                batch.push(child);
            }
            None => {
                bytes = size;
                batches.push(vec![child]);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(n: usize, bytes: usize) -> NewChild {
        Child::new(format!("c-{n}"), "t").payload(&"x".repeat(bytes)).0.expect("JSON")
    }

    #[test]
    fn batches_are_bounded_by_number_and_by_bytes() {
        let sizes = |children: Vec<NewChild>| batches(children).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes((0..2_500).map(|n| child(n, 1)).collect()), [1_000, 1_000, 500]);
        assert_eq!(sizes((0..5).map(|n| child(n, 1_000_000)).collect()), [2, 2, 1]);
        assert_eq!(sizes(Vec::new()), [0; 0]);
    }

    #[test]
    fn a_wait_says_what_follows() {
        let wire = result::AwaitChildren::from(Wait::up_to(Duration::from_secs(2)).or_review());
        assert_eq!((wire.timeout_ms, wire.on_timeout.as_str()), (Some(2_000), "review"));
        let wire = result::AwaitChildren::from(Wait::default());
        assert_eq!((wire.timeout_ms, wire.on_timeout.as_str()), (None, "fail"));
    }
}
