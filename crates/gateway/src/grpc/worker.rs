//! The `Worker` service: one stream per worker, two directions that do not wait for each other.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use futures::{FutureExt, Stream, StreamExt};
use lockgate_api::new_job;
use lockgate_core::access::Identity;
use lockgate_core::ids::JobSeq;
use lockgate_engine::{ApiError, Attachment, FromWorker, Hello, ToWorker, Welcome};
use lockgate_ports::{Clock, Cursor};
use lockgate_proto::v1;
use lockgate_proto::v1::worker_server::Worker;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Request, Response, Status, Streaming};

use super::scheduler::answered;
use super::{GrpcResult, WorkerService, answer, caller, exchange};
use crate::auth::{Authenticated, Beside};
use crate::{errors, queries, submit, wire};

/// What a worker that is refused asked for, on record.
const ATTACH: &str = "/lockgate.v1.Worker/Attach";

type AttachedStream = (Attachment, Welcome, Receiver<ToWorker>);

/// Messages of the engine taken at once; they become one message on the wire.
const DRAIN_MAX: usize = 1_024;
/// Results taken at once: bounds one commit.
const RESULTS_MAX: usize = 4_096;
/// Messages taken at once: who says much and reports nothing must not be listened to without an end.
const MESSAGES_MAX: usize = 1_024;

#[tonic::async_trait]
impl Worker for WorkerService {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<v1::ServerMessage, Status>> + Send>>;

    async fn attach(&self, request: Request<Streaming<v1::WorkerMessage>>) -> Result<Response<Self::AttachStream>, Status> {
        let identity = request.extensions().get::<Authenticated>().map(|admitted| admitted.identity.clone());
        let mut inbound = request.into_inner();
        let hello = inbound.message().await?.and_then(|message| message.hello);
        let hello = hello.ok_or_else(|| refuse("hello", "must be the first message of a stream"))?;
        let in_process = self.0.settings.in_process_session.as_ref();
        let hello = exchange::hello(hello, in_process).map_err(|error| errors::status(&error))?;
        let (attachment, welcome, waiting) = self.enter(identity, hello).await.map_err(|error| errors::status(&error))?;

        let ended = self.0.closing.child_token();
        let (failed, failure) = oneshot::channel();
        let reader = StreamReader { inbound, attachment, clock: self.0.clock.clone(), ended: ended.clone() };
        tokio::spawn(reader.run(failed));
        let writer = StreamWriter {
            waiting,
            taken: Vec::new(),
            ready: VecDeque::new(),
            failure,
            ended: ended.clone(),
            _reader: ended.clone().drop_guard(),
        };
        let first = futures::stream::iter([Ok(exchange::welcome(&welcome))]);
        let stream: Self::AttachStream = Box::pin(first.chain(writer.stream()));
        let mut response = Response::new(stream);
        // The reader ends with the credential even if the worker reads nothing of the answer.
        response.extensions_mut().insert(Beside(ended));
        Ok(response)
    }

    async fn submit_children(&self, request: Request<v1::SubmitChildrenRequest>) -> GrpcResult<v1::SubmitJobsResponse> {
        let caller = caller(&request)?;
        let v1::SubmitChildrenRequest { job_id, token, children } = request.into_inner();
        let children = children.into_iter().map(|child| (child.key, new_job(child.job.unwrap_or_default())));
        let answers = submit::children(&self.0.engine, &caller, (&job_id.into(), token.into()), children).await;
        answer(answers.map(|answers| answered(answers, self.0.settings.ack)))
    }

    async fn list_children(&self, request: Request<v1::ListChildrenRequest>) -> GrpcResult<v1::ListChildrenResponse> {
        let caller = caller(&request)?;
        let v1::ListChildrenRequest { job_id, token, cursor } = request.into_inner();
        let cursor = queries::cursor(&cursor).map_err(|error| errors::status(&ApiError::Invalid(vec![error])))?;
        let after = JobSeq(cursor.map_or(0, |cursor| cursor.0));
        let page = self.0.engine.children(&caller, &job_id.into(), &token.into(), after).await;
        answer(page.map(|page| v1::ListChildrenResponse {
            children: page.children.iter().map(wire::child).collect(),
            next_cursor: page.next.map(|next| queries::cursor_text(Cursor(next.0))).unwrap_or_default(),
        }))
    }
}

impl WorkerService {
    /// C-2: a worker comes in for the pools of its credential, and under its own name only. Other attempts are audited.
    async fn enter(&self, identity: Option<Identity>, mut hello: Hello) -> Result<AttachedStream, ApiError> {
        let Some(identity) = identity else { return self.0.engine.attach(hello).await };
        hello.profile.owner = Some(identity.actor.clone());
        let entered = match identity.grant.holds_pool(&hello.profile.pool) {
            true => self.0.engine.attach(hello).await,
            false => {
                let text = format!("the credential is not for workers of pool {:?}", hello.profile.pool.as_str());
                Err(ApiError::Forbidden(text))
            }
        };
        if let Err(ApiError::Forbidden(why)) = &entered {
            self.0.engine.note_refused(&identity, ATTACH, why).await;
        }
        entered
    }
}

