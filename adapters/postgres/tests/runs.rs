//! Steps of runs: what they cost, and what is known of one whose answer was lost.

mod proxy;
mod stage;

use std::sync::Arc;

use lockgate_core::dag::{NodeKey, NodeRun, NodeState, RunHead};
use lockgate_core::job::Transition;
use lockgate_core::request::{JobRequest, NewJob, RunRef};
use lockgate_ports::store::{RunChange, RunRefusal, RunStore};
use lockgate_ports::{JobStore, StoreError, Upkeep};
use lockgate_postgres::{ConnectOptions, PostgresStore};
use proxy::{Cut, Proxy};
use stage::{Stage, server};

fn head(version: i64) -> RunHead {
    let text = r#"{"id":"run-a","dag":{"name":"etl","version":1},"tenant":"acme","actor":"ann","params":"{}","began_at":0}"#;
    RunHead { version, ..serde_json::from_str(text).unwrap() }
}

fn job(stage: &Stage, node: u32) -> Transition {
    let id = format!("run-a.{node}");
    let new = NewJob { topic: "job.echo".to_owned(), ..NewJob::default() };
    let mut birth = stage.birth(new, &id).transition;
    let run = RunRef { run: "run-a".into(), node, item: None, round: 0, undo: false };
    birth.job.request = Arc::new(JobRequest { run: Some(run), ..(*birth.job.request).clone() });
    birth
}

/// A step that starts these nodes.
fn step(stage: &Stage, version: i64, nodes: std::ops::Range<u32>, heard: Vec<i64>) -> RunChange {
    let running = |node| (NodeKey::of(node), NodeRun { state: NodeState::Running, ..NodeRun::default() });
    RunChange {
        head: head(version),
        nodes: nodes.clone().map(running).collect(),
        jobs: nodes.map(|node| job(stage, node)).collect(),
        heard,
        key: None,
        audit: Vec::new(),
        outbox: Vec::new(),
    }
}

#[tokio::test]
async fn a_step_is_two_round_trips_however_wide() {
    let stage = Stage::new().await;
    let store = PostgresStore::connect(ConnectOptions { writers: 1, ..stage.options() }).await.unwrap();
    store.advance(vec![step(&stage, 1, 0..1, Vec::new())]).await.unwrap()[0].clone().unwrap();
    let mut costs = Vec::new();
    // The second round: statements are prepared in the first.
    for (version, first) in [(2, 1), (3, 101)] {
        let ended = store.load(&[format!("run-a.{}", first - 1).into()]).await.unwrap().pop().flatten().unwrap();
        let before = store.counters();
        store.commit(vec![stage.cancel(&ended)]).await.unwrap()[0].clone().unwrap();
        let told = store.counters();
        let heard: Vec<i64> = store.news(&["run-a".into()], 10).await.unwrap().iter().map(|news| news.no).collect();
        assert_eq!(heard.len(), 1);
        let between = store.counters();
        store.advance(vec![step(&stage, version, first..first + 100, heard)]).await.unwrap()[0].clone().unwrap();
        let after = store.counters();
        costs = vec![
            (told.transactions - before.transactions, told.round_trips - before.round_trips),
            (after.transactions - between.transactions, after.round_trips - between.round_trips),
        ];
    }
    assert_eq!(costs, [(1, 2), (1, 2)]);
    assert_eq!(store.totals().await.unwrap().live.iter().sum::<u64>(), 199);
}

#[tokio::test]
async fn a_step_whose_answer_was_lost_is_unknown_and_read_back_by_its_version() {
    let stage = Stage::new().await;
    let proxy = Proxy::start(server().port()).await;
    let options = ConnectOptions { writers: 1, config: proxy.config(&stage.config), ..stage.options() };
    let store = PostgresStore::connect(options).await.unwrap();
    store.advance(vec![step(&stage, 1, 0..1, Vec::new())]).await.unwrap()[0].clone().unwrap();
    for (cut, version) in [(Cut::AfterCommit, 2), (Cut::BeforeCommit, 3)] {
        proxy.cut(cut);
        let nodes = u32::try_from(version).unwrap()..u32::try_from(version + 1).unwrap();
        let lost = store.advance(vec![step(&stage, version, nodes.clone(), Vec::new())]).await;
        assert!(matches!(lost, Err(StoreError::UnknownOutcome(_))), "{lost:?}");
        let run = store.load_runs(&["run-a".into()]).await.unwrap().pop().flatten().unwrap();
        assert_eq!((run.head.version, run.nodes.len()), (2, 2), "{cut:?}");
        let again = store.advance(vec![step(&stage, version, nodes, Vec::new())]).await.unwrap();
        match cut {
            Cut::AfterCommit => assert_eq!(again, [Err(RunRefusal::Conflict)]),
            Cut::BeforeCommit => assert!(again[0].is_ok(), "{again:?}"),
        }
    }
    assert_eq!(store.totals().await.unwrap().live.iter().sum::<u64>(), 3);
}
