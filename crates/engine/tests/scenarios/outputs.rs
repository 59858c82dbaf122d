//! Results and what policy does with them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::ids::JobId;
use lockgate_core::job::{JobState, Outcome, OutputStage};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_engine::{AttemptProgress, FromWorker, LogReport};
use lockgate_ports::{Activation, JobStore, SnapshotKind, Snapshots};

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
    let why = stage.engine.why(&caller(), &id).await.expect("explained");
    assert!(why.summary.contains("Rule hold-secrets redacted its result"), "{why:?}");
    assert!(why.rule.as_ref().is_some_and(|rule| rule.ends_with("#default (fine)")), "what let it start: {why:?}");
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
    assert!(why.rule.as_ref().is_some_and(|rule| rule.ends_with("#no-cards (a card number)")), "{why:?}");
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

const NO_SECRETS: &str = "
version: 1
default: {decision: allow, reason: fine}
output: {fail_mode: closed, rules: [{id: secrets, match: {scan: [secrets]}, decision: redact, reason: a secret}]}
";

/// Lets an attempt say everything an attempt can say beside a result; its error, progress and log line, as they came out.
async fn talk(stage: &Stage, text: &str) -> [String; 3] {
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    let token = assignment.job.life.attempt.token.clone();
    let at = Timestamp::from_millis(1);
    let progress = AttemptProgress { percent: 50, message: text.into(), at };
    let line = LogReport { token: token.clone(), at, line: text.into() };
    let said = FromWorker { progress: vec![(token, progress)], logs: vec![line], ..FromWorker::default() };
    worker.attachment.receive(said).await;
    let progress = stage.engine.job(&caller(), &id).await.expect("found").progress.expect("some").message.to_string();
    worker.report(&assignment, Outcome::FailedFatal { error: text.into() }).await;
    let logged = stage.store.logs(&id, 0, 10).await.expect("read").pop().expect("a line").line.line.to_string();
    let error = stage.job(&id).await.life.last_error.expect("failed").message.to_string();
    [error, progress, logged]
}

#[tokio::test(start_paused = true)]
async fn error_texts_progress_and_log_lines_are_cleaned_before_anybody_sees_them() {
    let stage = Stage::new();
    stage.apply(NO_SECRETS).await;
    for text in talk(&stage, "login failed with AKIAQWERTYUIOPASDFGH").await {
        assert!(!text.contains("AKIA") && text.contains("login failed") && text.contains("REDACTED"), "{text}");
    }
}

/// Puts a policy in force that only another version of Lockgate can read.
async fn apply_unreadable(stage: &Stage) {
    let id = "sha256:of-the-future";
    let audit = AuditEntry {
        at: Timestamp::from_millis(1),
        tenant: "default".into(),
        actor: "tester".into(),
        action: AuditAction::PolicyActivated,
        subject: id.into(),
        detail: Json::null(),
    };
    let (kind, text) = (SnapshotKind::Policy, "version: 99".into());
    let expected = stage.store.active(kind).await.expect("read").map_or(0, |active| active.version);
    let activation = Activation { kind, id: id.into(), text, actor: "tester".into(), expected, audit };
    stage.store.activate(activation).await.expect("written").expect("in force");
    stage.engine.load_policy().await.expect("looked at");
}

#[tokio::test(start_paused = true)]
async fn nothing_comes_out_under_a_policy_that_cannot_be_read_here() {
    let stage = Stage::new();
    stage.apply(NO_SECRETS).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 2).await;
    let ids = [stage.submit(job("t")).await, stage.submit(job("t")).await];
    let [first, second] = worker.take_many(2).await.try_into().expect("both");
    worker.start(&first).await;
    worker.start(&second).await;
    stage.until(&ids[0], |job| job.state() == JobState::Running).await;
    stage.until(&ids[1], |job| job.state() == JobState::Running).await;
    apply_unreadable(&stage).await;
    worker.report(&first, Outcome::Succeeded { result: Json::parse(SECRET).expect("JSON") }).await;
    worker.report(&second, Outcome::FailedFatal { error: "AKIAQWERTYUIOPASDFGH".into() }).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (held, failed) = (stage.job(&first.job.request.job_id).await, stage.job(&second.job.request.job_id).await);
    assert!(held.in_output_check() && shown(&stage, &held.request.job_id).await.is_none(), "{held:?}");
    let error = failed.life.last_error.expect("failed").message;
    assert!(error.contains("withheld") && !error.contains("AKIA"), "{error}");
    // Somebody puts one in force that can be read: the result is scanned by it.
    stage.apply("{version: 1, output: {rules: [{id: s, match: {scan: [secrets]}, decision: redact, reason: s}]}}").await;
    stage.until(&held.request.job_id, |job| job.state() == JobState::Succeeded).await;
    let result = shown(&stage, &held.request.job_id).await.expect("a result");
    assert!(!result.contains("AKIA") && result.contains("REDACTED"), "{result}");
}

