//! What only a Store on disk can get wrong: restarts, a second process, a full disk.

mod stage;
mod tenants;

use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

use lockgate_conformance::store::schedules_stage::{schedule, turn};
use lockgate_core::access::Credential;
use lockgate_core::audit::Block;
use lockgate_core::dag::{NodeKey, NodeRun, NodeState, RunHead};
use lockgate_core::ids::{JobId, JobSeq};
use lockgate_core::job::{Duty, JobState};
use lockgate_core::request::{JobRequest, Json, RunRef};
use lockgate_core::schedule::{Schedule, Slot};
use lockgate_core::time::Timestamp;
use lockgate_ports::store::{RunChange, RunRefusal, RunStore, ScheduleChange, ScheduleStore, SlotQuery, TurnConflict};
use lockgate_ports::{
    AuditStore, ChangeError, CredentialStore, JobChange, JobQuery, JobStore, Leases, Sessions, SnapshotKind, Snapshots,
    StoreError, TenantStore, Upkeep,
};
use lockgate_sqlite::{FolderOptions, OpenError, SqliteStore};
use stage::{Stage, births, profile};

#[tokio::test]
async fn everything_acknowledged_is_there_after_a_restart() {
    let stage = Stage::new();
    let store = stage.open();
    let epoch = store.attach(&"s".into(), &"edge".into(), &profile()).await.unwrap().unwrap().epoch;
    assert!(store.renew_edge(&"edge".into(), Duration::from_secs(6)).await.unwrap());
    store.acquire("lease", "me", Duration::from_secs(60)).await.unwrap();
    let results = store.commit(births(&stage, "job", 50)).await.unwrap();
    let last = results.into_iter().map(Result::unwrap).max().unwrap();
    let jobs = store.list(JobQuery { limit: 100, ..JobQuery::default() }).await.unwrap().items;
    let (totals, tenants) = (store.totals().await.unwrap(), store.tenants(None, 10).await.unwrap());
    let lanes = store.ready_lanes().await.unwrap();
    drop(store);

    let store = stage.open();
    assert_eq!(store.list(JobQuery { limit: 100, ..JobQuery::default() }).await.unwrap().items, jobs);
    assert_eq!(store.totals().await.unwrap(), totals);
    assert_eq!((store.tenants(None, 10).await.unwrap(), tenants[0].1.live), (tenants.clone(), 50));
    assert_eq!(totals.live.iter().sum::<u64>(), 50);
    assert_eq!(store.ready_lanes().await.unwrap(), lanes);
    assert_eq!(store.open_sessions().await.unwrap()[0].epoch, epoch);
    assert_eq!(store.acquire("lease", "other", Duration::from_secs(60)).await.unwrap(), None);
    let next = store.commit(births(&stage, "later", 1)).await.unwrap()[0].clone().unwrap();
    assert!(next > last, "sequence numbers go on");
}

#[tokio::test]
async fn what_governance_decided_is_there_after_a_restart() {
    let stage = Stage::new();
    let store = stage.open();
    let epoch = store.attach(&"s".into(), &"edge".into(), &profile()).await.unwrap().unwrap().epoch;
    store.commit(births(&stage, "job", 2)).await.unwrap();
    let jobs = store.load(&["job-0".into(), "job-1".into()]).await.unwrap().into_iter().flatten().collect::<Vec<_>>();
    let held = stage.held(&jobs[0], epoch);
    assert!(store.commit(held).await.unwrap().iter().all(Result::is_ok));
    store.activate(stage.activation("p1")).await.unwrap().unwrap();
    let rows = store.audit(0, 10).await.unwrap();
    let block = Block::over(None, &rows, stage.clock().now()).unwrap();
    assert!(store.seal(&block).await.unwrap());
    drop(store);

    let store = stage.open();
    assert_eq!(&*store.active(SnapshotKind::Policy).await.unwrap().unwrap().id, "p1");
    let late = store.commit(vec![stage.dispatch(&jobs[1], epoch)]).await.unwrap();
    assert_eq!(late, [Err(ChangeError::Conflict)], "judged by the policy before");
    let owing = store.owing(Duty::Scan, JobSeq::default(), 10).await.unwrap();
    assert_eq!(owing.iter().map(|job| job.request.job_id.as_str()).collect::<Vec<_>>(), ["job-0"]);
    assert_eq!(store.detail(&"job-0".into()).await.unwrap().unwrap().result, Some(Json::trusted("1")));
    assert_eq!((store.audit(0, 10).await.unwrap(), store.head().await.unwrap()), (rows, Some(block)));
}

