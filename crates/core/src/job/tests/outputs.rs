//! Results and the policy they pass.

use std::sync::Arc;

use super::super::{Duty, OutputStage, Scanned, UnscannedRelease, attempts};
use super::*;
use crate::audit::AuditAction;
use crate::output::{OutputDecision, OutputVerdict};

fn verdict(decision: OutputDecision, redacted: Option<&str>) -> Arc<OutputVerdict> {
    Arc::new(OutputVerdict {
        decision,
        rule: "out".into(),
        reason: "a secret".into(),
        snapshot: "snapshot-1".into(),
        findings: Vec::new(),
        redacted: redacted.map(|text| Json::parse(text).unwrap()),
    })
}

fn done(story: &mut Story, output: OutputStep) -> Transition {
    let outcome = Outcome::Succeeded { result: Json::parse("\"raw\"").unwrap() };
    story.apply(Input::Reported(AttemptReport { token: story.token(), started_at: None, outcome, output })).unwrap()
}

fn scan(story: &mut Story, verdict: Arc<OutputVerdict>) -> Transition {
    let attempt = story.job.life.output.as_ref().unwrap().attempt;
    story.apply(Input::Scanned(Scanned { attempt, verdict, result: Json::parse("\"raw\"").unwrap() })).unwrap()
}

#[test]
fn a_result_to_be_scanned_is_out_and_owes_the_scan() {
    let mut story = Story::running();
    let ended = done(&mut story, OutputStep::Scan { hold: false });
    assert_eq!(story.state(), JobState::Succeeded);
    assert_eq!(ended.duties().collect::<Vec<_>>(), [(Duty::Scan, true)]);
    let checked = scan(&mut story, verdict(OutputDecision::Allow, None));
    assert_eq!((story.state(), checked.events.len()), (JobState::Succeeded, 0), "being clean is no news");
    assert_eq!(checked.duties().collect::<Vec<_>>(), [(Duty::Scan, false)]);
}

#[test]
fn a_held_result_frees_the_worker_and_waits_for_the_scan() {
    let mut story = Story::running();
    let held = done(&mut story, OutputStep::Scan { hold: true });
    assert!(story.job.in_output_check() && !story.job.result_is_out());
    assert!(held.effects.iter().any(|effect| matches!(effect, Effect::Settled { .. })));
    assert_eq!(story.job.deadline(), None);
    assert_eq!(story.decide(cancel()).unwrap_err(), Illegal::OutputCheck);
    assert_eq!(story.decide(report(story.token(), Outcome::Interrupted)).unwrap_err(), Illegal::Superseded);
    scan(&mut story, verdict(OutputDecision::Allow, None));
    assert_eq!(story.state(), JobState::Succeeded);
    assert!(story.job.result_is_out());
}

/// the attempt that was to follow did nothing.
#[test]
fn whatever_comes_of_a_late_result_is_told_of_the_attempt_that_had_it() {
    let cut = verdict(OutputDecision::Redact, Some("\"cut\""));
    let unchecked = OutputStep::Unchecked { why: "nobody can look".into() };
    for step in [OutputStep::Scan { hold: true }, unchecked, OutputStep::Decided(cut)] {
        let mut story = Story::running();
        let token = story.token();
        story.lose();
        let outcome = Outcome::Succeeded { result: Json::parse("\"raw\"").unwrap() };
        let output = step.clone();
        let before = story.events.len();
        story.apply(Input::Reported(AttemptReport { token, started_at: None, outcome, output })).unwrap();
        if story.job.in_output_check() {
            scan(&mut story, verdict(OutputDecision::Allow, None));
        }
        assert_eq!((story.state(), story.job.life.output.as_ref().unwrap().attempt), (JobState::Succeeded, 1), "{step:?}");
        assert!(story.events[before..].iter().all(|event| event.late_of == Some(1)), "{step:?}: {:?}", story.events);
        let known: Vec<_> = attempts(&story.events).iter().map(|attempt| (attempt.no, attempt.outcome)).collect();
        assert_eq!(known, [(1, Some(EventKind::Succeeded))], "{step:?}");
    }
}

