//! A stream and a session belong to the credential that opened them.

use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use http_body_util::BodyExt;
use lockgate_core::ids::JobId;
use lockgate_core::job::JobState;
use lockgate_engine::{Settings, WorkerStatus};
use lockgate_ports::JobStore;
use lockgate_proto::v1::scheduler_client::SchedulerClient;
use lockgate_proto::v1::worker_client::WorkerClient;
use lockgate_proto::v1::{self, Beat, ServerMessage, WatchJobRequest, WorkerMessage};
use serde_json::{Value, json};
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

use crate::support::{Closed, PATIENCE, Stage, echo, hello, succeeded};

fn with_key<T>(key: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let bearer: MetadataValue<_> = format!("Bearer {key}").parse().expect("metadata");
    request.metadata_mut().insert("authorization", bearer);
    request
}

fn id_of(key: &str) -> &str {
    key.split('_').nth(1).expect("an id")
}

impl Closed {
    async fn worker_key(&self, actor: &str) -> String {
        let body = json!({ "actor": actor, "roles": ["worker"] });
        let made = self.post_as(&self.admin_key, "/v1/keys", &body).await;
        made.json["key"].as_str().expect("a key").to_owned()
    }

    pub(crate) async fn revoke(&self, key: &str) {
        let path = format!("/v1/credentials/{}/revoke", id_of(key));
        assert_eq!(self.post_as(&self.admin_key, &path, &json!({})).await.json["ended"], true);
    }

    async fn attach_as(&self, key: &str, session: &str) -> Result<Streaming<ServerMessage>, Status> {
        let first = WorkerMessage { hello: Some(hello(session)), ..WorkerMessage::default() };
        let messages = futures::stream::iter([first]).chain(futures::stream::pending());
        let mut client = WorkerClient::new(self.channel().await);
        Ok(client.attach(with_key(key, messages)).await?.into_inner())
    }

    /// A worker that no byte of an answer can be sent to: the window of its streams is shut.
    async fn attach_mute(&self, key: &str, session: &str) -> Mute {
        let endpoint = Channel::from_shared(format!("http://{}", self.address)).expect("a URL");
        let channel = endpoint.initial_stream_window_size(0_u32).connect().await.expect("the server listens");
        let (outbound, messages) = unbounded();
        let first = WorkerMessage { hello: Some(hello(session)), ..WorkerMessage::default() };
        outbound.unbounded_send(first).expect("open");
        let answer = WorkerClient::new(channel).attach(with_key(key, messages)).await.expect("attached");
        Mute { outbound, _inbound: answer.into_inner() }
    }

    async fn audited(&self, action: &str) -> Vec<Value> {
        let audit = self.get_as(&self.admin_key, "/v1/audit?limit=1000").await;
        let rows = audit.json["rows"].as_array().expect("rows");
        rows.iter().filter(|row| row["action"] == action).cloned().collect()
    }
}

/// A worker that goes on speaking and reads nothing.
struct Mute {
    outbound: UnboundedSender<WorkerMessage>,
    _inbound: Streaming<ServerMessage>,
}

impl Mute {
    fn beat(&self) {
        self.say(WorkerMessage { beat: Some(Beat::default()), ..WorkerMessage::default() });
    }

    fn report(&self, job_id: &str, token: &str) {
        let (job_id, token) = (job_id.to_owned(), token.to_owned());
        let results = vec![v1::Result { job_id, token, outcome: Some(succeeded("1")), ..v1::Result::default() }];
        self.say(WorkerMessage { results, ..WorkerMessage::default() });
    }

    /// It does not care whether anybody listens.
    fn say(&self, message: WorkerMessage) {
        let _ = self.outbound.unbounded_send(message);
    }
}

