//! Ends, history and new lives.

use lockgate_core::job::{EventKind, JobState};
use lockgate_core::lane::ReadyKey;
use lockgate_core::request::{Json, NewJob};

use super::stage::{
    Found, Proof, StoreHarness, allow, cancel, deny, discard, dispatch_to, fatal, ids, new_job, replay, report, success,
};
use lockgate_ports::store::{ChangeError, DeadLetterQuery, JobQuery};

const ANY_LETTER: fn() -> DeadLetterQuery = || DeadLetterQuery { limit: 10, ..DeadLetterQuery::default() };

async fn waiting(h: &StoreHarness, session: &str) -> Found<[usize; 5]> {
    let start = ReadyKey::default();
    Ok([
        h.store.ready_lanes().await?.len(),
        h.store.due(start, 10).await?.len(),
        h.store.pending(start, 10).await?.len(),
        h.store.expired(start, 10).await?.len(),
        h.store.held(&session.into()).await?.len(),
    ])
}

pub async fn an_ended_job_leaves_every_queue(h: &StoreHarness) -> Proof {
    let epoch = h.attach("s").await?;
    let job = h.submit(NewJob { deadline_ms: Some(1_000), ..new_job("held") }).await?;
    let held = h.dispatch(&job, "s", epoch).await?;
    let ready = h.submit(NewJob { deadline_ms: Some(1_000), ..new_job("ready") }).await?;
    h.advance_ms(2_000);
    assert_eq!(waiting(h, "s").await?, [1, 0, 0, 2, 1]);
    h.step(&held, report(&held, success())).await?;
    h.step(&ready, cancel()).await?;
    assert_eq!(waiting(h, "s").await?, [0; 5]);
    Ok(())
}

pub async fn an_ended_job_keeps_its_events_and_result(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    let ended = h.run(&job, success()).await?;
    let detail = h.store.detail(&"one".into()).await?.ok_or("no detail")?;
    let kinds: Vec<EventKind> = detail.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Submitted, EventKind::Scheduled, EventKind::Dispatched, EventKind::Succeeded]);
    assert_eq!(detail.result, Some(Json::trusted(r#"{"ok":true}"#)));
    assert_eq!(detail.job, ended);
    assert_eq!((ended.seq, ended.version, ended.hash), (job.seq, 3, job.hash));
    let page = h.store.events(&"one".into(), 2).await?.ok_or("no events")?;
    assert_eq!((page.events.as_slice(), page.state), (&detail.events[2..], JobState::Succeeded));
    Ok(())
}

pub async fn a_denied_submit_is_stored_as_ended(h: &StoreHarness) -> Proof {
    let job = h.submit_as("acme", NewJob { deadline_ms: Some(1), ..new_job("one") }, deny()).await?;
    assert_eq!((job.state(), job.version), (JobState::Denied, 1));
    h.advance_ms(5);
    assert_eq!(waiting(h, "s").await?, [0; 5]);
    assert_eq!(h.store.dead_letters(ANY_LETTER()).await?.items.len(), 1);
    assert_eq!(h.store.totals().await?.ended, 1);
    Ok(())
}

pub async fn a_dead_job_leaves_one_letter_until_it_is_replayed(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    let dead = h.run(&job, fatal()).await?;
    let letters = h.store.dead_letters(ANY_LETTER()).await?.items;
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].job_id.as_str(), &*letters[0].message, letters[0].life), ("one", "broken", 1));
    h.advance_ms(1_000);
    let reborn = h.step(&dead, replay()).await?;
    assert_eq!((reborn.state(), reborn.life.no), (JobState::Scheduled, 2));
    assert_eq!(h.store.dead_letters(ANY_LETTER()).await?.items, []);
    assert_eq!(h.store.ready(&reborn.lane(), None, 10).await?, std::slice::from_ref(&reborn));
    let dead = h.run(&reborn, fatal()).await?;
    assert_eq!(dead.life.no, 2);
    assert_eq!(h.store.dead_letters(ANY_LETTER()).await?.items.len(), 1);
    Ok(())
}

