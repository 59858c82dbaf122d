//! Traces over real processes: a server, a worker, and a collector of the test's own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_otlp::wire::any_value::WireValue as Any;
use lockgate_otlp::wire::{ExportTraceServiceRequest, KeyValue, WireSpan};
use lockgate_proto::v1;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use parking_lot::Mutex;
use prost::Message;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, Instant};

use super::harness::{PATIENCE, Server, get, job, submit, until_idle};

const POLICY: &str = "version: 1\ndefault: {decision: allow, reason: fine}\noutput:\n  rules:\n    \
    - {id: no-secrets, match: {scan: [secrets]}, decision: quarantine, reason: no, hold: true}\n";
const DAG: &str = "version: 1\ndag: fan\nnodes:\n  a: { topic: job.echo, payload: 1 }\n  \
    b: { needs: a, topic: job.flaky, payload: 1 }\n  c: { needs: a, for_each: '[1, 2]', topic: job.echo, payload: 2 }\n  \
    inner: { needs: a, dag: one }\n  d: { needs: [b, c, inner], topic: job.echo, payload: 3 }\n";
/// Of the six jobs of both runs, `b` needs two.
const ATTEMPTS: usize = 7;
const INNER: &str = "version: 1\ndag: one\nnodes:\n  x: { topic: job.echo, payload: 4 }\n";
const SENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A span, and which service wrote it.
#[derive(Clone, Debug)]
struct Seen {
    service: String,
    span: WireSpan,
}

impl Seen {
    fn attribute(&self, key: &str) -> Option<String> {
        text(&self.span.attributes, key)
    }
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|pair| pair.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Any::String(text) => Some(text.clone()),
        Any::Int(n) => Some(n.to_string()),
        Any::Bool(yes) => Some(yes.to_string()),
    }
}

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Seen>>>);

impl Collector {
    async fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let collector = Self::default();
        let own = collector.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(own.clone().serve(stream));
            }
        });
        (collector, address)
    }

    /// HTTP/1.1 as far as our exporter speaks it.
    async fn serve(self, stream: TcpStream) -> Option<()> {
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        loop {
            let mut length = 0;
            loop {
                let mut line = String::new();
                read.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
                if line.trim().is_empty() {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
            }
            let mut body = vec![0; length];
            read.read_exact(&mut body).await.ok()?;
            self.take(ExportTraceServiceRequest::decode(&body[..]).expect("spans"));
            write.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.ok()?;
        }
    }

    fn take(&self, message: ExportTraceServiceRequest) {
        for part in message.resource_spans {
            let service = text(&part.resource.expect("said").attributes, "service.name").expect("named");
            let spans = part.scope_spans.into_iter().flat_map(|scope| scope.spans);
            self.0.lock().extend(spans.map(|span| Seen { service: service.clone(), span }));
        }
    }

    fn trace(&self, trace: &[u8]) -> Vec<Seen> {
        self.0.lock().iter().filter(|seen| seen.span.trace_id == trace).cloned().collect()
    }

    /// Waits until a trace has its root, no span has a missing parent, and workers exported one span for each of `attempts`: spans of
    /// workers have no children, so no other span would tell that one is still on its way.
    async fn wait_for_whole(&self, trace: &[u8], root_parent: &[u8], attempts: usize) -> Vec<Seen> {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = tokio::time::interval(Duration::from_millis(50));
        loop {
            let seen = self.trace(trace);
            let ids: BTreeSet<&[u8]> = seen.iter().map(|seen| &seen.span.span_id[..]).collect();
            let outside = |seen: &&Seen| !ids.contains(&seen.span.parent_span_id[..]);
            let outsiders: Vec<_> = seen.iter().filter(outside).collect();
            let ran = seen.iter().filter(|seen| seen.service == "lockgate-worker").count();
            if let [root] = outsiders[..]
                && root.span.parent_span_id == root_parent
                && ran >= attempts
            {
                return seen;
            }
            assert!(Instant::now() < deadline, "not whole, {ran} of {attempts} attempts: {outsiders:#?}");
            pause.tick().await;
        }
    }
}

struct Stage {
    server: Server,
    collector: Collector,
    _worker: tokio::process::Child,
}

async fn stage() -> Stage {
    let (collector, address) = Collector::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let policy = folder.path().join("policy.yaml");
    std::fs::write(&policy, POLICY).expect("written");
    let spans = ["--otlp-endpoint", &address, "--spans-delay", "20"];
    let policy = policy.to_str().expect("UTF-8");
    let server = Server::start(&[&["--no-worker", "--policy", policy][..], &spans[..]].concat()).await;
    let worker = server.worker("traced", 8, &spans);
    Stage { server, collector, _worker: worker }
}

