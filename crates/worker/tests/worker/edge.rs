//! The server's side of the protocol, played by the test.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockgate_proto::v1::result::Outcome;
use lockgate_proto::v1::submit_jobs_response::{self, item::Item};
use lockgate_proto::v1::worker_server::{Worker, WorkerServer};
use lockgate_proto::v1::{
    Assignment, Beat, BeatAck, ChildOutcome, Hello, ItemError, JobState, ListChildrenRequest, ListChildrenResponse,
    NewChild, Result as Report, ResultAck, Revoke, ServerMessage, Stop, SubmitChildrenRequest, SubmitJobResponse,
    SubmitJobsResponse, Welcome, WorkerMessage,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::MetadataMap;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};

/// Nothing a test waits for takes this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain for {what}"))
}

/// How an edge treats its workers.
#[derive(Clone, Copy)]
pub(crate) struct Manners {
    pub(crate) beat_every_ms: u32,
    pub(crate) lost_after_ms: u32,
    pub(crate) answer_beats: bool,
    /// How long ago others heard of it, as it says.
    pub(crate) lease_age_ms: u32,
}

impl Default for Manners {
    fn default() -> Self {
        Self { beat_every_ms: 50, lost_after_ms: 10_000, answer_beats: true, lease_age_ms: 0 }
    }
}

/// A server of which every stream is handed to the test.
pub(crate) struct Edge {
    pub(crate) address: SocketAddr,
    manners: Manners,
    streams: UnboundedReceiver<Arrival>,
    server: JoinHandle<()>,
}

type Outgoing = UnboundedSender<Result<ServerMessage, Status>>;

/// A new stream, and the headers it came with.
type Arrival = (MetadataMap, Streaming<WorkerMessage>, Outgoing);

impl Edge {
    pub(crate) async fn start(manners: Manners) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), manners).await
    }

    pub(crate) async fn start_at(address: SocketAddr, manners: Manners) -> Self {
        Self::serve(Server::builder(), address, manners).await
    }

    /// Over TLS.
    pub(crate) async fn start_with(tls: ServerTlsConfig) -> Self {
        let server = Server::builder().tls_config(tls).unwrap();
        Self::serve(server, "127.0.0.1:0".parse().unwrap(), Manners::default()).await
    }

    async fn serve(mut server: Server, address: SocketAddr, manners: Manners) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (door, streams) = unbounded_channel();
        let serve = server
            .add_service(WorkerServer::new(Door { streams: door, calls: AtomicU32::new(0) }))
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)));
        let server = tokio::spawn(async move { serve.await.unwrap() });
        Self { address, manners, streams, server }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits for a worker and welcomes it.
    pub(crate) async fn accept(&mut self) -> Attached {
        let (hello, mut attached) = self.greet().await;
        attached.hello = hello;
        let Manners { beat_every_ms, lost_after_ms, .. } = self.manners;
        let welcome =
            Welcome { epoch: 1, beat_every_ms, lost_after_ms, server_version: "test".to_owned(), ..Welcome::default() };
        attached.send(ServerMessage { welcome: Some(welcome), ..ServerMessage::default() });
        attached
    }

    /// Waits for a worker and turns it away.
    pub(crate) async fn refuse(&mut self, status: Status) {
        let (_, attached) = self.greet().await;
        attached.outgoing.send(Err(status)).unwrap();
    }

    async fn greet(&mut self) -> (Hello, Attached) {
        let (headers, incoming, outgoing) = within("a worker", self.streams.recv()).await.unwrap();
        let manners = self.manners;
        let mut attached = Attached { hello: Hello::default(), headers, incoming, outgoing, manners, last: 0 };
        let hello = attached.next().await.expect("a stream begins with a hello").hello;
        (hello.expect("the first message is a hello"), attached)
    }

    /// Dies without a word. The port is free for another edge afterwards.
    pub(crate) async fn kill(self) {
        self.server.abort();
        let _ = self.server.await;
    }
}

/// A submit of children with topic "crowded" finds no room the first time; one with topic "refused" never does.
struct Door {
    streams: UnboundedSender<Arrival>,
    calls: AtomicU32,
}

#[tonic::async_trait]
impl Worker for Door {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<ServerMessage, Status>> + Send>>;

    async fn attach(&self, request: Request<Streaming<WorkerMessage>>) -> Result<Response<Self::AttachStream>, Status> {
        let (outgoing, answers) = unbounded_channel();
        let (headers, _, incoming) = request.into_parts();
        self.streams.send((headers, incoming, outgoing)).map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(answers))))
    }

    async fn submit_children(
        &self,
        request: Request<SubmitChildrenRequest>,
    ) -> Result<Response<SubmitJobsResponse>, Status> {
        let first = self.calls.fetch_add(1, Ordering::Relaxed) == 0;
        let SubmitChildrenRequest { job_id, children, .. } = request.into_inner();
        let error = |code: &str, retry_after_ms| {
            Item::Error(ItemError { code: code.to_owned(), message: "no".to_owned(), retry_after_ms })
        };
        let answer = |child: NewChild| match child.job.unwrap_or_default().topic.as_str() {
            "crowded" if first => error("quota_exceeded", Some(1)),
            "refused" => error("invalid_argument", None),
            _ => {
                let job_id = format!("{job_id}~{}", child.key);
                Item::Job(SubmitJobResponse { job_id, ..SubmitJobResponse::default() })
            }
        };
        let item = |child| submit_jobs_response::Item { item: Some(answer(child)) };
        Ok(Response::new(SubmitJobsResponse { jobs: children.into_iter().map(item).collect() }))
    }

    /// Two pages of one child each.
    async fn list_children(&self, request: Request<ListChildrenRequest>) -> Result<Response<ListChildrenResponse>, Status> {
        let first = request.into_inner().cursor.is_empty();
        let (key, state) = if first { ("a", JobState::Succeeded) } else { ("b", JobState::Failed) };
        let child = ChildOutcome {
            key: key.to_owned(),
            state: state.into(),
            result_json: if first { "7".into() } else { Vec::new().into() },
            ..ChildOutcome::default()
        };
        let next_cursor = if first { "more".to_owned() } else { String::new() };
        Ok(Response::new(ListChildrenResponse { children: vec![child], next_cursor }))
    }
}

