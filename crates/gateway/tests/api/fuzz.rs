//! Requests that nobody would write. The corpus is kept; what is made of it differs by seed, and a seed that broke something
//! stays in the list.

use std::path::Path;

use serde_json::json;

use crate::support::Server;

/// Mutations of every file of the corpus.
const EACH: u64 = 150;
/// What a mutation may put in: what parsers take for more than it is.
const BITS: [&[u8]; 14] =
    [b"\"", b"{", b"}", b"[", b"]", b",", b":", b"\\u0000", b"\\ud800", b"1e999", b"-", b"\xff\xfe", b"null", b"\x00"];

/// Small, seeded, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound.max(1)
    }
}

fn mutated(seed: u64, text: &[u8]) -> Vec<u8> {
    let mut dice = Dice(seed);
    let mut bytes = text.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        match dice.below(5) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            2 => drop(bytes.splice(at..at, BITS[dice.below(BITS.len())].iter().copied())),
            3 => {
                let from = dice.below(bytes.len() + 1).min(at);
                let part = bytes[from..at].to_vec();
                bytes.splice(at..at, part);
            }
            _ => drop(bytes.splice(at..(at + dice.below(9)).min(bytes.len()), [])),
        }
    }
    bytes
}

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let files = std::fs::read_dir(folder).expect("the corpus").map(|entry| entry.expect("a file").path());
    let mut corpus: Vec<_> =
        files.map(|path| (path.display().to_string(), std::fs::read(&path).expect("readable"))).collect();
    corpus.sort();
    corpus
}

#[tokio::test]
async fn whatever_is_sent_as_json_is_taken_or_refused_and_never_breaks_the_server() {
    let server = Server::start().await;
    for (name, text) in corpus() {
        let path = if name.ends_with("batch.json") { "/v1/jobs:batch" } else { "/v1/jobs" };
        for seed in 0..EACH {
            let body = mutated(seed, &text);
            let reply = server.post_text(path, body.clone()).await;
            let fine = reply.status < 300 || (400..500).contains(&reply.status);
            assert!(fine, "{name}, seed {seed}: {reply:?} to {:?}", String::from_utf8_lossy(&body));
        }
    }
    server.submit(json!({ "topic": "job.echo" })).await;
}

#[tokio::test]
async fn whatever_is_sent_as_grpc_is_taken_or_refused_and_never_breaks_the_server() {
    let server = Server::start().await;
    for (name, text) in corpus() {
        for seed in 0..EACH {
            // A frame: not compressed, its length, its bytes. Sometimes the length lies.
            let body = mutated(seed, &text);
            let length = u32::try_from(body.len()).expect("small") + u32::from(seed % 7 == 0);
            let frame = [&[0][..], &length.to_be_bytes(), &body].concat();
            let request = server.request("POST", "/lockgate.v1.Scheduler/SubmitJob");
            let reply =
                server.send(request.header("content-type", "application/grpc").header("te", "trailers"), frame).await;
            assert_eq!(reply.status, 200, "{name}, seed {seed}: {reply:?}");
        }
    }
    server.submit(json!({ "topic": "job.echo" })).await;
}
