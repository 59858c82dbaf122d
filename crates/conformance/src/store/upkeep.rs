//! Outbox, retention, counts.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::job::Transition;
use lockgate_core::lane::Priority;
use lockgate_core::request::{Json, NewJob};

use super::runs_stage::{change, head, job_in};
use super::stage::{Found, Proof, StoreHarness, allow, cancel, deny, fatal, new_job, profile, replay, success};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{
    CLOSED_LIFE, ChangeError, DeadLetterQuery, JobChange, LogLine, OutboxBacklog, OutboxEntry, OutboxRow, RunChange, Totals,
};

fn telling(transition: Transition, bodies: &[u32]) -> JobChange {
    let entry = |n: &u32| OutboxEntry { sink: Arc::from("webhook"), body: Json::trusted(n.to_string()) };
    JobChange { transition, outbox: bodies.iter().map(entry).collect() }
}

async fn waiting(h: &StoreHarness) -> Found<Vec<(i64, String, String)>> {
    let rows = h.store.outbox(0, Duration::ZERO, 100).await?;
    Ok(rows.iter().map(|row| (row.id, row.job_id.to_string(), row.entry.body.as_str().to_owned())).collect())
}

pub async fn the_outbox_is_read_in_order_until_acknowledged(h: &StoreHarness) -> Proof {
    let a = h.birth("acme", new_job("a"), allow())?;
    let ended = a.job.next(cancel(), &h.env(allow()))?;
    let b = h.birth("acme", new_job("b"), allow())?;
    h.store.commit(vec![telling(a, &[1, 2]), telling(b, &[3]), telling(ended, &[4])]).await?;
    let rows = waiting(h).await?;
    let told: Vec<(&str, &str)> = rows.iter().map(|(_, job, body)| (job.as_str(), body.as_str())).collect();
    assert_eq!(told, [("a", "1"), ("a", "2"), ("b", "3"), ("a", "4")]);
    assert_eq!(&*h.store.outbox(0, Duration::ZERO, 1).await?[0].entry.sink, "webhook");
    let page = h.store.outbox(rows[0].0, Duration::ZERO, 2).await?;
    assert_eq!(page.iter().map(|row| row.id).collect::<Vec<_>>(), [rows[1].0, rows[2].0]);
    assert_eq!(h.store.outbox(rows[3].0, Duration::ZERO, 10).await?, []);
    h.store.outbox_done(&[rows[0].0, rows[2].0]).await?;
    assert_eq!(waiting(h).await?, [rows[1].clone(), rows[3].clone()]);
    h.store.outbox_done(&[rows[1].0, rows[3].0, 999]).await?;
    let c = h.birth("acme", new_job("c"), allow())?;
    h.commit(telling(c, &[5])).await??;
    assert!(waiting(h).await?[0].0 > rows[3].0, "a late acknowledgement must not hit a new row");
    Ok(())
}

pub async fn the_outbox_is_read_by_age_and_by_job(h: &StoreHarness) -> Proof {
    assert_eq!(h.store.backlog(10).await?, OutboxBacklog::default());
    let first = h.clock.now();
    let (a, b) = (h.birth("acme", new_job("a"), allow())?, h.birth("acme", new_job("b"), allow())?);
    h.store.commit(vec![telling(a, &[1]), telling(b, &[2])]).await?;
    h.advance_ms(5_000);
    let ended = h.load("a").await?.next(cancel(), &h.env(allow()))?;
    h.commit(telling(ended, &[3])).await??;
    let bodies = |rows: Vec<OutboxRow>| rows.iter().map(|row| row.entry.body.as_str().to_owned()).collect::<Vec<_>>();
    let (age, soon) = (Duration::from_secs(5), Duration::from_millis(5_001));
    let old = h.store.outbox(0, age, 10).await?;
    assert!(old.iter().all(|row| row.at == first), "{old:?}");
    assert_eq!(bodies(old), ["1", "2"]);
    assert_eq!(h.store.outbox(0, soon, 10).await?, []);
    assert_eq!(bodies(h.store.outbox_of(&["a".into(), "nobody".into(), "a".into()]).await?), ["1", "3"]);
    assert_eq!(bodies(h.store.outbox_of(&["b".into(), "a".into()]).await?), ["1", "2", "3"]);
    assert_eq!(h.store.outbox_of(&[]).await?, []);
    assert_eq!(h.store.backlog(10).await?, OutboxBacklog { rows: 3, oldest: age });
    assert_eq!(h.store.backlog(2).await?.rows, 2);
    Ok(())
}

