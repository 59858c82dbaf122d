//! Children and the barrier behind which their parent waits.

use std::time::Duration;

use super::{Story, cancel, judgement, replay, settled, succeeded};
use crate::job::{
    Answer, Ballot, Duty, EventKind, Evidence, Illegal, Input, JobState, OnTimeout, Outcome, Reason, Sight, attempts,
};
use crate::limits::CHILD_DEPTH_MAX;
use crate::request::{ChildOf, JobRequest, NewJob};
use crate::verdict::{Decision, Judgement};

const MINUTE: Duration = Duration::from_secs(60);

fn wait(on_timeout: OnTimeout) -> Outcome {
    Outcome::AwaitChildren { timeout: Some(MINUTE), on_timeout }
}

fn spawn(story: &mut Story) {
    let input = Input::Spawned { token: story.token(), children: 3 };
    story.apply(input).unwrap();
}

fn waiting(on_timeout: OnTimeout) -> Story {
    let mut story = Story::running();
    spawn(&mut story);
    story.report(wait(on_timeout));
    story
}

fn gathered(story: &Story) -> Input {
    Input::Gathered { token: story.token() }
}

fn vote(story: &Story, actor: &str, answer: Answer) -> Input {
    let rule_hash = story.job.life.approval.as_ref().unwrap().rule_hash.clone();
    Input::Vote(Ballot {
        actor: actor.into(),
        answer,
        note: None,
        request_hash: story.job.hash,
        rule_hash,
        sight: Sight::Whole,
    })
}

#[test]
fn a_parent_that_waits_is_held_by_nobody_and_burns_nothing() {
    let mut story = Story::running();
    spawn(&mut story);
    let token = story.token();
    let done = story.report(wait(OnTimeout::Fail));
    assert_eq!(done.effects, [settled(token.clone())], "its place is free");
    assert_eq!((story.state(), story.job.holder(), story.job.life.counters), (JobState::Pending, None, Default::default()));
    assert_eq!(story.job.deadline(), Some(story.now + MINUTE));
    assert!(story.job.owes(Duty::Gather) && story.token() != token);
    assert_eq!(story.decide(Input::Judged).unwrap_err(), Illegal::NotDue, "it waits for no verdict");
}

#[test]
fn when_its_children_have_ended_it_is_judged_and_called_again() {
    let mut story = waiting(OnTimeout::Fail);
    let attempt = story.job.life.attempt.no;
    story.apply(gathered(&story)).unwrap();
    assert_eq!((story.state(), story.job.life.attempt.no), (JobState::Scheduled, attempt));
    let family = story.job.life.family.clone().unwrap();
    assert_eq!((family.rounds, family.partial, family.waits), (1, false, None));
    assert!(!story.job.owes(Duty::Gather));
    assert!(story.apply(gathered(&story)).is_err(), "once");
    story.dispatch();
    story.report(succeeded());
    assert_eq!(story.state(), JobState::Succeeded);
    let told: Vec<_> = attempts(&story.events).iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(told, [Some(EventKind::WaitingForChildren), Some(EventKind::Succeeded)]);
}

#[test]
fn what_was_seen_of_one_wait_opens_no_later_one() {
    let mut story = waiting(OnTimeout::Fail);
    let seen = gathered(&story);
    story.apply(seen.clone()).unwrap();
    story.dispatch();
    spawn(&mut story);
    story.report(wait(OnTimeout::Fail));
    assert_eq!(story.decide(seen).unwrap_err(), Illegal::Superseded, "these children are others");
    story.apply(gathered(&story)).unwrap();
}

#[test]
fn what_was_seen_of_one_life_settles_no_later_one() {
    let mut story = Story::running();
    spawn(&mut story);
    story.report(Outcome::FailedFatal { error: "no".into() });
    story.apply(Input::Settled { life: 1 }).unwrap();
    story.apply(replay()).unwrap();
    story.dispatch();
    spawn(&mut story);
    story.report(Outcome::FailedFatal { error: "no".into() });
    assert_eq!(story.decide(Input::Settled { life: 1 }).unwrap_err(), Illegal::Superseded, "these children are others");
    story.apply(Input::Settled { life: 2 }).unwrap();
}

