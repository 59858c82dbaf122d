//! Duties: work that a server, not a worker, still has to do.

use std::time::Duration;

use lockgate_core::ids::JobSeq;
use lockgate_core::job::{Answer, Duty, Input, JobState};
use lockgate_core::lane::ReadyKey;
use lockgate_core::output::{OutputDecision, OutputStep};
use lockgate_core::request::Json;
use lockgate_core::verdict::ApprovalTerms;

use super::stage::{
    Found, Proof, StoreHarness, allow, ask, cancel, checked, deny, dispatch_to, ids, new_job, scanned, success, vote,
};
use lockgate_ports::store::ChangeError;

/// Ids of the jobs that owe the duty.
async fn owing(h: &StoreHarness, duty: Duty) -> Found<Vec<String>> {
    let jobs = h.store.owing(duty, JobSeq::default(), 100).await?;
    Ok(ids(&jobs).into_iter().map(str::to_owned).collect())
}

fn two() -> ApprovalTerms {
    ApprovalTerms { approvers: 2, ..ApprovalTerms::default() }
}

pub async fn a_question_to_people_is_owed_until_it_is_answered(h: &StoreHarness) -> Proof {
    let asked = h.submit_as("acme", new_job("asked"), ask(two())).await?;
    assert_eq!(asked.state(), JobState::ApprovalRequired);
    h.submit(new_job("free")).await?;
    let refused = h.submit_as("acme", new_job("refused"), ask(two())).await?;
    assert_eq!(h.store.owing(Duty::Approve, JobSeq::default(), 100).await?, [asked.clone(), refused.clone()]);
    assert_eq!(owing(h, Duty::Scan).await?, [""; 0]);
    let half = h.step(&asked, vote(&asked, "bob", Answer::Approve)).await?;
    assert_eq!(owing(h, Duty::Approve).await?, ["asked", "refused"], "one of two has answered");
    assert_eq!(h.step(&half, vote(&half, "cid", Answer::Approve)).await?.state(), JobState::Scheduled);
    assert_eq!(owing(h, Duty::Approve).await?, ["refused"]);
    h.step(&refused, vote(&refused, "bob", Answer::Reject)).await?;
    assert_eq!(owing(h, Duty::Approve).await?, [""; 0]);
    Ok(())
}

pub async fn a_question_lapses_when_its_time_is_over(h: &StoreHarness) -> Proof {
    let terms = ApprovalTerms { request_expiry_ms: Some(1_000), ..ApprovalTerms::default() };
    let asked = h.submit_as("acme", new_job("asked"), ask(terms)).await?;
    h.advance_ms(999);
    assert_eq!(h.store.expired(ReadyKey::default(), 10).await?, []);
    h.advance_ms(1);
    assert_eq!(h.store.expired(ReadyKey::default(), 10).await?, std::slice::from_ref(&asked));
    assert_eq!(h.step(&asked, Input::Woken).await?.state(), JobState::Denied);
    assert_eq!((h.store.expired(ReadyKey::default(), 10).await?, owing(h, Duty::Approve).await?), (Vec::new(), Vec::new()));
    Ok(())
}

pub async fn a_scan_is_owed_until_it_is_done_before_and_after_the_end(h: &StoreHarness) -> Proof {
    let unchecked = OutputStep::Unchecked { why: "nobody answered".into() };
    let steps = [OutputStep::Scan { hold: true }, OutputStep::Scan { hold: false }, unchecked, OutputStep::Pass];
    let mut waiting = Vec::new();
    for (id, step) in ["held", "out", "unchecked", "passed"].into_iter().zip(steps) {
        let job = h.submit(new_job(id)).await?;
        waiting.push(h.run_checked(&job, success(), step).await?);
    }
    waiting.pop();
    assert_eq!(h.store.owing(Duty::Scan, JobSeq::default(), 100).await?, waiting);
    for job in &waiting {
        assert_eq!(owing(h, Duty::Scan).await?[0], job.request.job_id.as_str());
        let done = h.step(job, scanned(job, OutputDecision::Allow, Json::trusted("1"))).await?;
        assert_eq!(done.state(), JobState::Succeeded);
    }
    assert_eq!(owing(h, Duty::Scan).await?, [""; 0]);
    Ok(())
}

