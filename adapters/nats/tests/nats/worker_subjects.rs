//! Workers without a stream find a process, and it finds them.

use std::sync::Arc;

use async_nats::{Client, Subscriber};
use async_trait::async_trait;
use futures::StreamExt;
use lockgate_nats::{BusPublisher, Transport, Unsent, WorkerHost, WorkerSubjects};
use lockgate_proto::v1;
use lockgate_testbed::Nats;
use parking_lot::Mutex;
use prost::Message;

use crate::common::{PATIENCE, entropy, options, server, until};

/// A process that writes down what it hears, and welcomes everybody.
struct Process {
    name: &'static str,
    publisher: BusPublisher,
    heard: Mutex<Vec<String>>,
    deaf: Mutex<usize>,
}

#[async_trait]
impl WorkerHost for Process {
    async fn hello(&self, hello: v1::Hello) {
        let welcome = v1::Welcome { address: self.name.to_owned(), ..v1::Welcome::default() };
        let message = v1::ServerMessage { welcome: Some(welcome), session: hello.session, ..v1::ServerMessage::default() };
        self.publisher.tell(&hello.worker_id, &message).await.expect("sent");
    }

    fn heard(&self, message: v1::WorkerMessage) {
        self.heard.lock().push(message.session);
    }

    fn deaf(&self) {
        *self.deaf.lock() += 1;
    }
}

async fn process(nats: &Nats, name: &'static str) -> (WorkerSubjects, Arc<Process>) {
    let transport = Arc::new(Transport::connect(&options(nats), entropy()).await.expect("the options are fine"));
    let publisher = BusPublisher::new(Arc::clone(&transport));
    let process = Arc::new(Process { name, publisher, heard: Mutex::default(), deaf: Mutex::default() });
    let host: Arc<Process> = Arc::clone(&process);
    (WorkerSubjects::open(transport, name, host).await.expect("open"), process)
}

async fn worker(nats: &Nats, id: &str) -> (Client, Subscriber) {
    let client = async_nats::connect(nats.url()).await.expect("NATS answers");
    let jobs = client.subscribe(format!("worker.{id}.jobs")).await.expect("subscribed");
    (client, jobs)
}

async fn say(client: &Client, subject: String, message: v1::WorkerMessage) {
    client.publish(subject, message.encode_to_vec().into()).await.expect("sent");
    client.flush().await.expect("sent");
}

fn hello(id: &str) -> v1::WorkerMessage {
    let hello = v1::Hello { worker_id: id.to_owned(), session: format!("s-{id}"), ..v1::Hello::default() };
    v1::WorkerMessage { hello: Some(hello), ..v1::WorkerMessage::default() }
}

async fn address(jobs: &mut Subscriber) -> String {
    let message = tokio::time::timeout(PATIENCE, jobs.next()).await.expect("in time").expect("subscribed");
    let message = v1::ServerMessage::decode(message.payload).expect("an answer");
    message.welcome.expect("a welcome").address
}

#[tokio::test]
async fn one_process_takes_a_hello_and_hears_what_follows() {
    let nats = server();
    let (_one, here) = process(&nats, "here").await;
    let (_two, there) = process(&nats, "there").await;
    let (client, mut jobs) = worker(&nats, "w").await;
    say(&client, "sys.heartbeat".to_owned(), hello("w")).await;
    let address = address(&mut jobs).await;
    let (chosen, other) = if address == "here" { (here, there) } else { (there, here) };
    let words = v1::WorkerMessage { session: "s-w".to_owned(), draining: true, ..v1::WorkerMessage::default() };
    say(&client, format!("sys.heartbeat.{address}"), words).await;
    until("it is heard", async || *chosen.heard.lock() == ["s-w"]).await;
    assert!(other.heard.lock().is_empty(), "nobody else needs to read it");
}

#[tokio::test]
async fn who_has_stopped_is_not_said_hello_to() {
    let nats = server();
    let (one, _) = process(&nats, "here").await;
    let (_two, _) = process(&nats, "there").await;
    one.stop().await;
    let (client, mut jobs) = worker(&nats, "w").await;
    for _ in 0..20 {
        say(&client, "sys.heartbeat".to_owned(), hello("w")).await;
        assert_eq!(address(&mut jobs).await, "there");
    }
}

#[tokio::test]
async fn what_is_no_message_harms_nobody() {
    let nats = server();
    let (_one, here) = process(&nats, "here").await;
    let (client, mut jobs) = worker(&nats, "w").await;
    for subject in ["sys.heartbeat", "sys.heartbeat.here"] {
        client.publish(subject, vec![0xff].into()).await.expect("sent");
    }
    say(&client, "sys.heartbeat".to_owned(), v1::WorkerMessage::default()).await;
    say(&client, "sys.heartbeat".to_owned(), hello("w")).await;
    assert_eq!(address(&mut jobs).await, "here");
    assert!(here.heard.lock().is_empty());
}

#[tokio::test]
async fn without_a_server_nobody_is_heard_and_that_is_told() {
    let mut nats = server();
    let (_one, here) = process(&nats, "here").await;
    nats.kill();
    until("it is away", async || here.publisher.tell("w", &v1::ServerMessage::default()).await == Err(Unsent::Away)).await;
    let before = *here.deaf.lock();
    until("it says so again and again", async || *here.deaf.lock() >= before + 2).await;
    nats.restart().expect("NATS starts");
    until("it is back", async || here.publisher.tell("w", &v1::ServerMessage::default()).await.is_ok()).await;
}

#[tokio::test]
async fn what_no_message_can_carry_is_not_sent() {
    let nats = server();
    let (_one, here) = process(&nats, "here").await;
    let large = v1::Assignment { payload_json: vec![b'x'; here.publisher.bytes_max()].into(), ..v1::Assignment::default() };
    let message = v1::ServerMessage { assignments: vec![large], ..v1::ServerMessage::default() };
    assert_eq!(here.publisher.tell("w", &message).await, Err(Unsent::TooLarge));
}
