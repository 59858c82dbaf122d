//! Idempotency keys of runs.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::dag::RunHead;
use lockgate_core::ids::RunId;
use lockgate_core::request::RequestHash;

use super::runs_stage::{after, change, head, job_in, over};
use super::stage::{Found, Proof, StoreHarness, allow};
use lockgate_ports::store::{KEY_LIFE, RunChange, RunKey, RunRefusal};

fn keyed(h: &StoreHarness, run: &str, key: &str, hash: u8) -> RunChange {
    let key = RunKey { key: key.into(), hash: RequestHash([hash; 32]) };
    RunChange { key: Some(key), ..change(head(h, run)) }
}

/// The run that has the key, if a start is refused because of it. Checks that a read without a start finds that run too.
async fn owner(h: &StoreHarness, start: RunChange) -> Found<Option<(RunId, u8)>> {
    let key = start.key.as_ref().map_or("", |key| &*key.key);
    let asked = h.store.run_of_key(&start.head.tenant, key).await?.map(|(run, hash)| (run, hash.0[0]));
    let found = match h.advance(start).await? {
        Ok(_) => None,
        Err(RunRefusal::Taken { run, hash }) => Some((run, hash.0[0])),
        Err(refusal) => return Err(refusal.to_string().into()),
    };
    assert_eq!(asked, found);
    Ok(found)
}

pub async fn a_key_names_its_run_to_later_starts(h: &StoreHarness) -> Proof {
    assert_eq!(owner(h, keyed(h, "run-a", "k", 7)).await?, None);
    let before = h.around(&["run-a", "run-b"]).await?;
    let jobs = vec![job_in(h, "run-b", 0, allow())?];
    assert_eq!(owner(h, RunChange { jobs, ..keyed(h, "run-b", "k", 8) }).await?, Some(("run-a".into(), 7)));
    assert_eq!(h.around(&["run-a", "run-b"]).await?, before);
    assert_eq!(owner(h, keyed(h, "run-a", "k", 7)).await?, Some(("run-a".into(), 7)), "the same start again");
    let theirs = keyed(h, "run-c", "k", 9);
    let theirs = RunChange { head: RunHead { tenant: "other".into(), ..theirs.head }, ..theirs };
    assert_eq!(owner(h, theirs).await?, None, "keys belong to tenants");
    assert_eq!(owner(h, keyed(h, "run-d", "k2", 9)).await?, None);
    let results = h.store.advance(vec![keyed(h, "run-e", "k3", 1), keyed(h, "run-f", "k3", 2)]).await?;
    let taken = Err(RunRefusal::Taken { run: "run-e".into(), hash: RequestHash([1; 32]) });
    assert_eq!(results, [Ok(Vec::new()), taken]);
    Ok(())
}

pub async fn a_key_of_a_run_is_free_after_its_life(h: &StoreHarness) -> Proof {
    assert_eq!(owner(h, keyed(h, "run-a", "k", 1)).await?, None);
    h.clock.advance(KEY_LIFE - Duration::from_millis(1));
    assert_eq!(owner(h, keyed(h, "run-b", "k", 2)).await?, Some(("run-a".into(), 1)));
    h.advance_ms(1);
    assert_eq!(owner(h, keyed(h, "run-b", "k", 2)).await?, None);
    assert_eq!(owner(h, keyed(h, "run-c", "k", 3)).await?, Some(("run-b".into(), 2)));
    Ok(())
}

pub async fn a_key_of_a_run_is_free_when_the_run_was_pruned(h: &StoreHarness) -> Proof {
    let start = keyed(h, "run-a", "k", 1);
    assert_eq!(owner(h, start.clone()).await?, None);
    h.advance(change(over(h, &start.head))).await??;
    h.advance_ms(1_001);
    assert_eq!(h.store.prune(Duration::from_secs(1), 10).await?, 1);
    assert_eq!(owner(h, keyed(h, "run-b", "k", 2)).await?, None);
    assert_eq!(owner(h, keyed(h, "run-c", "k", 3)).await?, Some(("run-b".into(), 2)));
    Ok(())
}

pub async fn a_refused_start_does_not_take_its_key(h: &StoreHarness) -> Proof {
    h.begin_with("run-a", &[0]).await?;
    let jobs = vec![job_in(h, "run-a", 0, allow())?];
    let refused = h.advance(RunChange { jobs, ..keyed(h, "run-b", "k", 1) }).await?;
    assert_eq!(refused, Err(RunRefusal::Conflict));
    assert_eq!(h.advance(keyed(h, "run-a", "k", 1)).await?, Err(RunRefusal::Conflict));
    assert_eq!(owner(h, keyed(h, "run-c", "k", 2)).await?, None);
    let later = RunChange { head: after(&head(h, "run-a")), ..keyed(h, "run-a", "k9", 1) };
    h.advance(later).await??;
    assert_eq!(owner(h, keyed(h, "run-d", "k9", 2)).await?, None, "only a start takes a key");
    Ok(())
}

pub async fn one_of_many_concurrent_starts_gets_the_key(h: &StoreHarness) -> Proof {
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..40 {
        let (store, start) = (Arc::clone(&h.store), keyed(h, &format!("run-{n}"), "k", n));
        racers.spawn(async move { store.advance(vec![start]).await });
    }
    let (mut won, mut owners) = (0, Vec::new());
    while let Some(result) = racers.join_next().await {
        match result??.pop() {
            Some(Ok(_)) => won += 1,
            Some(Err(RunRefusal::Taken { run, .. })) => owners.push(run),
            other => return Err(format!("{other:?}").into()),
        }
    }
    owners.dedup();
    assert_eq!((won, owners.as_slice()), (1, h.store.live_runs(None, 10).await?.as_slice()));
    Ok(())
}
