//! Attempts the platform lost, and what it learns of them later.

use super::super::attempts;
use super::*;

#[test]
fn a_lost_attempt_is_charged_to_the_platform() {
    let mut story = Story::running();
    let token = story.token();
    let lost = story.lose();
    assert_eq!(lost.evidence, closed());
    assert_eq!(lost.effects, [stop(token.clone()), settled(token), Effect::Offer]);
    assert_eq!((story.state(), story.job.life.attempt.no), (JobState::Scheduled, 2));
    assert_eq!((story.job.life.counters.failures, story.job.life.counters.infra_failures), (0, 1));
    assert_eq!(story.job.life.due_at, story.now, "the first loss goes back at once but for jitter");
}

#[test]
fn only_the_attempt_that_is_held_can_be_lost() {
    let story = Story::running();
    let input = Input::Lost { token: "token-0".into(), reason: Reason::AgentLost, evidence: closed(), turn: Duration::ZERO };
    assert_eq!(story.decide(input).unwrap_err(), Illegal::Superseded);
}

#[test]
fn losses_beyond_the_platforms_budget_end_the_job() {
    let mut story = Story::new();
    for _ in 0..story.limits.infra_failures_max {
        story.dispatch();
        story.lose();
    }
    story.dispatch();
    let dead = story.lose();
    assert_eq!((story.state(), dead.dead_letter.unwrap().reason), (JobState::Failed, Reason::AgentLost));
    assert_eq!(story.job.life.counters.failures, 0);
}

///
#[test]
fn the_late_result_of_a_lost_attempt_counts_while_its_successor_waits() {
    let mut story = Story::running();
    let token = story.token();
    story.lose();
    story.advance(200);
    let late = story.apply(report(token, succeeded())).unwrap();
    assert_eq!(story.state(), JobState::Succeeded);
    assert_eq!(story.job.life.counters.infra_failures, 0, "the guess was wrong, its charge is taken back");
    assert_eq!(late.effects, []);
    assert_eq!((late.events[0].attempt, late.events[0].late_of), (2, Some(1)));
    assert_eq!(late.events[0].message.as_deref(), Some("late result of attempt 1, which had been declared lost"));
}

#[test]
fn the_late_failure_of_a_lost_attempt_is_charged_to_the_client() {
    let mut story = Story::running();
    let token = story.token();
    story.lose();
    let late = story.apply(report(token, failed())).unwrap();
    assert_eq!((story.state(), story.job.life.attempt.no), (JobState::Scheduled, 3));
    assert_eq!((story.job.life.counters.failures, story.job.life.counters.infra_failures), (1, 0));
    assert_eq!(late.events[0].message.as_deref(), Some("late result of attempt 1, which had been declared lost: it broke"));
    assert_eq!(&*story.job.life.last_error.as_ref().unwrap().message, "it broke");
}

///
#[test]
fn the_late_result_of_a_lost_attempt_is_superseded_once_its_successor_was_dispatched() {
    let mut story = Story::running();
    let token = story.token();
    story.lose();
    story.dispatch();
    assert_eq!(story.decide(report(token, succeeded())).unwrap_err(), Illegal::Superseded);
}

#[test]
fn a_late_result_counts_without_a_verdict_for_the_successor_too() {
    let mut story = Story::running();
    let token = story.token();
    story.judgement = Judgement::UNASKED;
    story.lose();
    assert_eq!(story.state(), JobState::Pending);
    story.apply(report(token, succeeded())).unwrap();
    assert_eq!(story.state(), JobState::Succeeded);
}

/// The worker of a lost attempt is told to stop. Its answer must not end a job that no person cancelled.
#[test]
fn a_worker_that_stopped_because_of_the_loss_changes_nothing() {
    let mut story = Story::running();
    let token = story.token();
    story.lose();
    for outcome in [Outcome::Cancelled { note: "stopped".into() }, Outcome::Interrupted, Outcome::Revoked] {
        assert_eq!(story.decide(report(token.clone(), outcome)).unwrap_err(), Illegal::Superseded);
    }
}

#[test]
fn attempts_are_told_as_they_went() {
    let mut story = Story::running();
    story.report(failed());
    story.dispatch();
    story.lose();
    story.dispatch();
    story.report(succeeded());
    let told: Vec<_> = attempts(&story.events).iter().map(|attempt| (attempt.no, attempt.outcome)).collect();
    assert_eq!(
        told,
        [(1, Some(EventKind::AttemptFailed)), (2, Some(EventKind::AttemptLost)), (3, Some(EventKind::Succeeded))]
    );
}

#[test]
fn a_late_result_is_told_of_the_attempt_it_belongs_to() {
    let mut story = Story::running();
    let token = story.token();
    story.lose();
    story.apply(report(token, succeeded())).unwrap();
    let told = attempts(&story.events);
    assert_eq!(told.len(), 1, "the successor was never placed");
    assert_eq!((told[0].no, told[0].outcome), (1, Some(EventKind::Succeeded)));
    assert_eq!(told[0].worker, Some("worker-1".into()));
    assert_eq!(told[0].rule, Some("snapshot-1#a-rule".into()));
}