const BY_TOPIC_AND_TENANT: &str = "
version: 1
default: {decision: allow, reason: fine}
output:
  fail_mode: open
  fail_modes:
    - {topics: ['bank.*'], tenants: [default], mode: closed}
    - {topics: ['mail.*'], tenants: [another], mode: closed}
  rules:
    - {id: held, match: {topics: ['*.held'], scan: [credit_card]}, decision: quarantine, reason: a card, hold: true}
    - {id: cards, match: {scan: [credit_card]}, decision: quarantine, reason: a card}
";

#[tokio::test(start_paused = true)]
async fn while_nobody_can_scan_results_wait_or_come_out_marked_by_topic_and_tenant() {
    let stage = Stage::new();
    stage.apply(BY_TOPIC_AND_TENANT).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["bank.a", "mail.a"], 2).await;
    let (closed, open) = (stage.submit(job("bank.a")).await, stage.submit(job("mail.a")).await);
    let assignments = worker.take_many(2).await;
    stage.kernel_off.store(true, Ordering::Relaxed);
    for assignment in &assignments {
        let card = Json::parse(r#""4111 1111 1111 1111""#).expect("JSON");
        worker.report(assignment, Outcome::Succeeded { result: card }).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(stage.job(&closed).await.in_output_check(), "it waits for the scan, though no rule says hold");
    let out = stage.job(&open).await;
    assert_eq!((out.state(), out.life.output.map(|check| check.stage)), (JobState::Succeeded, Some(OutputStage::Unchecked)));
    assert!(stage.number("lockgate_output_policy_skipped_total") >= 1.0);

    stage.kernel_off.store(false, Ordering::Relaxed);
    for id in [&closed, &open] {
        stage.until(id, |job| job.state() == JobState::OutputQuarantined).await;
    }
    let actions = stage.engine.audit(&caller(), 0, 100).await.expect("read").0;
    let of = |id: &JobId| {
        actions.iter().any(|row| row.entry.action == AuditAction::OutputUnchecked && *row.entry.subject == *id.as_str())
    };
    assert!(of(&open) && !of(&closed), "{actions:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_held_when_the_kernel_went_away_comes_out_only_where_the_fail_mode_is_open() {
    let stage = Stage::new();
    stage.apply(BY_TOPIC_AND_TENANT).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["bank.held", "mail.held"], 2).await;
    let (closed, open) = (stage.submit(job("bank.held")).await, stage.submit(job("mail.held")).await);
    for assignment in &worker.take_many(2).await {
        worker.report(assignment, Outcome::Succeeded { result: Json::parse("1").expect("JSON") }).await;
    }
    // No loop has had a turn since the commits.
    stage.kernel_off.store(true, Ordering::Relaxed);
    assert!(stage.job(&closed).await.in_output_check() && stage.job(&open).await.in_output_check());
    let out = stage.until(&open, |job| job.state() == JobState::Succeeded).await;
    assert_eq!(out.life.output.map(|check| check.stage), Some(OutputStage::Unchecked));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(stage.job(&closed).await.in_output_check());
    stage.kernel_off.store(false, Ordering::Relaxed);
    for id in [&closed, &open] {
        let done = stage.until(id, |job| job.state() == JobState::Succeeded && !job.needs_scan()).await;
        assert!(done.life.output.is_some_and(|check| check.verdict.is_some()), "scanned in the end");
    }
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
