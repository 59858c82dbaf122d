//! Each constraint does what it says.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::verdict::Constraints;

fn with(constraints: Constraints) -> Judgement {
    let verdict = Verdict::plain(Decision::AllowWithConstraints, "limit", "within bounds", "snapshot-1".into());
    Judgement::Decided(Arc::new(verdict.but(|verdict| verdict.constraints = constraints)))
}

fn story(constraints: Constraints) -> Story {
    let mut story = Story::of(NewJob::default(), with(constraints.clone()));
    story.judgement = with(constraints);
    story
}

#[test]
fn max_runtime_lowers_the_timeout_and_never_raises_it() {
    for (max, expected) in [(1_000, 1_000), (100_000_000, 300_000)] {
        let mut story = story(Constraints { max_runtime_ms: Some(max), ..Constraints::default() });
        story.dispatch();
        let binding = story.job.life.attempt.binding.clone().unwrap();
        assert_eq!(binding.timeout_at.since(binding.dispatched_at), Duration::from_millis(expected));
    }
}

#[test]
fn max_retries_caps_the_attempts() {
    let mut story = story(Constraints { max_retries: Some(1), ..Constraints::default() });
    let failed = || Outcome::FailedRetryable { error: "no".into(), code: None, retry_after: None };
    story.dispatch();
    story.report(failed());
    assert_eq!(story.state(), JobState::Scheduled);
    story.dispatch();
    story.report(failed());
    assert_eq!(story.state(), JobState::Failed, "one retry and no more, although the job asked for three attempts");
}

#[test]
fn a_result_larger_than_max_output_bytes_fails_the_job_and_is_not_kept() {
    let mut story = story(Constraints { max_output_bytes: Some(4), ..Constraints::default() });
    story.dispatch();
    let small = story.decide(report(story.token(), Outcome::Succeeded { result: Json::parse("1234").unwrap() })).unwrap();
    assert_eq!(small.job.state(), JobState::Succeeded);
    let large = story.report(Outcome::Succeeded { result: Json::parse("12345").unwrap() });
    assert_eq!(story.state(), JobState::Failed);
    assert_eq!(large.dead_letter.unwrap().reason, Reason::OutputTooLarge);
    assert!(large.result.is_none());
}

#[test]
fn the_pools_and_the_number_that_policy_allows_are_part_of_the_shape() {
    let pools = Some(BTreeSet::from([Arc::from("gpu")]));
    let story = story(Constraints { allowed_pools: pools.clone(), max_concurrent: Some(2), ..Constraints::default() });
    let shape = story.job.shape();
    assert_eq!((shape.allowed_pools, shape.max_concurrent), (pools, Some(2)));
}