/// One stream of one worker. Dropping it ends the stream.
pub(crate) struct Attached {
    pub(crate) hello: Hello,
    pub(crate) headers: MetadataMap,
    incoming: Streaming<WorkerMessage>,
    outgoing: Outgoing,
    manners: Manners,
    last: u64,
}

impl Attached {
    pub(crate) fn send(&self, message: ServerMessage) {
        let _ = self.outgoing.send(Ok(message));
    }

    /// Sends all jobs in one message. Numbers are given here.
    pub(crate) fn assign(&mut self, jobs: impl IntoIterator<Item = Assignment>) {
        let mut number = |mut job: Assignment| {
            self.last += 1;
            job.number = self.last;
            job
        };
        let assignments = jobs.into_iter().map(&mut number).collect();
        self.send(ServerMessage { assignments, ..ServerMessage::default() });
    }

    pub(crate) fn ack(&self, token: &str) {
        self.answer(token, false);
    }

    pub(crate) fn answer(&self, token: &str, superseded: bool) {
        let acks = vec![ResultAck { token: token.to_owned(), superseded }];
        self.send(ServerMessage { acks, ..ServerMessage::default() });
    }

    pub(crate) fn stop(&self, token: &str) {
        let stops = vec![Stop { job_id: String::new(), token: token.to_owned(), reason: "cancelled".to_owned() }];
        self.send(ServerMessage { stops, ..ServerMessage::default() });
    }

    /// Calls attempts back, if they have not begun.
    pub(crate) fn revoke(&self, tokens: &[&str]) {
        let revokes = tokens.iter().map(|token| revoke(token)).collect();
        self.send(ServerMessage { revokes, ..ServerMessage::default() });
    }

    /// Wants the worker to leave.
    pub(crate) fn drain(&self) {
        self.send(ServerMessage { drain: true, ..ServerMessage::default() });
    }

    /// Tells a draining worker that nothing more comes.
    pub(crate) fn dismiss(&self) {
        self.send(ServerMessage { dismissed: true, ..ServerMessage::default() });
    }

    /// The next message; none at the end of the stream. Beats are answered in passing.
    pub(crate) async fn next(&mut self) -> Option<WorkerMessage> {
        let message = within("a message", self.incoming.next()).await?.ok()?;
        if let Some(beat) = message.beat.as_ref().filter(|_| self.manners.answer_beats) {
            let beat_ack = Some(BeatAck { number: beat.number, lease_age_ms: self.manners.lease_age_ms });
            self.send(ServerMessage { beat_ack, ..ServerMessage::default() });
        }
        Some(message)
    }

    /// Reads until a message satisfies `look`.
    pub(crate) async fn until<T>(&mut self, what: &str, mut look: impl FnMut(&WorkerMessage) -> Option<T>) -> T {
        let search = async {
            while let Some(message) = self.next().await {
                if let Some(found) = look(&message) {
                    return found;
                }
            }
            panic!("the stream ended before {what}");
        };
        within(what, search).await
    }

    /// Reads until `count` results are there; by token.
    pub(crate) async fn results(&mut self, count: usize) -> BTreeMap<String, Outcome> {
        let mut results = BTreeMap::new();
        self.until("results", |message| {
            let outcome = |report: &Report| (report.token.clone(), report.outcome.clone().unwrap());
            results.extend(message.results.iter().map(outcome));
            (results.len() >= count).then_some(())
        })
        .await;
        results
    }

    pub(crate) async fn result(&mut self) -> Outcome {
        self.results(1).await.into_values().next().unwrap()
    }

    pub(crate) async fn started(&mut self, tokens: &[&str]) {
        let mut missing: BTreeSet<String> = tokens.iter().map(|token| (*token).to_owned()).collect();
        self.until("starts", |message| {
            message.starts.iter().for_each(|start| _ = missing.remove(&start.token));
            missing.is_empty().then_some(())
        })
        .await;
    }

    /// Reads until a beat is as wanted.
    pub(crate) async fn beat(&mut self, what: &str, wanted: impl Fn(&Beat) -> bool) -> Beat {
        self.until(what, |message| message.beat.clone().filter(&wanted)).await
    }

    /// Tokens in the inventory of the next beat.
    pub(crate) async fn held(&mut self) -> Vec<String> {
        let beat = self.beat("a beat", |_| true).await;
        beat.inventory.into_iter().map(|held| held.token).collect()
    }
}

pub(crate) fn revoke(token: &str) -> Revoke {
    Revoke { job_id: format!("job-{token}"), token: token.to_owned() }
}

pub(crate) fn job(token: &str, topic: &str, payload: &str) -> Assignment {
    Assignment {
        job_id: format!("job-{token}"),
        token: token.to_owned(),
        topic: topic.to_owned(),
        payload_json: payload.to_owned().into(),
        attempt: 1,
        tenant: "acme".to_owned(),
        ..Assignment::default()
    }
}