pub async fn a_replay_that_is_denied_renews_the_letter(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    let dead = h.run(&job, fatal()).await?;
    h.advance_ms(10);
    let denied = dead.next(replay(), &h.env(deny()))?;
    h.commit(denied).await??;
    assert_eq!(h.load("one").await?.state(), JobState::Denied);
    let letters = h.store.dead_letters(ANY_LETTER()).await?.items;
    assert_eq!(letters.iter().map(|letter| (letter.life, letter.state)).collect::<Vec<_>>(), [(2, JobState::Denied)]);
    let totals = h.store.totals().await?;
    assert_eq!((totals.live, totals.ended, totals.dead_letters.iter().sum::<u64>()), ([0; 4], 1, 1));
    Ok(())
}

pub async fn a_discarded_letter_is_found_only_among_the_discarded(h: &StoreHarness) -> Proof {
    let dead = h.run(&h.submit(new_job("one")).await?, fatal()).await?;
    h.run(&h.submit(new_job("two")).await?, fatal()).await?;
    let discarded = h.step(&dead, discard()).await?;
    assert_eq!((discarded.state(), discarded.version), (JobState::Failed, dead.version + 1));
    let letters = h.store.dead_letters(ANY_LETTER()).await?.items;
    assert_eq!(letters.iter().map(|letter| letter.job_id.as_str()).collect::<Vec<_>>(), ["two"]);
    let totals = h.store.totals().await?;
    assert_eq!((totals.ended, totals.dead_letters.iter().sum::<u64>()), (2, 1));
    let found = h.store.list(JobQuery { discarded: true, limit: 10, ..JobQuery::default() }).await?;
    assert_eq!(ids(&found.items), ["one"]);
    let stored = h.load("one").await?;
    assert_eq!(stored.dead_letter().and_then(|letter| letter.discarded), discarded.life.discarded);
    assert!(h.commit(dead.next(discard(), &h.env(allow()))?).await?.is_err(), "the job has moved on");
    Ok(())
}

pub async fn events_are_numbered_without_gaps_over_lives(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    let dead = h.run(&job, fatal()).await?;
    let reborn = h.step(&dead, replay()).await?;
    h.run(&reborn, success()).await?;
    let detail = h.store.detail(&"one".into()).await?.ok_or("no detail")?;
    let numbers: Vec<u64> = detail.events.iter().map(|event| event.n).collect();
    assert_eq!(numbers, (1..=detail.job.life.events).collect::<Vec<_>>());
    assert!(detail.events.iter().any(|event| event.kind == EventKind::Replayed));
    for after in 0..=detail.job.life.events {
        let page = h.store.events(&"one".into(), after).await?.ok_or("no events")?;
        assert_eq!(page.events.first().map(|event| event.n), numbers.iter().copied().find(|n| *n > after));
    }
    Ok(())
}

pub async fn an_ended_job_changes_only_by_replay(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    let epoch = h.attach("s").await?;
    let held = h.dispatch(&job, "s", epoch).await?;
    let dead = h.step(&held, report(&held, fatal())).await?;
    let late = held.next(report(&held, success()), &h.env(allow()))?;
    assert_eq!(h.commit(late.clone()).await?, Err(ChangeError::Conflict));
    let twice = [dead.next(replay(), &h.env(allow()))?, dead.next(replay(), &h.env(allow()))?];
    let results = h.store.commit(twice.map(Into::into).into()).await?;
    assert!(results[0].is_ok());
    assert_eq!(results[1], Err(ChangeError::Conflict));
    assert_eq!(h.commit(late).await?, Err(ChangeError::Conflict));
    let reborn = h.load("one").await?;
    h.step(&reborn, dispatch_to("s", epoch)).await?;
    Ok(())
}
