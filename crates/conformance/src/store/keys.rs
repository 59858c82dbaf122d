//! Idempotency keys.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::job::Job;
use lockgate_core::request::NewJob;

use super::stage::{Found, Proof, StoreHarness, allow, new_job, success};
use lockgate_ports::store::{ChangeError, DuplicateJob, JobChange, KEY_LIFE};

fn keyed(id: &str, key: &str) -> NewJob {
    NewJob { idempotency_key: Some(key.to_owned()), ..new_job(id) }
}

/// The job that has the key, if a submit is refused because of it. Checks that a read without a submit finds that job too.
async fn owner(h: &StoreHarness, tenant: &str, id: &str, key: &str) -> Found<Option<DuplicateJob>> {
    let birth = h.birth(tenant, keyed(id, key), allow())?;
    let asked = h.store.find_duplicates(std::slice::from_ref(&birth.job.request)).await?.pop().flatten();
    let committed = match h.commit(birth).await? {
        Ok(_) => None,
        Err(ChangeError::Taken(taken)) => Some(*taken),
        Err(error) => return Err(error.to_string().into()),
    };
    assert_eq!(asked, committed);
    Ok(committed)
}

pub async fn a_key_names_its_job_to_later_submits(h: &StoreHarness) -> Proof {
    let first = h.submit(keyed("first", "k")).await?;
    let taken =
        |state| DuplicateJob { job_id: "first".into(), tenant: "acme".into(), hash: first.hash, state, by_key: true };
    assert_eq!(owner(h, "acme", "second", "k").await?, Some(taken(first.state())));
    let ended = h.run(&first, success()).await?;
    assert_eq!(owner(h, "acme", "second", "k").await?, Some(taken(ended.state())));
    assert_eq!(h.store.load(&["second".into()]).await?, [None]);
    Ok(())
}

pub async fn a_key_belongs_to_its_tenant(h: &StoreHarness) -> Proof {
    h.submit(keyed("first", "k")).await?;
    assert_eq!(owner(h, "other", "second", "k").await?, None);
    assert_eq!(owner(h, "acme", "third", "k2").await?, None);
    Ok(())
}

pub async fn a_key_is_free_after_its_life(h: &StoreHarness) -> Proof {
    h.submit(keyed("first", "k")).await?;
    h.clock.advance(KEY_LIFE - Duration::from_millis(1));
    assert_eq!(owner(h, "acme", "second", "k").await?.map(|taken| taken.job_id), Some("first".into()));
    h.advance_ms(1);
    assert_eq!(owner(h, "acme", "second", "k").await?, None);
    assert_eq!(owner(h, "acme", "third", "k").await?.map(|taken| taken.job_id), Some("second".into()));
    assert_eq!(h.load("first").await?.request.idempotency_key.as_deref(), Some("k"));
    Ok(())
}

pub async fn a_key_is_free_when_its_job_was_pruned(h: &StoreHarness) -> Proof {
    let first = h.submit(keyed("first", "k")).await?;
    h.run(&first, success()).await?;
    h.advance_ms(1_001);
    assert_eq!(h.store.prune(Duration::from_secs(1), 10).await?, 1);
    assert_eq!(owner(h, "acme", "second", "k").await?, None);
    Ok(())
}

pub async fn a_reused_key_outlives_the_pruning_of_its_first_job(h: &StoreHarness) -> Proof {
    let first = h.submit(keyed("first", "k")).await?;
    h.run(&first, success()).await?;
    h.clock.advance(KEY_LIFE);
    assert_eq!(owner(h, "acme", "second", "k").await?, None);
    assert_eq!(h.store.prune(Duration::from_secs(1), 10).await?, 1);
    assert_eq!(owner(h, "acme", "third", "k").await?.map(|taken| taken.job_id), Some("second".into()));
    Ok(())
}

pub async fn one_of_many_concurrent_submits_gets_the_key(h: &StoreHarness) -> Proof {
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..100 {
        let change = JobChange::from(h.birth("acme", keyed(&format!("job-{n}"), "k"), allow())?);
        let store = Arc::clone(&h.store);
        racers.spawn(async move { store.commit(vec![change]).await });
    }
    let (mut won, mut owners) = (0, Vec::new());
    while let Some(result) = racers.join_next().await {
        match result??.pop() {
            Some(Ok(_)) => won += 1,
            Some(Err(ChangeError::Taken(taken))) => owners.push(taken.job_id),
            other => return Err(format!("{other:?}").into()),
        }
    }
    owners.dedup();
    assert_eq!((won, owners.len()), (1, 1));
    assert_eq!(h.store.totals().await?.live.iter().sum::<u64>(), 1);
    Ok(())
}

pub async fn whoever_asks_first_is_told_what_a_submit_would_find(h: &StoreHarness) -> Proof {
    let first = h.submit(keyed("first", "k")).await?;
    let second = h.submit(new_job("second")).await?;
    let of = |tenant: &str, job: NewJob| h.birth(tenant, job, allow()).map(|birth| birth.job.request);
    let requests = [
        of("acme", keyed("second", "k"))?,
        of("acme", new_job("second"))?,
        of("acme", keyed("new", "k2"))?,
        of("other", keyed("first", "k"))?,
    ];
    let taken = |job: &Job, by_key| {
        let (job_id, tenant) = (job.request.job_id.clone(), job.request.tenant.clone());
        Some(DuplicateJob { job_id, tenant, hash: job.hash, state: job.state(), by_key })
    };
    let found = h.store.find_duplicates(&requests).await?;
    assert_eq!(found, [taken(&first, true), taken(&second, false), None, taken(&first, false)], "the key comes first");
    assert_eq!(h.store.find_duplicates(&[]).await?, []);
    Ok(())
}