pub async fn what_a_step_of_a_run_sends_out_is_in_its_commit(h: &StoreHarness) -> Proof {
    let jobs = vec![job_in(h, "run-a", 0, deny())?, job_in(h, "run-a", 1, deny())?];
    let entry = || OutboxEntry { sink: Arc::from("nats:sys.job.dlq"), body: Json::trusted("7") };
    let outbox = vec![("run-a.1".into(), entry())];
    h.advance(RunChange { jobs, outbox, ..change(head(h, "run-a")) }).await??;
    let rows = waiting(h).await?;
    assert_eq!(rows.iter().map(|(_, job, body)| (job.as_str(), body.as_str())).collect::<Vec<_>>(), [("run-a.1", "7")]);
    let jobs = vec![job_in(h, "run-a", 2, deny())?];
    let late = RunChange { jobs, outbox: vec![("run-a.2".into(), entry())], ..change(head(h, "run-a")) };
    assert!(h.advance(late).await?.is_err());
    assert_eq!(waiting(h).await?.len(), 1, "a refused step leaves no row");
    Ok(())
}

pub async fn a_refused_change_leaves_no_outbox_row(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    h.step(&job, cancel()).await?;
    let stale = job.next(cancel(), &h.env(allow()))?;
    assert_eq!(h.commit(telling(stale, &[1])).await?, Err(ChangeError::Conflict));
    let again = h.birth("acme", new_job("one"), allow())?;
    assert!(h.commit(telling(again, &[2])).await?.is_err());
    assert_eq!(waiting(h).await?, []);
    Ok(())
}

pub async fn pruning_takes_the_oldest_ends_first(h: &StoreHarness) -> Proof {
    for id in ["a", "b", "c", "d"] {
        h.submit(new_job(id)).await?;
    }
    for id in ["c", "a", "d"] {
        h.step(&h.load(id).await?, cancel()).await?;
        h.advance_ms(10);
    }
    let keep = Duration::from_millis(10);
    h.advance_ms(1);
    assert_eq!(h.store.prune(keep, 1).await?, 1);
    let left = h.store.load(&["a", "b", "c", "d"].map(Into::into)).await?;
    assert_eq!(left.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false, true]);
    assert_eq!(h.store.prune(keep, 10).await?, 2);
    assert_eq!(h.store.prune(keep, 10).await?, 0);
    assert_eq!(h.load("b").await?.version, 1);
    Ok(())
}

pub async fn pruning_spares_live_jobs_and_takes_all_that_belongs(h: &StoreHarness) -> Proof {
    let long = Json::trusted(format!("\"{}\"", "x".repeat(20_000)));
    let job = h.submit(NewJob { payload: Some(long), ..new_job("old") }).await?;
    let dead = h.run(&job, fatal()).await?;
    let line = LogLine { job_id: "old".into(), attempt: 1, at: h.clock.now(), line: "hello".into() };
    h.store.append_logs(vec![line]).await?;
    let live = h.submit(new_job("live")).await?;
    let reborn = h.run(&h.submit(new_job("reborn")).await?, fatal()).await?;
    let reborn = h.step(&reborn, replay()).await?;
    h.advance_ms(1_000);
    assert_eq!(h.store.prune(Duration::from_secs(1), 10).await?, 0, "not longer ago than that");
    h.advance_ms(1);
    assert_eq!(h.store.prune(Duration::from_secs(1), 10).await?, 1);
    assert!(h.store.detail(&"old".into()).await?.is_none());
    assert_eq!(h.store.logs(&"old".into(), 0, 10).await?, []);
    let letters = h.store.dead_letters(DeadLetterQuery { limit: 10, ..DeadLetterQuery::default() }).await?;
    assert_eq!(letters.items, []);
    assert_eq!((h.load("live").await?, h.load("reborn").await?), (live, reborn));
    let again = dead.next(replay(), &h.env(allow()))?;
    assert_eq!(h.commit(again).await?, Err(ChangeError::Conflict), "what was pruned cannot come back");
    let anew = h.submit(new_job("old")).await?;
    assert_eq!((anew.version, h.store.logs(&"old".into(), 0, 10).await?), (1, Vec::new()));
    Ok(())
}

