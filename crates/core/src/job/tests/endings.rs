//! Timers, cancel and replay.

use super::*;
use crate::audit::AuditAction;
use crate::request::RunRef;

#[test]
fn nothing_happens_before_its_time() {
    for story in [Story::new(), Story::dispatched(), Story::running()] {
        assert_eq!(story.decide(Input::Woken).unwrap_err(), Illegal::NotDue);
    }
}

#[test]
fn the_deadline_ends_a_job_in_any_live_state() {
    let new = NewJob { deadline_ms: Some(5_000), ..NewJob::default() };
    for judged in [allow(), Judgement::UNASKED, judgement(Decision::RequireApproval)] {
        let mut story = Story::of(new.clone(), judged);
        story.advance(5_000);
        let ended = story.apply(Input::Woken).unwrap();
        assert_eq!(ended.evidence, Evidence::Reached(START + Duration::from_secs(5)));
        assert_eq!((story.state(), ended.dead_letter.unwrap().reason), (JobState::Timeout, Reason::DeadlineExceeded));
    }
}

#[test]
fn the_deadline_of_a_running_job_stops_its_worker() {
    let mut story = Story::of(NewJob { deadline_ms: Some(5_000), ..NewJob::default() }, allow());
    story.dispatch();
    story.start();
    let token = story.token();
    story.advance(5_000);
    let ended = story.apply(Input::Woken).unwrap();
    assert_eq!(ended.effects, [stop(token.clone()), settled(token)]);
}

/// Its worker was given the time until the deadline, and so its word may come before ours.
#[test]
fn a_worker_that_stops_a_job_at_its_deadline_says_so_by_its_reason() {
    for late_ms in [0, 3] {
        let mut story = Story::of(NewJob { deadline_ms: Some(5_000), ..NewJob::default() }, allow());
        story.dispatch();
        story.start();
        story.advance(4_999 + late_ms);
        let ended = story.apply(report(story.token(), Outcome::TimedOut)).unwrap();
        assert_eq!((story.state(), ended.dead_letter.unwrap().reason), (JobState::Timeout, Reason::DeadlineExceeded));
    }
    let new = NewJob { deadline_ms: Some(60_000), timeout_ms: Some(1_000), max_attempts: Some(1), ..NewJob::default() };
    let mut story = Story::of(new, allow());
    story.dispatch();
    story.start();
    story.advance(1_000);
    let ended = story.apply(report(story.token(), Outcome::TimedOut)).unwrap();
    assert_eq!(ended.dead_letter.unwrap().reason, Reason::ExecutionTimeout, "long before the deadline");
}

#[test]
fn an_attempt_past_its_timeout_is_stopped_and_retried() {
    let mut story = Story::running();
    let token = story.token();
    let timeout_at = story.job.life.attempt.binding.as_ref().unwrap().timeout_at;
    story.now = timeout_at;
    let retried = story.apply(Input::Woken).unwrap();
    assert_eq!(retried.evidence, Evidence::Reached(timeout_at));
    assert_eq!(retried.effects, [stop(token.clone()), settled(token), Effect::Offer]);
    assert_eq!((story.state(), story.job.life.counters.failures), (JobState::Scheduled, 1));
}

#[test]
fn an_attempt_that_never_started_is_lost_not_failed() {
    let mut story = Story::dispatched();
    let start_by = story.job.life.attempt.binding.as_ref().unwrap().start_by;
    story.now = start_by;
    let lost = story.apply(Input::Woken).unwrap();
    assert_eq!(lost.evidence, Evidence::Reached(start_by));
    assert_eq!(lost.events[0].reason, Some(Reason::DispatchLost));
    assert_eq!((story.job.life.counters.failures, story.job.life.counters.infra_failures), (0, 1));
}

