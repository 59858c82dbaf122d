//! Work that was done before.

use super::super::{Earlier, OutputCheck, OutputStage, memo_key, memoised};
use super::*;
use crate::output::{OutputDecision, OutputVerdict};
use crate::request::Memo;

const SNAPSHOT: &str = "snapshot-1";

fn request(new: NewJob, caller: &Caller) -> JobRequest {
    let new = NewJob { topic: "job.echo".into(), ..new };
    let request = JobRequest::check(new, caller, || JobId::from("job-2")).unwrap();
    let memo = Memo { key: memo_key(&request), for_ms: 1_000, fresh: false };
    JobRequest { memo: Some(memo), ..request }
}

fn ann() -> Caller {
    Caller::new("acme", "ann")
}

fn seen_by(decision: OutputDecision, snapshot: &str) -> OutputVerdict {
    OutputVerdict {
        decision,
        rule: "out".into(),
        reason: "a reason".into(),
        snapshot: snapshot.into(),
        findings: Vec::new(),
        redacted: None,
    }
}

/// Done before by ann, and let out under a policy.
fn earlier(snapshot: Option<&str>) -> Earlier {
    let mut story = Story::running();
    story.report(Outcome::Succeeded { result: Json::trusted("42") });
    let verdict = snapshot.map(|snapshot| Arc::new(seen_by(OutputDecision::Allow, snapshot)));
    story.job.life.output = verdict.map(|verdict| OutputCheck {
        attempt: 1,
        stage: OutputStage::Checked,
        verdict: Some(verdict),
        released_by: None,
    });
    Earlier { job: Box::new(story.job), result: Json::trusted("42") }
}

fn verdict(decision: Decision) -> Verdict {
    Verdict::plain(decision, "a-rule", "a reason", SNAPSHOT.into())
}

