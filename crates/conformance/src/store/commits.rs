//! Compare-and-set, item by item.

use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::Input;
use lockgate_core::request::{Json, NewJob};

use super::stage::{Proof, StoreHarness, allow, cancel, dispatch_to, fatal, ids, new_job, replay, report, success};
use lockgate_ports::store::{ChangeError, DuplicateJob, JobChange};

pub async fn a_new_job_is_loaded_as_it_was_committed(h: &StoreHarness) -> Proof {
    let new = NewJob {
        payload: Some(Json::trusted(r#"{"a":[1,"ü"]}"#)),
        labels: [("team".to_owned(), "blue".to_owned())].into(),
        env: [("MODE".to_owned(), "x".to_owned())].into(),
        requires: ["gpu".to_owned()].into(),
        max_attempts: Some(7),
        timeout_ms: Some(1_500),
        deadline_ms: Some(60_000),
        trace_id: Some("0af7651916cd43dd8448eb211c80319c".to_owned()),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        ..new_job("one")
    };
    let birth = h.birth("acme", new, allow())?;
    let seq = h.commit(birth.clone()).await??;
    let mut expected = birth.job;
    expected.seq = seq;
    assert_eq!(h.load("one").await?, expected);
    let detail = h.store.detail(&"one".into()).await?.ok_or("no detail")?;
    assert_eq!((detail.job, detail.events, detail.result), (expected, birth.events, None));
    Ok(())
}

pub async fn a_job_id_is_taken_once(h: &StoreHarness) -> Proof {
    let first = h.submit(new_job("one")).await?;
    let again = h.birth("other", new_job("one"), allow())?;
    let taken =
        DuplicateJob { job_id: "one".into(), tenant: "acme".into(), hash: first.hash, state: first.state(), by_key: false };
    assert_eq!(h.commit(again).await?, Err(ChangeError::Taken(Box::new(taken))));
    assert_eq!(h.load("one").await?, first);
    Ok(())
}

pub async fn an_id_stays_taken_after_the_job_ended(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    let ended = h.run(&job, success()).await?;
    let again = h.birth("acme", new_job("one"), allow())?;
    let Err(ChangeError::Taken(taken)) = h.commit(again).await? else { return Err("the id was given again".into()) };
    assert_eq!((taken.state, taken.hash), (ended.state(), ended.hash));
    Ok(())
}

pub async fn a_stale_version_conflicts_and_its_neighbours_do_not(h: &StoreHarness) -> Proof {
    let old = h.submit(new_job("contended")).await?;
    let other = h.submit(new_job("other")).await?;
    let current = h.step(&old, cancel()).await?;
    let changes = vec![
        other.next(cancel(), &h.env(allow()))?.into(),
        old.next(cancel(), &h.env(allow()))?.into(),
        h.birth("acme", new_job("new"), allow())?.into(),
        h.birth("acme", new_job("contended"), allow())?.into(),
    ];
    let results = h.store.commit(changes).await?;
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    assert_eq!(results[1], Err(ChangeError::Conflict));
    assert!(matches!(results[3], Err(ChangeError::Taken(_))), "{results:?}");
    assert_eq!(h.load("contended").await?, current);
    assert!(h.load("other").await?.state().is_terminal());
    assert_eq!(h.load("new").await?.version, 1);
    Ok(())
}

pub async fn a_version_from_the_future_conflicts(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    let mut ahead = job.next(cancel(), &h.env(allow()))?;
    ahead.job.version += 1;
    assert_eq!(h.commit(ahead).await?, Err(ChangeError::Conflict));
    assert_eq!(h.load("one").await?, job);
    Ok(())
}

pub async fn a_change_to_an_unknown_job_conflicts(h: &StoreHarness) -> Proof {
    let birth = h.birth("acme", new_job("ghost"), allow())?;
    let next = birth.job.next(cancel(), &h.env(allow()))?;
    assert_eq!(h.commit(next).await?, Err(ChangeError::Conflict));
    assert_eq!(h.store.load(&["ghost".into()]).await?, [None]);
    Ok(())
}

pub async fn one_call_may_change_the_same_job_in_sequence(h: &StoreHarness) -> Proof {
    let epoch = h.attach("s").await?;
    let birth = h.birth("acme", new_job("one"), allow())?;
    let sent = birth.job.next(dispatch_to("s", epoch), &h.env(allow()))?;
    let dead = sent.job.next(report(&sent.job, fatal()), &h.env(allow()))?;
    let reborn = dead.job.next(replay(), &h.env(allow()))?;
    let stale = sent.job.next(cancel(), &h.env(allow()))?;
    let changes: Vec<JobChange> = [birth, sent, dead, reborn.clone(), stale].map(JobChange::from).into_iter().collect();
    let results = h.store.commit(changes).await?;
    let seq = results[0].clone()?;
    assert!(results[..4].iter().all(|result| *result == Ok(seq)), "{results:?}");
    assert_eq!(results[4], Err(ChangeError::Conflict));
    let stored = h.load("one").await?;
    assert_eq!((stored.version, stored.life), (4, reborn.job.life));
    Ok(())
}

pub async fn what_builds_on_a_refused_item_is_refused(h: &StoreHarness) -> Proof {
    let stored = h.submit(new_job("one")).await?;
    let epoch = h.attach("s").await?;
    // A second submit of the same id, and a dispatch decided on it: neither may touch the first job.
    let twin = h.birth("other", new_job("one"), allow())?;
    let sent = twin.job.next(dispatch_to("s", epoch), &h.env(allow()))?;
    let results = h.store.commit(vec![twin.into(), sent.clone().into()]).await?;
    assert!(matches!(results[0], Err(ChangeError::Taken(_))), "{results:?}");
    assert_eq!(results[1], Err(ChangeError::Conflict));
    assert_eq!(h.commit(sent).await?, Err(ChangeError::Conflict), "nor may it in a call of its own");
    assert_eq!(h.load("one").await?, stored);
    let refused = stored.next(dispatch_to("s", epoch + 1), &h.env(allow()))?;
    let ends = refused.job.next(cancel(), &h.env(allow()))?;
    let other = stored.next(cancel(), &h.env(allow()))?;
    let results = h.store.commit(vec![refused.into(), other.into(), ends.into()]).await?;
    assert_eq!(results, [const { Err(ChangeError::Conflict) }; 3]);
    assert_eq!(h.load("one").await?, stored);
    Ok(())
}

pub async fn sequence_numbers_grow_in_commit_order(h: &StoreHarness) -> Proof {
    let mut last = None;
    for id in ["b", "a", "c"] {
        let seq = h.submit(new_job(id)).await?.seq;
        assert!(Some(seq) > last);
        last = Some(seq);
    }
    let births = ["z", "y"].map(|id| h.birth("acme", new_job(id), allow()));
    let changes = births.into_iter().map(|birth| birth.map(JobChange::from)).collect::<Result<Vec<_>, _>>()?;
    let results = h.store.commit(changes).await?;
    assert!(Some(results[0].clone()?) > last && results[1].clone()? > results[0].clone()?);
    Ok(())
}

pub async fn a_refused_birth_does_not_change_the_order_of_those_after_it(h: &StoreHarness) -> Proof {
    let keyed = |id: &str, key: &str| NewJob { idempotency_key: Some(key.to_owned()), ..new_job(id) };
    // The second is refused for its id; the third has the key that it wanted.
    let news = [keyed("a", "k1"), keyed("a", "k2"), keyed("c", "k2"), new_job("b")];
    let births = news.map(|new| h.birth("acme", new, allow()).map(JobChange::from));
    let results = h.store.commit(births.into_iter().collect::<Result<Vec<_>, _>>()?).await?;
    assert!(matches!(results[1], Err(ChangeError::Taken(_))), "{results:?}");
    let seqs = [results[0].clone()?, results[2].clone()?, results[3].clone()?];
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    Ok(())
}

pub async fn payloads_of_every_size_come_back(h: &StoreHarness) -> Proof {
    for size in [0, 1, 100, 1_000, 5_000, 100_000, 1_000_000] {
        let payload = Json::trusted(format!("\"{}\"", "x".repeat(size)));
        let id = format!("size-{size}");
        let new = NewJob { payload: Some(payload.clone()), ..new_job(&id) };
        let job = h.submit(new).await?;
        assert!(job.request.payload == payload, "lost when live at {size}");
        let result = lockgate_core::job::Outcome::Succeeded { result: payload.clone() };
        let ended = h.run(&job, result).await?;
        assert!(ended.request.payload == payload, "lost when ended at {size}");
        let detail = h.store.detail(&JobId::from(id)).await?.ok_or("no detail")?;
        assert!(detail.result == Some(payload), "result lost at {size}");
    }
    Ok(())
}

pub async fn loads_answer_in_the_order_asked(h: &StoreHarness) -> Proof {
    let a = h.submit(new_job("a")).await?;
    h.submit(new_job("b")).await?;
    h.step(&a, cancel()).await?;
    let asked: Vec<JobId> = ["b", "nobody", "a", "b"].map(JobId::from).into();
    let loaded = h.store.load(&asked).await?;
    let found: Vec<Option<&str>> = loaded.iter().map(|job| job.as_ref().map(|job| job.request.job_id.as_str())).collect();
    assert_eq!(found, [Some("b"), None, Some("a"), Some("b")]);
    assert_eq!(ids(loaded.iter().flatten()).len(), 3);
    Ok(())
}

pub async fn an_empty_commit_is_answered(h: &StoreHarness) -> Proof {
    assert_eq!(h.store.commit(Vec::new()).await?, []);
    assert_eq!(h.store.load(&[]).await?, []);
    Ok(())
}

pub async fn concurrent_changes_of_one_version_have_one_winner(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    let epoch = h.attach("s").await?;
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..16 {
        let input: Input = if n % 2 == 0 { cancel() } else { dispatch_to("s", epoch) };
        let change = JobChange::from(job.next(input, &h.env(allow()))?);
        let store = Arc::clone(&h.store);
        racers.spawn(async move { store.commit(vec![change]).await });
    }
    let mut winners = 0;
    while let Some(result) = racers.join_next().await {
        match result??.as_slice() {
            [Ok(_)] => winners += 1,
            other => assert_eq!(other, [Err(ChangeError::Conflict)]),
        }
    }
    assert_eq!(winners, 1);
    assert_eq!(h.load("one").await?.version, 2);
    Ok(())
}
