use std::sync::mpsc;

use lockgate_core::limits::PAYLOAD_BYTES_MAX;
use lockgate_core::output::OutputDecision;
use lockgate_core::policy::Policy;
use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
use lockgate_core::scan::FindingKey;
use tokio::time::timeout;

use super::*;

fn rules(mode: &str) -> OutputRules {
    let text = format!(
        "version: 1
output:
  fail_mode: {mode}
  rules: [{{id: secrets, match: {{scan: [secrets]}}, decision: redact, reason: a secret}}]
"
    );
    OutputRules::Of(Arc::new(Policy::load("policy.yaml", &text).expect("read")))
}

fn gate() -> OutputGate {
    OutputGate::new(FindingKey::new([7; 32]), None)
}

/// As large as a result may be, with a secret at its end.
fn large() -> OutputContent {
    let new = NewJob { topic: "t".to_owned(), ..NewJob::default() };
    let request = JobRequest::check(new, &Caller::new("default", "tester"), || "job".into()).expect("a job");
    let secret = "AKIAQWERTYUIOPASDFGH";
    let text = format!("\"{} {secret}\"", "x".repeat(PAYLOAD_BYTES_MAX - secret.len() - 3));
    OutputContent { request: Arc::new(request), result: Json::parse(&text).expect("JSON") }
}

/// The one thread for scans is busy until the sender is dropped.
fn one_busy_thread() -> (tokio::runtime::Runtime, mpsc::Sender<()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().max_blocking_threads(1).build().expect("built");
    let (done, wait) = mpsc::channel::<()>();
    runtime.spawn_blocking(move || wait.recv());
    (runtime, done)
}

#[test]
fn a_large_content_is_scanned_without_holding_up_the_runtime() {
    let (runtime, done) = one_busy_thread();
    let verdict = runtime.block_on(async {
        let (scanner, gate, content) = (Scanner::default(), gate(), large());
        let scan = scanner.scan(&gate, rules("closed"), &content);
        tokio::pin!(scan);
        // The scan waits for its thread; who shares the runtime with it goes on.
        assert!(timeout(Duration::ZERO, &mut scan).await.is_err());
        drop(done);
        scan.await.expect("scanned")
    });
    assert_eq!((verdict.decision, verdict.findings.len()), (OutputDecision::Redact, 1));
}

#[test]
fn a_content_that_takes_too_long_goes_by_the_fail_mode() {
    let (runtime, done) = one_busy_thread();
    runtime.block_on(async {
        let scanner = Scanner { within: Duration::ZERO, ..Scanner::default() };
        let closed = scanner.scan(&gate(), rules("closed"), &large()).await.expect("held back");
        assert_eq!(closed.decision, OutputDecision::Quarantine);
        assert!(closed.reason.contains("took longer"), "{}", closed.reason);
        assert_eq!(scanner.scan(&gate(), rules("open"), &large()).await, None, "let out, and looked at again");
        drop(done);
    });
}

#[tokio::test(start_paused = true)]
async fn no_more_threads_scan_than_there_is_room_for() {
    let scanner = Scanner { threads: Arc::new(Semaphore::new(0)), within: Duration::from_secs(1) };
    assert_eq!(scanner.scan(&gate(), rules("closed"), &large()).await, None, "its content is not to blame");
}
