//! Questions to people, and what their answers do.

use std::sync::Arc;

use super::super::{Answer, Ballot, Duty, Sight};
use super::*;
use crate::audit::AuditAction;
use crate::verdict::ApprovalTerms;

fn asks(rule_hash: &str, terms: ApprovalTerms) -> Judgement {
    let verdict = Verdict::plain(Decision::RequireApproval, "ask", "a person must look", "snapshot-1".into());
    Judgement::Decided(Arc::new(verdict.but(|verdict| {
        verdict.rule_hash = rule_hash.into();
        verdict.approval = Some(terms);
    })))
}

fn asked(terms: ApprovalTerms) -> Story {
    let mut story = Story::of(NewJob::default(), asks("h1", terms.clone()));
    story.judgement = asks("h1", terms);
    story
}

fn by(story: &Story, actor: &str, answer: Answer) -> Ballot {
    Ballot {
        actor: actor.into(),
        answer,
        note: None,
        request_hash: story.job.hash,
        rule_hash: "h1".into(),
        sight: Sight::Whole,
    }
}

fn approve(story: &mut Story, actor: &str) -> Result<Transition, Illegal> {
    let ballot = by(story, actor, Answer::Approve);
    story.apply(Input::Vote(ballot))
}

#[test]
fn a_rule_that_asks_holds_the_job_until_somebody_else_agrees() {
    let mut story = asked(ApprovalTerms::default());
    assert_eq!(story.state(), JobState::ApprovalRequired);
    assert!(story.job.owes(Duty::Approve));
    let granted = approve(&mut story, "bob").unwrap();
    assert_eq!(story.state(), JobState::Scheduled);
    assert_eq!(granted.duties().collect::<Vec<_>>(), [(Duty::Approve, false)]);
    assert_eq!(granted.audit().iter().map(|entry| entry.action).collect::<Vec<_>>(), [AuditAction::Approved]);
    assert_eq!(granted.audit()[0].actor.as_str(), "bob");
    assert_eq!(story.job.life.attempt.no, 1, "agreeing is not going back");
}

#[test]
fn the_submitter_cannot_agree_with_themselves_but_may_withdraw() {
    let mut story = asked(ApprovalTerms::default());
    assert_eq!(approve(&mut story, "ann").unwrap_err(), Illegal::SelfApproval);
    let ballot = by(&story, "ann", Answer::Reject);
    story.apply(Input::Vote(ballot)).unwrap();
    assert_eq!(story.state(), JobState::Denied);
}

#[test]
fn a_vote_for_another_request_or_another_rule_does_not_count() {
    let story = asked(ApprovalTerms::default());
    let other_request = Ballot { request_hash: crate::request::RequestHash([0; 32]), ..by(&story, "bob", Answer::Approve) };
    let other_rule = Ballot { rule_hash: "h2".into(), ..by(&story, "bob", Answer::Approve) };
    assert_eq!(story.decide(Input::Vote(other_request)).unwrap_err(), Illegal::StaleApproval("request"));
    assert_eq!(story.decide(Input::Vote(other_rule)).unwrap_err(), Illegal::StaleApproval("rule"));
}

#[test]
fn two_of_two_must_be_two_people() {
    let mut story = asked(ApprovalTerms { approvers: 2, ..ApprovalTerms::default() });
    approve(&mut story, "bob").unwrap();
    assert_eq!(story.state(), JobState::ApprovalRequired);
    assert_eq!(approve(&mut story, "bob").unwrap_err(), Illegal::AlreadyVoted);
    approve(&mut story, "cleo").unwrap();
    assert_eq!(story.state(), JobState::Scheduled);
    assert_eq!(approve(&mut story, "bob").unwrap_err(), Illegal::AlreadyVoted, "the same person, late, is no conflict");
    let late = approve(&mut story, "dan").unwrap_err();
    assert_eq!(late, Illegal::State { input: "approval", state: JobState::Scheduled });
}

#[test]
fn a_policy_that_meanwhile_denies_wins_over_the_approval() {
    let mut story = asked(ApprovalTerms::default());
    story.judgement = judgement(Decision::Deny);
    approve(&mut story, "bob").unwrap();
    assert_eq!(story.state(), JobState::Denied);
}

#[test]
fn an_approval_given_while_the_kernel_is_away_counts_when_it_is_back() {
    let mut story = asked(ApprovalTerms::default());
    story.judgement = Judgement::UNASKED;
    approve(&mut story, "bob").unwrap();
    assert_eq!((story.state(), story.job.life.attempt.no), (JobState::Pending, 2));
    story.judgement = asks("h1", ApprovalTerms::default());
    story.advance(10_000);
    story.apply(Input::Judged).unwrap();
    assert_eq!(story.state(), JobState::Scheduled);
}

