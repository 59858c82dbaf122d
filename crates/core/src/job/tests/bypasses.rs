//! Attempts without a verdict, and the verdict that the kernel gives once it answers again.

use std::sync::Arc;

use super::super::Duty;
use super::*;
use crate::audit::AuditAction;

fn bypass() -> Judgement {
    Judgement::Decided(Arc::new(Verdict::bypass("no answer within 2 s", "snapshot-1".into())))
}

fn let_through() -> Story {
    let mut story = Story::of(NewJob::default(), bypass());
    story.judgement = bypass();
    story
}

#[test]
fn an_unjudged_job_runs_and_is_entered_in_the_ledger() {
    let story = let_through();
    assert_eq!(story.state(), JobState::Scheduled);
    assert!(story.job.owes(Duty::Rejudge));
    assert!(story.kinds().contains(&EventKind::SafetyBypassed));
    assert!(story.decide(Input::Rejudged).is_err(), "no answer settles nothing");
}

#[test]
fn a_verdict_that_agrees_settles_the_entry() {
    let mut story = let_through();
    story.judgement = allow();
    let settled = story.apply(Input::Rejudged).unwrap();
    assert_eq!(settled.duties().collect::<Vec<_>>(), [(Duty::Rejudge, false)]);
    assert!(!story.job.life.bypass.as_ref().unwrap().wrong);
    assert_eq!(story.state(), JobState::Scheduled);
}

#[test]
fn a_running_job_that_is_refused_now_is_stopped_and_denied() {
    let mut story = let_through();
    story.dispatch();
    story.start();
    story.judgement = judgement(Decision::Deny);
    let refused = story.apply(Input::Rejudged).unwrap();
    assert_eq!(story.state(), JobState::Denied);
    assert!(refused.effects.iter().any(|effect| matches!(effect, Effect::Stop { .. })));
    let actions: Vec<_> = refused.audit().iter().map(|entry| entry.action).collect();
    assert_eq!(actions, [AuditAction::BypassRefused, AuditAction::JobDenied]);
}

#[test]
fn a_job_that_ended_before_the_refusal_is_flagged_and_stays_as_it_ended() {
    let mut story = let_through();
    story.dispatch();
    story.report(Outcome::Succeeded { result: Json::null() });
    story.judgement = judgement(Decision::Deny);
    let refused = story.apply(Input::Rejudged).unwrap();
    assert_eq!(story.state(), JobState::Succeeded);
    assert!(story.job.life.bypass.as_ref().unwrap().wrong);
    assert_eq!(refused.audit()[0].action, AuditAction::BypassRefused);
    assert!(!story.job.owes(Duty::Rejudge));
}
