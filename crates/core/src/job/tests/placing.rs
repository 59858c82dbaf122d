//! Dispatch and start.

use super::*;

#[test]
fn a_dispatch_binds_the_session_and_needs_it_attached() {
    let mut story = Story::new();
    let sent = story.dispatch();
    assert_eq!(
        sent.evidence,
        Evidence::Allowed { session: session(), epoch: 7, policy: "snapshot-1".into(), routing: RoutingId::default() }
    );
    assert_eq!(sent.events[0].worker, Some("worker-1".into()));
    let binding = story.job.life.attempt.binding.clone().unwrap();
    assert_eq!((binding.session, binding.assignment, binding.dispatched_at), (session(), 3, START));
    assert_eq!(binding.timeout_at, START + Duration::from_secs(300));
    assert_eq!(binding.start_by, START + Duration::from_secs(120));
    assert_eq!(story.state(), JobState::Dispatched);
}

#[test]
fn the_attempt_is_clipped_to_the_jobs_deadline() {
    let mut story = Story::of(NewJob { deadline_ms: Some(5_000), timeout_ms: Some(60_000), ..NewJob::default() }, allow());
    story.dispatch();
    let binding = story.job.life.attempt.binding.clone().unwrap();
    let deadline = START + Duration::from_secs(5);
    assert_eq!((binding.timeout_at, binding.start_by), (deadline, deadline));
}

#[test]
fn a_job_is_dispatched_once() {
    let story = Story::dispatched();
    let refused = story.decide(dispatch()).unwrap_err();
    assert_eq!(refused, Illegal::State { input: "dispatch", state: JobState::Dispatched });
}

#[test]
fn the_workers_report_makes_a_job_running() {
    let mut story = Story::dispatched();
    assert_eq!(story.state(), JobState::Dispatched);
    story.advance(30);
    let started = story.start();
    assert_eq!(story.state(), JobState::Running);
    assert_eq!(story.job.life.attempt.started_at, Some(story.now));
    assert_eq!(started.events[0].worker, Some("worker-1".into()));
}

#[test]
fn a_start_counts_once() {
    let story = Story::running();
    let again = story.decide(Input::Started { token: story.token(), at: story.now });
    assert_eq!(again.unwrap_err(), Illegal::State { input: "start", state: JobState::Running });
}

#[test]
fn a_start_with_another_token_is_superseded() {
    let story = Story::dispatched();
    let wrong = story.decide(Input::Started { token: "token-0".into(), at: story.now });
    assert_eq!(wrong.unwrap_err(), Illegal::Superseded);
}

#[test]
fn a_start_by_a_wrong_clock_lies_between_dispatch_and_now() {
    for (said, kept) in [(Timestamp::ZERO, START), (START + Duration::from_secs(99), START + Duration::from_millis(50))] {
        let mut story = Story::dispatched();
        story.advance(50);
        let token = story.token();
        story.apply(Input::Started { token, at: said }).unwrap();
        assert_eq!(story.job.life.attempt.started_at, Some(kept));
    }
}

#[test]
fn running_time_counts_from_the_start() {
    let mut story = Story::of(NewJob { timeout_ms: Some(60_000), ..NewJob::default() }, allow());
    story.dispatch();
    story.advance(90_000);
    assert_eq!(story.decide(Input::Woken).unwrap_err(), Illegal::NotDue, "it waits for a slot; its own time has not begun");
    story.start();
    let binding = story.job.life.attempt.binding.clone().unwrap();
    assert_eq!(binding.timeout_at, story.now + Duration::from_secs(60));
}

#[test]
fn what_never_starts_is_lost_and_not_too_slow() {
    let mut story = Story::of(NewJob { timeout_ms: Some(1_000), ..NewJob::default() }, allow());
    story.dispatch();
    story.advance(121_000);
    let lost = story.decide(Input::Woken).unwrap();
    assert_eq!(lost.job.life.last_error.unwrap().reason, Reason::DispatchLost);
    assert_eq!((lost.job.life.counters.failures, lost.job.life.counters.infra_failures), (0, 1));
}