#[test]
fn without_a_verdict_it_waits_for_one_and_for_nothing_else() {
    let mut story = waiting(OnTimeout::Fail);
    story.judgement = Judgement::UNASKED;
    story.apply(gathered(&story)).unwrap();
    assert_eq!((story.state(), story.job.barrier()), (JobState::Pending, None));
    story.judgement = judgement(Decision::Allow);
    story.advance(5_000);
    story.apply(Input::Judged).unwrap();
    assert_eq!(story.state(), JobState::Scheduled);
}

#[test]
fn a_barrier_that_does_not_open_in_time_fails_the_parent() {
    let mut story = waiting(OnTimeout::Fail);
    story.advance(59_999);
    assert_eq!(story.decide(Input::Woken).unwrap_err(), Illegal::NotDue);
    story.advance(1);
    let done = story.apply(Input::Woken).unwrap();
    assert_eq!(done.evidence, Evidence::Reached(story.now));
    assert_eq!(done.dead_letter.unwrap().reason, Reason::ChildrenTimeout);
    assert_eq!(story.state(), JobState::Failed);
    assert!(story.job.owes(Duty::Disown), "its children must be stopped");
    story.apply(Input::Settled { life: 1 }).unwrap();
    assert!(!story.job.owes(Duty::Disown) && story.apply(Input::Settled { life: 1 }).is_err());
}

#[test]
fn a_person_decides_whether_it_goes_on_with_what_there_is() {
    let mut story = waiting(OnTimeout::Review);
    story.judgement = Judgement::UNASKED;
    story.advance(60_000);
    let asked = story.apply(Input::Woken).unwrap();
    assert_eq!(story.state(), JobState::ApprovalRequired);
    assert_eq!(asked.audit().len(), 1, "the question is on record");
    story.judgement = judgement(Decision::Allow);
    assert_eq!(story.decide(vote(&story, "ann", Answer::Approve)).unwrap_err(), Illegal::SelfApproval);
    let rejected = story.decide(vote(&story, "bob", Answer::Reject)).unwrap();
    assert_eq!(rejected.dead_letter.unwrap().reason, Reason::ApprovalRejected);
    assert!(rejected.job.owes(Duty::Disown));
    let granted = story.apply(vote(&story, "bob", Answer::Approve)).unwrap();
    assert_eq!(granted.audit().len(), 1);
    assert_eq!(story.state(), JobState::Scheduled);
    let family = story.job.life.family.as_ref().unwrap();
    assert!(family.partial && family.rounds == 1 && family.waits.is_none());
}

#[test]
fn a_review_does_not_take_the_place_of_what_policy_had_been_told() {
    let mut story = Story::of(NewJob::default(), judgement(Decision::RequireApproval));
    story.judgement = judgement(Decision::RequireApproval);
    story.apply(vote(&story, "bob", Answer::Approve)).unwrap();
    story.dispatch();
    story.report(wait(OnTimeout::Review));
    story.advance(60_000);
    story.apply(Input::Woken).unwrap();
    story.apply(vote(&story, "cid", Answer::Approve)).unwrap();
    assert_eq!(story.state(), JobState::Scheduled, "policy's own question was answered before");
}

#[test]
fn a_deadline_and_a_cancel_find_a_parent_that_waits() {
    let mut story = Story::of(NewJob { deadline_ms: Some(30_000), ..NewJob::default() }, judgement(Decision::Allow));
    story.dispatch();
    spawn(&mut story);
    story.report(wait(OnTimeout::Review));
    let cancelled = story.decide(cancel()).unwrap();
    assert!(cancelled.job.state() == JobState::Cancelled && cancelled.job.owes(Duty::Disown));
    story.advance(30_000);
    story.apply(Input::Woken).unwrap();
    assert_eq!((story.state(), story.job.owes(Duty::Gather)), (JobState::Timeout, false));
}

