//! Jobs submitted over NATS, by a client that uses nothing else.

use std::time::Duration;

use lockgate_proto::v1;
use lockgate_proto::v1::submit_jobs_response::item::Item;
use prost::Message;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::super::harness::{PATIENCE, Server, job};
use super::stage::Ground;

/// A NATS client of a few lines.
struct Sender(BufReader<TcpStream>);

impl Sender {
    async fn connect(port: u16, listen: &[&str]) -> Self {
        let mut this = Self(BufReader::new(TcpStream::connect(("127.0.0.1", port)).await.expect("connected")));
        this.write(b"CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\n").await;
        for (n, subject) in listen.iter().enumerate() {
            this.write(format!("SUB {subject} {n}\r\n").as_bytes()).await;
        }
        this
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).await.expect("sent");
    }

    async fn send(&mut self, reply: &str, headers: &[(&str, &str)], body: &[u8]) {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("NATS/1.0\r\n{lines}\r\n");
        let total = head.len() + body.len();
        let first = format!("HPUB sys.job.submit {reply} {} {total}\r\n{head}", head.len());
        self.write(&[first.as_bytes(), body, b"\r\n"].concat()).await;
    }

    /// Headers and body of the next message.
    async fn next(&mut self) -> (String, Vec<u8>) {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).await.expect("readable");
            let words: Vec<&str> = line.split_whitespace().collect();
            let size = |back: usize| words[words.len() - back].parse::<usize>().expect("a size");
            let (head, total) = match words.first() {
                Some(&"MSG") => (0, size(1)),
                Some(&"HMSG") => (size(2), size(1)),
                Some(&"PING") => {
                    self.write(b"PONG\r\n").await;
                    continue;
                }
                _ => continue,
            };
            let mut bytes = vec![0; total + 2];
            self.0.read_exact(&mut bytes).await.expect("whole");
            bytes.truncate(total);
            let body = bytes.split_off(head);
            return (String::from_utf8(bytes).expect("text"), body);
        }
    }

    async fn ask(&mut self, headers: &[(&str, &str)], jobs: Vec<v1::NewJob>) -> (String, Vec<Item>) {
        self.send("answers", headers, &v1::SubmitJobsRequest { jobs }.encode_to_vec()).await;
        let (head, body) = tokio::time::timeout(PATIENCE, self.next()).await.expect("an answer in time");
        let answer = v1::SubmitJobsResponse::decode(&*body).expect("an answer");
        (head, answer.jobs.into_iter().filter_map(|item| item.item).collect())
    }
}

fn accepted(items: Vec<Item>) -> v1::SubmitJobResponse {
    match items.into_iter().next() {
        Some(Item::Job(job)) => job,
        other => panic!("refused: {other:?}"),
    }
}

