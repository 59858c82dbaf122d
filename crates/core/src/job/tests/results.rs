//! What a worker reports.

use super::super::attempts;
use super::*;

#[test]
fn a_success_ends_the_job_with_its_result() {
    let mut story = Story::running();
    let token = story.token();
    let done = story.report(Outcome::Succeeded { result: Json::trusted("42") });
    assert_eq!(story.state(), JobState::Succeeded);
    assert_eq!(done.result, Some(Json::trusted("42")));
    assert_eq!(done.effects, [settled(token)]);
    assert_eq!(done.dead_letter, None);
    assert_eq!(story.job.life.ended_at, Some(story.now));
}

#[test]
fn a_result_that_overtook_its_start_tells_both() {
    let mut story = Story::dispatched();
    story.advance(20);
    let started_at = Some(START + Duration::from_millis(5));
    let token = story.token();
    story
        .apply(Input::Reported(AttemptReport { token, started_at, outcome: succeeded(), output: OutputStep::Pass }))
        .unwrap();
    assert_eq!(story.kinds()[2..], [EventKind::Dispatched, EventKind::Started, EventKind::Succeeded]);
    assert_eq!(story.job.life.attempt.started_at, started_at);
}

#[test]
fn a_failure_is_retried_after_a_backoff_with_a_new_token() {
    let mut story = Story::running();
    let token = story.token();
    let failed = story.report(failed());
    assert_eq!(failed.effects, [settled(token.clone()), Effect::Offer]);
    assert_eq!((story.state(), story.job.life.attempt.no), (JobState::Scheduled, 2));
    assert_eq!(story.job.life.due_at, story.now + Duration::from_secs(1));
    assert_ne!(story.token(), token);
    assert_eq!((story.job.life.attempt.binding.clone(), story.job.life.attempt.started_at), (None, None));
    assert_eq!(failed.events[0].until, Some(story.job.life.due_at));
    assert_eq!(story.job.life.last_error.as_ref().unwrap().reason, Reason::Failed);
}

#[test]
fn a_worker_may_name_its_own_delay_within_reason() {
    let year = Duration::from_millis(crate::limits::SPAN_MS_MAX);
    for (asked, kept) in
        [(Duration::from_secs(7), Duration::from_secs(7)), (Duration::ZERO, Duration::from_millis(1)), (Duration::MAX, year)]
    {
        let mut story = Story::running();
        story.report(Outcome::FailedRetryable { error: "busy".into(), code: None, retry_after: Some(asked) });
        assert_eq!(story.job.life.due_at, story.now + kept);
        let mut story = Story::running();
        story.report(Outcome::Snooze { delay: asked });
        assert_eq!(story.job.life.due_at, story.now + kept);
    }
}

#[test]
fn the_last_failure_ends_the_job_with_a_dead_letter() {
    let mut story = Story::of(NewJob { max_attempts: Some(2), ..NewJob::default() }, allow());
    story.dispatch();
    story.report(failed());
    story.dispatch();
    let token = story.token();
    let dead = story.report(failed());
    let letter = dead.dead_letter.unwrap();
    assert_eq!(story.state(), JobState::Failed);
    assert_eq!((letter.reason, &*letter.message, letter.attempts, letter.life), (Reason::Failed, "it broke", 2, 1));
    assert_eq!(dead.effects, [settled(token)]);
}

#[test]
fn a_fatal_failure_is_not_retried() {
    let mut story = Story::running();
    let dead = story.report(Outcome::FailedFatal { error: "no such account".into() });
    assert_eq!(story.state(), JobState::Failed);
    assert_eq!(dead.dead_letter.unwrap().reason, Reason::Fatal);
}

#[test]
fn a_retry_that_would_come_after_the_deadline_is_not_waited_for() {
    let mut story = Story::of(NewJob { deadline_ms: Some(900), ..NewJob::default() }, allow());
    story.dispatch();
    story.report(failed());
    assert_eq!(story.state(), JobState::Failed);
}

#[test]
fn a_timeout_is_retried_and_then_ends_as_timeout() {
    let mut story = Story::of(NewJob { max_attempts: Some(2), ..NewJob::default() }, allow());
    story.dispatch();
    story.report(Outcome::TimedOut);
    assert_eq!(story.state(), JobState::Scheduled);
    story.dispatch();
    let dead = story.report(Outcome::TimedOut);
    assert_eq!(story.state(), JobState::Timeout);
    assert_eq!(dead.dead_letter.unwrap().reason, Reason::ExecutionTimeout);
    assert_eq!(story.kinds().last(), Some(&EventKind::TimedOut));
}

#[test]
fn a_handler_may_cancel_its_job() {
    let mut story = Story::running();
    let ended = story.report(Outcome::Cancelled { note: "not needed".into() });
    assert_eq!((story.state(), ended.dead_letter), (JobState::Cancelled, None));
    assert_eq!(&*story.job.life.last_error.as_ref().unwrap().message, "not needed");
}

