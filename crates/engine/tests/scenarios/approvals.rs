//! Questions to people, through the service.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::job::{Answer, Illegal, Job, JobState, Reason};
use lockgate_core::request::{Json, NewJob};
use lockgate_engine::{ApiError, ApprovalAnswer};

use super::stage::{Hand, Stage, caller, job, somebody};

const ASK: &str = "
version: 1
default: {decision: allow, reason: fine}
rules:
  - id: two-look
    match: {topics: ['pay.*']}
    decision: require_approval
    reason: money moves
    approval: {approvers: 2, request_expiry: 60s}
";

fn answer(job: &Job, answer: Answer) -> ApprovalAnswer {
    ApprovalAnswer {
        job_id: job.request.job_id.clone(),
        answer,
        note: None,
        request_hash: job.hash,
        rule_hash: job.life.approval.as_ref().map_or_else(|| Arc::from(""), |asked| asked.rule_hash.clone()),
        acknowledge_hidden: false,
    }
}

#[tokio::test(start_paused = true)]
async fn the_second_approval_starts_the_job_and_racing_approvers_are_both_right() {
    let stage = Stage::new();
    stage.apply(ASK).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["pay.*"], 1).await;
    let id = stage.submit(job("pay.out")).await;
    stage.until_number("lockgate_approvals_waiting", 1.0).await;
    let (open, _) = stage.engine.approvals(&caller(), None, 10).await.expect("listed");
    assert_eq!(open.iter().map(|job| &job.request.job_id).collect::<Vec<_>>(), [&id]);
    let approve = answer(&open[0], Answer::Approve);

    let own = stage.engine.answer(&caller(), approve.clone()).await.expect_err("one's own");
    assert!(matches!(own, ApiError::State(Illegal::SelfApproval)), "{own:?}");
    let (bob, cleo) = (somebody("bob"), somebody("cleo"));
    let (first, second) =
        tokio::join!(stage.engine.answer(&bob, approve.clone()), stage.engine.answer(&cleo, approve.clone()));
    first.expect("bob's vote");
    second.expect("cleo's vote");
    stage.engine.answer(&bob, approve.clone()).await.expect("voting again is voting once");
    let late = stage.engine.answer(&somebody("dan"), approve).await.expect_err("too late");
    assert_eq!(late.code(), "wrong_state");

    assert_eq!(worker.take().await.job.request.job_id, id);
    assert!(stage.number("lockgate_policy_verdicts_total") >= 2.0);
    assert!(stage.engine.approvals(&caller(), None, 10).await.expect("listed").0.is_empty());
    let actions: Vec<_> = stage.engine.audit(&caller(), 0, 100).await.expect("read").0;
    let actions: Vec<_> = actions.iter().map(|row| (row.entry.action.as_str(), row.entry.actor.as_str())).collect();
    assert_eq!(actions[1], ("approval_asked", "lockgate"));
    assert!(actions[2..].iter().all(|(action, _)| *action == "approved") && actions.len() == 4, "{actions:?}");
}

#[tokio::test(start_paused = true)]
async fn an_approval_does_not_count_for_another_payload() {
    let stage = Stage::new();
    stage.apply(ASK).await;
    let small = stage.submit(job("pay.out")).await;
    let payload = Json::parse("1000000").ok();
    let large = stage.submit(NewJob { payload, ..job("pay.out") }).await;
    let seen = stage.job(&small).await;
    let replayed = ApprovalAnswer { job_id: large.clone(), ..answer(&seen, Answer::Approve) };
    let refused = stage.engine.answer(&somebody("bob"), replayed).await.expect_err("another payload");
    assert_eq!(refused.code(), "stale_approval");
    assert_eq!(stage.job(&large).await.life.approval.expect("asked").votes.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_question_nobody_answers_is_a_denial_and_a_rejection_is_one_at_once() {
    let stage = Stage::new();
    stage.apply(ASK).await;
    let expires = stage.submit(job("pay.out")).await;
    let rejected = stage.submit(job("pay.in")).await;
    let seen = stage.job(&rejected).await;
    let after = stage.engine.answer(&somebody("bob"), answer(&seen, Answer::Reject)).await.expect("rejected");
    assert_eq!(after.state(), JobState::Denied);
    let expired = stage.until(&expires, |job| job.state() == JobState::Denied).await;
    assert_eq!(expired.life.last_error.map(|failure| failure.reason), Some(Reason::ApprovalExpired));
}

#[tokio::test(start_paused = true)]
async fn an_unrelated_reload_keeps_the_votes_and_a_policy_that_denies_wins() {
    let stage = Stage::new();
    stage.apply(ASK).await;
    let id = stage.submit(job("pay.out")).await;
    let approve = answer(&stage.job(&id).await, Answer::Approve);
    stage.engine.answer(&somebody("bob"), approve.clone()).await.expect("a vote");
    stage.apply(&format!("{ASK}  - {{id: more, match: {{topics: [x]}}, decision: deny, reason: r}}\n")).await;
    let after = stage.engine.answer(&somebody("cleo"), approve).await.expect("a vote");
    assert_eq!(after.state(), JobState::Scheduled);
    stage.apply("version: 1\ndefault: {decision: deny, reason: closed}\n").await;
    let _worker = Hand::attach(&stage.engine, "w", &["pay.*"], 1).await;
    let denied = stage.until(&id, |job| job.state().is_terminal()).await;
    assert_eq!(denied.state(), JobState::Denied);
}

#[tokio::test(start_paused = true)]
async fn open_questions_survive_a_restart() {
    let stage = Stage::new();
    stage.apply(ASK).await;
    let id = stage.submit(job("pay.out")).await;
    let stage = stage.crash(Duration::from_secs(1)).await;
    let (open, _) = stage.engine.approvals(&caller(), None, 10).await.expect("listed");
    assert_eq!(open[0].request.job_id, id);
}
