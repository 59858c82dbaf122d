//! Questions that the platform puts before a job of a run.

use super::super::{Answer, Ballot, Duty, Sight};
use super::*;
use crate::request::{ApprovalGate, RunRef};
use crate::verdict::ApprovalTerms;

fn gated(only: bool, judgement: Judgement) -> Story {
    gated_by(ApprovalGate { reason: "ship it?".into(), terms: ApprovalTerms::default(), only }, judgement)
}

fn gated_by(gate: ApprovalGate, judgement: Judgement) -> Story {
    let caller = Caller::new("acme", "ann");
    let new = NewJob { topic: "job.echo".into(), ..NewJob::default() };
    let mut request = JobRequest::check(new, &caller, || JobId::from("run-1.0")).unwrap();
    request.gate = Some(gate);
    request.run = Some(RunRef { run: "run-1".into(), node: 0, item: None, round: 0, undo: false });
    let mut story = Story::new();
    let hash = request.hash();
    let born = submit(Arc::new(request), hash, &env_at(START, 1, &story.limits, judgement));
    story.events = born.events;
    story.job = born.job;
    story
}

fn answer(story: &Story, actor: &str, answer: Answer) -> Input {
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
fn what_policy_allows_waits_for_the_people_the_gate_asks_for() {
    let mut story = gated(false, allow());
    assert_eq!(story.state(), JobState::ApprovalRequired);
    assert!(story.job.owes(Duty::Approve));
    assert_eq!(&*story.job.life.attempt.verdict.as_ref().unwrap().reason, "ship it?");
    assert_eq!(story.apply(answer(&story, "ann", Answer::Approve)).unwrap_err(), Illegal::SelfApproval);
    story.apply(answer(&story, "bob", Answer::Approve)).unwrap();
    assert_eq!(story.state(), JobState::Scheduled);
    assert_eq!(story.job.life.attempt.verdict.as_ref().unwrap().decision, Decision::Allow);
}

#[test]
fn a_retry_of_what_people_agreed_to_is_not_asked_again() {
    let mut story = gated(false, allow());
    story.apply(answer(&story, "bob", Answer::Approve)).unwrap();
    story.dispatch();
    story.start();
    story.lose();
    assert_eq!(story.state(), JobState::Scheduled);
}

#[test]
fn agreement_is_all_that_a_pure_gate_needs() {
    let mut story = gated(true, allow());
    let end = story.apply(answer(&story, "bob", Answer::Approve)).unwrap();
    assert_eq!(story.state(), JobState::Succeeded);
    assert_eq!(end.result.as_ref().map(Json::as_str), Some(r#"{"approved_by":["bob"]}"#));
    assert!(!end.effects.contains(&Effect::Offer), "no worker is asked");
    assert_eq!(story.kinds().last(), Some(&EventKind::Succeeded));
}

#[test]
fn a_gate_neither_softens_a_denial_nor_asks_twice() {
    assert_eq!(gated(true, judgement(Decision::Deny)).state(), JobState::Denied);
    let mut asked = gated(false, judgement(Decision::RequireApproval));
    asked.judgement = judgement(Decision::RequireApproval);
    assert_eq!(asked.state(), JobState::ApprovalRequired);
    asked.apply(answer(&asked, "bob", Answer::Approve)).unwrap();
    assert_eq!(asked.state(), JobState::Scheduled, "the policy's question answers the gate's");
}

#[test]
fn a_policy_that_asks_fewer_people_does_not_weaken_the_gate() {
    let terms = ApprovalTerms { approvers: 2, request_expiry_ms: Some(60_000), valid_for_ms: None };
    let story =
        gated_by(ApprovalGate { reason: "ship it?".into(), terms, only: false }, judgement(Decision::RequireApproval));
    let asked = story.job.life.approval.as_ref().unwrap();
    assert_eq!((asked.terms.approvers, asked.terms.request_expiry_ms), (2, Some(60_000)));
}

#[test]
fn whoever_refuses_ends_it() {
    let mut story = gated(true, allow());
    story.apply(answer(&story, "bob", Answer::Reject)).unwrap();
    assert_eq!(story.state(), JobState::Denied);
}

#[test]
fn a_job_of_a_run_is_not_replayed() {
    let mut story = gated(true, judgement(Decision::Deny));
    let replay = Input::Replay { actor: "ann".into() };
    assert_eq!(story.apply(replay).unwrap_err(), Illegal::OfRun("run-1".into()));
}