#[tokio::test]
async fn runs_and_what_they_have_not_heard_are_there_after_a_restart() {
    let stage = Stage::new();
    let store = stage.open();
    let text = r#"{"id":"run-a","dag":{"name":"etl","version":1},"tenant":"acme","actor":"ann","params":"{}","began_at":0}"#;
    let head = RunHead { version: 1, ..serde_json::from_str(text).unwrap() };
    let mut ended = stage.ended_lives("job", 1);
    for change in &mut ended {
        let part = RunRef { run: head.id.clone(), node: 0, item: None, round: 0, undo: false };
        let request = JobRequest { run: Some(part), ..(*change.transition.job.request).clone() };
        change.transition.job.request = Arc::new(request);
    }
    let [birth, end] = <[JobChange; 2]>::try_from(ended).unwrap();
    let nodes = vec![(NodeKey::of(0), NodeRun { state: NodeState::Running, ..NodeRun::default() })];
    let start = RunChange {
        head,
        nodes,
        jobs: vec![birth.transition],
        heard: Vec::new(),
        key: None,
        audit: Vec::new(),
        outbox: Vec::new(),
    };
    let seq = store.advance(vec![start]).await.unwrap()[0].clone().unwrap()[0];
    let mut end = end;
    end.transition.job.seq = seq;
    assert!(store.commit(vec![end]).await.unwrap()[0].is_ok());
    let ids = ["run-a".into()];
    let run = store.load_runs(&ids).await.unwrap();
    let news = store.news(&ids, 10).await.unwrap();
    assert!(run[0].as_ref().is_some_and(|run| run.nodes.len() == 1) && news.len() == 1);
    drop(store);

    let store = stage.open();
    assert_eq!(store.load_runs(&ids).await.unwrap(), run);
    let found = store.news(&ids, 10).await.unwrap();
    assert_eq!(format!("{found:?}"), format!("{news:?}"));
    assert_eq!(store.unheard(Duration::ZERO, 10).await.unwrap(), ids);
    let totals = store.totals().await.unwrap();
    assert_eq!((totals.live.iter().sum::<u64>(), totals.ended), (0, 1));
}

#[tokio::test]
async fn schedules_slots_and_credentials_are_there_after_a_restart() {
    let stage = Stage::new();
    let store = stage.open();
    let wakes_at = Some(stage.clock().now() + Duration::from_secs(60));
    let nightly = Schedule { wakes_at, ..schedule("acme", "nightly") };
    let text = r#"{"key":{"series":"","nominal":7},"outcome":"DUE","target":{"job":"cron-1"},"decided_at":8}"#;
    let slot: Slot = serde_json::from_str(text).unwrap();
    let change = ScheduleChange { fresh: vec![slot.clone()], ..turn(nightly.clone()) };
    store.turn(vec![change.clone()]).await.unwrap()[0].unwrap();
    let text = r#"{"id":"lk_1","kind":"certificate","actor":"ann","grant":{"reach":"everyone","roles":["admin"]},
        "created_at":1,"created_by":"root"}"#;
    let credential: Credential = serde_json::from_str(text).unwrap();
    let audit = stage.activation("p1").audit;
    assert!(store.add_credential(credential.clone(), audit.clone()).await.unwrap());
    let ended = store.end_credential(&credential.id, Timestamp::from_millis(9), None, audit).await.unwrap();
    drop(store);

    let store = stage.open();
    assert_eq!(store.load_schedules(&[("acme".into(), "nightly".into())]).await.unwrap(), [Some(nightly)]);
    assert_eq!(store.next_schedule().await.unwrap(), (wakes_at, stage.clock().now()));
    let query = SlotQuery { tenant: "acme".into(), schedule: "nightly".into(), cursor: None, limit: 10 };
    assert_eq!(store.list_slots(query).await.unwrap().items, [slot]);
    assert_eq!(store.turn(vec![change]).await.unwrap(), [Err(TurnConflict)]);
    assert_eq!(store.credential(&credential.id).await.unwrap(), ended);
    assert_eq!(ended.and_then(|ended| ended.ends_at), Some(Timestamp::from_millis(9)));
}

#[tokio::test]
async fn work_accepted_before_the_drop_is_done() {
    let stage = Stage::new();
    let store = stage.open();
    // Polled once, so that the work is with the writing thread; then the Store is dropped without waiting for it.
    let mut pending = Box::pin(store.commit(births(&stage, "job", 10)));
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(pending.as_mut().poll(cx).is_ready())).await;
    drop(pending);
    drop(store);
    let jobs = stage.open().list(JobQuery { limit: 100, ..JobQuery::default() }).await.unwrap().items;
    assert_eq!(jobs.len(), 10, "answered at once: {polled}");
}

