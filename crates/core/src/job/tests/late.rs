//! Work that was done although it no longer counted.

use super::super::{OutputStage, Scanned, UnscannedRelease, attempts};
use super::*;
use crate::output::{OutputDecision, OutputVerdict};

fn of_a_workflow() -> NewJob {
    NewJob { workflow_id: Some("order-7".into()), ..NewJob::default() }
}

fn running() -> Story {
    let mut story = Story::of(of_a_workflow(), allow());
    story.dispatch();
    story.start();
    story
}

fn done(token: &AttemptToken, output: OutputStep) -> Input {
    let outcome = Outcome::Succeeded { result: Json::trusted("42") };
    Input::Reported(AttemptReport { token: token.clone(), started_at: None, outcome, output })
}

fn decided(decision: OutputDecision) -> Arc<OutputVerdict> {
    Arc::new(OutputVerdict {
        decision,
        rule: "out".into(),
        reason: "a reason".into(),
        snapshot: "snapshot-1".into(),
        findings: Vec::new(),
        redacted: (decision == OutputDecision::Redact).then(|| Json::trusted("0")),
    })
}

#[test]
fn a_cancelled_job_of_a_run_takes_down_that_it_was_done_once() {
    let mut story = running();
    let token = story.token();
    story.apply(cancel()).unwrap();
    let ended = story.job.life.ended_at;
    story.advance(10);
    let late = story.apply(done(&token, OutputStep::Pass)).unwrap();
    assert_eq!((story.state(), story.job.life.ended_at), (JobState::Cancelled, ended), "it stays as it ended");
    assert!(story.job.is_done_late() && story.job.is_taken(&token) && late.tells_its_run());
    assert_eq!((late.result, late.dead_letter, late.effects), (Some(Json::trusted("42")), None, Vec::new()));
    assert_eq!(story.kinds().last(), Some(&EventKind::DoneLate));
    assert_eq!(attempts(&story.events).last().unwrap().outcome, Some(EventKind::Cancelled));
    assert_eq!(story.apply(done(&token, OutputStep::Pass)).unwrap_err(), Illegal::Superseded, "a repeat");
}

#[test]
fn only_a_success_of_an_attempt_that_was_taken_away_from_a_job_of_a_run_is_taken_down() {
    let mut alone = Story::running();
    let token = alone.token();
    alone.apply(cancel()).unwrap();
    assert_eq!(alone.apply(done(&token, OutputStep::Pass)).unwrap_err(), Illegal::Superseded, "nobody would undo it");
    let mut story = running();
    let token = story.token();
    story.apply(cancel()).unwrap();
    story.apply(Input::LetGo { token: token.clone() }).unwrap();
    for outcome in [failed(), Outcome::Interrupted, Outcome::Cancelled { note: "stopped".into() }] {
        assert_eq!(story.apply(report(token.clone(), outcome)).unwrap_err(), Illegal::Superseded);
    }
    assert_eq!(story.apply(done(&"other".into(), OutputStep::Pass)).unwrap_err(), Illegal::Superseded);
    let mut waited = Story::of(of_a_workflow(), allow());
    let token = waited.token();
    waited.apply(cancel()).unwrap();
    assert_eq!(waited.apply(done(&token, OutputStep::Pass)).unwrap_err(), Illegal::Superseded, "nobody had it");
    let mut said = running();
    let token = said.token();
    said.report(Outcome::FailedFatal { error: "never".into() });
    assert_eq!(said.apply(done(&token, OutputStep::Pass)).unwrap_err(), Illegal::Superseded, "it said otherwise itself");
}

/// The attempt was lost, its successor was sent, and both were right: the work was done, and the job goes on.
#[test]
fn a_lost_attempt_that_was_done_is_on_record_whatever_becomes_of_its_successors() {
    let mut story = running();
    let first = story.token();
    story.lose();
    story.dispatch();
    let late = story.apply(done(&first, OutputStep::Pass)).unwrap();
    assert_eq!((story.state(), late.result.clone(), late.tells_its_run()), (JobState::Dispatched, None, false));
    assert_eq!(late.events[0].late_of, Some(1));
    assert!(!story.job.is_done_late(), "it may be done once more: whoever waits for it waits on");
    let dead = story.report(Outcome::FailedFatal { error: "it is there already".into() });
    assert!(dead.tells_its_run() && story.job.is_done_late());
    let reborn = story.apply(replay()).unwrap().job;
    assert_eq!((reborn.life.late, reborn.life.taken), (None, Vec::new()), "of the life before");
}