pub async fn pruned_sequence_numbers_are_not_used_again(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    h.step(&job, cancel()).await?;
    h.advance_ms(10);
    assert_eq!(h.store.prune(Duration::ZERO, 10).await?, 1);
    assert!(h.submit(new_job("two")).await?.seq > job.seq);
    Ok(())
}

pub async fn a_pruned_job_does_not_take_its_outbox_along(h: &StoreHarness) -> Proof {
    let birth = h.birth("acme", new_job("one"), allow())?;
    let ended = birth.job.next(cancel(), &h.env(allow()))?;
    h.store.commit(vec![birth.into(), telling(ended, &[1])]).await?;
    h.advance_ms(10);
    assert_eq!(h.store.prune(Duration::ZERO, 10).await?, 1);
    let rows = waiting(h).await?;
    assert_eq!(rows.iter().map(|(_, job, body)| (job.as_str(), body.as_str())).collect::<Vec<_>>(), [("one", "1")]);
    Ok(())
}

pub async fn closed_sessions_and_edges_are_forgotten_after_their_life(h: &StoreHarness) -> Proof {
    let edge = "edge".into();
    h.store.renew_edge(&edge, Duration::from_secs(1)).await?;
    let epoch = h.attach("holding").await?;
    h.attach("idle").await?;
    let job = h.submit(new_job("one")).await?;
    let held = h.dispatch(&job, "holding", epoch).await?;
    for session in ["holding", "idle"] {
        assert!(h.store.close_session(&session.into(), 1).await?);
    }
    h.advance_ms(1_000);
    assert_eq!(h.store.close_edges(&h.store.open_edges().await?, Duration::ZERO).await?, std::slice::from_ref(&edge));
    h.clock.advance(CLOSED_LIFE - Duration::from_secs(1));
    h.store.prune(Duration::ZERO, 10).await?;
    assert_eq!(h.store.closed_holding().await?.len(), 1, "a session that holds jobs stays");
    assert!(!h.store.renew_edge(&edge, Duration::from_secs(1)).await?, "an edge that sessions name stays closed");
    let idle = h.store.attach(&"idle".into(), &"edge-2".into(), &profile("w")).await?;
    assert_eq!(idle.map(|attached| attached.epoch), Ok(1), "forgotten, so it is new");
    h.step(&held, cancel()).await?;
    h.advance_ms(1_000);
    h.store.prune(Duration::ZERO, 10).await?;
    assert!(h.store.renew_edge(&edge, Duration::from_secs(1)).await?, "forgotten, so it is new");
    Ok(())
}

pub async fn totals_follow_every_change(h: &StoreHarness) -> Proof {
    assert_eq!(h.store.totals().await?, Totals::default());
    let a = h.submit(NewJob { priority: Some(Priority::Critical), ..new_job("a") }).await?;
    let b = h.submit(new_job("b")).await?;
    h.submit(NewJob { priority: Some(Priority::Low), ..new_job("c") }).await?;
    let again = h.birth("acme", new_job("b"), allow())?;
    assert!(h.commit(again).await?.is_err());
    assert_eq!(h.store.totals().await?, Totals { live: [1, 0, 1, 1], ..Totals::default() });
    let dead = h.run(&a, fatal()).await?;
    h.run(&b, success()).await?;
    assert_eq!(h.store.totals().await?, Totals { live: [0, 0, 0, 1], dead_letters: [1, 0, 0, 0], ended: 2 });
    h.step(&dead, replay()).await?;
    assert_eq!(h.store.totals().await?, Totals { live: [1, 0, 0, 1], dead_letters: [0; 4], ended: 1 });
    h.advance_ms(1);
    assert_eq!(h.store.prune(Duration::ZERO, 10).await?, 1);
    assert_eq!(h.store.totals().await?, Totals { live: [1, 0, 0, 1], ..Totals::default() });
    Ok(())
}

pub async fn the_store_says_it_is_well(h: &StoreHarness) -> Proof {
    h.store.check().await?;
    Ok(())
}