#[test]
fn another_rule_that_asks_needs_its_own_approval() {
    let mut story = asked(ApprovalTerms::default());
    story.judgement = asks("h2", ApprovalTerms::default());
    approve(&mut story, "bob").unwrap();
    assert_eq!(story.state(), JobState::ApprovalRequired);
    assert_eq!(&*story.job.life.approval.as_ref().unwrap().rule_hash, "h2");
}

#[test]
fn retries_of_an_approved_job_need_no_new_approval_until_it_is_too_old() {
    let mut story = asked(ApprovalTerms { valid_for_ms: Some(60_000), ..ApprovalTerms::default() });
    approve(&mut story, "bob").unwrap();
    story.dispatch();
    story.report(Outcome::FailedRetryable { error: "again".into(), code: None, retry_after: None });
    assert_eq!(story.state(), JobState::Scheduled);
    story.dispatch();
    story.advance(120_000);
    story.report(Outcome::FailedRetryable { error: "again".into(), code: None, retry_after: None });
    assert_eq!(story.state(), JobState::ApprovalRequired, "asked again");
}

#[test]
fn a_replayed_job_asks_anew() {
    let mut story = asked(ApprovalTerms::default());
    approve(&mut story, "bob").unwrap();
    story.dispatch();
    story.report(Outcome::FailedFatal { error: "no".into() });
    story.apply(Input::Replay { actor: "ann".into() }).unwrap();
    assert_eq!(story.state(), JobState::ApprovalRequired);
    assert!(story.job.life.approval.as_ref().unwrap().votes.is_empty());
}

#[test]
fn a_question_nobody_answers_ends_as_denied() {
    let mut story = asked(ApprovalTerms { request_expiry_ms: Some(5_000), ..ApprovalTerms::default() });
    let expires = START + Duration::from_millis(5_000);
    assert_eq!(story.job.deadline(), Some(expires));
    assert_eq!(story.decide(Input::Woken).unwrap_err(), Illegal::NotDue);
    story.advance(5_000);
    assert_eq!(approve(&mut story, "bob").unwrap_err(), Illegal::ApprovalExpired);
    let expired = story.apply(Input::Woken).unwrap();
    assert_eq!(expired.evidence, Evidence::Reached(expires));
    assert_eq!(story.state(), JobState::Denied);
    assert_eq!(expired.dead_letter.unwrap().reason, Reason::ApprovalExpired);
}

#[test]
fn a_rejection_names_who_and_why() {
    let mut story = asked(ApprovalTerms::default());
    let ballot = Ballot { note: Some("too risky".into()), ..by(&story, "bob", Answer::Reject) };
    let rejected = story.apply(Input::Vote(ballot)).unwrap();
    let letter = rejected.dead_letter.as_ref().unwrap();
    assert_eq!((letter.reason, &*letter.message), (Reason::ApprovalRejected, "bob rejected it: too risky"));
    assert_eq!(rejected.audit()[0].action, AuditAction::JobDenied);
    assert_eq!(rejected.audit()[0].actor.as_str(), "bob");
}

#[test]
fn agreeing_unseen_must_be_meant_and_is_on_record_and_refusing_needs_nothing() {
    let unseen = |story: &Story, answer, sight| Input::Vote(Ballot { sight, ..by(story, "bob", answer) });
    let mut story = asked(ApprovalTerms { approvers: 2, ..ApprovalTerms::default() });
    let blind = story.decide(unseen(&story, Answer::Approve, Sight::Hidden)).unwrap_err();
    assert_eq!(blind, Illegal::PayloadHidden);
    let rejected = story.decide(unseen(&story, Answer::Reject, Sight::Hidden)).unwrap();
    assert_eq!(rejected.job.state(), JobState::Denied);

    let meant = story.apply(unseen(&story, Answer::Approve, Sight::HiddenAcknowledged)).unwrap();
    assert!(meant.audit()[0].detail.as_str().contains(r#""payload_hidden":true"#), "{:?}", meant.audit());
    let seen = approve(&mut story, "cid").unwrap();
    assert!(!seen.audit()[0].detail.as_str().contains("payload_hidden"), "{:?}", seen.audit());
    let votes = &story.job.life.approval.as_ref().unwrap().votes;
    assert_eq!(votes.iter().map(|vote| vote.payload_hidden).collect::<Vec<_>>(), [true, false]);
}
