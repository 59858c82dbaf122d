//! Stored results of earlier work.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::job::{Earlier, Evidence, Job, Transition, memoised, submit};
use lockgate_core::output::{OutputDecision, OutputStep};
use lockgate_core::request::{JobRequest, Json, Memo, RunRef};
use lockgate_core::verdict::BUILTIN_ALLOW;

use super::runs_stage::{after, audited, change, head, job_in, job_named};
use super::snapshots::activation;
use super::stage::{Found, Proof, StoreHarness, allow, fatal, release, scanned, success};
use lockgate_ports::store::{ChangeError, MemoKey, RunChange, RunRefusal};

const FOR_MS: u64 = 60_000;

fn key(tenant: &str, key: &str) -> MemoKey {
    MemoKey { tenant: tenant.into(), key: key.into() }
}

/// A job of a run that is known again by a key.
fn request(h: &StoreHarness, id: &str, key: &str) -> Found<Arc<JobRequest>> {
    let part = RunRef { run: "run-a".into(), node: 0, item: None, round: 0, undo: false };
    let born = job_named(h, id, part, allow())?;
    let memo = Memo { key: key.into(), for_ms: FOR_MS, fresh: false };
    Ok(Arc::new(JobRequest { memo: Some(memo), ..(*born.job.request).clone() }))
}

async fn born(h: &StoreHarness, id: &str, key: &str) -> Found<Job> {
    let request = request(h, id, key)?;
    let hash = request.hash();
    h.commit(submit(request, hash, &h.env(allow()))).await??;
    h.load(id).await
}

async fn known(h: &StoreHarness, names: &[&str]) -> Found<Vec<Option<String>>> {
    let keys: Vec<MemoKey> = names.iter().map(|name| key("acme", name)).collect();
    let found = h.store.memos(&keys).await?;
    Ok(found.into_iter().map(|earlier| earlier.map(|earlier| earlier.job.request.job_id.to_string())).collect())
}

fn some(id: &str) -> Option<String> {
    Some(id.to_owned())
}

pub async fn work_that_was_done_is_known_by_its_key(h: &StoreHarness) -> Proof {
    assert_eq!(h.store.memos(&[]).await?.len(), 0);
    let live = born(h, "one", "k1").await?;
    h.run(&born(h, "bad", "k2").await?, fatal()).await?;
    assert_eq!(known(h, &["k1", "k2"]).await?, [None, None], "neither is done");
    let done = h.run(&live, success()).await?;
    assert_eq!(known(h, &["k2", "k1", "k1"]).await?, [None, some("one"), some("one")], "in the order asked");
    let found = h.store.memos(&[key("acme", "k1")]).await?.pop().flatten().ok_or("not known")?;
    assert_eq!(found.result, Json::trusted(r#"{"ok":true}"#));
    assert_eq!((found.job.request.payload.as_str(), &found.job.life), ("null", &done.life));
    assert!(h.store.memos(&[key("other", "k1")]).await?[0].is_none(), "keys of different tenants never meet");
    h.run(&born(h, "two", "k1").await?, success()).await?;
    assert_eq!(known(h, &["k1"]).await?, [some("two")], "the latest");
    Ok(())
}

pub async fn what_stands_for_earlier_work_makes_nothing_last_longer(h: &StoreHarness) -> Proof {
    h.run(&born(h, "one", "k").await?, success()).await?;
    let Earlier { job, result } = h.store.memos(&[key("acme", "k")]).await?.pop().flatten().ok_or("not known")?;
    h.advance_ms(FOR_MS / 2);
    let again = request(h, "two", "k")?;
    let hash = again.hash();
    h.commit(memoised(again, hash, Earlier { job, result: result.clone() }, &h.env(allow()))).await??;
    let stored = h.store.detail(&"two".into()).await?.ok_or("not there")?;
    assert_eq!((stored.job.memo_of().map(ToString::to_string), stored.result), (some("one"), Some(result)));
    assert_eq!(known(h, &["k"]).await?, [some("one")]);
    h.advance_ms(FOR_MS / 2);
    assert_eq!(known(h, &["k"]).await?, [None], "counted from when the work was done");
    h.store.prune(Duration::from_secs(3600), 10).await?;
    assert_eq!(known(h, &["k"]).await?, [None]);
    Ok(())
}

pub async fn earlier_work_stands_only_under_the_policy_in_force(h: &StoreHarness) -> Proof {
    h.run(&born(h, "one", "k").await?, success()).await?;
    let earlier = h.store.memos(&[key("acme", "k")]).await?.pop().flatten().ok_or("not known")?;
    let stands = |id: &str| -> Found<Transition> {
        let again = request(h, id, "k")?;
        let hash = again.hash();
        let mut birth = memoised(again, hash, earlier.clone(), &h.env(allow()));
        birth.evidence = Evidence::InForce(BUILTIN_ALLOW.into());
        Ok(birth)
    };
    let start = head(h, "run-a");
    let seqs = h.advance(RunChange { jobs: vec![stands("two")?], ..change(start.clone()) }).await??;
    assert_eq!(seqs.len(), 1);
    h.store.activate(activation(h, "p1", 0)).await??;
    let late = RunChange { jobs: vec![stands("three")?], ..change(after(&start)) };
    let other = RunChange { jobs: vec![job_in(h, "run-b", 0, allow())?], ..change(head(h, "run-b")) };
    let answers = h.store.advance(vec![late, other]).await?;
    assert!(matches!(&answers[..], [Err(RunRefusal::Conflict), Ok(_)]), "{answers:?}");
    assert_eq!(h.commit(stands("four")?).await?, Err(ChangeError::Conflict));
    assert_eq!(h.store.load(&["three".into(), "four".into()]).await?, [None, None]);
    h.advance(change(after(&start))).await??;
    Ok(())
}

pub async fn what_is_held_back_stands_for_nothing(h: &StoreHarness) -> Proof {
    let ok = || Json::trusted(r#"{"ok":true}"#);
    let held = h.run_checked(&born(h, "held", "k1").await?, success(), OutputStep::Scan { hold: true }).await?;
    let later = h.run_checked(&born(h, "later", "k2").await?, success(), OutputStep::Scan { hold: false }).await?;
    assert_eq!(known(h, &["k1", "k2"]).await?, [None, some("later")]);
    h.step(&held, scanned(&held, OutputDecision::Redact, ok())).await?;
    let bad = h.step(&later, scanned(&later, OutputDecision::Quarantine, ok())).await?;
    assert_eq!(known(h, &["k1", "k2"]).await?, [some("held"), None]);
    let redacted = h.store.memos(&[key("acme", "k1")]).await?.pop().flatten().map(|earlier| earlier.result);
    assert_eq!(redacted, Some(Json::trusted(r#"{"ok":"[redacted]"}"#)), "as it came out");
    h.step(&bad, release()).await?;
    Ok(())
}

pub async fn work_is_forgotten_with_its_job_and_its_tenant(h: &StoreHarness) -> Proof {
    for (id, name) in [("one", "k1"), ("two", "k2")] {
        h.run(&born(h, id, name).await?, success()).await?;
        h.advance_ms(1_000);
    }
    h.store.prune(Duration::from_millis(1_500), 10).await?;
    assert_eq!(known(h, &["k1", "k2"]).await?, [None, some("two")]);
    h.store.erase(&"acme".into(), 1_000, &audited(h, "acme")).await?;
    assert_eq!(known(h, &["k2"]).await?, [None]);
    Ok(())
}
