//! Submit and verdicts.

use super::*;

fn submitted(judgement: Judgement) -> Story {
    Story::of(NewJob::default(), judgement)
}

#[test]
fn an_allowed_job_waits_in_its_lane() {
    let limits = Limits::default();
    let request = Story::new().job.request;
    let born = submit(request.clone(), request.hash(), &env_at(START, 1, &limits, allow()));
    assert_eq!(born.job.state(), JobState::Scheduled);
    assert_eq!(born.job.version, 1);
    assert_eq!(born.effects, [Effect::Offer]);
    assert_eq!(
        born.events.iter().map(|event| (event.n, event.kind)).collect::<Vec<_>>(),
        [(1, EventKind::Submitted), (2, EventKind::Scheduled)]
    );
    assert_eq!(born.events[0].actor, Some("ann".into()));
    assert_eq!(born.events[1].rule, Some("snapshot-1#a-rule".into()));
}

#[test]
fn a_delayed_job_is_due_at_its_time() {
    let not_before = START + Duration::from_secs(60);
    let mut story = Story::of(NewJob { not_before: Some(not_before), ..NewJob::default() }, allow());
    assert_eq!(story.job.life.due_at, not_before);
    assert_eq!(story.events[1].until, Some(not_before));
    assert_eq!(story.decide(dispatch()).unwrap_err(), Illegal::NotDue);
    story.dispatch();
    assert_eq!(story.state(), JobState::Dispatched);
}

#[test]
fn a_time_in_the_past_delays_nothing() {
    let past = Timestamp::from_millis(5);
    let story = Story::of(NewJob { not_before: Some(past), ..NewJob::default() }, allow());
    assert_eq!(story.job.life.due_at, START);
}

#[test]
fn a_denied_job_ends_with_a_dead_letter() {
    let limits = Limits::default();
    let request = Story::new().job.request;
    let born = submit(request.clone(), request.hash(), &env_at(START, 1, &limits, judgement(Decision::Deny)));
    let letter = born.dead_letter.unwrap();
    assert_eq!(born.job.state(), JobState::Denied);
    assert_eq!((letter.reason, &*letter.message, letter.state), (Reason::Denied, "a reason", JobState::Denied));
    assert_eq!(born.effects, []);
    assert_eq!(born.job.life.ended_at, Some(START));
}

#[test]
fn a_job_that_needs_approval_is_not_offered() {
    let story = submitted(judgement(Decision::RequireApproval));
    assert_eq!(story.state(), JobState::ApprovalRequired);
    assert_eq!(story.kinds(), [EventKind::Submitted, EventKind::ApprovalRequired]);
    assert!(matches!(story.decide(dispatch()), Err(Illegal::State { .. })));
}

#[test]
fn without_a_verdict_a_job_waits_and_says_why() {
    let story = submitted(Judgement::UNASKED);
    assert_eq!(story.state(), JobState::Pending);
    assert_eq!(story.job.life.due_at, START + story.limits.judge_again_after);
    assert_eq!(story.kinds(), [EventKind::Submitted, EventKind::Pending]);
    assert_eq!(story.events[1].message.as_deref(), Some("the safety kernel did not answer"));
    assert_eq!(story.job.life.counters, super::super::Counters::default());
}

#[test]
fn a_throttled_job_says_why_once() {
    let mut story = submitted(judgement(Decision::Throttle));
    assert_eq!(story.events[1].message.as_deref(), Some("a reason"));
    story.advance(5_000);
    story.judgement = judgement(Decision::Throttle);
    let again = story.apply(Input::Judged).unwrap();
    assert_eq!(again.events, []);
    assert_eq!((again.job.version, again.job.state()), (2, JobState::Pending));
    assert_eq!(again.job.life.due_at, story.now + story.limits.judge_again_after);
}

#[test]
fn a_pending_job_is_offered_when_it_is_allowed() {
    let mut story = submitted(Judgement::UNASKED);
    story.advance(5_000);
    let judged = story.apply(Input::Judged).unwrap();
    assert_eq!(judged.effects, [Effect::Offer]);
    assert_eq!((story.state(), story.job.life.attempt.no), (JobState::Scheduled, 1));
    assert_eq!(story.job.life.due_at, story.now);
}

#[test]
fn a_retry_that_is_judged_early_keeps_its_backoff() {
    let mut story = Story::running();
    story.judgement = Judgement::UNASKED;
    let retry_after = Some(Duration::from_secs(60));
    story.report(Outcome::FailedRetryable { error: "later".into(), code: None, retry_after });
    let due_at = story.job.life.due_at;
    story.judgement = allow();
    story.apply(Input::Judged).unwrap();
    assert_eq!((story.state(), story.job.life.due_at), (JobState::Scheduled, due_at));
    assert_eq!(due_at, story.now + Duration::from_secs(60));
}

#[test]
fn a_waiting_job_judged_again_gets_a_new_attempt_and_keeps_its_place() {
    let mut story = Story::new();
    let before = story.job.ready_key();
    story.advance(1_000);
    let judged = story.apply(Input::Judged).unwrap();
    assert_eq!(judged.effects, [Effect::Offer]);
    assert_eq!((story.job.life.attempt.no, story.job.ready_key()), (2, before));
    assert_eq!(story.job.life.counters, super::super::Counters::default());
}

#[test]
fn a_waiting_job_judged_again_without_an_answer_waits_for_one() {
    let mut story = Story::new();
    story.judgement = Judgement::UNASKED;
    let judged = story.apply(Input::Judged).unwrap();
    assert_eq!(judged.events.iter().map(|event| event.kind).collect::<Vec<_>>(), [EventKind::Pending]);
    assert_eq!((story.state(), story.job.life.attempt.verdict.clone()), (JobState::Pending, None));
}

#[test]
fn a_job_that_a_worker_holds_is_not_judged() {
    let refused = Story::running().decide(Input::Judged).unwrap_err();
    assert_eq!(refused, Illegal::State { input: "judging", state: JobState::Running });
}

#[test]
fn a_decision_that_only_a_newer_version_knows_never_lets_a_job_run() {
    let newer: Decision = serde_json::from_str(r#""allow_on_mars""#).unwrap();
    assert_eq!(Story::of(NewJob::default(), judgement(newer)).state(), JobState::Denied);
    let mut story = Story::dispatched();
    story.judgement = judgement(newer);
    story.apply(Input::Judged).unwrap();
    assert_eq!(story.state(), JobState::Denied, "it was called back");
}