#[test]
fn the_key_is_of_what_is_to_be_done_and_of_nothing_else() {
    let base = || NewJob { payload: Some(Json::parse(r#"{"b":1,"a":[2]}"#).unwrap()), ..NewJob::default() };
    let key = |new: NewJob| memo_key(&request(new, &ann()));
    let same = [
        NewJob { priority: Some(crate::lane::Priority::Low), max_attempts: Some(9), timeout_ms: Some(5), ..base() },
        NewJob { job_id: Some("mine".into()), idempotency_key: Some("k".into()), ..base() },
    ];
    for new in same {
        assert_eq!(key(new), key(base()));
    }
    let text = |name: &str| [(name.to_owned(), "x".to_owned())].into();
    let other = [
        NewJob { payload: Some(Json::parse(r#"{"b":2,"a":[2]}"#).unwrap()), ..base() },
        NewJob { payload: Some(Json::trusted(r#"{"a":[2],"b":1e999}"#)), ..base() },
        NewJob { payload: Some(Json::parse(r#"{"b":1.0,"a":[2]}"#).unwrap()), ..base() },
        NewJob { env: text("MODE"), ..base() },
        NewJob { labels: text("team"), ..base() },
        NewJob { capability: Some("read".into()), ..base() },
        NewJob { requires: ["gpu".to_owned()].into(), ..base() },
        NewJob { risk_tags: ["pii".to_owned()].into(), ..base() },
    ];
    for new in other {
        assert_ne!(key(new), key(base()));
    }
    assert_eq!(memo_key(&request(base(), &Caller::new("acme", "bob"))), key(base()), "whoever asks");
}

#[test]
fn a_denial_of_now_wins_and_nobody_is_asked_for_nothing() {
    let asked = request(NewJob::default(), &ann());
    let known = earlier(None);
    for (decision, stands) in [
        (Decision::Allow, true),
        (Decision::AllowWithConstraints, true),
        (Decision::Deny, false),
        (Decision::RequireApproval, false),
        (Decision::Throttle, false),
    ] {
        assert_eq!(known.stands_for(&asked, &verdict(decision), &OutputStep::Pass), stands, "{decision:?}");
    }
    assert!(!known.stands_for(&asked, &Verdict::bypass("no answer", SNAPSHOT.into()), &OutputStep::Pass));
    let narrow = verdict(Decision::Allow).but(|verdict| verdict.constraints.max_output_bytes = Some(1));
    assert!(!known.stands_for(&asked, &narrow, &OutputStep::Pass), "it is larger than policy allows now");
}

#[test]
fn a_result_that_policy_wants_to_look_into_must_have_been_let_out_by_it() {
    let (asked, allow) = (request(NewJob::default(), &ann()), verdict(Decision::Allow));
    let by_bob = request(NewJob::default(), &Caller::new("acme", "bob"));
    let decided = |decision| OutputStep::Decided(Arc::new(seen_by(decision, SNAPSHOT)));
    let scan = || OutputStep::Scan { hold: true };
    assert!(earlier(None).stands_for(&asked, &allow, &decided(OutputDecision::Allow)));
    assert!(!earlier(None).stands_for(&asked, &allow, &decided(OutputDecision::Quarantine)));
    assert!(!earlier(None).stands_for(&asked, &allow, &OutputStep::Unchecked { why: "nobody".into() }));
    assert!(!earlier(None).stands_for(&asked, &allow, &scan()), "nobody looked into it");
    assert!(!earlier(Some("snapshot-0")).stands_for(&asked, &allow, &scan()), "by other rules");
    assert!(earlier(Some(SNAPSHOT)).stands_for(&asked, &allow, &scan()));
    assert!(!earlier(Some(SNAPSHOT)).stands_for(&by_bob, &allow, &scan()), "for somebody else");
    let labels = [("workflow_id".to_owned(), "public".to_owned())].into();
    let elsewhere = request(NewJob { labels, ..NewJob::default() }, &ann());
    assert!(!earlier(Some(SNAPSHOT)).stands_for(&elsewhere, &allow, &scan()), "rules may ask for the workflow");
}

#[test]
fn what_is_not_sound_stands_for_nothing() {
    let (asked, allow) = (request(NewJob::default(), &ann()), verdict(Decision::Allow));
    let spoilt: [fn(&mut Job); 3] = [
        |job| job.life.state = JobState::OutputQuarantined,
        |job| {
            let stage = OutputStage::Scanning;
            job.life.output = Some(OutputCheck { attempt: 1, stage, verdict: None, released_by: None });
        },
        |job| {
            let (stage, released_by) = (OutputStage::Checked, Some("bob".into()));
            job.life.output = Some(OutputCheck { attempt: 1, stage, verdict: None, released_by });
        },
    ];
    for spoil in spoilt {
        let mut known = earlier(None);
        spoil(&mut known.job);
        assert!(!known.stands_for(&asked, &allow, &OutputStep::Pass));
    }
}

#[test]
fn a_job_that_is_not_done_again_has_succeeded_at_birth_and_says_as_whom() {
    let asked = request(NewJob::default(), &ann());
    let (hash, limits) = (asked.hash(), Limits::default());
    let born = memoised(Arc::new(asked), hash, earlier(None), &env_at(START, 1, &limits, allow()));
    assert_eq!((born.job.state(), born.job.version), (JobState::Succeeded, 1));
    assert_eq!((born.result.clone(), born.job.memo_of()), (Some(Json::trusted("42")), Some(&JobId::from("job-1"))));
    let kinds: Vec<EventKind> = born.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Submitted, EventKind::Memoised, EventKind::Succeeded]);
    assert!(born.effects.is_empty() && born.job.life.attempt.verdict.is_some());
    assert_eq!(born.memoises(), None, "it makes nothing last longer");
}

#[test]
fn only_a_good_end_is_kept_for_others() {
    let mut story = Story::new();
    let memo = Memo { key: "k".into(), for_ms: 7, fresh: true };
    story.job.request = Arc::new(JobRequest { memo: Some(memo), ..(*story.job.request).clone() });
    story.dispatch();
    let failed = story.decide(report(story.token(), failed())).unwrap();
    assert_eq!(failed.memoises(), None);
    let done = story.report(succeeded());
    assert_eq!(done.memoises(), Some(("k", 7)), "also if it was to be done anew");
}