#[test]
fn only_the_attempt_that_counts_submits_children() {
    let mut story = Story::running();
    let old = story.token();
    story.lose();
    for token in [old, story.token()] {
        assert_eq!(story.decide(Input::Spawned { token, children: 1 }).unwrap_err(), Illegal::Superseded);
    }
    let story = waiting(OnTimeout::Fail);
    let input = Input::Spawned { token: story.token(), children: 1 };
    assert_eq!(story.decide(input).unwrap_err(), Illegal::Superseded, "nobody holds a parent that waits");
}

#[test]
fn what_goes_well_leaves_its_children_alone_and_a_new_life_has_none() {
    let mut story = Story::running();
    spawn(&mut story);
    let done = story.decide(super::report(story.token(), succeeded())).unwrap();
    assert!(!done.job.owes(Duty::Disown));
    story.report(Outcome::FailedFatal { error: "no".into() });
    assert!(story.job.owes(Duty::Disown));
    assert_eq!(story.decide(replay()).unwrap_err(), Illegal::Disowning, "a new life would forget them");
    story.apply(Input::Settled { life: 1 }).unwrap();
    story.apply(replay()).unwrap();
    assert_eq!(story.job.life.family, None);
}

#[test]
fn a_job_that_only_waits_is_called_dead_one_day() {
    let mut story = Story::running();
    story.limits.snoozes_max = 2;
    for _ in 0..2 {
        story.report(wait(OnTimeout::Fail));
        story.apply(gathered(&story)).unwrap();
        story.dispatch();
    }
    story.report(wait(OnTimeout::Fail));
    assert_eq!(story.job.life.last_error.as_ref().unwrap().reason, Reason::SnoozeLimit);
}

fn child(story: &Story, key: &str, new: NewJob) -> Result<JobRequest, String> {
    let new = NewJob { topic: "t".into(), ..new };
    JobRequest::child(&story.job, key, new, None).map_err(|errors| format!("{errors:?}"))
}

#[test]
fn a_child_is_its_parents_and_named_by_its_key() {
    let mut story = Story::running();
    let first = child(&story, "page-1", NewJob::default()).unwrap();
    assert_eq!((first.job_id.as_str(), first.tenant.as_str(), first.actor.as_str()), ("job-1~page-1", "acme", "ann"));
    let of = ChildOf { parent: "job-1".into(), life: 1, key: "page-1".into(), depth: 1 };
    assert_eq!((first.child_of.clone(), first.is_named()), (Some(of), true));
    assert_eq!(child(&story, "page-1", NewJob::default()).unwrap().hash(), first.hash());
    story.job.life.no = 2;
    assert_eq!(child(&story, "page-1", NewJob::default()).unwrap().job_id.as_str(), "job-1~~2~page-1");
    let long = child(&story, &"k".repeat(120), NewJob::default()).unwrap().job_id;
    assert!(long.as_str().starts_with("child~") && long.as_str().len() < 64, "{long}");
    let keyed = NewJob { idempotency_key: Some("x".into()), ..NewJob::default() };
    assert!(child(&story, "a~b", keyed).unwrap_err().contains("a child is named by its key"));
}

#[test]
fn children_are_nested_only_so_deep() {
    let mut story = Story::running();
    let of = |depth| ChildOf { parent: "p".into(), life: 1, key: "k".into(), depth };
    let mut request = (*story.job.request).clone();
    for (depth, fits) in [(CHILD_DEPTH_MAX - 1, true), (CHILD_DEPTH_MAX, false)] {
        request.child_of = Some(of(depth));
        story.job.request = request.clone().into();
        assert_eq!(child(&story, "c", NewJob::default()).is_ok(), fits, "below {depth}");
    }
    assert!(child(&story, "c", NewJob::default()).unwrap_err().contains("nested too deep"));
}
