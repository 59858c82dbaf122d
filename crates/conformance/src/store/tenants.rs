//! Usage of tenants.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::dag::{RunHead, RunState};
use lockgate_core::job::{Job, JobState, Outcome};
use lockgate_core::output::{OutputDecision, OutputStep};
use lockgate_core::request::{Json, NewJob};

use super::runs_stage::{after, change, head, job_in, over};
use super::stage::{Found, Proof, StoreHarness, allow, cancel, deny, fatal, new_job, replay, scanned, success};
use lockgate_ports::store::{ChangeError, JobChange, RunChange, Store, Usage};

/// A payload or a result of that many bytes.
pub(super) fn text(bytes: usize) -> Json {
    Json::trusted(format!("\"{}\"", "x".repeat(bytes.saturating_sub(2))))
}

pub(super) fn with_payload(id: &str, bytes: usize) -> NewJob {
    NewJob { payload: Some(text(bytes)), ..new_job(id) }
}

pub(super) async fn usage(h: &StoreHarness, tenant: &str) -> Found<Usage> {
    Ok(h.store.usage(&[tenant.into()]).await?.pop().ok_or("the tenant was not answered")?)
}

/// Everybody's, over pages of two.
pub(super) async fn everybody(store: &dyn Store) -> Found<Vec<(String, Usage)>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = store.tenants(after.as_ref(), 2).await?;
        assert!(page.len() <= 2);
        let Some((last, _)) = page.last() else { return Ok(all) };
        after = Some(last.clone());
        all.extend(page.into_iter().map(|(tenant, usage)| (tenant.to_string(), usage)));
    }
}

fn jobs(live: u64, ended: u64, stored_bytes: u64) -> Usage {
    Usage { live, ended, runs: 0, stored_bytes }
}

pub async fn usage_follows_every_change_of_a_job(h: &StoreHarness) -> Proof {
    assert_eq!(usage(h, "acme").await?, Usage::default());
    let a = h.submit(with_payload("a", 100)).await?;
    let b = h.submit(with_payload("b", 5_000)).await?;
    h.submit_as("acme", with_payload("denied", 7), deny()).await?;
    assert_eq!(usage(h, "acme").await?, jobs(2, 1, 5_107));
    let dead = h.run(&a, fatal()).await?;
    h.run(&b, Outcome::Succeeded { result: text(3_000) }).await?;
    assert_eq!(usage(h, "acme").await?, jobs(0, 3, 8_107));
    let again = h.step(&dead, replay()).await?;
    assert_eq!(usage(h, "acme").await?, jobs(1, 2, 8_107));
    h.advance_ms(1);
    assert_eq!(h.store.prune(Duration::ZERO, 10).await?, 2);
    assert_eq!(usage(h, "acme").await?, jobs(1, 0, 100));
    h.step(&again, cancel()).await?;
    h.advance_ms(1);
    assert_eq!(h.store.prune(Duration::ZERO, 10).await?, 1);
    assert_eq!(usage(h, "acme").await?, Usage::default());
    Ok(())
}

pub async fn a_result_counts_as_it_is_kept_now(h: &StoreHarness) -> Proof {
    let ran = async |id, bytes, output| -> Found<Job> {
        let job = h.submit(with_payload(id, 10)).await?;
        h.run_checked(&job, Outcome::Succeeded { result: text(bytes) }, output).await
    };
    let (hold, scan_later) = (OutputStep::Scan { hold: true }, OutputStep::Scan { hold: false });
    let redacted = r#"{"ok":"[redacted]"}"#.len() as u64;
    let held = ran("held", 4_000, hold.clone()).await?;
    assert_eq!(usage(h, "acme").await?, jobs(1, 0, 4_010), "held");
    h.step(&held, scanned(&held, OutputDecision::Redact, text(4_000))).await?;
    assert_eq!(usage(h, "acme").await?, jobs(0, 1, 10 + redacted), "let out as a shorter one");
    let out = ran("out", 2_000, scan_later).await?;
    assert_eq!(usage(h, "acme").await?, jobs(0, 2, 2_020 + redacted));
    let bad = h.step(&out, scanned(&out, OutputDecision::Quarantine, text(2_000))).await?;
    assert_eq!(usage(h, "acme").await?, jobs(0, 2, 2_020 + redacted), "quarantined and kept");
    let denied = bad.next(replay(), &h.env(deny()))?;
    h.commit(denied).await??;
    assert_eq!(usage(h, "acme").await?, jobs(0, 2, 20 + redacted), "a new life has no result of the one before");
    let bad = ran("again", 1_500, hold).await?;
    let bad = h.step(&bad, scanned(&bad, OutputDecision::Deny, text(1_500))).await?;
    assert_eq!((bad.state(), usage(h, "acme").await?), (JobState::OutputQuarantined, jobs(0, 3, 1_530 + redacted)));
    h.step(&bad, replay()).await?;
    assert_eq!(usage(h, "acme").await?, jobs(1, 2, 30 + redacted));
    Ok(())
}