#[tokio::test]
async fn a_second_store_on_the_same_folder_is_refused_until_the_first_is_gone() {
    let stage = Stage::new();
    let first = stage.open();
    let Err(error) = SqliteStore::open(stage.folder(), stage.clock()) else { panic!("both have the folder") };
    assert!(matches!(error, OpenError::InUse(_)), "{error}");
    assert!(error.to_string().starts_with("another lockgate process uses this data folder: "), "{error}");
    first.check().await.unwrap();
    drop(first);
    stage.open().check().await.unwrap();
}

#[tokio::test]
async fn a_full_store_refuses_whole_commits_and_recovers_when_there_is_room() {
    let stage = Stage::new();
    let store = SqliteStore::open_with(
        stage.folder(),
        stage.clock(),
        FolderOptions { bytes_max: Some(300 * 4096), ..FolderOptions::default() },
    )
    .unwrap();
    let mut accepted = 0;
    let error = loop {
        let batch = stage.ended_lives(&format!("batch-{accepted}"), 20);
        match store.commit(batch).await {
            Ok(results) => accepted += results.into_iter().filter(|result| result.is_ok()).count() as u64 / 2,
            Err(error) => break error,
        }
        assert!(accepted < 100_000, "it never got full");
    };
    assert!(matches!(error, StoreError::Full(_)), "{error}");
    assert!(error.certainly_not_applied());
    assert_eq!(store.totals().await.unwrap().ended, accepted, "nothing of the failed commit remains");
    assert_eq!(store.usage(&["acme".into()]).await.unwrap()[0].ended, accepted);
    assert_eq!(stage.count(&store).await, accepted);
    assert!(store.fatal().borrow().is_none(), "a full disk is no reason to stop");

    stage.advance(Duration::from_secs(1));
    assert!(store.prune(Duration::ZERO, 100).await.unwrap() > 0, "deleting works while full");
    let results = store.commit(births(&stage, "room", 5)).await.unwrap();
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

#[tokio::test]
async fn a_fault_of_one_caller_does_not_reach_its_neighbours() {
    let stage = Stage::new();
    let store = stage.open();
    // Sent to no session: the schema refuses such a row, even if a decision contains it.
    let mut broken = births(&stage, "broken", 1);
    broken[0].transition.job.life.state = JobState::Dispatched;
    let (bad, good) = tokio::join!(store.commit(broken), store.commit(births(&stage, "good", 3)));
    assert!(matches!(bad.as_deref(), Ok([Err(ChangeError::Refused(_))])), "{bad:?}");
    assert!(good.unwrap().iter().all(Result::is_ok));
    assert_eq!(store.totals().await.unwrap().live.iter().sum::<u64>(), 3);
    assert_eq!(store.usage(&["acme".into()]).await.unwrap()[0].live, 3);
}

#[tokio::test]
async fn a_job_that_a_trigger_refuses_fails_alone_in_its_call() {
    let stage = Stage::new();
    let store = stage.open();
    let epoch = store.attach(&"s".into(), &"edge".into(), &profile()).await.unwrap().unwrap().epoch;
    store.commit(births(&stage, "job", 20)).await.unwrap();
    let ids: Vec<JobId> = (0..20).map(|n| format!("job-{n}").into()).collect();
    let jobs = store.load(&ids).await.unwrap().into_iter().flatten().collect::<Vec<_>>();
    let other = rusqlite::Connection::open(stage.folder().join("lockgate.db")).unwrap();
    let sql = "CREATE TRIGGER no BEFORE UPDATE ON jobs_hot WHEN old.seq = (SELECT seq FROM jobs WHERE job_id = 'job-13')
        BEGIN SELECT RAISE(ABORT, 'not this one'); END";
    other.execute_batch(sql).unwrap();
    let sent = store.commit(jobs.iter().map(|job| stage.dispatch(job, epoch)).collect()).await.unwrap();
    for (n, result) in sent.iter().enumerate() {
        let refused = matches!(result, Err(ChangeError::Refused(why)) if why.contains("not this one"));
        assert!(if n == 13 { refused } else { result.is_ok() }, "job {n}: {result:?}");
    }
    assert_eq!(store.held(&"s".into()).await.unwrap().len(), 19);
    other.execute_batch("DROP TRIGGER no").unwrap();
    assert!(store.commit(vec![stage.dispatch(&jobs[13], epoch)]).await.unwrap()[0].is_ok());
}

#[tokio::test]
async fn a_run_or_a_schedule_that_a_trigger_refuses_is_told_from_an_outage() {
    let stage = Stage::new();
    let store = stage.open();
    let other = rusqlite::Connection::open(stage.folder().join("lockgate.db")).unwrap();
    for (table, column) in [("runs", "run_id"), ("schedules", "name")] {
        let sql = format!("CREATE TRIGGER no_{table} BEFORE INSERT ON {table} WHEN new.{column} = 'bad'");
        other.execute_batch(&format!("{sql} BEGIN SELECT RAISE(ABORT, 'not this one'); END")).unwrap();
    }
    let start = |id: &str| {
        let text = r#"{"id":"x","dag":{"name":"etl","version":1},"tenant":"acme","actor":"ann","params":"{}","began_at":0}"#;
        let head = RunHead { id: id.into(), version: 1, ..serde_json::from_str(text).unwrap() };
        let (nodes, jobs, heard, audit, outbox) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        RunChange { head, nodes, jobs, heard, key: None, audit, outbox }
    };
    let begun = store.advance(["a", "bad", "b"].map(start).into()).await.unwrap();
    assert!(matches!(begun[..], [Ok(_), Err(RunRefusal::Refused(_)), Ok(_)]), "{begun:?}");
    let turned = store.turn(["a", "bad"].map(|name| turn(schedule("acme", name))).into()).await;
    assert!(matches!(turned, Err(StoreError::Refused(_))), "{turned:?}");
    assert!(store.turn(vec![turn(schedule("acme", "a"))]).await.unwrap()[0].is_ok(), "nothing of the call was written");
}

#[tokio::test]
async fn concurrent_callers_share_commits_and_all_are_answered() {
    let stage = Stage::new();
    let store = std::sync::Arc::new(stage.open());
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..64 {
        let (store, changes) = (store.clone(), births(&stage, &format!("caller-{caller}"), 20));
        callers.spawn(async move {
            for change in changes {
                let results: Vec<_> = store.commit(vec![JobChange::clone(&change)]).await.unwrap();
                assert!(results[0].is_ok());
                let loaded = store.load(std::slice::from_ref(&change.transition.job.request.job_id)).await.unwrap();
                assert!(loaded[0].is_some(), "a read sees what was committed before it");
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    assert_eq!(store.totals().await.unwrap().live.iter().sum::<u64>(), 64 * 20);
}

/// Turns the bytes of the first page of a table's B-tree over.
fn damage(stage: &Stage, table: &str) {
    let path = stage.folder().join("lockgate.db");
    let reader = rusqlite::Connection::open(&path).unwrap();
    let sql = "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = ?1";
    let (page, size): (u32, u32) = reader.query_row(sql, [table], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    drop(reader);
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&vec![0xa5; usize::try_from(size).unwrap()], u64::from(page - 1) * u64::from(size)).unwrap();
}

/// Of a table that only results are written to, a submit notices nothing.
#[tokio::test]
async fn a_damaged_table_of_jobs_is_found_before_a_client_meets_it() {
    for table in ["jobs_hot", "jobs_done"] {
        let stage = Stage::new();
        let store = stage.open();
        store.commit(stage.ended_lives("ended", 3)).await.unwrap();
        store.commit(births(&stage, "live", 3)).await.unwrap();
        store.check().await.unwrap();
        drop(store);
        damage(&stage, table);
        let store = stage.open();
        let (checked, submitted) = tokio::join!(store.check(), store.commit(births(&stage, "next", 1)));
        assert!(matches!(checked, Err(StoreError::Corrupt(_))), "{table}: {checked:?}");
        assert_eq!(submitted.is_ok(), table == "jobs_done", "what is checked does not fail its neighbours: {submitted:?}");
    }
}

#[tokio::test]
async fn checks_leave_nothing_behind() {
    let stage = Stage::new();
    let store = stage.open();
    store.commit(stage.ended_lives("ended", 2)).await.unwrap();
    let before = (store.totals().await.unwrap(), stage.count(&store).await);
    for _ in 0..3 {
        let (checked, committed) = tokio::join!(store.check(), store.commit(births(&stage, "same", 1)));
        assert!(checked.is_ok() && committed.is_ok());
    }
    let after = (store.totals().await.unwrap(), stage.count(&store).await);
    assert_eq!((after.0.ended, after.1), (before.0.ended, before.1 + 1));
}