#[test]
fn an_attempt_that_started_has_no_time_to_start_by() {
    let mut story = Story::running();
    story.now = story.job.life.attempt.binding.as_ref().unwrap().start_by;
    assert_eq!(story.decide(Input::Woken).unwrap_err(), Illegal::NotDue);
    assert_eq!(story.decide(unstarted(&story, Duration::ZERO)).unwrap_err(), Illegal::NotDue);
}

/// Said of one of many.
fn unstarted(story: &Story, turn: Duration) -> Input {
    let start_by = story.job.life.attempt.binding.as_ref().unwrap().start_by;
    Input::Lost { token: story.token(), reason: Reason::DispatchLost, evidence: Evidence::Reached(start_by), turn }
}

#[test]
fn an_attempt_that_never_started_comes_back_when_it_is_its_turn() {
    let mut story = Story::dispatched();
    let turn = Duration::from_millis(1_700);
    assert_eq!(story.decide(unstarted(&story, turn)).unwrap_err(), Illegal::NotDue, "it has time left");
    story.now = story.job.life.attempt.binding.as_ref().unwrap().start_by;
    let lost = story.decide(unstarted(&story, turn)).unwrap();
    assert_eq!(lost.job.life.due_at, story.now + turn);
    assert_eq!(lost.evidence, story.decide(Input::Woken).unwrap().evidence);
}

#[test]
fn an_attempt_that_never_started_is_not_tried_again_past_the_deadline() {
    let mut story = Story::of(NewJob { deadline_ms: Some(60_000), ..NewJob::default() }, allow());
    story.dispatch();
    story.advance(60_000);
    assert_eq!(story.decide(unstarted(&story, Duration::ZERO)).unwrap_err(), Illegal::NotDue);
    assert_eq!(story.decide(Input::Woken).unwrap().job.state(), JobState::Timeout);
}

#[test]
fn a_waiting_job_is_cancelled_at_once() {
    let mut story = Story::new();
    let ended = story.apply(Input::Cancel { actor: "bob".into(), note: Some("not needed".into()) }).unwrap();
    assert_eq!((story.state(), ended.effects.len(), ended.dead_letter), (JobState::Cancelled, 0, None));
    assert_eq!(
        (ended.events[0].actor.clone(), ended.events[0].message.as_deref()),
        (Some("bob".into()), Some("not needed"))
    );
}

#[test]
fn cancelling_a_running_job_stops_its_worker() {
    let mut story = Story::running();
    let token = story.token();
    let ended = story.apply(cancel()).unwrap();
    assert_eq!(ended.effects, [stop(token.clone()), settled(token)]);
    assert_eq!(&*story.job.life.last_error.as_ref().unwrap().message, "cancelled by bob");
}

/// J-3.
#[test]
fn a_job_that_ended_stays_as_it_ended() {
    let mut story = Story::running();
    story.report(succeeded());
    let token = story.token();
    let lost = Input::Lost { token: token.clone(), reason: Reason::AgentLost, evidence: closed(), turn: Duration::ZERO };
    assert_eq!(story.decide(cancel()).unwrap_err(), Illegal::Terminal(JobState::Succeeded));
    assert_eq!(story.decide(dispatch()).unwrap_err(), Illegal::Terminal(JobState::Succeeded));
    assert_eq!(story.decide(Input::Judged).unwrap_err(), Illegal::Terminal(JobState::Succeeded));
    assert_eq!(story.decide(Input::Woken).unwrap_err(), Illegal::Terminal(JobState::Succeeded));
    assert_eq!(story.decide(lost).unwrap_err(), Illegal::Superseded);
    assert_eq!(story.decide(Input::Started { token, at: START }).unwrap_err(), Illegal::Superseded);
}

