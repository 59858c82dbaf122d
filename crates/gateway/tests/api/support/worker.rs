//! A worker that does exactly what a test says.

use std::collections::VecDeque;

use futures::channel::mpsc::{UnboundedSender, unbounded};
use lockgate_proto::v1::worker_client::WorkerClient;
use lockgate_proto::v1::{self, Assignment, Hello, ServerMessage, Welcome, WorkerMessage, result};
use tonic::{Status, Streaming};

use super::{PATIENCE, Server};

pub(crate) struct ScriptedWorker {
    pub(crate) welcome: Welcome,
    outbound: UnboundedSender<WorkerMessage>,
    inbound: Streaming<ServerMessage>,
    /// Assignments that came while something else was waited for.
    early: VecDeque<Assignment>,
}

pub(crate) fn hello(session: &str) -> Hello {
    Hello {
        session: session.to_owned(),
        worker_id: "scripted".to_owned(),
        pool: "default".to_owned(),
        topics: vec!["job.*".to_owned()],
        slots: 8,
        ..Hello::default()
    }
}

pub(crate) fn succeeded(json: &str) -> result::Outcome {
    result::Outcome::Succeeded(result::Succeeded { result_json: json.to_owned().into() })
}

impl ScriptedWorker {
    pub(crate) async fn attach(server: &Server, hello: Hello) -> Self {
        let first = WorkerMessage { hello: Some(hello), ..WorkerMessage::default() };
        Self::open(server, first).await.expect("attached")
    }

    pub(crate) async fn open(server: &Server, first: WorkerMessage) -> Result<Self, Status> {
        let (outbound, messages) = unbounded();
        outbound.unbounded_send(first).expect("open");
        let mut inbound = WorkerClient::new(server.channel().await).attach(messages).await?.into_inner();
        let welcome = inbound.message().await?.and_then(|message| message.welcome).expect("a welcome first");
        Ok(Self { welcome, outbound, inbound, early: VecDeque::new() })
    }

    pub(crate) fn send(&self, message: WorkerMessage) {
        self.outbound.unbounded_send(message).expect("open");
    }

    /// The next message; none when the server ended the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<ServerMessage>, Status> {
        tokio::time::timeout(PATIENCE, self.inbound.message()).await.expect("a message in time")
    }

    /// The next message that `wanted` finds something in.
    pub(crate) async fn until<T>(&mut self, wanted: impl Fn(ServerMessage) -> Option<T>) -> T {
        loop {
            let message = self.next().await.expect("an unbroken stream").expect("not the end");
            if let Some(found) = wanted(message) {
                return found;
            }
        }
    }

    pub(crate) async fn assignment(&mut self) -> Assignment {
        if let Some(early) = self.early.pop_front() {
            return early;
        }
        self.until(|message| message.assignments.into_iter().next()).await
    }

    /// Reports how an attempt ended and waits for the acknowledgement. True when it was superseded.
    pub(crate) async fn report(&mut self, assignment: &Assignment, outcome: Option<result::Outcome>) -> bool {
        let (job_id, token) = (assignment.job_id.clone(), assignment.token.clone());
        let results = vec![v1::Result { job_id, token: token.clone(), outcome, ..v1::Result::default() }];
        self.send(WorkerMessage { results, ..WorkerMessage::default() });
        loop {
            let message = self.next().await.expect("an unbroken stream").expect("not the end");
            self.early.extend(message.assignments);
            if let Some(ack) = message.acks.into_iter().find(|ack| ack.token == token) {
                return ack.superseded;
            }
        }
    }

    /// Takes the next job and ends it like this.
    pub(crate) async fn run_one(&mut self, outcome: Option<result::Outcome>) -> Assignment {
        let assignment = self.assignment().await;
        assert!(!self.report(&assignment, outcome).await, "the attempt counts");
        assignment
    }
}