pub async fn owing_pages_go_on_after_a_sequence_number(h: &StoreHarness) -> Proof {
    for id in ["e", "d", "c", "b", "a"] {
        h.submit_as("acme", new_job(id), ask(two())).await?;
    }
    let (mut after, mut pages) = (JobSeq::default(), Vec::new());
    loop {
        let page = h.store.owing(Duty::Approve, after, 2).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        pages.push(ids(&page).join(""));
    }
    assert_eq!(pages, ["ed", "cb", "a"]);
    Ok(())
}

pub async fn a_refused_change_neither_begins_nor_ends_a_duty(h: &StoreHarness) -> Proof {
    let asked = h.submit_as("acme", new_job("asked"), ask(two())).await?;
    let current = h.step(&asked, vote(&asked, "bob", Answer::Approve)).await?;
    let stale = asked.next(vote(&asked, "cid", Answer::Reject), &h.env(allow()))?;
    assert_eq!(h.commit(stale).await?, Err(ChangeError::Conflict));
    let twin = h.birth("other", new_job("asked"), ask(two()))?;
    assert!(h.commit(twin).await?.is_err());
    let job = h.submit(new_job("cancelled")).await?;
    let epoch = h.attach("s").await?;
    let held = h.dispatch(&job, "s", epoch).await?;
    h.step(&held, cancel()).await?;
    let late = held.next(checked(&held, success(), OutputStep::Scan { hold: true }), &h.env(allow()))?;
    assert_eq!(h.commit(late).await?, Err(ChangeError::Conflict));
    assert_eq!(h.store.owing(Duty::Approve, JobSeq::default(), 100).await?, [current]);
    assert_eq!(owing(h, Duty::Scan).await?, [""; 0]);
    assert_eq!(h.store.detail(&"cancelled".into()).await?.ok_or("no detail")?.result, None);
    Ok(())
}

pub async fn a_duty_may_begin_and_end_within_one_call(h: &StoreHarness) -> Proof {
    let epoch = h.attach("s").await?;
    let asked = h.birth("acme", new_job("one"), ask(ApprovalTerms::default()))?;
    let granted = asked.job.next(vote(&asked.job, "bob", Answer::Approve), &h.env(allow()))?;
    let sent = granted.job.next(dispatch_to("s", epoch), &h.env(allow()))?;
    let step = OutputStep::Scan { hold: true };
    let held = sent.job.next(checked(&sent.job, success(), step), &h.env(allow()))?;
    let done = held.job.next(scanned(&held.job, OutputDecision::Allow, Json::trusted("7")), &h.env(allow()))?;
    let results = h.store.commit([asked, granted, sent, held, done].map(Into::into).into()).await?;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!((owing(h, Duty::Approve).await?, owing(h, Duty::Scan).await?), (Vec::new(), Vec::new()));
    assert_eq!(h.store.detail(&"one".into()).await?.ok_or("no detail")?.result, Some(Json::trusted("7")));
    Ok(())
}

pub async fn duties_go_with_their_job(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("old")).await?;
    h.run_checked(&job, success(), OutputStep::Scan { hold: false }).await?;
    h.advance_ms(10);
    let young = h.submit(new_job("young")).await?;
    h.run_checked(&young, success(), OutputStep::Scan { hold: false }).await?;
    h.submit_as("acme", new_job("denied"), deny()).await?;
    assert_eq!(owing(h, Duty::Scan).await?, ["old", "young"]);
    assert_eq!(h.store.prune(Duration::from_millis(5), 10).await?, 1);
    assert_eq!(owing(h, Duty::Scan).await?, ["young"]);
    Ok(())
}
