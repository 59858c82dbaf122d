//! Results and what policy does with them.

use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::{JobState, Outcome};
use lockgate_core::request::Json;

use super::stage::{Hand, Stage, caller, job, somebody};

const RULES: &str = "
version: 1
default: {decision: allow, reason: fine}
output:
  fail_mode: closed
  rules:
    - {id: hold-secrets, match: {topics: ['held.*'], scan: [secrets]}, decision: redact, reason: a secret, hold: true}
    - {id: no-cards, match: {topics: ['late.*'], scan: [credit_card]}, decision: quarantine, reason: a card number}
    - {id: too-big, match: {output_bytes_over: 1000}, decision: quarantine, reason: too big}
";
const SECRET: &str = r#"{"key":"AKIAQWERTYUIOPASDFGH","note":"ok"}"#;

async fn run(stage: &Stage, topic: &str, result: &str) -> JobId {
    let mut worker = Hand::attach(&stage.engine, &format!("w-{topic}"), &[topic], 1).await;
    let id = stage.submit(job(topic)).await;
    let assignment = worker.take().await;
    worker.report(&assignment, Outcome::Succeeded { result: Json::parse(result).expect("JSON") }).await;
    id
}

async fn shown(stage: &Stage, id: &JobId) -> Option<String> {
    let view = stage.engine.job(&caller(), id).await.expect("found");
    view.result.map(|result| result.as_str().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_held_result_comes_out_redacted_and_never_raw() {
    let stage = Stage::new();
    stage.apply(RULES).await;
    let id = run(&stage, "held.a", SECRET).await;
    let done = stage.until(&id, |job| job.state() == JobState::Succeeded).await;
    let result = shown(&stage, &id).await.expect("a result");
    assert!(!result.contains("AKIA") && result.contains("REDACTED") && result.contains("ok"), "{result}");
    let verdict = done.life.output.and_then(|check| check.verdict).expect("checked");
    assert_eq!((&*verdict.rule, verdict.findings.len()), ("hold-secrets", 1));
    assert!(stage.number("lockgate_output_verdicts_total") >= 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_late_scan_quarantines_and_a_person_releases() {
    let stage = Stage::new();
    stage.apply(RULES).await;
    let id = run(&stage, "late.a", r#""4111 1111 1111 1111""#).await;
    let held = stage.until(&id, |job| job.state() == JobState::OutputQuarantined).await;
    assert_eq!(shown(&stage, &id).await, None, "nothing comes out");
    assert!(held.life.last_error.is_some());
    let why = stage.engine.why(&caller(), &id).await.expect("explained");
    assert!(why.next_step.contains("lockgate release"), "{why:?}");
    let released = stage.engine.release(&somebody("bob"), &id, Some("a test card".into())).await.expect("released");
    assert_eq!(released.state(), JobState::Succeeded);
    assert_eq!(shown(&stage, &id).await.as_deref(), Some(r#""4111 1111 1111 1111""#));
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_can_quarantine() {
    let stage = Stage::new();
    stage.apply(RULES).await;
    let large = format!("\"{}\"", "x".repeat(2_000));
    let id = run(&stage, "plain", &large).await;
    assert_eq!(stage.job(&id).await.state(), JobState::OutputQuarantined, "decided in the commit that ended it");
    let id = run(&stage, "plain.small", "1").await;
    assert_eq!(stage.job(&id).await.state(), JobState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_the_end_and_the_scan_does_not_skip_it() {
    let stage = Stage::with(lockgate_engine::Settings { scan_every: Duration::from_secs(3_600), ..Default::default() });
    stage.apply(RULES).await;
    // The process dies at once: no loop has had a turn since the commit.
    let mut worker = Hand::attach(&stage.engine, "w", &["late.a"], 1).await;
    let id = stage.submit(job("late.a")).await;
    let assignment = worker.take().await;
    worker.report(&assignment, Outcome::Succeeded { result: Json::parse(r#""4111 1111 1111 1111""#).expect("JSON") }).await;
    let left = stage.job(&id).await;
    assert!(left.state() == JobState::Succeeded && left.needs_scan(), "the scan has not happened: {left:?}");
    let stage = stage.crash(Duration::from_secs(1)).await;
    stage.until(&id, |job| job.state() == JobState::OutputQuarantined).await;
}

#[tokio::test(start_paused = true)]
async fn error_texts_are_cleaned_before_they_are_stored() {
    let stage = Stage::new();
    stage
        .apply(
            "
version: 1
default: {decision: allow, reason: fine}
output: {fail_mode: closed, rules: [{id: secrets, match: {scan: [secrets]}, decision: redact, reason: a secret}]}
",
        )
        .await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.report(&assignment, Outcome::FailedFatal { error: "login failed with AKIAQWERTYUIOPASDFGH".into() }).await;
    let failure = stage.job(&id).await.life.last_error.expect("failed");
    assert!(!failure.message.contains("AKIA") && failure.message.contains("login failed"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn the_audit_trail_is_sealed_and_verifies() {
    let stage = Stage::new();
    stage.apply(RULES).await;
    let id = run(&stage, "late.a", r#""4111 1111 1111 1111""#).await;
    stage.until(&id, |job| job.state() == JobState::OutputQuarantined).await;
    let sealed = async {
        loop {
            let verified = stage.engine.verify_audit().await.expect("verified");
            assert!(verified.broken.is_none(), "{verified:?}");
            if verified.unsealed == 0 && verified.rows == 2 {
                return verified;
            }
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_millis(100)).await;
        }
    };
    let verified = tokio::time::timeout(Duration::from_secs(30), sealed).await.expect("sealed in time");
    assert!(verified.blocks >= 1);
}
