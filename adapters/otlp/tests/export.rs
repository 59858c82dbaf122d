//! Spans to a collector of the test's own.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use lockgate_core::trace::{Span, SpanKind, TraceParent};
use lockgate_otlp::wire::ExportTraceServiceRequest;
use lockgate_otlp::{ExportCounters, Exporter, Protocol, Settings};
use lockgate_ports::Spans;
use lockgate_tls::{FileNames, TlsPaths};
use parking_lot::Mutex;
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(30);

/// Statuses to answer with, the last one for ever; and what came in.
#[derive(Default)]
struct Collector {
    answers: Mutex<Vec<u16>>,
    got: Mutex<Vec<(String, HeaderMap, ExportTraceServiceRequest)>>,
}

impl Collector {
    async fn start(answers: &[u16]) -> (Arc<Self>, String) {
        let collector = Arc::new(Self { answers: Mutex::new(answers.iter().rev().copied().collect()), ..Self::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let own = collector.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let own = own.clone();
                let service = service_fn(move |request| own.clone().answer(request));
                tokio::spawn(async move {
                    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        (collector, address)
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let bytes = body.collect().await.expect("a whole request").to_bytes();
        let grpc = head.headers["content-type"] == "application/grpc";
        let message = ExportTraceServiceRequest::decode(&bytes[if grpc { 5 } else { 0 }..]).expect("a request");
        let mut answers = self.answers.lock();
        let status = if answers.len() > 1 { answers.pop() } else { answers.last().copied() }.unwrap_or(200);
        let mut answer = Response::new(Full::new(Bytes::new()));
        if grpc {
            let code = if status == 200 { "0" } else { "14" };
            answer.headers_mut().insert("grpc-status", code.parse().expect("a header"));
        } else {
            *answer.status_mut() = StatusCode::from_u16(status).expect("a status");
        }
        if status == 200 {
            self.got.lock().push((head.uri.path().to_owned(), head.headers, message));
        }
        Ok(answer)
    }

    fn names(&self) -> Vec<String> {
        let got = self.got.lock();
        let spans = got.iter().flat_map(|(_, _, message)| &message.resource_spans).flat_map(|part| &part.scope_spans);
        spans.flat_map(|part| &part.spans).map(|span| span.name.clone()).collect()
    }
}

fn span(name: &'static str) -> Span {
    let parent: TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().expect("good");
    Span {
        trace: parent.trace,
        id: parent.span.expect("there").within(name),
        parent: parent.span,
        name: name.into(),
        kind: SpanKind::Consumer,
        began: 1,
        ended: 2,
        attributes: Vec::new(),
        failure: Some("broken".into()),
    }
    .with("lockgate.job_id", "j-1")
}

fn settings(address: &str, protocol: Protocol) -> Settings {
    let tls = TlsPaths::default().read(FileNames { ca: "ca", cert: "cert", key: "key" }).expect("no files");
    let mut settings = Settings::new(address, false, protocol, tls).expect("good");
    settings.delay = Duration::from_millis(10);
    settings
}

async fn wait_for(what: &str, met: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !met() {
        assert!(Instant::now() < deadline, "it did not happen: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn run(exporter: &Arc<Exporter>) -> (watch::Sender<bool>, tokio::task::JoinHandle<()>) {
    let (stop, stopping) = watch::channel(false);
    let exporter = exporter.clone();
    (stop, tokio::spawn(async move { exporter.run(stopping).await }))
}

#[tokio::test]
async fn spans_arrive_by_http_and_by_grpc() {
    for (protocol, path) in
        [(Protocol::Http, "/v1/traces"), (Protocol::Grpc, "/opentelemetry.proto.collector.trace.v1.TraceService/Export")]
    {
        let (collector, address) = Collector::start(&[200]).await;
        let settings = settings(&address, protocol).headers("x-key=secret").expect("here").resource("service.name", "gate");
        let exporter = Exporter::new(settings);
        let (stop, task) = run(&exporter);
        exporter.record(vec![span("one"), span("two")]);
        wait_for("both are sent", || exporter.counters() == ExportCounters { exported: 2, dropped: 0 }).await;
        assert_eq!(collector.names(), ["one", "two"]);
        let (at, headers, message) = collector.got.lock()[0].clone();
        assert_eq!((at.as_str(), &headers["x-key"]), (path, &"secret".parse::<http::HeaderValue>().expect("a value")));
        let part = &message.resource_spans[0];
        assert_eq!(part.resource.as_ref().expect("said").attributes[0].key, "service.name");
        let sent = &part.scope_spans[0].spans[0];
        assert_eq!((sent.trace_id.len(), sent.span_id.len(), sent.parent_span_id.len(), sent.kind), (16, 8, 8, 5));
        assert_eq!(sent.status.as_ref().map(|status| (status.code, status.message.as_str())), Some((2, "broken")));
        stop.send_replace(true);
        task.await.expect("ended");
    }
}

#[tokio::test]
async fn a_collector_that_is_busy_gets_them_later_and_one_that_refuses_never() {
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let (collector, address) = Collector::start(&[503, 200]).await;
        let exporter = Exporter::new(settings(&address, protocol));
        let (_stop, _task) = run(&exporter);
        exporter.record(vec![span("late")]);
        wait_for("it is sent", || exporter.counters().exported == 1).await;
        assert_eq!(collector.names(), ["late"]);
    }
    let (collector, address) = Collector::start(&[400, 200]).await;
    let exporter = Exporter::new(settings(&address, Protocol::Http));
    let (_stop, _task) = run(&exporter);
    exporter.record(vec![span("bad")]);
    wait_for("it is dropped", || exporter.counters().dropped == 1).await;
    exporter.record(vec![span("good")]);
    wait_for("the next is sent", || exporter.counters().exported == 1).await;
    assert_eq!(collector.names(), ["good"]);
}

#[tokio::test]
async fn what_finds_no_room_is_dropped_and_counted_and_nobody_waits() {
    let (collector, address) = Collector::start(&[200]).await;
    let mut settings = settings(&address, Protocol::Http);
    (settings.room, settings.batch, settings.delay) = (3, 2, Duration::from_secs(3_600));
    let exporter = Exporter::new(settings);
    exporter.record(vec![span("a"), span("b")]);
    exporter.record(vec![span("c"), span("d")]);
    assert_eq!(exporter.counters(), ExportCounters { exported: 0, dropped: 1 });
    let (stop, task) = run(&exporter);
    wait_for("a whole batch is sent at once", || exporter.counters().exported == 2).await;
    // The rest goes when the process ends, without waiting for the hour to be over.
    stop.send_replace(true);
    task.await.expect("ended");
    assert_eq!(collector.names(), ["a", "b", "c"]);
    assert_eq!(exporter.counters(), ExportCounters { exported: 3, dropped: 1 });
}
