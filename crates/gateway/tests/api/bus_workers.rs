//! The worker protocol over messages.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::access::ApiKey;
use lockgate_core::ids::WorkerId;
use lockgate_engine::WorkerStatus;
use lockgate_gateway::{BusWorkerSettings, BusWorkers, Gateway, GatewaySettings, SendFailure, WorkerMessenger};
use lockgate_proto::v1::{self, ServerMessage, WorkerMessage};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::{Closed, PATIENCE, Server, hello, succeeded};

const BYTES_MAX: usize = 64 * 1024;

/// Carries every message to one receiver.
struct Carrier(UnboundedSender<ServerMessage>);

#[tonic::async_trait]
impl WorkerMessenger for Carrier {
    async fn tell(&self, _: &WorkerId, message: &ServerMessage) -> Result<(), SendFailure> {
        if prost::Message::encoded_len(message) > BYTES_MAX {
            return Err(SendFailure::TooLarge);
        }
        self.0.send(message.clone()).map_err(|_| SendFailure::Away)
    }

    fn bytes_max(&self) -> usize {
        BYTES_MAX
    }
}

struct Post {
    bus_workers: BusWorkers,
    inbound: UnboundedReceiver<ServerMessage>,
}

impl Post {
    fn open(server: &Server, settings: GatewaySettings, key: Option<ApiKey>, quiet_after: Duration) -> Option<Self> {
        let (sender, inbound) = unbounded_channel();
        let gateway = Gateway { engine: server.engine.clone(), clock: server.clock.clone(), settings };
        let lost_after = Duration::from_secs(90);
        let settings = BusWorkerSettings { address: "here".to_owned(), lost_after, quiet_after, key };
        Some(Self { bus_workers: gateway.bus_workers(settings, Arc::new(Carrier(sender)))?, inbound })
    }

    fn start(server: &Server) -> Self {
        Self::open(server, GatewaySettings::default(), None, PATIENCE).expect("nobody is asked who they are")
    }

    async fn until<T>(&mut self, wanted: impl Fn(&ServerMessage) -> Option<T>) -> (ServerMessage, T) {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.inbound.recv()).await.expect("in time").expect("open");
            if let Some(found) = wanted(&message) {
                return (message, found);
            }
        }
    }

    async fn attach(&mut self, session: &str) -> (u64, v1::Welcome) {
        self.bus_workers.hello(hello(session)).await;
        let (message, welcome) = self.until(|message| message.welcome.clone()).await;
        assert_eq!((message.session.as_str(), message.epoch), (session, welcome.epoch));
        (message.epoch, welcome)
    }

    async fn assignment(&mut self) -> v1::Assignment {
        self.until(|message| message.assignments.first().cloned()).await.1
    }

    /// True when it was superseded.
    async fn report(&self, assignment: &v1::Assignment) -> bool {
        let answer = self.bus_workers.report(result_of(assignment, "1")).await.expect("decided");
        assert_eq!(answer.acks.len(), 1);
        answer.acks[0].superseded
    }
}

fn result_of(assignment: &v1::Assignment, json: &str) -> WorkerMessage {
    let (job_id, token) = (assignment.job_id.clone(), assignment.token.clone());
    let results = vec![v1::Result { job_id, token, outcome: Some(succeeded(json)), ..v1::Result::default() }];
    WorkerMessage { results, ..said("s-1") }
}

fn said(session: &str) -> WorkerMessage {
    WorkerMessage { session: session.to_owned(), ..WorkerMessage::default() }
}

#[tokio::test]
async fn a_job_runs_from_submit_to_result_without_a_stream() {
    let server = Server::start().await;
    let mut post = Post::start(&server);
    let (_, welcome) = post.attach("s-1").await;
    assert_eq!((&*welcome.address, welcome.beat_every_ms, welcome.lost_after_ms), ("here", 3_000, 90_000));
    let id = server.submit(json!({ "topic": "job.echo" })).await;
    let assignment = post.assignment().await;
    let start = v1::Start { job_id: id.clone(), token: assignment.token.clone() };
    post.bus_workers.heard(WorkerMessage { starts: vec![start], ..said("s-1") });
    let running = async || server.get(&format!("/v1/jobs/{id}")).await.json["state"] == "RUNNING";
    server.wait_for("it runs", running).await;
    assert!(!post.report(&assignment).await);
    assert!(post.report(&assignment).await, "a second result changes nothing");
    assert_eq!(server.get(&format!("/v1/jobs/{id}")).await.json["state"], "SUCCEEDED");
    post.bus_workers.heard(WorkerMessage { beat: Some(v1::Beat { number: 7, ..v1::Beat::default() }), ..said("s-1") });
    assert_eq!(post.until(|message| message.beat_ack).await.1.number, 7);
}

