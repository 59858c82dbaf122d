//! What a clock that was ahead stamped is brought back when the time is right.

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);

fn restamped(changed_at: Timestamp, right: Timestamp) -> Input {
    Input::Restamped { changed_at, right }
}

/// A job that was submitted with a clock an hour ahead, ten seconds ago.
fn ahead(new: NewJob) -> Story {
    let mut story = Story::of(new, allow());
    story.now = START + Duration::from_secs(10) - HOUR;
    story
}

#[test]
fn what_was_counted_from_a_stamp_in_the_future_is_counted_from_now() {
    let mut story = ahead(NewJob { deadline_ms: Some(1_800_000), ..NewJob::default() });
    let right = story.now;
    assert!(story.job.may_be_ahead(right));
    let done = story.apply(restamped(START, right)).unwrap();
    let life = &story.job.life;
    assert_eq!((life.due_at, life.began_at, life.submitted_at), (right, right, right));
    assert_eq!(life.deadline_at, Some(right + HOUR / 2));
    assert_eq!((done.evidence, done.events[0].kind, done.events[0].at), (Evidence::Version, EventKind::Restamped, right));
    assert!(!story.job.may_be_ahead(right));
    assert_eq!(story.decide(restamped(right, right)).unwrap_err(), Illegal::NotDue, "the second look finds its event");
}

#[test]
fn a_retry_keeps_what_is_left_of_its_delay_and_the_deadline_stays() {
    let mut story = Story::of(NewJob { deadline_ms: Some(7_200_000), ..NewJob::default() }, allow());
    let deadline = story.job.life.deadline_at;
    story.dispatch();
    story.start();
    story.now = START + HOUR;
    let again = Some(Duration::from_secs(20));
    story
        .apply(report(story.token(), Outcome::FailedRetryable { error: "no".into(), code: None, retry_after: again }))
        .unwrap();
    let changed_at = story.now;
    story.now = START + Duration::from_secs(5);
    story.apply(restamped(changed_at, story.now)).unwrap();
    assert_eq!(story.job.life.due_at, story.now + Duration::from_secs(20));
    assert_eq!((story.job.life.deadline_at, story.job.life.began_at), (deadline, START));
}

#[test]
fn a_delay_that_was_asked_for_and_a_time_that_was_named_stay() {
    let named = START + 2 * HOUR;
    let mut story = ahead(NewJob { not_before: Some(named), ..NewJob::default() });
    story.apply(restamped(START, story.now)).unwrap();
    assert_eq!(story.job.life.due_at, named);
    let story = Story::of(NewJob { not_before: Some(named), ..NewJob::default() }, allow());
    assert!(story.job.may_be_ahead(START), "the stamp of its event must tell");
    assert_eq!(story.decide(restamped(START, START)).unwrap_err(), Illegal::NotDue);
}

#[test]
fn what_people_were_asked_expires_as_long_after_the_question() {
    let mut story = Story::of(NewJob::default(), judgement(Decision::RequireApproval));
    let right = START + Duration::from_secs(10) - HOUR;
    story.now = right;
    story.apply(restamped(START, right)).unwrap();
    assert_eq!(story.job.life.approval.as_ref().unwrap().asked_at, right);
}

#[test]
fn a_job_that_a_worker_holds_keeps_its_attempt_and_its_deadline() {
    let mut story = Story::dispatched();
    story.job.life.deadline_at = Some(story.now + HOUR);
    let (attempt, changed_at) = (story.job.life.attempt.clone(), story.now);
    story.now = START - HOUR;
    story.apply(restamped(changed_at, story.now)).unwrap();
    assert_eq!((story.state(), &story.job.life.attempt), (JobState::Dispatched, &attempt));
    // Moved back alone it would lie before the timeout of the attempt, which then would end the job with its retries unspent.
    assert_eq!(story.job.life.deadline_at, Some(changed_at + HOUR));
}