#[test]
fn a_snooze_costs_no_attempt() {
    let mut story = Story::running();
    story.report(Outcome::Snooze { delay: Duration::from_secs(3) });
    let counters = story.job.life.counters;
    assert_eq!((counters.failures, counters.infra_failures, counters.snoozes), (0, 0, 1));
    assert_eq!(story.state(), JobState::Scheduled);
}

#[test]
fn a_job_that_only_snoozes_is_dead_in_the_end() {
    let mut story = Story::new();
    story.limits.snoozes_max = 2;
    for _ in 0..2 {
        story.dispatch();
        story.report(Outcome::Snooze { delay: Duration::from_secs(1) });
    }
    story.dispatch();
    let dead = story.report(Outcome::Snooze { delay: Duration::from_secs(1) });
    assert_eq!((story.state(), dead.dead_letter.unwrap().reason), (JobState::Failed, Reason::SnoozeLimit));
}

#[test]
fn an_interrupted_attempt_costs_nothing_and_is_due_at_once() {
    let mut story = Story::running();
    let returned = story.report(Outcome::Interrupted);
    assert_eq!(story.job.life.counters, super::super::Counters::default());
    assert_eq!((story.state(), story.job.life.due_at), (JobState::Scheduled, story.now));
    assert_eq!(returned.events[0].reason, Some(Reason::Interrupted));
}

#[test]
fn an_attempt_called_back_before_it_began_costs_nothing_and_keeps_its_place() {
    let mut story = Story::of(NewJob { not_before: Some(START + Duration::from_secs(5)), ..NewJob::default() }, allow());
    story.dispatch();
    let (token, place) = (story.token(), story.job.ready_key());
    story.advance(2_000);
    let returned = story.report(Outcome::Revoked);
    assert_eq!(returned.effects, [settled(token), Effect::Offer]);
    assert_eq!((story.state(), story.job.life.attempt.no), (JobState::Scheduled, 2));
    assert_eq!((story.job.ready_key(), story.job.life.counters), (place, super::super::Counters::default()));
    assert_eq!(story.job.life.last_error, None);
    let told = attempts(&story.events);
    assert_eq!((told[0].no, told[0].outcome, told[0].reason), (1, Some(EventKind::GivenBack), None));
}

#[test]
fn the_successor_of_an_attempt_called_back_is_judged_anew() {
    let mut story = Story::dispatched();
    story.judgement = judgement(Decision::Deny);
    assert_eq!(story.report(Outcome::Revoked).dead_letter.unwrap().reason, Reason::Denied);
}

#[test]
fn an_attempt_called_back_after_it_began_was_interrupted() {
    let mut begun = Story::running();
    let mut overtaken = Story::dispatched();
    overtaken.advance(20);
    let report = AttemptReport {
        token: overtaken.token(),
        started_at: Some(overtaken.now),
        outcome: Outcome::Revoked,
        output: OutputStep::Pass,
    };
    overtaken.apply(Input::Reported(report)).unwrap();
    begun.report(Outcome::Revoked);
    for story in [begun, overtaken] {
        assert_eq!((story.state(), story.job.life.due_at), (JobState::Scheduled, story.now));
        assert_eq!(attempts(&story.events)[0].reason, Some(Reason::Interrupted));
    }
}

#[test]
fn an_error_text_is_cut_between_characters() {
    let mut story = Story::running();
    let long = "é".repeat(crate::limits::ERROR_BYTES_MAX);
    story.report(Outcome::FailedFatal { error: format!("x{long}").into() });
    let kept = &story.job.life.last_error.as_ref().unwrap().message;
    assert_eq!(kept.len(), crate::limits::ERROR_BYTES_MAX - 1);
    assert!(kept.ends_with('é'));
}

#[test]
fn a_retry_that_is_denied_frees_the_worker_once() {
    let mut story = Story::running();
    let token = story.token();
    story.judgement = judgement(Decision::Deny);
    let denied = story.report(failed());
    assert_eq!(story.state(), JobState::Denied);
    assert_eq!(denied.effects, [settled(token)]);
    assert_eq!(denied.dead_letter.unwrap().reason, Reason::Denied);
}

///
#[test]
fn a_result_with_another_token_is_superseded() {
    let story = Story::running();
    assert_eq!(story.decide(report("token-0".into(), succeeded())).unwrap_err(), Illegal::Superseded);
}

/// A-2, J-3.
#[test]
fn late_result_of_terminal_job_is_ignored() {
    let mut story = Story::running();
    let token = story.token();
    story.apply(cancel()).unwrap();
    for outcome in [succeeded(), failed(), Outcome::Interrupted, Outcome::Revoked] {
        assert_eq!(story.decide(report(token.clone(), outcome)).unwrap_err(), Illegal::Superseded);
    }
}
