//! Properties that hold for every sequence of inputs: random ones, legal and illegal, against the invariants of
//! `docs/invariants.md`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::tests::{Story, cancel, closed, dispatch, judgement, replay};
use super::{Answer, Ballot, Duty, JobEvent, OnTimeout, Scanned, Sight, UnscannedRelease};
use super::{AttemptReport, Effect, EventKind, Illegal, Input, Job, JobState, Life, Outcome, Reason, Transition, attempts};
use crate::ids::AttemptToken;
use crate::output::{OutputDecision, OutputStep, OutputVerdict};
use crate::request::{Json, NewJob};
use crate::retry::RetrySettings;
use crate::timeouts::Timeouts;
use crate::verdict::{Decision, Judgement, Verdict};

/// Which attempt's token an input carries.
#[derive(Clone, Copy, Debug)]
enum Token {
    Current,
    /// The token of the attempt that was declared lost, if there is one.
    Lost,
    /// The token of a revoked attempt, if there is one.
    Taken,
    Wrong,
}

#[derive(Clone, Debug)]
enum Step {
    Judged,
    Dispatch,
    Started(Token),
    Reported(Token, Outcome, bool, OutputStep),
    Lost(Token),
    Woken,
    Cancel,
    Vote(&'static str, Answer),
    Scanned(OutputDecision),
    LetOut,
    Release,
    Rejudged,
    Replay,
    Spawned(Token),
    Gathered,
    Settled,
}

/// One input with the time that passed before it and the verdict at hand.
#[derive(Clone, Debug)]
struct Drawn {
    step: Step,
    wait_ms: u64,
    judgement: Judgement,
}

fn token() -> impl Strategy<Value = Token> {
    prop_oneof![6 => Just(Token::Current), 3 => Just(Token::Lost), 3 => Just(Token::Taken), 1 => Just(Token::Wrong)]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let error: Arc<str> = "it broke".into();
    prop_oneof![
        1 => Just(Outcome::Succeeded { result: Json::null() }),
        4 => Just(Outcome::FailedRetryable { error: error.clone(), code: None, retry_after: None }),
        1 => (0u64..100_000).prop_map(move |ms| Outcome::FailedRetryable {
            code: None,
            error: error.clone(),
            retry_after: Some(Duration::from_millis(ms)),
        }),
        1 => Just(Outcome::FailedFatal { error: "never".into() }),
        1 => Just(Outcome::TimedOut),
        1 => Just(Outcome::Cancelled { note: "stopped".into() }),
        2 => (0u64..100_000).prop_map(|ms| Outcome::Snooze { delay: Duration::from_millis(ms) }),
        2 => Just(Outcome::AwaitChildren { timeout: Some(Duration::from_secs(100)), on_timeout: OnTimeout::Fail }),
        2 => Just(Outcome::AwaitChildren { timeout: None, on_timeout: OnTimeout::Review }),
        2 => Just(Outcome::Interrupted),
        2 => Just(Outcome::Revoked),
    ]
}

fn output_verdict(decision: OutputDecision) -> Arc<OutputVerdict> {
    Arc::new(OutputVerdict {
        decision,
        rule: "out".into(),
        reason: "a reason".into(),
        snapshot: "snapshot-1".into(),
        findings: Vec::new(),
        redacted: (decision == OutputDecision::Redact).then(Json::null),
    })
}

fn output_step() -> impl Strategy<Value = OutputStep> {
    prop_oneof![
        3 => Just(OutputStep::Pass),
        2 => any::<bool>().prop_map(|hold| OutputStep::Scan { hold }),
        1 => proptest::sample::select(OutputDecision::ALL.to_vec()).prop_map(|d| OutputStep::Decided(output_verdict(d))),
        1 => Just(OutputStep::Unchecked { why: "nobody answered".into() }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Judged),
        6 => Just(Step::Dispatch),
        3 => token().prop_map(Step::Started),
        5 => (token(), outcome(), any::<bool>(), output_step())
            .prop_map(|(token, outcome, started, output)| Step::Reported(token, outcome, started, output)),
        3 => token().prop_map(Step::Lost),
        2 => Just(Step::Woken),
        1 => Just(Step::Cancel),
        2 => (prop_oneof![Just("ann"), Just("bob")], prop_oneof![4 => Just(Answer::Approve), 1 => Just(Answer::Reject)])
            .prop_map(|(actor, answer)| Step::Vote(actor, answer)),
        2 => proptest::sample::select(OutputDecision::ALL.to_vec()).prop_map(Step::Scanned),
        1 => Just(Step::LetOut),
        1 => Just(Step::Release),
        1 => Just(Step::Rejudged),
        2 => Just(Step::Replay),
        1 => token().prop_map(Step::Spawned),
        2 => Just(Step::Gathered),
        1 => Just(Step::Settled),
    ]
}

fn verdict() -> impl Strategy<Value = Judgement> {
    prop_oneof![
        12 => Just(judgement(Decision::Allow)),
        2 => Just(judgement(Decision::AllowWithConstraints)),
        1 => Just(judgement(Decision::Deny)),
        1 => Just(judgement(Decision::RequireApproval)),
        1 => Just(judgement(Decision::Throttle)),
        2 => Just(Judgement::UNASKED),
        1 => Just(Judgement::Decided(Arc::new(Verdict::bypass("no answer", "snapshot-1".into())))),
    ]
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let wait_ms = prop_oneof![2 => Just(0), 4 => 1u64..5_000, 2 => 30_000u64..400_000];
    (step(), wait_ms, verdict()).prop_map(|(step, wait_ms, judgement)| Drawn { step, wait_ms, judgement })
}

fn request() -> impl Strategy<Value = NewJob> {
    let attempts = proptest::option::of(1u32..4);
    let deadline = proptest::option::of(1_000u64..2_000_000);
    (attempts, deadline, any::<bool>(), retry()).prop_map(|(max_attempts, deadline_ms, part, retry)| {
        let workflow_id = part.then(|| "order-7".to_owned());
        NewJob { max_attempts, retry, deadline_ms, workflow_id, ..NewJob::default() }
    })
}

fn retry() -> impl Strategy<Value = RetrySettings> {
    let losses = proptest::option::of(0u32..3);
    let (base_ms, total_ms) = (proptest::option::of(1u64..60_000), proptest::option::of(1_000u64..1_000_000));
    let codes = proptest::option::of(Just(BTreeSet::from(["execution_timeout".into()])));
    (losses, base_ms, total_ms, codes).prop_map(|(losses, base_ms, total_ms, non_retryable)| RetrySettings {
        losses,
        base_ms,
        total_ms,
        non_retryable,
        ..RetrySettings::default()
    })
}

fn input(step: Step, story: &Story) -> Input {
    let token = |which| match which {
        Token::Current => story.token(),
        Token::Lost => story.job.life.lost.as_ref().map_or_else(|| "no such token".into(), |lost| lost.token.clone()),
        Token::Taken => story.job.life.taken.first().map_or_else(|| "no such token".into(), |taken| taken.token.clone()),
        Token::Wrong => AttemptToken::from("wrong"),
    };
    match step {
        Step::Judged => Input::Judged,
        Step::Dispatch => dispatch(),
        Step::Started(which) => Input::Started { token: token(which), at: story.now },
        Step::Reported(which, outcome, started, output) => {
            let started_at = started.then_some(story.now);
            Input::Reported(AttemptReport { token: token(which), started_at, outcome, output })
        }
        Step::Vote(actor, answer) => {
            let rule_hash = story.job.life.approval.as_ref().map_or_else(|| "".into(), |asked| asked.rule_hash.clone());
            Input::Vote(Ballot {
                actor: actor.into(),
                answer,
                note: None,
                request_hash: story.job.hash,
                rule_hash,
                sight: Sight::Whole,
            })
        }
        Step::Scanned(decision) => {
            let attempt = story.job.life.output.as_ref().map_or(1, |check| check.attempt);
            Input::Scanned(Scanned { attempt, verdict: output_verdict(decision), result: Json::null() })
        }
        Step::LetOut => {
            let attempt = story.job.life.output.as_ref().map_or(1, |check| check.attempt);
            Input::LetOut(UnscannedRelease { attempt, why: "nobody answered".into(), result: Json::null() })
        }
        Step::Rejudged => Input::Rejudged,
        Step::Release => Input::Release { actor: "bob".into(), note: None },
        Step::Lost(which) => {
            Input::Lost { token: token(which), reason: Reason::AgentLost, evidence: closed(), turn: Duration::ZERO }
        }
        Step::Woken => Input::Woken,
        Step::Cancel => cancel(),
        Step::Replay => replay(),
        Step::Spawned(which) => Input::Spawned { token: token(which), children: 2 },
        Step::Gathered => Input::Gathered { token: story.token() },
        Step::Settled => Input::Settled { life: story.job.life.no },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_invariants_hold_over_any_sequence_of_inputs(
        new in request(),
        first in verdict(),
        steps in proptest::collection::vec(drawn(), 1..80),
    ) {
        let mut story = Story::of(new, first);
        let mut tokens = BTreeSet::from([story.token()]);
        check_rest(&story.job);
        for Drawn { step, wait_ms, judgement } in steps {
            story.advance(wait_ms);
            story.judgement = judgement;
            let before = story.job.clone();
            let input = input(step, &story);
            match story.apply(input.clone()) {
                Ok(transition) => {
                    check_step(&before, &input, &transition);
                    check_effects(&before, &input, &transition);
                    check_given_back(&before, &input, &transition);
                    check_rest(&story.job);
                    if before.life.attempt.no != story.job.life.attempt.no {
                        prop_assert!(tokens.insert(story.token()), "a token was used twice");
                    }
                }
                Err(illegal) => check_refusal(&before, &input, &illegal),
            }
        }
        check_history(&story);
    }
}

fn progress(job: &Job) -> (u32, u32, u8) {
    (job.life.no, job.life.attempt.no, job.life.state.rank())
}

fn check_step(before: &Job, input: &Input, done: &Transition) {
    let after = &done.job;
    assert_eq!(after.version, before.version + 1);
    assert!(progress(after) >= progress(before), "J-1: {:?} → {:?}", progress(before), progress(after));
    assert_eq!(after.life.events, before.life.events + done.events.len() as u64);
    for (n, event) in (before.life.events + 1..).zip(&done.events) {
        assert_eq!(event.n, n, "S-4");
    }
    if check_let_go(before, input, done) {
        return;
    }
    if before.state().is_terminal() {
        match (input, before.state(), after.state()) {
            (Input::Replay { .. }, state, _) if state.is_dead() => {}
            (Input::Scanned(_), JobState::Succeeded, JobState::Succeeded | JobState::OutputQuarantined) => {}
            (Input::Release { .. }, JobState::OutputQuarantined, JobState::Succeeded) => {}
            (Input::Rejudged, was, is) if was == is && before.needs_rejudging() => {}
            (Input::Settled { .. }, was, is) if was == is && before.owes(Duty::Disown) => {}
            (Input::Reported(_), was, is) if was == is && before.life.late.is_none() && after.life.late.is_some() => {}
            (Input::Scanned(_) | Input::LetOut(_), was, is) if was == is && before.life.late.is_some() => {}
            _ => panic!("J-3: {input:?}"),
        }
    }
    assert_eq!(after.life.no, before.life.no + u32::from(matches!(input, Input::Replay { .. })));
    if matches!(input, Input::Rejudged | Input::Settled { .. }) && before.state().is_terminal() {
        assert!(done.dead_letter.is_none() && done.result.is_none());
        return;
    }
    if check_late(before, input, done) {
        return;
    }
    let letter = done.dead_letter.as_ref().map(|letter| (letter.state, letter.life));
    assert_eq!(letter, after.state().is_dead().then_some((after.state(), after.life.no)), "J-4");
    let worked = matches!(after.state(), JobState::Succeeded | JobState::OutputQuarantined) || after.in_output_check();
    let brings_none = matches!(input, Input::Release { .. } | Input::Rejudged);
    assert_eq!(done.result.is_some(), worked && !brings_none);
    let was_owed = |duty: &Duty| before.owes(*duty) != after.owes(*duty);
    assert_eq!(
        done.duties().map(|(duty, _)| duty).collect::<Vec<_>>(),
        Duty::ALL.into_iter().filter(was_owed).collect::<Vec<_>>()
    );
    if let Input::Reported(AttemptReport { token, .. }) = input {
        let held = before.holder().is_some() && before.life.attempt.token == *token;
        let lost = before.life.lost.as_ref().is_some_and(|lost| lost.token == *token);
        assert!(held || (lost && before.holder().is_none() && !before.state().is_terminal()), "A-1, A-4");
    }
    if let Input::Dispatch(_) = input {
        assert!(before.state() == JobState::Scheduled);
    }
}

/// a worker's report about a revoked attempt records that the attempt is over, and changes nothing else.
fn check_let_go(before: &Job, input: &Input, done: &Transition) -> bool {
    let (Input::Reported(AttemptReport { token, .. }) | Input::LetGo { token }) = input else { return false };
    let after = &done.job;
    let left = before.is_taken(token) && before.leaving().count() > after.leaving().count();
    if !left || !after.is_taken(token) || after.life.late != before.life.late {
        return false;
    }
    assert_eq!((after.state(), &after.life.attempt), (before.state(), &before.life.attempt));
    assert!(done.dead_letter.is_none() && done.result.is_none() && done.effects.is_empty() && done.events.is_empty());
    true
}

/// a late success is recorded once, and changes nothing else.
fn check_late(before: &Job, input: &Input, done: &Transition) -> bool {
    let after = &done.job;
    if before.life.late.is_none() && after.life.late.is_some() {
        let Input::Reported(AttemptReport { token, outcome: Outcome::Succeeded { .. }, .. }) = input else {
            panic!("{input:?}")
        };
        assert!(before.request.run.is_some() && before.life.taken.iter().any(|taken| taken.token == *token));
        assert_eq!((after.state(), &after.life.attempt), (before.state(), &before.life.attempt));
        assert!(done.dead_letter.is_none() && done.effects.is_empty());
        return true;
    }
    let late = matches!(input, Input::Scanned(_) | Input::LetOut(_))
        && before.life.late.is_some()
        && before.state() == after.state();
    let late = late && !matches!(after.state(), JobState::Succeeded | JobState::OutputQuarantined);
    assert!(!late || (done.dead_letter.is_none() && done.result.is_some()));
    late
}

fn check_effects(before: &Job, input: &Input, done: &Transition) {
    let after = &done.job;
    let token = &before.life.attempt.token;
    let ended = before.holder().is_some() && !(after.holder().is_some() && after.life.attempt.token == *token);
    let settled: Vec<_> = done.effects.iter().filter(|effect| matches!(effect, Effect::Settled { .. })).collect();
    let stops: Vec<_> = done.effects.iter().filter(|effect| matches!(effect, Effect::Stop { .. })).collect();
    let session = before.life.attempt.binding.as_ref().map(|binding| binding.session.clone());
    let expect = |wanted: bool| session.clone().filter(|_| wanted);
    let settle = expect(ended).map(|session| Effect::Settled { session, token: token.clone() });
    assert_eq!(settled, settle.iter().collect::<Vec<_>>(), "A-5: {input:?}");
    let taken_away = ended && !matches!(input, Input::Reported(_));
    let stop = expect(taken_away).map(|session| Effect::Stop { session, token: token.clone() });
    assert_eq!(stops, stop.iter().collect::<Vec<_>>(), "A-5: {input:?}");
    if ended {
        // A reader that frees limits by the history must not free the slot of an attempt that was only told to stop.
        let own_word = |event: &JobEvent| event.about() == before.life.attempt.no && event.is_from_worker();
        let either = matches!(input, Input::Reported(AttemptReport { outcome: Outcome::TimedOut, .. }));
        assert_eq!(done.events.iter().any(own_word), !taken_away && !either, "{input:?}: {:?}", done.events);
    }
    let waits_anew = after.state() == JobState::Scheduled
        && (before.state() != JobState::Scheduled || after.life.attempt.no != before.life.attempt.no);
    assert_eq!(done.effects.contains(&Effect::Offer), waits_anew);
}

/// What a worker gives back costs no budget; an unstarted attempt that the server revoked also keeps its place in the lane.
fn check_given_back(before: &Job, input: &Input, done: &Transition) {
    let Input::Reported(AttemptReport { outcome: outcome @ (Outcome::Interrupted | Outcome::Revoked), started_at, .. }) =
        input
    else {
        return;
    };
    // A worker cannot give back an attempt that was revoked before.
    if check_let_go(before, input, done) {
        return;
    }
    let (was, is) = (&before.life, &done.job.life);
    assert_eq!((is.attempt.no, is.counters), (was.attempt.no + 1, was.counters), "A-6");
    let unbegun = *outcome == Outcome::Revoked && was.state == JobState::Dispatched && started_at.is_none();
    let told = done.events.iter().any(|event| event.kind == EventKind::GivenBack);
    assert_eq!(told, unbegun);
    if is.state == JobState::Scheduled {
        let now = done.events.last().unwrap().at;
        assert_eq!(is.due_at, if unbegun { was.due_at } else { now });
    }
}

/// Invariants of a job between transitions, by whatever path it came there.
fn check_rest(job: &Job) {
    let (life, limits) = (&job.life, crate::limits::Limits::default());
    let state = life.state;
    let policy = job.request.retry_policy(&limits, &Timeouts::default());
    assert!(life.counters.failures < policy.attempts || state.is_terminal(), "A-6: {:?}", life.counters);
    assert!(life.counters.failures <= policy.attempts, "A-6: {:?}", life.counters);
    let spare = u32::from(state.is_terminal());
    assert!(life.counters.infra_failures <= policy.losses + spare, "A-6: {:?}", life.counters);
    assert!(life.counters.snoozes <= limits.snoozes_max + spare, "A-6: {:?}", life.counters);
    assert_eq!(life.ended_at.is_some(), state.is_terminal());
    assert!(!state.is_held() || life.attempt.binding.is_some() || job.in_output_check());
    if let Some(lost) = &life.lost {
        assert!(!state.is_held() && !state.is_terminal(), "A-4");
        assert!(lost.no < life.attempt.no);
    }
    if state == JobState::Scheduled || job.holder().is_some() {
        let decision = life.attempt.verdict.as_ref().map(|verdict| verdict.decision);
        let approved = life.approval.as_ref().is_some_and(|approval| approval.granted_at.is_some());
        let allowed = matches!(decision, Some(Decision::Allow | Decision::AllowWithConstraints));
        assert!(allowed || (decision == Some(Decision::RequireApproval) && approved), "A-7: {decision:?}");
    }
    assert_eq!(job.owes(Duty::Approve), state == JobState::ApprovalRequired);
    if job.owes(Duty::Gather) {
        assert!(state == JobState::Pending && life.attempt.binding.is_none(), "F-2: nobody holds a parent that waits");
        assert!(job.deadline().is_some());
    }
    let stored = serde_json::to_string(life).unwrap();
    assert_eq!(serde_json::from_str::<Life>(&stored).unwrap(), *life, "a life is stored without loss");
}

/// an input was refused only for a reason that the job's state shows.
fn check_refusal(before: &Job, input: &Input, illegal: &Illegal) {
    let current = |token: &AttemptToken| before.holder().is_some() && before.life.attempt.token == *token;
    match input {
        Input::Reported(report) => {
            assert_eq!(*illegal, Illegal::Superseded);
            assert!(!current(&report.token), "a report of the held attempt is never refused");
        }
        Input::Lost { token, .. } => {
            assert_eq!(*illegal, Illegal::Superseded);
            assert!(!current(token));
        }
        Input::Cancel { .. } if before.in_output_check() => assert_eq!(*illegal, Illegal::OutputCheck),
        Input::Cancel { .. } => assert_eq!(*illegal, Illegal::Terminal(before.state())),
        Input::Replay { .. } => assert!(!before.state().is_dead() || *illegal == Illegal::Disowning),
        _ => {}
    }
}

/// J-2: a life ends at most once, and exactly once if the job has ended.
fn check_history(story: &Story) {
    let lives = story.events.split(|event| event.kind == EventKind::Replayed);
    let ends: Vec<usize> = lives.map(ends).collect();
    let (last, earlier) = ends.split_last().unwrap();
    assert!(earlier.iter().all(|count| *count == 1), "J-2: {ends:?}");
    assert_eq!(*last, usize::from(story.state().is_terminal()), "J-2: {ends:?}");
    assert!(story.events.is_sorted_by_key(|event| event.attempt), "J-1");
    let dispatches = story.events.iter().filter(|event| event.kind == EventKind::Dispatched).map(|event| event.attempt);
    assert!(dispatches.is_sorted_by(|earlier, later| earlier < later), "A-3");
    let told = attempts(&story.events);
    assert!(told.is_sorted_by(|earlier, later| earlier.no < later.no));
}

/// A late quarantine is no second end: the job had succeeded, and only its result is withdrawn.
fn ends(life: &[JobEvent]) -> usize {
    use EventKind::{Cancelled, Denied, Failed, OutputQuarantined, Succeeded, TimedOut};
    let count = |kind| life.iter().filter(|event| event.kind == kind).count();
    let plain = [Succeeded, Failed, TimedOut, Cancelled, Denied].into_iter().map(count).sum();
    if plain == 0 { count(OutputQuarantined).min(1) } else { plain }
}