pub async fn what_is_refused_does_not_count(h: &StoreHarness) -> Proof {
    let keyed = |id: &str| NewJob { idempotency_key: Some("k".to_owned()), ..with_payload(id, 50) };
    let first = h.submit(keyed("one")).await?;
    let cancelled = JobChange::from(first.next(cancel(), &h.env(allow()))?);
    let births = [h.birth("acme", keyed("two"), allow())?, h.birth("acme", with_payload("one", 90), allow())?];
    let fine = h.birth("acme", with_payload("three", 5), allow())?;
    let builds_on = births[0].job.next(cancel(), &h.env(allow()))?;
    let [by_key, by_id] = births.map(JobChange::from);
    let batch = vec![cancelled.clone(), cancelled, by_key, by_id, builds_on.into(), fine.into()];
    let results: Vec<bool> = h.store.commit(batch).await?.iter().map(Result::is_ok).collect();
    assert_eq!(results, [true, false, false, false, false, true]);
    assert_eq!(usage(h, "acme").await?, jobs(1, 1, 55));
    Ok(())
}

pub async fn runs_count_until_they_are_over(h: &StoreHarness) -> Proof {
    let job_bytes = job_in(h, "run-x", 0, allow())?.job.request.payload.as_str().len() as u64;
    let start = h.begin_with("run-a", &[0]).await?;
    let theirs = RunHead { tenant: "other".into(), ..head(h, "run-b") };
    let stale = change(RunHead { version: 5, ..head(h, "run-c") });
    let taken = RunChange { jobs: vec![job_in(h, "run-a", 0, allow())?], ..change(head(h, "run-d")) };
    let results = h.store.advance(vec![change(theirs.clone()), stale, taken]).await?;
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false]);
    let one = Usage { live: 1, runs: 1, stored_bytes: job_bytes, ..Usage::default() };
    assert_eq!((usage(h, "acme").await?, usage(h, "other").await?), (one, Usage { runs: 1, ..Usage::default() }));
    let paused = RunHead { state: RunState::Paused, ..after(&start) };
    let done = over(h, &paused);
    let results = h.store.advance(vec![change(paused), change(done.clone()), change(over(h, &theirs))]).await?;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!((usage(h, "acme").await?.runs, usage(h, "other").await?), (0, Usage::default()));
    let again = RunHead { state: RunState::Running, ended_at: None, ..after(&done) };
    h.advance(change(again.clone())).await??;
    assert_eq!(usage(h, "acme").await?, one, "it goes on again");
    h.advance(change(over(h, &again))).await??;
    h.step(&h.load("run-a.0").await?, cancel()).await?;
    h.advance_ms(1);
    h.store.prune(Duration::ZERO, 10).await?;
    assert_eq!(everybody(&*h.store).await?, []);
    Ok(())
}

pub async fn tenants_are_listed_by_name_with_what_they_take(h: &StoreHarness) -> Proof {
    for tenant in ["b", "Z", "a-1", "c", "a", "gone"] {
        let job = h.submit_as(tenant, with_payload(&format!("of-{tenant}"), 10), allow()).await?;
        if tenant == "gone" {
            h.step(&job, cancel()).await?;
        }
    }
    h.advance(change(RunHead { tenant: "only-runs".into(), ..head(h, "run-a") })).await??;
    h.advance_ms(1);
    assert_eq!(h.store.prune(Duration::ZERO, 10).await?, 1);
    let all = everybody(&*h.store).await?;
    let names: Vec<&str> = all.iter().map(|(tenant, _)| tenant.as_str()).collect();
    assert_eq!(names, ["Z", "a", "a-1", "b", "c", "only-runs"]);
    assert_eq!(all[0].1, jobs(1, 0, 10));
    let asked: Vec<_> = ["c", "nobody", "only-runs", "c", "gone"].map(Into::into).into();
    let nothing = Usage::default();
    let expected = [jobs(1, 0, 10), nothing, Usage { runs: 1, ..nothing }, jobs(1, 0, 10), nothing];
    assert_eq!(h.store.usage(&asked).await?, expected);
    assert_eq!(h.store.usage(&[]).await?, []);
    Ok(())
}

pub async fn usage_is_exact_when_many_write_at_once(h: &StoreHarness) -> Proof {
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..24 {
        let tenant = ["acme", "other"][n % 2];
        // Of each four, one id is taken by all of its tenant.
        let id = if n % 4 < 2 { format!("shared-{tenant}") } else { format!("job-{n}") };
        let birth = h.birth(tenant, with_payload(&id, 100), allow())?;
        let ended = birth.job.next(cancel(), &h.env(allow()))?;
        let store = Arc::clone(&h.store);
        writers.spawn(async move { store.commit(vec![birth.into(), ended.into()]).await });
    }
    let mut born = 0;
    while let Some(results) = writers.join_next().await {
        match results??.as_slice() {
            [Ok(_), Ok(_)] => born += 1,
            [Err(ChangeError::Taken(_)), Err(ChangeError::Conflict)] => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    assert_eq!(born, 14);
    for tenant in ["acme", "other"] {
        assert_eq!(usage(h, tenant).await?, jobs(0, 7, 700), "{tenant}");
    }
    let job = h.submit(with_payload("last", 100)).await?;
    h.run(&job, success()).await?;
    assert_eq!(usage(h, "acme").await?.ended, 8);
    Ok(())
}