#[tokio::test]
async fn a_result_with_two_faces_fails_the_job_without_a_stream_too() {
    let server = Server::start().await;
    let mut post = Post::start(&server);
    post.attach("s-1").await;
    let id = server.submit(json!({ "topic": "job.echo" })).await;
    let assignment = post.assignment().await;
    post.bus_workers.report(result_of(&assignment, r#"{"to":"evil","to":"ok"}"#)).await.expect("decided");
    let job = server.get(&format!("/v1/jobs/{id}")).await.json;
    assert_eq!(job["state"], "FAILED", "{job}");
    assert!(job["last_error"]["message"].as_str().is_some_and(|text| text.contains("result.to: is given twice")), "{job}");
}

#[tokio::test]
async fn a_hello_that_cannot_be_taken_is_refused_with_the_field() {
    let server = Server::start().await;
    let mut post = Post::start(&server);
    post.bus_workers.hello(v1::Hello { pool: "no-such".to_owned(), ..hello("s-1") }).await;
    let (message, refused) = post.until(|message| message.refused.clone()).await;
    assert_eq!((&*message.session, &*refused.code), ("s-1", "invalid_argument"));
    assert!(refused.message.contains("no-such"), "{refused:?}");
    // Nobody could be told of these.
    for worker_id in ["", "a b", "a..b", ">"] {
        post.bus_workers.hello(v1::Hello { worker_id: worker_id.to_owned(), ..hello("s-1") }).await;
    }
    assert!(post.inbound.try_recv().is_err());
}

#[tokio::test]
async fn a_second_hello_brings_a_new_epoch_and_what_never_arrived() {
    let server = Server::start().await;
    let mut post = Post::start(&server);
    let (first, _) = post.attach("s-1").await;
    let id = server.submit(json!({ "topic": "job.echo" })).await;
    let lost_on_the_way = post.assignment().await;
    let (second, _) = post.attach("s-1").await;
    assert!(second > first);
    let again = post.assignment().await;
    assert_eq!((&again.job_id, &again.token), (&id, &lost_on_the_way.token), "the same attempt, sent again");
    assert!(!post.report(&again).await);
}

#[tokio::test]
async fn who_is_quiet_gets_nothing_more_and_is_asked_to_come_again() {
    let server = Server::start().await;
    let quiet_after = Duration::from_millis(50);
    let mut post = Post::open(&server, GatewaySettings::default(), None, quiet_after).expect("open");
    let (epoch, _) = post.attach("s-1").await;
    let (message, ()) = post.until(|message| message.attach_again.then_some(())).await;
    assert_eq!((&*message.session, message.epoch), ("s-1", epoch));
    server.submit(json!({ "topic": "job.echo" })).await;
    post.bus_workers.heard(WorkerMessage { beat: Some(v1::Beat::default()), ..said("s-1") });
    post.attach("s-1").await;
    post.assignment().await;
}

#[tokio::test]
async fn a_job_that_no_message_can_carry_fails_with_that_reason() {
    let server = Server::start().await;
    let mut post = Post::start(&server);
    post.attach("s-1").await;
    let id = server.submit(json!({ "topic": "job.echo", "payload": "x".repeat(BYTES_MAX) })).await;
    server.wait_for("it failed", async || server.get(&format!("/v1/jobs/{id}")).await.json["state"] == "FAILED").await;
    let job = server.get(&format!("/v1/jobs/{id}")).await;
    assert!(job.json.to_string().contains("a message to worker scripted at most 65536"), "{job:?}");
    server.submit(json!({ "topic": "job.echo" })).await;
    post.assignment().await;
}

#[tokio::test]
async fn all_workers_are_sent_elsewhere_when_the_process_ends() {
    let server = Server::start().await;
    let mut post = Post::start(&server);
    post.attach("s-1").await;
    post.bus_workers.close().await;
    post.until(|message| message.attach_again.then_some(())).await;
}

#[tokio::test]
async fn the_key_that_stands_for_workers_must_be_one_of_a_worker() {
    let server = Closed::start().await;
    assert!(Post::open(&server, Closed::settings(), None, PATIENCE).is_none(), "nobody stands for them");
    let key = async |role: &str| ApiKey::parse(&server.key(role, None).await).expect("a key");
    let mut post = Post::open(&server, Closed::settings(), Some(key("viewer").await), PATIENCE).expect("a key");
    post.bus_workers.hello(hello("s-1")).await;
    assert_eq!(post.until(|message| message.refused.clone()).await.1.code, "unavailable");
    let mut post = Post::open(&server, Closed::settings(), Some(key("worker").await), PATIENCE).expect("a key");
    post.attach("s-1").await;
}

#[tokio::test]
async fn workers_do_not_outlive_the_key_that_stands_for_them() {
    let server = Closed::start().await;
    let text = server.key("worker", None).await;
    let key = ApiKey::parse(&text).expect("a key");
    // Nobody is quiet for so long here.
    let mut post = Post::open(&server, Closed::settings(), Some(key), 6 * PATIENCE).expect("a key");
    let (epoch, _) = post.attach("s-1").await;
    let submitted = server.post_as(&server.admin_key, "/v1/jobs", &json!({ "topic": "job.echo" })).await;
    let id = submitted.json["job_id"].as_str().expect("an id");
    let assignment = post.assignment().await;
    server.revoke(&text).await;
    let (message, ()) = post.until(|message| message.attach_again.then_some(())).await;
    assert_eq!((&*message.session, message.epoch), ("s-1", epoch));
    assert_eq!(server.engine.workers()[0].status, WorkerStatus::Detached);
    post.bus_workers.hello(hello("s-1")).await;
    assert_eq!(post.until(|message| message.refused.clone()).await.1.code, "unavailable");
    let waits = post.bus_workers.report(result_of(&assignment, "1")).await.expect_err("not taken");
    assert_eq!(waits.code(), "unavailable", "it comes again when there is a good key: {waits}");
    let job = server.get_as(&server.admin_key, &format!("/v1/jobs/{id}")).await;
    assert_ne!(job.json["state"], "SUCCEEDED", "{job:?}");
}
