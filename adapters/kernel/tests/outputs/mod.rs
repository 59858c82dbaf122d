//! Results and texts under the output rules of a kernel elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockgate_core::breaker::BreakerState;
use lockgate_core::output::{OutputDecision, OutputStep};
use lockgate_core::policy::{FailMode, OutputGate, Policy};
use lockgate_core::request::{JobRequest, Json};
use lockgate_core::scan::FindingKey;
use lockgate_kernel::{CallOptions, ChannelTls, KernelAddress, RemoteKernel};
use lockgate_ports::{Kernel, OutputContent, OutputMeta};
use lockgate_proto::v1;
use lockgate_proto::v1::output_policy_server::{OutputPolicy, OutputPolicyServer};
use lockgate_proto::v1::safety_kernel_server::{SafetyKernel, SafetyKernelServer};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::support::{Since, content};

const RULES: &str = "
version: 1
output:
  fail_mode: open
  fail_modes: [{topics: ['bank.*'], mode: closed}]
  rules:
    - {id: big, match: {output_bytes_over: 1000}, decision: quarantine, reason: too big}
    - {id: held, match: {topics: ['held.*'], scan: [secrets]}, decision: quarantine, reason: a secret, hold: true}
    - {id: secrets, match: {topics: ['late.*', 'bank.*'], scan: [secrets]}, decision: redact, reason: a secret}
";
const NO_OUTPUT_RULES: &str = "{version: 1, default: {decision: allow, reason: fine}}";
const SECRET: &str = "the key is AKIAQWERTYUIOPASDFGH";

/// A kernel with one policy that answers about results as it is told.
struct Judge {
    policy: Mutex<&'static str>,
    results: Mutex<Option<Status>>,
    texts_sent: AtomicUsize,
}

struct Scene {
    judge: Arc<Judge>,
    address: KernelAddress,
}

impl Scene {
    async fn new(policy: &'static str) -> Self {
        let judge =
            Arc::new(Judge { policy: Mutex::new(policy), results: Mutex::new(None), texts_sent: AtomicUsize::new(0) });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = KernelAddress {
            uri: listener.local_addr().expect("an address").to_string(),
            tls: ChannelTls::Insecure,
            key: None,
        };
        let server = Server::builder()
            .add_service(SafetyKernelServer::from_arc(judge.clone()))
            .add_service(OutputPolicyServer::from_arc(judge.clone()));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        Self { judge, address }
    }

    fn scheduler(&self, enabled: Option<bool>) -> RemoteKernel {
        let gate = OutputGate::new(FindingKey::new([7; 32]), enabled);
        let options = CallOptions { answer_within: Duration::from_secs(30), ..CallOptions::default() };
        RemoteKernel::new(&self.address, Arc::new(Since(Instant::now())), None, gate, options).expect("a good address")
    }

    fn texts_sent(&self) -> usize {
        self.judge.texts_sent.load(Ordering::Relaxed)
    }
}

fn request(topic: &str) -> Arc<JobRequest> {
    Arc::new(JobRequest { topic: topic.into(), ..(*content().request).clone() })
}

async fn step(kernel: &RemoteKernel, topic: &str, bytes: usize) -> OutputStep {
    kernel.check_outputs(&[OutputMeta { request: request(topic), bytes }]).await.pop().expect("one step")
}

#[tokio::test]
async fn texts_are_cleaned_here_by_the_rules_of_the_kernel_and_withheld_until_they_are_known() {
    let scene = Scene::new(RULES).await;
    let kernel = scene.scheduler(None);
    let clean = |topic: &str| kernel.clean(&request(topic), SECRET.into()).to_string();
    assert!(clean("late.a").contains("withheld") && !clean("late.a").contains("AKIA"), "{}", clean("late.a"));
    assert_eq!(step(&kernel, "late.a", 1).await, OutputStep::Scan { hold: true }, "nothing comes out unchecked");
    kernel.decided_elsewhere().await.expect("told");
    assert!(clean("late.a").contains("REDACTED") && !clean("late.a").contains("AKIA"), "{}", clean("late.a"));
    assert!(clean("held.a").contains("withheld by policy rule held"), "{}", clean("held.a"));
    assert_eq!(clean("free"), SECRET, "no rule asks about it");
    assert_eq!(scene.scheduler(Some(false)).clean(&request("late.a"), SECRET.into()).as_ref(), SECRET, "switched off");
}

#[tokio::test]
async fn results_are_checked_only_where_a_rule_asks_for_it_and_held_only_where_one_says_so() {
    let scene = Scene::new(RULES).await;
    let kernel = scene.scheduler(None);
    kernel.decided_elsewhere().await.expect("told");
    assert_eq!(step(&kernel, "free", 1).await, OutputStep::Pass);
    assert_eq!(step(&kernel, "late.a", 1).await, OutputStep::Scan { hold: false });
    assert_eq!(step(&kernel, "held.a", 1).await, OutputStep::Scan { hold: true });
    assert!(matches!(step(&kernel, "free", 2_000).await, OutputStep::Decided(verdict) if &*verdict.rule == "big"));
    *scene.judge.policy.lock() = NO_OUTPUT_RULES;
    kernel.decided_elsewhere().await.expect("told");
    assert_eq!(step(&kernel, "held.a", 2_000).await, OutputStep::Pass);
    assert_eq!(kernel.clean(&request("held.a"), SECRET.into()).as_ref(), SECRET);
}