/// Takes what the worker says in its order, which is what the inventory rule rests on.
struct StreamReader {
    inbound: Streaming<v1::WorkerMessage>,
    attachment: Attachment,
    clock: Arc<dyn Clock>,
    ended: CancellationToken,
}

impl StreamReader {
    /// Ends with the stream. Dropping the attachment closes the other direction; `failed` says why first.
    ///
    /// What arrived while the last commit ran is taken as one: a commit per message would keep small messages small, for
    /// the worker answers each with as many results as it was given places.
    async fn run(mut self, failed: oneshot::Sender<Status>) {
        while let Some(first) = self.next().await {
            let mut heard = InboundBatch::default();
            let mut more = heard.take(first, &*self.clock);
            let mut messages = 1;
            while more && heard.said.results.len() < RESULTS_MAX && messages < MESSAGES_MAX {
                let Some(next) = self.inbound.message().now_or_never() else { break };
                more = heard.take(next, &*self.clock);
                messages += 1;
            }
            self.attachment.receive(heard.said).await;
            match heard.end {
                None => {}
                Some(StreamEnd::Stream) => return,
                Some(StreamEnd::Broken(status)) => {
                    tracing::debug!(session = %self.attachment.session(), %status, "a worker's stream broke");
                    return;
                }
                Some(StreamEnd::Refused(status)) => {
                    // The writer may be gone already; then the status has no receiver.
                    let _ = failed.send(status);
                    return;
                }
            }
        }
    }

    /// The next step of the stream, unless it was ended from here: a client that does not read is not told that it was.
    async fn next(&mut self) -> Option<Result<Option<v1::WorkerMessage>, Status>> {
        tokio::select! {
            biased;
            () = self.ended.cancelled() => None,
            () = self.attachment.given_up() => None,
            step = self.inbound.message() => Some(step),
        }
    }
}

/// Messages that were there to be read, as one.
#[derive(Default)]
struct InboundBatch {
    said: FromWorker,
    end: Option<StreamEnd>,
}

/// Why nothing more comes.
enum StreamEnd {
    Stream,
    Broken(Status),
    /// It said what no worker may say.
    Refused(Status),
}

impl InboundBatch {
    /// Takes one step of the stream. False when it was the last.
    fn take(&mut self, step: Result<Option<v1::WorkerMessage>, Status>, clock: &dyn Clock) -> bool {
        match step {
            Ok(Some(message)) if message.hello.is_none() => match exchange::from_worker(message, clock.now()) {
                Ok(said) => {
                    self.said.absorb(said);
                    return true;
                }
                Err(error) => self.end = Some(StreamEnd::Refused(errors::status(&error))),
            },
            Ok(Some(_)) => {
                self.end = Some(StreamEnd::Refused(refuse("hello", "must be the first message of a stream, and only that")));
            }
            Ok(None) => self.end = Some(StreamEnd::Stream),
            Err(status) => self.end = Some(StreamEnd::Broken(status)),
        }
        false
    }
}

/// Sends what waits for the worker: everything that gathered while the last message was written goes in the next.
struct StreamWriter {
    waiting: Receiver<ToWorker>,
    taken: Vec<ToWorker>,
    ready: VecDeque<v1::ServerMessage>,
    failure: oneshot::Receiver<Status>,
    ended: CancellationToken,
    /// The reader ends when the writer does: after the session attached elsewhere, or when the client went away.
    _reader: DropGuard,
}

impl StreamWriter {
    fn stream(self) -> impl Stream<Item = Result<v1::ServerMessage, Status>> {
        futures::stream::unfold(Some(self), |writer| async move {
            let mut writer = writer?;
            match writer.next().await {
                Some(message) => Some((Ok(message), Some(writer))),
                None => writer.failure.try_recv().ok().map(|status| (Err(status), None)),
            }
        })
    }

    async fn next(&mut self) -> Option<v1::ServerMessage> {
        if self.ready.is_empty() {
            let Self { waiting, taken, ended, .. } = self;
            let count = ended.run_until_cancelled(waiting.recv_many(taken, DRAIN_MAX)).await?;
            if count == 0 {
                return None;
            }
            exchange::merge(taken.drain(..), exchange::MESSAGE_BYTES, &mut self.ready);
        }
        self.ready.pop_front()
    }
}

fn refuse(field: &str, message: &str) -> Status {
    errors::status(&ApiError::invalid(field, message))
}