async fn said(server: &Server, key: &str, arguments: &[&str]) -> String {
    let output = server.cli(&[&["--api-key", key], arguments].concat()).await;
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_becomes_a_job_of_the_key_that_stands_for_letters() {
    let ground = Ground::start();
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "5".repeat(64)).expect("written");
    let auth = ["--auth", "--auth-secret", secret.to_str().expect("a plain path")];
    let gateway = ground.process("gateway,worker", &auth).await;
    let path = gateway.banner["admin_key_file"].as_str().expect("the first start makes a key").to_owned();
    let admin = std::fs::read_to_string(path).expect("readable").trim().to_owned();
    let key = said(&gateway, &admin, &["auth", "key", "create", "bus", "--role", "submitter", "--tenant", "acme"]).await;
    let door = [&auth[..], &["--nats-submits", "--nats-submit-key", &key]].concat();
    let _scheduler = ground.process("scheduler", &door).await;

    let mut sender = Sender::connect(ground.nats.port(), &["answers"]).await;
    let named = [("Nats-Msg-Id", "m-1"), ("x-lockgate-actor", "somebody-else")];
    let noop = || v1::NewJob { job_id: String::new(), ..job("", "job.noop", "null") };
    let first = accepted(sender.ask(&named, vec![noop()]).await.1);
    assert!(!first.existing && first.ack == "sql_committed", "{first:?}");
    let again = accepted(sender.ask(&named, vec![noop()]).await.1);
    assert_eq!((again.job_id.as_str(), again.existing), (first.job_id.as_str(), true), "one message, one job");
    let shown = said(&gateway, &admin, &["--tenant", "acme", "--json", "get", &first.job_id]).await;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((&shown["tenant"], &shown["actor"]), (&"acme".into(), &"bus".into()), "the key's, not the letter's word");
    gateway.wait_for_output(&["--api-key", &admin, "--tenant", "acme", "get", &first.job_id], "SUCCEEDED").await;

    let two_faced = v1::NewJob { payload_json: r#"{"to":"evil","to":"ok"}"#.into(), ..noop() };
    let refused = sender.ask(&[("Nats-Msg-Id", "m-two-faced")], vec![two_faced]).await.1;
    assert!(
        matches!(&refused[..], [Item::Error(error)] if error.message.contains("payload.to: is given twice")),
        "{refused:?}"
    );

    let (head, items) = sender.ask(&[("Nats-Msg-Id", "m-2"), ("x-lockgate-tenant", "other")], vec![noop()]).await;
    assert!(items.is_empty() && head.contains("Nats-Service-Error-Code: 400"), "out of the key's reach: {head}");

    // This message has no reply subject, so JetStream keeps it. The stream may not exist yet: it is sent until it does.
    let mut dead = Sender::connect(ground.nats.port(), &["sys.job.dlq"]).await;
    let kept = tokio::spawn(async move {
        loop {
            let (head, body) = dead.next().await;
            if body == b"not a request" {
                return head;
            }
        }
    });
    let (mut again, deadline) = (tokio::time::interval(Duration::from_millis(200)), Instant::now() + PATIENCE);
    while !kept.is_finished() {
        assert!(Instant::now() < deadline, "no dead letter");
        again.tick().await;
        sender.send("", &[("Nats-Msg-Id", "m-3")], b"not a request").await;
    }
    let head = kept.await.expect("a dead letter");
    assert!(head.contains("x-lockgate-reason: the message is not"), "{head}");
}

/// The headers and the body of the next dead letter.
async fn told(dead: &mut Sender) -> (String, serde_json::Value) {
    let (head, body) = tokio::time::timeout(PATIENCE, dead.next()).await.expect("a dead letter in time");
    (head, serde_json::from_slice(&body).expect("JSON"))
}

/// Messages in the stream of dead letters, if it is there.
async fn stored(port: u16) -> Option<u64> {
    let mut asking = Sender::connect(port, &["answers"]).await;
    asking.write(b"PUB $JS.API.STREAM.INFO.LOCKGATE_DLQ answers 0\r\n\r\n").await;
    let (_, body) = tokio::time::timeout(PATIENCE, asking.next()).await.expect("an answer");
    let info: serde_json::Value = serde_json::from_slice(&body).ok()?;
    info["state"]["messages"].as_u64()
}

/// NATS has confirmed everything, and the Store knows.
async fn all_told(ground: &Ground) {
    let (mut again, deadline) = (tokio::time::interval(Duration::from_millis(100)), Instant::now() + PATIENCE);
    while ground.sql("SELECT count(*) FROM outbox").await != "0" {
        assert!(Instant::now() < deadline, "it still waits");
        again.tick().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_is_told_to_nats_also_after_it_was_away_and_wiped() {
    let mut ground = Ground::start();
    let mut dead = Sender::connect(ground.nats.port(), &["sys.job.dlq"]).await;
    let telling = ["--nats-dead-letters"];
    let server = ground.process("gateway,worker", &telling).await;
    let _scheduler = ground.process("scheduler,orchestrator", &telling).await;
    let mut client = server.client().await;
    let failing = |id: &str| v1::NewJob { max_attempts: Some(1), ..job(id, "job.always_fail", "null") };
    client.submit_jobs(v1::SubmitJobsRequest { jobs: vec![failing("bad-1")] }).await.expect("taken");
    let (head, letter) = told(&mut dead).await;
    assert!(head.contains("Nats-Msg-Id: default:outbox:") && head.contains("x-lockgate-job: bad-1"), "{head}");
    assert_eq!((&letter["kind"], &letter["job_id"]), (&"dead_letter".into(), &"bad-1".into()), "{letter}");
    assert_eq!((&letter["state"], &letter["tenant"]), (&"FAILED".into(), &"default".into()), "{letter}");

    all_told(&ground).await;
    ground.nats.kill();
    client.submit_jobs(v1::SubmitJobsRequest { jobs: vec![failing("bad-2")] }).await.expect("taken");
    server.wait_for_output(&["dlq", "list"], "bad-2").await;
    assert_eq!(ground.sql("SELECT job_id FROM outbox").await, "bad-2", "it waits in the Store");
    ground.nats.wipe().expect("NATS starts again with nothing");
    all_told(&ground).await;
    assert_eq!(stored(ground.nats.port()).await, Some(1), "the stream was made again");
}
