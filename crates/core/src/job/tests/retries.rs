//! Retries as a job asks for them.

use super::*;
use crate::retry::RetrySettings;
use crate::timeouts::Timeouts;
use crate::verdict::Constraints;

fn story(retry: RetrySettings) -> Story {
    let mut story =
        Story::of(NewJob { topic: "job.echo".into(), retry, max_attempts: Some(10), ..NewJob::default() }, allow());
    story.dispatch();
    story
}

fn failed_with(code: &str) -> Outcome {
    Outcome::FailedRetryable { error: "no".into(), code: Some(code.into()), retry_after: None }
}

fn some(change: impl FnOnce(&mut RetrySettings)) -> RetrySettings {
    let mut settings = RetrySettings::default();
    change(&mut settings);
    settings
}

#[test]
fn the_delays_are_those_that_the_job_asked_for() {
    let mut story =
        story(some(|retry| (retry.base_ms, retry.factor_percent, retry.cap_ms) = (Some(10), Some(300), Some(50))));
    let mut delays = Vec::new();
    for _ in 0..4 {
        story.report(failed());
        delays.push(story.job.life.due_at.since(story.now).as_millis());
        story.advance(1_000);
        story.dispatch();
    }
    assert_eq!(delays, [10, 30, 50, 50]);
}

#[test]
fn a_code_that_is_not_tried_again_ends_the_job_with_its_first_failure() {
    let asked = some(|retry| retry.non_retryable = Some(["card_declined".into()].into()));
    let mut other = story(asked.clone());
    other.report(failed_with("busy"));
    assert_eq!(other.state(), JobState::Scheduled);
    let mut declined = story(asked);
    let dead = declined.report(failed_with("card_declined")).dead_letter.expect("dead");
    assert_eq!((declined.state(), dead.reason), (JobState::Failed, Reason::Failed));
    assert_eq!(&*dead.message, "no (the code card_declined is not tried again)");
}

#[test]
fn a_code_of_the_platform_can_be_listed_too() {
    let asked = |code: &str| some(|retry| retry.non_retryable = Some([code.into()].into()));
    let mut timed_out = story(asked("execution_timeout"));
    timed_out.report(Outcome::TimedOut);
    assert_eq!(timed_out.state(), JobState::Timeout);
    let mut lost = story(asked("agent_lost"));
    let dead = lost.lose().dead_letter.expect("dead");
    assert_eq!((lost.state(), dead.reason), (JobState::Failed, Reason::AgentLost));
    let mut plain = story(asked("failed"));
    plain.report(failed());
    assert_eq!(plain.state(), JobState::Failed);
}

#[test]
fn no_attempt_begins_after_the_total_time() {
    let mut story = story(some(|retry| (retry.base_ms, retry.total_ms) = (Some(1_000), Some(2_500))));
    story.report(failed());
    assert_eq!(story.state(), JobState::Scheduled, "due after a second");
    story.advance(1_000);
    story.dispatch();
    let dead = story.report(failed()).dead_letter.expect("the next one would begin after three seconds");
    assert_eq!((story.state(), dead.reason), (JobState::Failed, Reason::Failed));
    let replayed = story.apply(replay()).expect("replayed");
    assert_eq!(replayed.job.state(), JobState::Scheduled, "a new life counts anew");
}

#[test]
fn a_job_may_allow_no_loss_at_all() {
    let mut story = story(some(|retry| retry.losses = Some(0)));
    assert_eq!(story.lose().dead_letter.expect("dead").reason, Reason::AgentLost);
}

#[test]
fn policy_bounds_what_a_job_asks_for() {
    let constraints = Constraints { max_retries: Some(1), ..Constraints::NONE };
    let verdict =
        Verdict::plain(Decision::AllowWithConstraints, "few", "few", "p".into()).but(|v| v.constraints = constraints);
    let new = NewJob { topic: "job.echo".into(), max_attempts: Some(10), ..NewJob::default() };
    let story = Story::of(new, Judgement::Decided(Arc::new(verdict)));
    assert_eq!(story.job.retry_policy(&story.limits, &Timeouts::default()).attempts, 2);
}

fn hasten() -> Input {
    Input::Hasten { actor: "bob".into(), note: Some("it is back".into()) }
}

#[test]
fn a_retry_that_waits_can_be_forced() {
    let mut story = story(some(|retry| retry.base_ms = Some(3_600_000)));
    story.report(failed());
    let waits = story.job.clone();
    assert!(waits.life.due_at > story.now);
    story.advance(5);
    let forced = story.apply(hasten()).unwrap();
    assert_eq!((story.job.life.due_at, forced.effects), (story.now, vec![Effect::Offer]));
    let life = |job: &Job| (job.life.state, job.life.attempt.clone(), job.life.counters);
    assert_eq!(life(&story.job), life(&waits), "nothing else changes: the attempt, its verdict and the budgets stay");
    assert_eq!(forced.events[0].kind, EventKind::RetryForced);
    assert_eq!(super::super::attempts(&story.events).len(), 2, "a wait that ends is no attempt");
    assert_eq!(story.decide(hasten()).unwrap_err(), Illegal::NoRetryWaits(JobState::Scheduled), "it is due already");
    story.dispatch();
    assert_eq!(story.decide(hasten()).unwrap_err(), Illegal::NoRetryWaits(JobState::Dispatched));
}

#[test]
fn a_snooze_can_be_cut_short_and_the_time_of_the_client_cannot() {
    let mut snoozed = story(RetrySettings::default());
    snoozed.report(Outcome::Snooze { delay: Duration::from_secs(3_600) });
    assert!(snoozed.apply(hasten()).is_ok());
    let later = NewJob { not_before: Some(START + Duration::from_secs(3_600)), ..NewJob::default() };
    let asked = Story::of(later, allow());
    assert_eq!(asked.decide(hasten()).unwrap_err(), Illegal::NoRetryWaits(JobState::Scheduled));
    let unjudged = Story::of(NewJob::default(), Judgement::UNASKED);
    assert_eq!(unjudged.decide(hasten()).unwrap_err(), Illegal::NoRetryWaits(JobState::Pending));
}
