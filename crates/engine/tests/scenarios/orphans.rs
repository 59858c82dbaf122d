//! Runs that nothing moves: those that only wait are left alone, those that nothing will ever move again are ended.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::dag::plan::OrderRefusal;
use lockgate_core::dag::{NodeKey, NodeState, Run, RunState};
use lockgate_core::ids::RunId;
use lockgate_core::job::{JobState, Outcome, Reason};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_engine::{ApiError, Assignment, RunOrder, Settings, ToWorker};
use lockgate_ports::{NewDag, RunChange, RunStore};
use serde_json::json;
use tokio::time::Instant;

use super::stage::{Hand, Stage, caller};

const ORPHANED: &str = "lockgate_dag_runs_orphaned_total";
const DECIDED: &str = "lockgate_scheduler_decisions_total{decision=\"orphan_reaped\"}";
const PAIR: &str = "version: 1\ndag: pair\nnodes:\n  first: {topic: job.a}\n  next: {needs: first, topic: job.b}\n";
const FIRST: NodeKey = NodeKey::of(0);

fn done() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

async fn stored(stage: &Stage, id: &RunId) -> Run {
    stage.store.load_runs(std::slice::from_ref(id)).await.expect("read").pop().flatten().expect("there")
}

/// Leaves the run as somebody else would have.
async fn rewrite(stage: &Stage, id: &RunId, change: impl FnOnce(&mut Run)) {
    let mut run = stored(stage, id).await;
    change(&mut run);
    run.head.version += 1;
    let (head, nodes) = (run.head, run.nodes.into_iter().collect());
    let change =
        RunChange { head, nodes, jobs: Vec::new(), heard: Vec::new(), key: None, audit: Vec::new(), outbox: Vec::new() };
    stage.store.advance(vec![change]).await.expect("written").pop().expect("an answer").expect("taken");
}

