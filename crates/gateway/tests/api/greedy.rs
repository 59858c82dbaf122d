//! Those who are let in and take too much: they are stopped, and others do not notice.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::support::{Closed, PATIENCE, Server};

/// A quarter of 2,048.
const SHARE: usize = 512;
const TOO_MANY: usize = 8;

#[tokio::test]
async fn one_credential_leaves_room_for_others() {
    let server = Closed::start().await;
    let (greedy, other) = (server.key("submitter", Some("acme")).await, server.key("submitter", Some("acme")).await);
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let mut unfinished: FuturesUnordered<_> = (0..SHARE + TOO_MANY)
        .map(|_| {
            let request = server.request("POST", "/v1/jobs").header("authorization", format!("Bearer {greedy}"));
            let body = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, std::io::Error>>());
            client.request(request.header("content-type", "application/json").body(body).expect("a request"))
        })
        .collect();
    for _ in 0..TOO_MANY {
        let answer = tokio::time::timeout(PATIENCE, unfinished.next()).await.expect("an answer in time");
        let answer = answer.expect("there are more").expect("an answer");
        assert_eq!(answer.status(), 429);
        let text = answer.into_body().collect().await.expect("a body").to_bytes();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(text.contains("overloaded") && text.contains("your own calls"), "{text}");
    }
    server.get_as(&greedy, "/v1/whoami").await.is_problem(429, "overloaded");
    assert_eq!(server.get_as(&other, "/v1/whoami").await.status, 200);

    drop(unfinished);
    let again = async || server.get_as(&greedy, "/v1/whoami").await.status == 200;
    server.wait_for("calls that were given up make room", again).await;
}

/// What a raw request is answered that announces more than it sends, and how long that takes.
async fn unfinished(server: &Server, path: &str, content: &str) -> (String, Duration) {
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content}\r\ncontent-length: 100\r\n\r\n");
    stream.write_all(format!("{head}{{").as_bytes()).await.expect("sent");
    let (begun, mut answer) = (Instant::now(), String::new());
    while !answer.contains("\r\n\r\n") {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).await.expect("an answer");
        assert!(read > 0, "closed after {answer:?}");
        answer.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    (answer, begun.elapsed())
}

#[tokio::test]
async fn a_body_that_never_ends_is_not_waited_for_over_either_door() {
    let server = Server::start().await;
    server.wait_for("it is up", async || server.get("/readyz").await.status == 200).await;
    tokio::time::pause();
    for (path, content, told) in [
        ("/v1/jobs", "application/json", "HTTP/1.1 408"),
        ("/lockgate.v1.Scheduler/SubmitJob", "application/grpc", "grpc-status: 4"),
        ("/lockgate.v1.Scheduler/WatchJob", "application/grpc", "grpc-status: 4"),
    ] {
        let (answer, after) = unfinished(&server, path, content).await;
        assert!(answer.contains(told), "{path}: {answer}");
        assert!((Duration::from_secs(59)..Duration::from_secs(120)).contains(&after), "{path}: {after:?}");
    }
}