/// How a stream ends, whatever it says before.
async fn end<T>(stream: &mut Streaming<T>) -> Result<(), Status> {
    let ended = async {
        loop {
            match stream.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(status) => return Err(status),
            }
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("an end in time")
}

/// C-2.
#[tokio::test]
async fn a_worker_attaches_as_nobody_but_itself() {
    let server = Closed::start().await;
    let (one, two) = (server.worker_key("w-1").await, server.worker_key("w-2").await);
    let _first = server.attach_as(&one, "s-1").await.expect("its own");
    let taken = server.attach_as(&two, "s-1").await.map(|_| ());
    assert_eq!(taken.expect_err("another's").code(), Code::PermissionDenied);
    let refused = server.audited("access_refused").await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!((&refused[0]["actor"], &refused[0]["source"]), (&json!("w-2"), &json!("127.0.0.1")), "{refused:?}");
    assert_eq!(refused[0]["subject"], "/lockgate.v1.Worker/Attach");
    server.attach_as(&one, "s-1").await.expect("it comes back");
    let rotated = server.post_as(&server.admin_key, &format!("/v1/keys/{}/rotate", id_of(&one)), &json!({})).await;
    let rotated = rotated.json["key"].as_str().expect("a key").to_owned();
    server.attach_as(&rotated, "s-1").await.expect("another key of the same worker");
    server.attach_as(&two, "s-2").await.expect("a session of its own");
}

#[tokio::test]
async fn open_streams_end_when_their_credential_does() {
    let server = Closed::start().await;
    let job =
        server.post_as(&server.admin_key, "/v1/jobs", &echo()).await.json["job_id"].as_str().expect("an id").to_owned();
    let (worker, viewer, other) =
        (server.worker_key("w").await, server.key("viewer", None).await, server.key("viewer", None).await);
    let mut attached = server.attach_as(&worker, "s").await.expect("attached");
    let watch = |key: String| {
        let request = with_key(&key, WatchJobRequest { job_id: job.clone(), after: 0 });
        let channel = server.channel();
        async move { SchedulerClient::new(channel.await).watch_job(request).await.expect("watched").into_inner() }
    };
    let (mut watched, mut kept) = (watch(viewer.clone()).await, watch(other.clone()).await);
    let events = server.open_as(&viewer, &format!("/v1/jobs/{job}/events")).await;
    assert_eq!(events.status(), 200);
    server.revoke(&worker).await;
    server.revoke(&viewer).await;
    assert_eq!(end(&mut attached).await.expect_err("cut").code(), Code::Unauthenticated);
    assert_eq!(end(&mut watched).await.expect_err("cut").code(), Code::Unauthenticated);
    let said = tokio::time::timeout(PATIENCE, events.into_body().collect()).await.expect("an end in time");
    assert!(!said.expect("a good end").to_bytes().is_empty(), "what was said before it ended");
    while let Ok(said) = tokio::time::timeout(Duration::from_millis(100), kept.message()).await {
        said.expect("who has a good credential stays").expect("not the end");
    }
}

/// An assignment and answers to many beats wait for it, of which only the first can be on its way: nobody asks the answer for more.
#[tokio::test]
async fn a_worker_that_reads_nothing_does_not_outlive_its_credential() {
    let lost_after = Duration::from_secs(2);
    let stage = Stage { engine: Settings { lost_after, ..Settings::default() }, ..Stage::default() };
    let store = stage.store.clone();
    let server = Closed::start_on(stage, Closed::settings()).await;
    let key = server.worker_key("w").await;
    let mute = server.attach_mute(&key, "s").await;
    let job = server.post_as(&server.admin_key, "/v1/jobs", &echo()).await;
    let id = JobId::from(job.json["job_id"].as_str().expect("an id"));
    let stored = async || store.load(std::slice::from_ref(&id)).await.expect("read").pop().flatten().expect("there");
    let status = || server.engine.workers().first().map(|view| view.status);
    let sent = async || {
        mute.beat();
        stored().await.state() == JobState::Dispatched
    };
    server.wait_for("it is sent the job", sent).await;
    assert_eq!(status(), Some(WorkerStatus::Attached));
    let attempt = stored().await.life.attempt;

    server.revoke(&key).await;
    let cut = async || {
        mute.beat();
        status() == Some(WorkerStatus::Detached)
    };
    server.wait_for("its session is cut off", cut).await;
    mute.report(id.as_str(), attempt.token.as_str());
    let lost = async || {
        mute.beat();
        stored().await.life.attempt.no > attempt.no
    };
    server.wait_for("it is lost however much it beats", lost).await;
    assert_eq!(status(), None);
    assert_ne!(stored().await.state(), JobState::Succeeded, "what it reported then does not count");
}

#[tokio::test]
async fn every_act_says_where_it_came_from() {
    let server = Closed::start().await;
    let job =
        server.post_as(&server.admin_key, "/v1/jobs", &echo()).await.json["job_id"].as_str().expect("an id").to_owned();
    let cancelled = server.post_as(&server.admin_key, &format!("/v1/jobs/{job}/cancel"), &json!({})).await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    server.worker_key("w").await;
    let dag = json!({ "file": "d.yaml", "text": "version: 1\ndag: d\nnodes:\n  a: {topic: t}\n" });
    let stored = server.post_as(&server.admin_key, "/v1/dags", &dag).await;
    assert!(stored.status < 300, "{stored:?}");
    for action in ["job_cancelled", "dag_stored"] {
        let rows = server.audited(action).await;
        assert_eq!(rows.len(), 1, "{action}");
        assert_eq!(rows[0]["source"], "127.0.0.1", "{rows:?}");
    }
    let keys = server.audited("credential_created").await;
    let sources: Vec<&Value> = keys.iter().map(|row| &row["source"]).collect();
    assert_eq!(sources, [&json!(null), &json!("127.0.0.1")], "the first key was made by the server itself: {keys:?}");
    let verified = server.get_as(&server.admin_key, "/v1/audit/verify").await;
    assert_eq!(verified.json["intact"], true, "{verified:?}");
}
