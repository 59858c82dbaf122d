//! A database of the last release, with jobs in every state, runs, schedules, credentials and an audit trail in it: this version
//! brings it up to date, reads all of it, and goes on.

use std::path::Path;
use std::sync::Arc;

use lockgate_core::job::{JobState, attempts};
use lockgate_core::time::Timestamp;
use lockgate_model::ManualClock;
use lockgate_ports::{
    AuditStore, CredentialStore, DeadLetterQuery, JobQuery, JobStore, RunQuery, RunStore, ScheduleStore, Upkeep,
};
use lockgate_sqlite::SqliteStore;
use tempfile::TempDir;

/// As `.dump` tells it.
const RELEASED: &str = include_str!("released/0.1.0.sql");

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = &folder.path().join("lockgate.db");
    rusqlite::Connection::open(path).unwrap().execute_batch(RELEASED).unwrap();
    folder
}

fn open(folder: &TempDir) -> SqliteStore {
    // A day after it was written.
    let clock = ManualClock::at(Timestamp::from_millis(1_794_972_321_000));
    SqliteStore::open(folder.path(), Arc::new(clock)).unwrap()
}

#[tokio::test]
async fn every_job_is_there_with_its_history() {
    let folder = folder();
    let store = open(&folder);
    let listed = store.list(JobQuery { limit: 100, ..JobQuery::default() }).await.unwrap().items;
    assert_eq!(listed.len(), 19);
    let state = |id: &str| listed.iter().find(|job| job.request.job_id.as_str() == id).map(|job| job.state());
    for (id, expected) in [
        ("good", JobState::Succeeded),
        ("flaky", JobState::Succeeded),
        ("dead", JobState::Failed),
        ("later", JobState::Scheduled),
        ("ask", JobState::ApprovalRequired),
        ("denied", JobState::Denied),
        ("card", JobState::OutputQuarantined),
        ("gone", JobState::Cancelled),
    ] {
        assert_eq!(state(id), Some(expected), "{id}");
    }
    for job in &listed {
        let detail = store.detail(&job.request.job_id).await.unwrap().expect("there");
        assert_eq!(detail.events.len() as u64, job.life.events, "{}", job.request.job_id);
        assert_eq!(job.hash, detail.job.request.hash(), "the identity of a request never moves: {}", job.request.job_id);
    }
    let flaky = store.detail(&"flaky".into()).await.unwrap().expect("there");
    assert_eq!(attempts(&flaky.events).len(), 2);
    assert_eq!(flaky.job.request.trace_name().len(), 32, "a job from before traces has one all the same");
    assert_eq!(store.totals().await.unwrap().ended, 16);
    let letters = store.dead_letters(DeadLetterQuery { limit: 10, ..DeadLetterQuery::default() }).await.unwrap().items;
    assert_eq!(letters.len(), 5);
}

#[tokio::test]
async fn runs_schedules_and_credentials_are_there() {
    let folder = folder();
    let store = open(&folder);
    let runs = store.list_runs(RunQuery { limit: 10, ..RunQuery::default() }).await.unwrap().items;
    let states: Vec<_> = runs.iter().map(|head| (&*head.dag.name, head.state.as_str(), head.reruns)).collect();
    assert_eq!(states, [("saga", "RUNNING", 0), ("bad", "COMPENSATED", 0)]);
    let ids: Vec<_> = runs.iter().map(|head| head.id.clone()).collect();
    assert!(store.load_runs(&ids).await.unwrap().into_iter().flatten().all(|run| !run.nodes.is_empty()));
    let schedules = store.list_schedules(&"default".into(), None, 10).await.unwrap();
    assert_eq!(schedules.iter().map(|schedule| &*schedule.name).collect::<Vec<_>>(), ["nightly", "often"]);
    assert_eq!(store.credentials(None, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn the_audit_trail_still_verifies() {
    let folder = folder();
    let store = open(&folder);
    let blocks = store.blocks(0, 100).await.unwrap();
    let rows = store.audit(0, 100).await.unwrap();
    assert_eq!((blocks.len(), rows.len()), (6, 15));
    let mut before = None;
    for block in &blocks {
        let of: Vec<_> = rows.iter().filter(|row| (block.first..=block.last).contains(&row.id)).cloned().collect();
        block.verify(before, &of).unwrap();
        before = Some(block);
    }
}