#[test]
fn a_late_result_passes_policy_before_anybody_hears_of_it() {
    let held = || {
        let mut story = running();
        let token = story.token();
        story.apply(cancel()).unwrap();
        let late = story.apply(done(&token, OutputStep::Scan { hold: true })).unwrap();
        assert!(late.tells_its_run() && !story.job.is_done_late(), "its run learns that it waits for the scan");
        assert!(story.job.needs_scan() && !story.job.result_is_out());
        // what the work used is not undone before its run hears of it, so its worker counts as at work until then.
        assert!(story.job.leaving().map(|leaving| leaving.scan).eq([true]), "the scan is still to come");
        assert_eq!(story.apply(Input::LetGo { token }).unwrap_err(), Illegal::Superseded);
        story
    };
    for (decision, kept) in
        [(OutputDecision::Allow, "42"), (OutputDecision::Redact, "0"), (OutputDecision::Quarantine, "null")]
    {
        let mut story = held();
        let scanned = Scanned { attempt: 1, verdict: decided(decision), result: Json::trusted("42") };
        let told = story.apply(Input::Scanned(scanned)).unwrap();
        assert_eq!((story.state(), told.result.clone()), (JobState::Cancelled, Some(Json::trusted(kept))), "{decision:?}");
        assert!(told.tells_its_run() && story.job.is_done_late() && !story.job.needs_scan() && told.dead_letter.is_none());
        assert_eq!(story.job.leaving().count(), 0);
        assert_eq!(story.job.life.output.as_ref().unwrap().stage, OutputStage::Checked);
    }
    let mut story = held();
    let let_out = UnscannedRelease { attempt: 1, why: "nobody looked".into(), result: Json::trusted("42") };
    let told = story.apply(Input::LetOut(let_out)).unwrap();
    assert_eq!((story.state(), told.result.clone()), (JobState::Cancelled, Some(Json::trusted("42"))));
    assert!(told.tells_its_run() && story.job.is_done_late() && story.job.needs_scan(), "the scan stays owed");
    for (step, kept) in [
        (OutputStep::Decided(decided(OutputDecision::Redact)), "0"),
        (OutputStep::Decided(decided(OutputDecision::Deny)), "null"),
        (OutputStep::Unchecked { why: "nobody answered".into() }, "42"),
        (OutputStep::Scan { hold: false }, "42"),
    ] {
        let mut story = running();
        let token = story.token();
        story.apply(cancel()).unwrap();
        let told = story.apply(done(&token, step)).unwrap();
        assert!(told.tells_its_run() && story.job.is_done_late());
        assert_eq!(told.result, Some(Json::trusted(kept)));
    }
}

#[test]
fn a_job_remembers_a_bounded_number_of_attempts() {
    let mut story = Story::of(of_a_workflow(), allow());
    story.limits.infra_failures_max = 100;
    for _ in 0..20 {
        story.dispatch();
        story.lose();
    }
    assert_eq!(story.job.life.taken.len(), super::super::late::TAKEN_MAX);
    assert_eq!(story.job.life.taken.last().map(|taken| taken.no), Some(20));
}

/// until its worker's word a cancelled attempt may be at work, and then it is over.
#[test]
fn an_attempt_that_was_taken_from_its_worker_is_at_work_until_its_word() {
    let words: [fn(AttemptToken) -> Input; 4] = [
        |token| Input::LetGo { token },
        |token| report(token, failed()),
        |token| report(token, Outcome::Cancelled { note: "stopped".into() }),
        |token| done(&token, OutputStep::Pass),
    ];
    for word in words {
        let mut story = running();
        let token = story.token();
        story.apply(cancel()).unwrap();
        assert_eq!(story.job.leaving().count(), 1);
        let told = story.apply(word(token.clone())).unwrap();
        assert!(told.tells_its_run() && story.job.is_taken(&token), "no result of the job");
        assert_eq!((story.state(), story.job.leaving().count()), (JobState::Cancelled, 0));
        assert_eq!(story.apply(word(token.clone())).unwrap_err(), Illegal::Superseded, "a repeat");
    }
}

#[test]
fn a_worker_that_does_not_have_an_attempt_is_not_waited_for() {
    let mut story = running();
    let (token, session) = (story.token(), story.job.holder().unwrap().session.clone());
    let evidence = Evidence::Closed { session, epoch: 1 };
    story.apply(Input::Lost { token, reason: Reason::AgentLost, evidence, turn: Duration::ZERO }).unwrap();
    assert_eq!((story.job.life.taken.len(), story.job.leaving().count()), (1, 0));
}