async fn ended(stage: &Stage, id: &RunId) -> Run {
    for _ in 0..100 {
        let run = stored(stage, id).await;
        if run.head.state.is_over() {
            return run;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    panic!("it did not end: {:?}", stored(stage, id).await);
}

fn is_orphaned(run: &Run) -> bool {
    run.head.failure.as_ref().is_some_and(|failure| failure.reason == Reason::Orphaned)
}

#[track_caller]
fn orphans(stage: &Stage, count: f64) {
    for name in [ORPHANED, DECIDED] {
        assert!((stage.number(name) - count).abs() < f64::EPSILON, "{name} {}", stage.number(name));
    }
}

/// A run whose only node under way has no job.
pub(super) async fn a_run_that_waits_for_nothing(stage: &Stage) -> RunId {
    stage.put(PAIR).await;
    let run = stage.begin("pair", json!({})).await;
    rewrite(stage, &run, |run| {
        run.nodes.get_mut(&FIRST).expect("it runs").job = None;
    })
    .await;
    run
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_nothing_is_ended_after_a_while() {
    let stage = Stage::new();
    let run = a_run_that_waits_for_nothing(&stage).await;
    let began = Instant::now();
    let view = stage.run_ends(&run, RunState::Failed).await;
    let waited = began.elapsed();
    let limit = Settings::default().orphan_after;
    assert!(waited >= limit && waited <= limit + Duration::from_secs(130), "{waited:?}");
    let failure = view.run.head.failure.clone().expect("it says why");
    assert_eq!(failure.reason, Reason::Orphaned);
    assert!(failure.message.ends_with("at version 2"), "{failure:?}");
    assert_eq!(view.run.nodes[&FIRST].state, NodeState::Failed);
    orphans(&stage, 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_definition_is_gone_or_cannot_be_read_is_ended_once_its_jobs_are() {
    let stage = Stage::new();
    stage.put(PAIR).await;
    let audit = AuditEntry {
        at: Timestamp::ZERO,
        tenant: caller().tenant,
        actor: caller().actor,
        action: AuditAction::DagStored,
        subject: "pair".into(),
        detail: Json::null(),
    };
    let unreadable = NewDag {
        tenant: caller().tenant,
        name: "pair".into(),
        snapshot: "later".into(),
        text: "written by a later version".into(),
        actor: caller().actor,
        pins: BTreeMap::new(),
        audit,
    };
    let (gone, unread) = (stage.begin("pair", json!({})).await, stage.begin("pair", json!({})).await);
    let unreadable = stage.store.put_dag(unreadable).await.expect("written").version;
    rewrite(&stage, &gone, |run| run.head.dag.version = 99).await;
    rewrite(&stage, &unread, |run| run.head.dag.version = unreadable).await;

    tokio::time::sleep(Duration::from_secs(600)).await;
    for id in [&gone, &unread] {
        assert_eq!(stored(&stage, id).await.head.state, RunState::Running, "its job waits for a worker");
        let cancel = RunOrder::Cancel { compensate: false, note: None };
        let refused =
            stage.engine.order_run(&caller(), id, cancel).await.expect_err("without its definition nothing can follow");
        assert_eq!(refused.code(), "row_damaged", "{refused}");
        assert!(refused.to_string().contains("DAG \"pair\""), "{refused}");
        assert_eq!(stage.engine.run_view(&caller(), id).await.expect_err("without its plan").code(), "row_damaged");
        assert_eq!(stage.engine.run_head(&caller(), id).await.expect("the head needs no plan").state, RunState::Running);
    }
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a"], 2).await;
    for assignment in worker.take_many(2).await {
        worker.report(&assignment, done()).await;
    }
    for (id, why) in [(&gone, "is not there"), (&unread, "cannot be read")] {
        let run = ended(&stage, id).await;
        assert_eq!((run.head.state, run.nodes[&FIRST].state), (RunState::Failed, NodeState::Failed));
        assert!(is_orphaned(&run), "{run:?}");
        let failure = run.head.failure.as_ref().expect("it says why");
        assert!(failure.message.contains(why), "{failure:?}");
        assert!(
            stage.store.news(std::slice::from_ref(id), 10).await.expect("read").is_empty(),
            "no step is called for again"
        );
    }
    orphans(&stage, 2.0);
}

/// A worker that beats until it is given something.
async fn take_in_time(worker: &mut Hand) -> Assignment {
    for _ in 0..900 {
        match worker.said_now() {
            Some(ToWorker::Assign(mut assignments)) => return assignments.pop().expect("one"),
            Some(said) => panic!("no assignment: {said:?}"),
            None => {}
        }
        worker.beat().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("nothing was assigned");
}

/// A run whose only job failed and is tried again in ten minutes.
async fn in_backoff(stage: &Stage, worker: &mut Hand) -> (RunId, Assignment) {
    stage.put(PAIR).await;
    let run = stage.begin("pair", json!({})).await;
    let first = worker.take().await;
    let retry_after = Some(Duration::from_secs(600));
    worker.report(&first, Outcome::FailedRetryable { error: "not yet".into(), code: None, retry_after }).await;
    // Sweeps pass, and more time than a run that waits for nothing is given.
    for _ in 0..130 {
        assert!(worker.inbound_now().is_none(), "nothing happens meanwhile");
        worker.beat().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    (run, first)
}

#[tokio::test(start_paused = true)]
async fn a_node_that_waits_for_a_retry_is_not_orphaned() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a", "job.b"], 1).await;
    let (run, first) = in_backoff(&stage, &mut worker).await;
    let view = stage.view(&run).await;
    assert_eq!((view.run.head.state, view.run.nodes[&FIRST].state), (RunState::Running, NodeState::Running));

    let again = take_in_time(&mut worker).await;
    assert_eq!(again.job.request.job_id, first.job.request.job_id);
    worker.report(&again, done()).await;
    let next = worker.take().await;
    worker.report(&next, done()).await;
    stage.run_ends(&run, RunState::Succeeded).await;
    orphans(&stage, 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_cancelled_while_a_node_waits_for_its_retry() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a", "job.b"], 1).await;
    let (run, first) = in_backoff(&stage, &mut worker).await;
    stage.order(&run, RunOrder::Cancel { compensate: false, note: None }).await;
    let view = stage.run_ends(&run, RunState::Canceled).await;
    assert_eq!(view.run.nodes[&FIRST].state, NodeState::Canceled);
    stage.until(&first.job.request.job_id, |job| job.state() == JobState::Cancelled).await;
    for _ in 0..100 {
        worker.beat().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    assert!(worker.said_now().is_none(), "the retry does not come");
}

const UNDONE: &str = "
version: 1
dag: undone
nodes:
  one: { topic: job.do, compensation: { topic: job.undo } }
  bad: { needs: [one], topic: job.bad, on_fail: compensate }
";

#[tokio::test(start_paused = true)]
async fn a_cancel_of_a_run_that_undoes_its_work_is_refused_and_the_undo_goes_on() {
    let stage = Stage::new();
    stage.put(UNDONE).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.do", "job.bad", "job.undo"], 1).await;
    let run = stage.begin("undone", json!({})).await;
    let one = worker.take().await;
    worker.report(&one, done()).await;
    let bad = worker.take().await;
    worker.report(&bad, Outcome::FailedFatal { error: "boom".into() }).await;
    let undo = worker.take().await;
    assert_eq!(stage.view(&run).await.run.head.state, RunState::Compensating);
    for compensate in [false, true] {
        let cancel = RunOrder::Cancel { compensate, note: None };
        let refused = stage.engine.order_run(&caller(), &run, cancel).await;
        assert!(matches!(refused, Err(ApiError::RunState(OrderRefusal::Compensating))), "{refused:?}");
    }
    worker.report(&undo, done()).await;
    stage.run_ends(&run, RunState::Compensated).await;
    assert!(worker.said_now().is_none(), "nothing is stopped, and nothing is undone twice");
}