#[test]
fn a_late_quarantine_takes_the_result_back_with_a_dead_letter() {
    let mut story = Story::running();
    done(&mut story, OutputStep::Scan { hold: false });
    let ended_at = story.job.life.ended_at;
    story.advance(1_000);
    let taken = scan(&mut story, verdict(OutputDecision::Quarantine, None));
    assert_eq!(story.state(), JobState::OutputQuarantined);
    assert_eq!(story.job.life.ended_at, ended_at, "the work ended when it ended");
    assert_eq!(taken.dead_letter.as_ref().unwrap().reason, Reason::OutputQuarantined);
    assert_eq!(taken.audit()[0].action, AuditAction::OutputQuarantined);
    assert!(!story.job.result_is_out());
}

#[test]
fn a_redacted_copy_replaces_the_result_and_without_one_it_is_quarantined() {
    let mut story = Story::running();
    done(&mut story, OutputStep::Scan { hold: true });
    let redacted = scan(&mut story, verdict(OutputDecision::Redact, Some("\"[REDACTED]\"")));
    assert_eq!((story.state(), redacted.result.unwrap().as_str()), (JobState::Succeeded, "\"[REDACTED]\""));
    assert!(story.kinds().contains(&EventKind::OutputRedacted));
    let mut story = Story::running();
    done(&mut story, OutputStep::Decided(verdict(OutputDecision::Redact, None)));
    assert_eq!(story.state(), JobState::OutputQuarantined);
}

#[test]
fn a_person_releases_a_quarantined_result_once() {
    let mut story = Story::running();
    done(&mut story, OutputStep::Decided(verdict(OutputDecision::Deny, None)));
    let release = || Input::Release { actor: "bob".into(), note: Some("a false alarm".into()) };
    let released = story.apply(release()).unwrap();
    assert_eq!(story.state(), JobState::Succeeded);
    assert_eq!((released.audit()[0].action, released.audit()[0].actor.as_str()), (AuditAction::OutputReleased, "bob"));
    assert!(released.dead_letter.is_none() && story.job.result_is_out());
    assert!(matches!(story.decide(release()).unwrap_err(), Illegal::State { .. }));
}

#[test]
fn a_scan_of_another_attempt_or_a_second_scan_changes_nothing() {
    let mut story = Story::running();
    done(&mut story, OutputStep::Scan { hold: false });
    let of = |attempt| {
        Input::Scanned(Scanned { attempt, verdict: verdict(OutputDecision::Quarantine, None), result: Json::null() })
    };
    assert!(story.decide(of(9)).is_err());
    scan(&mut story, verdict(OutputDecision::Allow, None));
    assert!(story.decide(of(1)).is_err(), "late quarantine only while the scan is owed");
}

#[test]
fn an_unchecked_result_says_so_and_still_owes_its_scan() {
    let mut story = Story::running();
    let ended = done(&mut story, OutputStep::Unchecked { why: "the scanner did not answer".into() });
    assert_eq!(story.state(), JobState::Succeeded);
    assert_eq!(story.job.life.output.as_ref().unwrap().stage, OutputStage::Unchecked);
    assert_eq!(ended.audit()[0].action, AuditAction::OutputUnchecked);
    assert!(story.job.owes(Duty::Scan));
}

#[test]
fn a_held_result_that_nobody_can_scan_is_let_out_once_and_taken_back_by_a_later_scan() {
    let let_out = |attempt| {
        Input::LetOut(UnscannedRelease {
            attempt,
            why: "the scanner did not answer".into(),
            result: Json::parse("\"raw\"").unwrap(),
        })
    };
    let mut story = Story::running();
    assert!(story.decide(let_out(1)).is_err(), "nothing is held");
    done(&mut story, OutputStep::Scan { hold: true });
    assert!(story.decide(let_out(9)).is_err(), "of another attempt");
    let out = story.apply(let_out(1)).unwrap();
    assert_eq!((story.state(), out.audit()[0].action), (JobState::Succeeded, AuditAction::OutputUnchecked));
    assert_eq!(story.job.life.output.as_ref().unwrap().stage, OutputStage::Unchecked);
    assert!(story.job.result_is_out() && story.job.owes(Duty::Scan));
    assert!(story.decide(let_out(1)).is_err(), "it is out already");
    scan(&mut story, verdict(OutputDecision::Quarantine, None));
    assert_eq!(story.state(), JobState::OutputQuarantined);
}