#[test]
fn a_replay_is_a_new_life_with_fresh_budgets() {
    let new = NewJob { max_attempts: Some(1), deadline_ms: Some(60_000), ..NewJob::default() };
    let mut story = Story::of(new, allow());
    story.dispatch();
    story.report(failed());
    let token = story.token();
    story.advance(3_600_000);
    let replayed = story.apply(replay()).unwrap();
    let life = &story.job.life;
    assert_eq!(replayed.effects, [Effect::Offer]);
    assert_eq!((life.no, life.state, life.attempt.no), (2, JobState::Scheduled, 2));
    assert_eq!(life.counters, super::super::Counters::default());
    assert_eq!((life.began_at, life.submitted_at, life.ended_at), (story.now, START, None));
    assert_eq!(life.deadline_at, Some(story.now + Duration::from_secs(60)));
    assert_ne!(life.attempt.token, token);
    assert_eq!(story.kinds()[story.events.len() - 2..], [EventKind::Replayed, EventKind::Scheduled]);
}

#[test]
fn a_replay_is_judged_anew() {
    let mut story = Story::of(NewJob::default(), judgement(Decision::Deny));
    story.judgement = judgement(Decision::Deny);
    let again = story.apply(replay()).unwrap();
    assert_eq!((story.state(), story.job.life.no), (JobState::Denied, 2));
    assert_eq!(again.dead_letter.unwrap().life, 2);
}

#[test]
fn a_replay_without_a_verdict_says_that_it_waits() {
    let mut story = Story::of(NewJob::default(), judgement(Decision::Deny));
    story.judgement = Judgement::UNASKED;
    story.apply(replay()).unwrap();
    assert_eq!(story.kinds()[story.events.len() - 2..], [EventKind::Replayed, EventKind::Pending]);
}

#[test]
fn only_a_dead_job_is_replayed() {
    let mut succeeded_job = Story::running();
    succeeded_job.report(succeeded());
    let mut cancelled = Story::new();
    cancelled.apply(cancel()).unwrap();
    for story in [Story::new(), Story::running(), succeeded_job, cancelled] {
        let state = story.state();
        assert_eq!(story.decide(replay()).unwrap_err(), Illegal::State { input: "replay", state });
    }
}

#[test]
fn a_discarded_job_keeps_its_state_and_is_not_replayed() {
    let mut story = Story::of(NewJob::default(), judgement(Decision::Deny));
    let letter = story.job.dead_letter().unwrap();
    assert_eq!((letter.state, letter.discarded), (JobState::Denied, None));
    let discarded = story.apply(discard()).unwrap();
    assert!(discarded.drops_letter() && discarded.dead_letter.is_none() && discarded.effects.is_empty());
    let [entry] = &discarded.audit()[..] else { panic!("{:?}", discarded.audit()) };
    assert_eq!((entry.action, entry.actor.as_str()), (AuditAction::DeadLetterDiscarded, "ann"));
    assert!(entry.detail.as_str().contains("paid by hand"), "{}", entry.detail.as_str());
    assert_eq!(story.state(), JobState::Denied);
    let letter = story.job.dead_letter().unwrap();
    assert_eq!(letter.discarded.map(|discard| (discard.actor, discard.at)), Some(("ann".into(), story.now)));
    for again in [discard(), replay()] {
        assert_eq!(story.decide(again).unwrap_err(), Illegal::Discarded("ann".into()));
    }
}

#[test]
fn only_a_dead_job_is_discarded() {
    let mut succeeded_job = Story::running();
    succeeded_job.report(succeeded());
    let mut cancelled = Story::new();
    cancelled.apply(cancel()).unwrap();
    for story in [Story::new(), Story::running(), succeeded_job, cancelled] {
        let state = story.state();
        assert_eq!(story.decide(discard()).unwrap_err(), Illegal::State { input: "discard", state });
        assert_eq!(story.job.dead_letter(), None);
    }
}

#[test]
fn the_run_of_a_job_hears_nothing_of_a_discard() {
    let part = RunRef { run: "r-1".into(), node: 0, item: None, round: 0, undo: false };
    let mut story = Story::of(NewJob::default(), judgement(Decision::Deny));
    let request = JobRequest { run: Some(part), ..JobRequest::clone(&story.job.request) };
    story.job.request = request.into();
    assert!(!story.apply(discard()).unwrap().tells_its_run());
}