async fn orchestrator(server: &Server) -> OrchestratorClient<tonic::transport::Channel> {
    OrchestratorClient::connect(server.api.clone()).await.expect("connected")
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

#[tokio::test]
async fn a_run_is_one_trace_with_one_root_over_all_processes() {
    let Stage { server, collector, .. } = &stage().await;
    let mut runs = orchestrator(server).await;
    for text in [INNER, DAG] {
        let put = v1::PutDagRequest { file: "test.yaml".to_owned(), text: text.to_owned() };
        runs.put_dag(put).await.expect("stored");
    }
    let start = v1::StartDagRequest { dag: "fan".to_owned(), ..v1::StartDagRequest::default() };
    let run_id = runs.start_dag(start).await.expect("started").into_inner().run_id;
    let deadline = Instant::now() + PATIENCE;
    let run = loop {
        let run = runs.get_dag_run(v1::GetDagRunRequest { run_id: run_id.clone() }).await.expect("there").into_inner();
        if run.ended_at_ms.is_some() {
            break run;
        }
        assert!(Instant::now() < deadline, "{run:?}");
    };
    assert_eq!(run.state(), v1::RunState::Succeeded);

    let seen = collector.wait_for_whole(&bytes(&run.trace_id), &[], ATTEMPTS).await;
    let root = seen.iter().find(|seen| seen.span.parent_span_id.is_empty()).expect("a root");
    assert_eq!((root.span.name.as_str(), root.attribute("lockgate.run_id")), ("run fan", Some(run_id.clone())));
    let ids: BTreeSet<&[u8]> = seen.iter().map(|seen| &seen.span.span_id[..]).collect();
    assert_eq!(ids.len(), seen.len(), "no span is told twice");

    // Every job of the run and of the run inside of it, each from submit to result.
    let jobs: BTreeSet<String> = seen.iter().filter_map(|seen| seen.attribute("lockgate.job_id")).collect();
    assert_eq!(jobs.len(), 6, "{jobs:?}");
    for id in &jobs {
        let own: Vec<_> = seen.iter().filter(|seen| seen.attribute("lockgate.job_id").as_ref() == Some(id)).collect();
        let names: BTreeSet<&str> = own.iter().map(|seen| seen.span.name.as_str()).collect();
        for name in ["submit", "verdict", "claim", "dispatch", "output check", "output scan", "commit", "attempt 1"] {
            assert!(names.contains(name), "{name} of {id} is missing: {names:?}");
        }
        let trace_id = get(&mut server.client().await, id).await.trace_id;
        assert_eq!(trace_id, run.trace_id, "the job says which trace it is in");
    }
    let by_id: BTreeMap<&[u8], &Seen> = seen.iter().map(|seen| (&seen.span.span_id[..], seen)).collect();
    let ran: Vec<_> = seen.iter().filter(|seen| seen.service == "lockgate-worker").collect();
    assert_eq!(ran.len(), ATTEMPTS, "one span an attempt");
    for seen in ran {
        let attempt = by_id[&seen.span.parent_span_id[..]];
        assert_eq!(attempt.service, "lockgate", "the worker's work stands below the server's attempt");
        assert!(attempt.span.name.starts_with("attempt "), "{attempt:?}");
        assert_eq!(seen.attribute("lockgate.worker_id").as_deref(), Some("traced"));
        let times = |span: &WireSpan| (span.start_time_unix_nano, span.end_time_unix_nano);
        assert!(times(&attempt.span).0 <= times(&seen.span).0 && times(&seen.span).1 <= times(&attempt.span).1);
    }
    let failed = seen.iter().find(|seen| seen.span.status.as_ref().is_some_and(|status| status.code == 2));
    assert!(failed.is_some(), "the attempt that failed says so");
    assert!(server.number("lockgate_spans_exported_total").await >= 1.0);
    assert!(server.number("lockgate_spans_dropped_total").await < 1.0);
}

#[tokio::test]
async fn what_a_client_was_doing_is_what_its_jobs_stand_below() {
    let Stage { server, collector, .. } = &stage().await;
    let mut client = server.client().await;
    let mut request = tonic::Request::new(v1::SubmitJobRequest { job: Some(job("called", "job.echo", "1")) });
    request.metadata_mut().insert("traceparent", SENT.parse().expect("plain"));
    client.submit_job(request).await.expect("taken");
    until_idle(&mut client).await;
    let (trace, span) = (&SENT[3..35], &SENT[36..52]);
    let seen = collector.wait_for_whole(&bytes(trace), &bytes(span), 1).await;
    assert!(seen.iter().any(|seen| seen.span.name == "run job.echo"), "{seen:#?}");
    assert_eq!(get(&mut client, "called").await.trace_id, trace);

    // A client's decision not to record the trace counts in every process.
    let quiet = SENT.replace("0af7", "0bf7").replace("-01", "-00");
    let unwatched = v1::NewJob { traceparent: quiet.clone(), ..job("quiet", "job.echo", "1") };
    let watched = job("loud", "job.echo", "1");
    submit(&mut client, vec![unwatched, watched]).await.expect("taken");
    until_idle(&mut client).await;
    let loud = bytes(&get(&mut client, "loud").await.trace_id);
    collector.wait_for_whole(&loud, &[], 1).await;
    assert!(collector.trace(&bytes(&quiet[3..35])).is_empty());
}
