//! A plain HTTP client.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::{PATIENCE, Server};

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// Null when the body is not JSON.
    pub(crate) json: Value,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.text)
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().expect("text")).unwrap_or_default()
    }

    /// Asserts that this is a problem document with this status and code.
    pub(crate) fn is_problem(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        assert_eq!(self.json["code"], code, "{self:?}");
        assert_eq!(self.json["status"], status, "{self:?}");
        for field in ["type", "title", "detail"] {
            assert!(self.json[field].as_str().is_some_and(|text| !text.is_empty()), "no {field} in {self:?}");
        }
    }

    /// Names of the refused fields.
    pub(crate) fn fields(&self) -> Vec<&str> {
        let errors = self.json["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
        errors.iter().filter_map(|error| error["field"].as_str()).collect()
    }
}

impl Server {
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(self.request("GET", path), Bytes::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_text(path, body.to_string()).await
    }

    pub(crate) async fn post_text(&self, path: &str, body: impl Into<Bytes>) -> Reply {
        self.send(self.request("POST", path).header("content-type", "application/json"), body).await
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> http::request::Builder {
        Request::builder().method(method).uri(format!("http://{}{path}", self.address))
    }

    pub(crate) async fn send(&self, request: http::request::Builder, body: impl Into<Bytes>) -> Reply {
        let response = open(request, body.into()).await;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = tokio::time::timeout(PATIENCE, response.into_body().collect()).await.expect("an answer in time");
        let text = String::from_utf8(body.expect("a whole body").to_bytes().to_vec()).expect("text");
        Reply { status, headers, json: serde_json::from_str(&text).unwrap_or_default(), text }
    }

    /// The answer, still being written.
    pub(crate) async fn open_as(&self, key: &str, path: &str) -> Response<Incoming> {
        open(self.request("GET", path).header("authorization", format!("Bearer {key}")), Bytes::new()).await
    }

    /// Follows a job's events.
    pub(crate) async fn events(&self, id: &str, last_seen: Option<u64>) -> Events {
        self.listen(&format!("/v1/jobs/{id}/events"), last_seen).await
    }

    pub(crate) async fn listen(&self, path: &str, last_seen: Option<u64>) -> Events {
        let mut request = self.request("GET", path);
        if let Some(last) = last_seen {
            request = request.header("last-event-id", last);
        }
        let response = open(request, Bytes::new()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { body: response.into_body(), text: String::new() }
    }
}

async fn open(request: http::request::Builder, body: Bytes) -> Response<Incoming> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let request = request.body(Full::new(body)).expect("a request");
    tokio::time::timeout(PATIENCE, client.request(request)).await.expect("an answer in time").expect("an answer")
}

/// A stream of server-sent events.
pub(crate) struct Events {
    body: Incoming,
    text: String,
}

/// One event: its number, if it has one, and its data.
pub(crate) type Seen = (Option<u64>, Value);

impl Events {
    /// The next event; none when the server ended the stream.
    pub(crate) async fn next(&mut self) -> Option<Seen> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let seen = parse(event);
                self.text = rest.to_owned();
                if let Some(seen) = seen {
                    return Some(seen);
                }
                continue;
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("an event in time")?;
            if let Ok(data) = frame.expect("an unbroken stream").into_data() {
                self.text.push_str(std::str::from_utf8(&data).expect("text"));
            }
        }
    }

    /// Kinds and numbers of all events up to the end.
    pub(crate) async fn all(mut self) -> Vec<(u64, String)> {
        let mut seen = Vec::new();
        while let Some((n, data)) = self.next().await {
            if let Some(n) = n {
                seen.push((n, data["kind"].as_str().expect("a kind").to_owned()));
            }
        }
        seen
    }
}

/// None for a comment.
fn parse(event: &str) -> Option<Seen> {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let data = serde_json::from_str(field("data:")?).expect("JSON data");
    Some((field("id:").map(|n| n.parse().expect("a number")), data))
}