#[tokio::test]
async fn the_text_of_a_policy_is_sent_once_and_remembered_while_the_kernel_is_silent() {
    let scene = Scene::new(RULES).await;
    let kernel = scene.scheduler(None);
    let told = kernel.decided_elsewhere().await.expect("told");
    assert_eq!((&*told.text, kernel.snapshot()), (RULES, told.id.clone()));
    assert_eq!(kernel.decided_elsewhere().await, Some(told.clone()));
    assert_eq!(scene.texts_sent(), 1);
    *scene.judge.policy.lock() = NO_OUTPUT_RULES;
    assert_ne!(kernel.decided_elsewhere().await.expect("told").id, told.id);
    assert_eq!(scene.texts_sent(), 2);

    // Another life of the scheduler, whose Store remembers and whose kernel is away.
    let next = scene.scheduler(None);
    next.adopt(&told.id, &told.text).expect("taken");
    assert_eq!(step(&next, "late.a", 1).await, OutputStep::Scan { hold: false });
    assert!(next.adopt(&"sha256:newer".into(), "version: 99").is_err());
    assert_eq!(step(&next, "late.a", 1).await, OutputStep::Scan { hold: true }, "held: its rules cannot be read here");
}

#[tokio::test]
async fn three_failed_scans_open_the_breaker_of_results_and_leave_that_of_jobs_alone() {
    let scene = Scene::new(RULES).await;
    let kernel = scene.scheduler(None);
    kernel.decided_elsewhere().await.expect("told");
    *scene.judge.results.lock() = Some(Status::unavailable("told to fail"));
    for _ in 0..3 {
        assert!(kernel.scans() && kernel.ready());
        assert_eq!(kernel.scan(&content()).await, None);
    }
    assert!(!kernel.scans() && kernel.ready(), "{:?}", kernel.breakers());
    let moves = kernel.breaker_moves();
    let [opened] = moves.as_slice() else { panic!("one breaker moved once: {moves:?}") };
    assert_eq!((opened.breaker, opened.from, opened.to), ("output", BreakerState::Closed, BreakerState::Open));
    assert!(opened.error.as_ref().is_some_and(|error| error.contains("told to fail")), "{opened:?}");
    assert!(kernel.breaker_moves().is_empty(), "told once");
    assert_eq!(kernel.output_fail_mode(&request("bank.a")), FailMode::Closed);
    assert_eq!(kernel.output_fail_mode(&request("late.a")), FailMode::Open);
}

#[tokio::test]
async fn a_content_that_the_kernel_cannot_take_is_quarantined_whatever_the_fail_mode() {
    let scene = Scene::new(RULES).await;
    let kernel = scene.scheduler(None);
    kernel.decided_elsewhere().await.expect("told");
    *scene.judge.results.lock() = Some(Status::out_of_range("message too large"));
    let of = |topic: &str| OutputContent { request: request(topic), result: Json::null() };
    let verdict = kernel.scan(&of("late.a")).await.expect("decided");
    assert_eq!((verdict.decision, &*verdict.rule), (OutputDecision::Quarantine, "secrets"));
    assert!(verdict.reason.contains("message too large"), "{}", verdict.reason);
    assert_eq!(kernel.scan(&of("free")).await.expect("decided").decision, OutputDecision::Allow, "no rule had to see it");
    assert!(kernel.scans(), "the kernel is there");
}

#[tonic::async_trait]
impl SafetyKernel for Judge {
    async fn list_snapshots(
        &self,
        request: Request<v1::ListSnapshotsRequest>,
    ) -> Result<Response<v1::ListSnapshotsResponse>, Status> {
        let text = *self.policy.lock();
        let id = Policy::load("policy.yaml", text).expect("a policy").snapshot().to_string();
        let known = request.into_inner().known == id;
        self.texts_sent.fetch_add(usize::from(!known), Ordering::Relaxed);
        let policy_text = if known { String::new() } else { text.to_owned() };
        Ok(Response::new(v1::ListSnapshotsResponse { snapshots: vec![id], policy_text, ..Default::default() }))
    }

    async fn check(&self, _: Request<v1::CheckRequest>) -> Result<Response<v1::Verdict>, Status> {
        Err(Status::unimplemented("not asked here"))
    }

    async fn check_batch(&self, _: Request<v1::CheckBatchRequest>) -> Result<Response<v1::CheckBatchResponse>, Status> {
        Err(Status::unimplemented("not asked here"))
    }

    async fn explain(&self, _: Request<v1::ExplainRequest>) -> Result<Response<v1::ExplainResponse>, Status> {
        Err(Status::unimplemented("not asked here"))
    }

    async fn simulate(&self, _: Request<v1::SimulateRequest>) -> Result<Response<v1::SimulateResponse>, Status> {
        Err(Status::unimplemented("not asked here"))
    }
}

#[tonic::async_trait]
impl OutputPolicy for Judge {
    async fn check_output(&self, _: Request<v1::CheckOutputRequest>) -> Result<Response<v1::CheckOutputResponse>, Status> {
        match self.results.lock().clone() {
            Some(status) => Err(status),
            None => Ok(Response::new(v1::CheckOutputResponse { decision: "allow".to_owned(), ..Default::default() })),
        }
    }
}
