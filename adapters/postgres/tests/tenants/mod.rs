//! Counts of tenants over several processes, and those that an older schema did not keep.

use std::sync::Arc;

use lockgate_core::audit::AuditEntry;
use lockgate_core::dag::{RunHead, RunState};
use lockgate_core::ids::TenantId;
use lockgate_core::job::JobState;
use lockgate_ports::store::{RunChange, RunStore};
use lockgate_ports::{AuditStore, Erased, JobQuery, JobStore, Sessions, TenantStore, Usage};
use lockgate_postgres::{PostgresStore, migrate};

use crate::stage::{Stage, client, profile};

const TENANT: &str = "acme";

async fn usage(store: &PostgresStore) -> Usage {
    store.usage(&[TENANT.into()]).await.unwrap()[0]
}

/// What the rows themselves say.
async fn counted(store: &PostgresStore) -> Usage {
    let (mut sum, mut query) = (Usage::default(), JobQuery { limit: 1_000, ..JobQuery::default() });
    loop {
        let page = store.list(query.clone()).await.unwrap();
        for job in page.items {
            let detail = store.detail(&job.request.job_id).await.unwrap().unwrap();
            *(if job.state().is_terminal() { &mut sum.ended } else { &mut sum.live }) += 1;
            let result = detail.result.map_or(0, |result| result.as_str().len());
            sum.stored_bytes += (detail.job.request.payload.as_str().len() + result) as u64;
        }
        query.cursor = page.next;
        if query.cursor.is_none() {
            return sum;
        }
    }
}

fn audit() -> AuditEntry {
    serde_json::from_str(r#"{"at":0,"tenant":"ops","actor":"ann","action":"job_denied","subject":"erased"}"#).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_are_exact_while_two_write_and_one_erases() {
    let stage = Arc::new(Stage::new().await);
    let stores = [Arc::new(stage.connect().await), Arc::new(stage.connect().await)];
    let writing = stores.clone().into_iter().enumerate().map(|(no, store)| {
        let stage = Arc::clone(&stage);
        tokio::spawn(async move {
            for round in 0..12 {
                let births = stage.births(&format!("job-{no}-{round}"), 20);
                let ends = births.iter().skip(2).map(|birth| stage.cancel(&birth.transition.job)).collect::<Vec<_>>();
                let results = store.commit(births.into_iter().chain(ends).collect()).await.unwrap();
                assert!(results.iter().all(Result::is_ok));
            }
        })
    });
    let writing: Vec<_> = writing.collect();
    let (tenant, mut gone): (TenantId, u64) = (TENANT.into(), 0);
    while !writing.iter().all(tokio::task::JoinHandle::is_finished) {
        let Erased { jobs, done, .. } = stores[0].erase(&tenant, 15, &audit()).await.unwrap();
        gone += jobs;
        assert!(!done || gone == 0, "every commit leaves live jobs");
    }
    for writer in writing {
        writer.await.unwrap();
    }
    let found = usage(&stores[1]).await;
    assert_eq!((found, found.live, found.ended + gone), (counted(&stores[1]).await, 48, 2 * 12 * 18));
    let live =
        stores[0].list(JobQuery { state: Some(JobState::Scheduled), limit: 100, ..JobQuery::default() }).await.unwrap();
    let ends = live.items.iter().map(|job| stage.cancel(job)).collect();
    assert!(stores[0].commit(ends).await.unwrap().iter().all(Result::is_ok));
    while !stores[1].erase(&tenant, 1_000, &audit()).await.unwrap().done {}
    assert_eq!((usage(&stores[0]).await, counted(&stores[0]).await), (Usage::default(), Usage::default()));
    let told = stores[0].audit(0, 10_000).await.unwrap().iter().filter(|row| &*row.entry.subject == "erased").count();
    assert_eq!(told, 1, "by the last call");
    let rows = client(&stage.config).await.query("SELECT 1 FROM tallies", &[]).await.unwrap();
    assert_eq!(rows.len(), 0, "its name is gone too");
}

fn run(id: &str, state: RunState) -> RunChange {
    let text = r#"{"id":"run","dag":{"name":"etl","version":1},"tenant":"acme","actor":"ann","params":"{}","began_at":0}"#;
    let head: RunHead = serde_json::from_str(text).unwrap();
    let head = RunHead { id: id.into(), version: 1, state, ..head };
    RunChange {
        head,
        nodes: Vec::new(),
        jobs: Vec::new(),
        heard: Vec::new(),
        key: None,
        audit: Vec::new(),
        outbox: Vec::new(),
    }
}

#[tokio::test]
async fn tallies_are_filled_from_what_an_older_schema_has() {
    let stage = Stage::new().await;
    let store = stage.connect().await;
    let epoch = store.attach(&"s".into(), &"edge".into(), &profile()).await.unwrap().unwrap().epoch;
    let births = stage.births("job", 30);
    let ids: Vec<_> = births.iter().map(|birth| birth.transition.job.request.job_id.clone()).collect();
    store.commit(births).await.unwrap();
    for job in store.load(&ids[..10]).await.unwrap().into_iter().flatten() {
        store.commit(vec![stage.dispatch(&job, epoch)]).await.unwrap();
        let sent = store.load(std::slice::from_ref(&job.request.job_id)).await.unwrap().pop().flatten().unwrap();
        let report = if job.seq.0 % 2 == 0 { stage.end(&sent) } else { stage.hold(&sent) };
        assert!(store.commit(vec![report]).await.unwrap()[0].is_ok());
    }
    let runs = vec![run("a", RunState::Running), run("b", RunState::Paused), run("c", RunState::Failed)];
    assert!(store.advance(runs).await.unwrap().iter().all(Result::is_ok));
    let before = usage(&store).await;
    assert_eq!(before, Usage { runs: 2, ..counted(&store).await });
    assert_eq!((before.live, before.ended), (25, 5));
    drop(store);
    let back = "DROP TABLE placing_tries; DROP TABLE tallies; DROP TABLE children; DROP TABLE memos; DROP INDEX runs_over; DROP INDEX outbox_job; ALTER TABLE outbox DROP COLUMN at; DELETE FROM in_force WHERE kind = 'quotas';
        ALTER TABLE sessions DROP COLUMN sent_away_at; DELETE FROM migrations WHERE version > 9";
    client(&stage.config).await.batch_execute(back).await.unwrap();
    migrate(&stage.options()).await.unwrap();
    assert_eq!(usage(&stage.connect().await).await, before);
}
