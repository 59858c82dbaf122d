//! Workflows of plain jobs: what is undone, in which order, and what survives.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lockgate_core::dag::saga::run_id;
use lockgate_core::dag::{RunState, UndoState};
use lockgate_core::ids::{JobId, RunId};
use lockgate_core::job::{Illegal, JobState, Outcome, Reason};
use lockgate_core::lane::Priority;
use lockgate_core::request::{Json, NewJob};
use lockgate_engine::{Acknowledged, ApiError, Assignment, FromWorker, ResultReport, RunOrder, RunView, ToWorker};
use lockgate_ports::{DeadLetterQuery, JobStore, RunChange, RunStore};
use tokio::time::Instant;

use super::stage::{Hand, Stage, caller, job};

const PATIENCE: Duration = Duration::from_secs(600);
const WORKFLOW: &str = "order-7";
const TOPICS: [&str; 3] = ["job.do", "job.bad", "job.undo"];

fn saga() -> RunId {
    run_id(&caller().tenant, WORKFLOW)
}

/// Its undo is told what was done.
fn step(id: &str) -> NewJob {
    let undo = format!(r#"{{"topic":"job.undo","payload":"{id}","budget":{{"max_attempts":1}}}}"#);
    NewJob {
        job_id: Some(id.into()),
        workflow_id: Some(WORKFLOW.into()),
        compensation: Some(Json::parse(&undo).expect("JSON")),
        ..job("job.do")
    }
}

fn bad() -> NewJob {
    NewJob { job_id: Some("bad".into()), workflow_id: Some(WORKFLOW.into()), ..job("job.bad") }
}

fn done() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

fn fatal() -> Outcome {
    Outcome::FailedFatal { error: "boom".into() }
}

impl Stage {
    async fn take_in(&self, new: NewJob) -> Result<JobId, ApiError> {
        let mut answers = self.engine.submit(&caller(), vec![new]).await.expect("a good batch");
        answers.pop().expect("an answer").map(|submitted| submitted.job_id)
    }

    async fn saga_until(&self, wanted: impl Fn(&RunView) -> bool) -> RunView {
        let deadline = Instant::now() + PATIENCE;
        let mut tick = tokio::time::interval(Duration::from_millis(10));
        loop {
            let view = self.engine.run_view(&caller(), &saga()).await.ok();
            if let Some(view) = view.filter(&wanted) {
                return view;
            }
            assert!(Instant::now() < deadline, "it did not happen: {:?}", self.engine.run_view(&caller(), &saga()).await);
            tick.tick().await;
        }
    }

    async fn ask(&self, order: RunOrder) {
        self.engine.order_run(&caller(), &saga(), order).await.expect("taken");
    }

    async fn saga_is(&self, state: RunState) -> RunView {
        self.saga_until(|view| view.run.head.state == state).await
    }
}

/// Does what it is sent until it has undone so many, and says what it undid.
async fn undo(worker: &mut Hand, many: usize) -> Vec<String> {
    let mut undone = Vec::new();
    for _ in 0..many {
        let undo = worker.take().await;
        undone.push(what(&undo));
        worker.report(&undo, done()).await;
    }
    undone
}

fn what(undo: &Assignment) -> String {
    let request = &undo.job.request;
    assert_eq!((request.topic.as_str(), request.priority()), ("job.undo", Priority::Critical));
    assert_eq!(request.labels.get("saga_compensation").map(String::as_str), Some("true"));
    assert_eq!(request.env.get("saga_workflow_id").map(String::as_str), Some(WORKFLOW));
    serde_json::from_str(request.payload.as_str()).expect("a name")
}

#[tokio::test(start_paused = true)]
async fn a_fatal_failure_cancels_the_sibling_that_waits_and_undoes_the_rest_in_reverse() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &TOPICS, 1).await;
    for id in ["a", "b", "c"] {
        stage.take_in(step(id)).await.expect("taken");
        let assignment = worker.take().await;
        worker.report(&assignment, done()).await;
    }
    stage.take_in(bad()).await.expect("taken");
    let failing = worker.take().await;
    // Nobody serves it, so it is still there when the failure comes.
    let waits = NewJob { topic: "job.unserved".into(), ..step("waits") };
    stage.take_in(waits).await.expect("taken");
    worker.report(&failing, fatal()).await;
    assert_eq!(undo(&mut worker, 3).await, ["c", "b", "a"]);
    let view = stage.saga_is(RunState::Compensated).await;
    assert!(view.run.head.failure.as_ref().is_some_and(|failure| failure.message.contains("job bad: boom")));
    let why = stage.engine.why(&caller(), &"waits".into()).await.expect("there");
    assert_eq!(why.state, JobState::Cancelled);
    assert!(why.summary.contains(WORKFLOW) && why.next_step.contains("lockgate saga show order-7"), "{why:?}");
    assert!(stage.number("lockgate_saga_recorded_total") >= 3.0);
    assert!(stage.number("lockgate_saga_rollback_triggered_total") >= 1.0);
    assert!(stage.number("lockgate_saga_compensation_dispatched_total") >= 3.0);
    let refused = stage.take_in(step("late")).await;
    assert!(matches!(refused, Err(ApiError::State(Illegal::ClosedSaga(_)))), "{refused:?}");
    let repeated = stage.take_in(step("a")).await;
    assert_eq!(repeated.expect("it is known already"), JobId::from("a"));
    let replayed = stage.engine.replay_one(&caller(), &"bad".into()).await;
    assert!(matches!(replayed, Err(ApiError::State(Illegal::ClosedSaga(_)))), "{replayed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sibling_that_completes_after_the_close_is_undone_too() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &TOPICS, 2).await;
    stage.take_in(step("a")).await.expect("taken");
    let a = worker.take().await;
    worker.report(&a, done()).await;
    stage.take_in(step("b")).await.expect("taken");
    let b = worker.take().await;
    stage.take_in(bad()).await.expect("taken");
    let failing = worker.take().await;
    // In one message: before the saga hears of the failure, the sibling is done as well.
    let results = [(&failing, fatal()), (&b, done())].map(|(assignment, outcome)| ResultReport {
        job_id: assignment.job.request.job_id.clone(),
        token: assignment.job.life.attempt.token.clone(),
        outcome,
        began: None,
    });
    worker.attachment.receive(FromWorker { results: results.into(), ..FromWorker::default() }).await;
    assert!(matches!(worker.next().await, ToWorker::Acks(acks) if acks.len() == 2));
    assert_eq!(undo(&mut worker, 2).await, ["b", "a"]);
    stage.saga_is(RunState::Compensated).await;
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_policy_denies_or_asks_about_shows_as_stuck() {
    for decision in ["deny", "require_approval"] {
        let stage = Stage::new();
        let mut worker = Hand::attach(&stage.engine, "w", &TOPICS, 1).await;
        stage.take_in(step("a")).await.expect("taken");
        let a = worker.take().await;
        worker.report(&a, done()).await;
        let rule = format!("{{id: no, match: {{topics: [job.undo]}}, decision: {decision}, reason: careful}}");
        stage.apply(&format!("version: 1\ndefault: {{decision: allow, reason: fine}}\nrules:\n  - {rule}\n")).await;
        let rollback = RunOrder::Cancel { compensate: true, note: None };
        stage.ask(rollback).await;
        stage.saga_is(RunState::CompensationStuck).await;
        let resolve = RunOrder::Resolve { node: "a".into(), item: None };
        stage.ask(resolve).await;
        stage.saga_is(RunState::Compensated).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_any_two_steps_loses_no_undo() {
    let mut stage = Stage::new();
    for (n, id) in ["a", "b", "bad"].into_iter().enumerate() {
        stage.take_in(if id == "bad" { bad() } else { step(id) }).await.expect("taken");
        let mut worker = Hand::attach(&stage.engine, &format!("w-{n}"), &TOPICS, 1).await;
        let assignment = worker.take().await;
        worker.report(&assignment, if id == "bad" { fatal() } else { done() }).await;
        // Died right after the result was acknowledged.
        stage = stage.crash(Duration::from_secs(30)).await;
    }
    let mut undone = Vec::new();
    for n in 3..5 {
        let mut worker = Hand::attach(&stage.engine, &format!("w-{n}"), &TOPICS, 1).await;
        undone.extend(undo(&mut worker, 1).await);
        stage = stage.crash(Duration::from_secs(30)).await;
    }
    stage.saga_is(RunState::Compensated).await;
    assert_eq!(undone, ["b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_fails_is_stuck_until_somebody_resolves_it() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &TOPICS, 1).await;
    for id in ["a", "b"] {
        stage.take_in(step(id)).await.expect("taken");
        let assignment = worker.take().await;
        worker.report(&assignment, done()).await;
    }
    let rollback = RunOrder::Cancel { compensate: true, note: Some("changed my mind".into()) };
    stage.ask(rollback).await;
    let undo_b = worker.take().await;
    worker.report(&undo_b, fatal()).await;
    stage.saga_is(RunState::CompensationStuck).await;
    assert_eq!(stage.engine.job(&caller(), &undo_b.job.request.job_id).await.expect("there").job.state(), JobState::Failed);
    let replayed = stage.engine.replay_one(&caller(), &undo_b.job.request.job_id).await;
    assert!(matches!(replayed, Err(ApiError::State(Illegal::Undoes))), "{replayed:?}");
    let retry = RunOrder::Retry { node: "b".into(), item: None };
    stage.ask(retry).await;
    let again = worker.take().await;
    assert_eq!(what(&again), "b");
    worker.report(&again, fatal()).await;
    stage.saga_is(RunState::CompensationStuck).await;
    let resolve = RunOrder::Resolve { node: "b".into(), item: None };
    stage.ask(resolve).await;
    assert_eq!(undo(&mut worker, 1).await, ["a"]);
    let view = stage.saga_is(RunState::Compensated).await;
    let undos: Vec<_> = view.run.nodes.values().filter_map(|row| row.undo.as_ref()).map(|undo| undo.state).collect();
    assert_eq!(undos, [UndoState::Done, UndoState::Resolved]);
    assert!(stage.number("lockgate_saga_compensation_failed_total") >= 2.0);
}

#[tokio::test(start_paused = true)]
async fn what_undoes_is_let_through_while_the_kernel_is_away() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &TOPICS, 1).await;
    stage.take_in(step("a")).await.expect("taken");
    let a = worker.take().await;
    worker.report(&a, done()).await;
    stage.saga_until(|view| view.run.nodes.values().any(|row| row.entry.is_some())).await;
    stage.kernel_off.store(true, Ordering::Relaxed);
    let rollback = RunOrder::Cancel { compensate: true, note: None };
    stage.ask(rollback).await;
    assert_eq!(undo(&mut worker, 1).await, ["a"]);
    stage.saga_is(RunState::Compensated).await;
}

#[tokio::test(start_paused = true)]
async fn a_replayed_job_of_an_open_workflow_is_heard_of_again() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &TOPICS, 1).await;
    stage.take_in(NewJob { max_attempts: Some(1), ..step("a") }).await.expect("taken");
    let first = worker.take().await;
    worker.report(&first, Outcome::FailedRetryable { error: "not yet".into(), code: None, retry_after: None }).await;
    stage.saga_until(|view| view.run.head.done == 1).await;
    let job = stage.engine.replay_one(&caller(), &"a".into()).await.expect("an open workflow");
    assert_eq!(job.life.last_error.as_ref().map(|failure| failure.reason), Some(Reason::Failed));
    let again = worker.take().await;
    worker.report(&again, done()).await;
    stage.take_in(bad()).await.expect("taken");
    let failing = worker.take().await;
    worker.report(&failing, fatal()).await;
    assert_eq!(undo(&mut worker, 1).await, ["a"]);
    stage.saga_is(RunState::Compensated).await;
}

#[tokio::test(start_paused = true)]
async fn a_running_sibling_is_told_to_stop() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &TOPICS, 2).await;
    stage.take_in(step("a")).await.expect("taken");
    let running = worker.take().await;
    worker.start(&running).await;
    stage.take_in(bad()).await.expect("taken");
    let failing = worker.take().await;
    worker.report(&failing, fatal()).await;
    let stop = worker.next().await;
    assert!(matches!(&stop, ToWorker::Stop { job_id, .. } if job_id.as_str() == "a"), "{stop:?}");
    worker.let_go(&running).await;
    let view = stage.saga_is(RunState::Compensated).await;
    assert!(view.run.nodes.values().all(|row| row.undo.is_none()), "nothing was done");
}

/// A workflow whose only entry was written by somebody else, in a language of theirs.
pub(crate) async fn an_entry_that_nobody_can_read(stage: &Stage) {
    let mut worker = Hand::attach(&stage.engine, "w-saga", &TOPICS, 1).await;
    stage.take_in(step("a")).await.expect("taken");
    let a = worker.take().await;
    worker.report(&a, done()).await;
    stage.saga_until(|view| view.run.nodes.values().any(|row| row.entry.is_some())).await;
    let mut run = stage.store.load_runs(&[saga()]).await.expect("read").pop().flatten().expect("there");
    for row in run.nodes.values_mut() {
        row.entry = Some(Json::trusted(r#"{"topic":"job.undo","from":"the future"}"#));
    }
    run.head.version += 1;
    let (head, nodes) = (run.head, run.nodes.into_iter().collect());
    let change =
        RunChange { head, nodes, jobs: Vec::new(), heard: Vec::new(), key: None, audit: Vec::new(), outbox: Vec::new() };
    stage.store.advance(vec![change]).await.expect("written").pop().expect("an answer").expect("taken");
    stage.ask(RunOrder::Cancel { compensate: true, note: None }).await;
    stage.saga_is(RunState::CompensationStuck).await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_cannot_be_read_is_a_dead_letter() {
    let stage = Stage::new();
    an_entry_that_nobody_can_read(&stage).await;
    let letters = DeadLetterQuery { limit: 10, ..DeadLetterQuery::default() };
    let letters = stage.store.dead_letters(letters).await.expect("read").items;
    assert_eq!(letters.iter().map(|letter| letter.reason).collect::<Vec<_>>(), [Reason::SagaUnmarshalFailed]);
    assert!(letters[0].job_id.as_str().starts_with("comp-"));
    assert!(stage.number("lockgate_saga_unmarshal_errors_total") >= 1.0);
    stage.ask(RunOrder::Resolve { node: "a".into(), item: None }).await;
    stage.saga_is(RunState::Compensated).await;
}

/// The saga cancelled it while it ran, and its worker had just finished.
#[tokio::test(start_paused = true)]
async fn a_sibling_that_was_cancelled_and_done_all_the_same_is_undone_once() {
    for crashes in [false, true] {
        let mut stage = Stage::new();
        let mut worker = Hand::attach(&stage.engine, "w", &TOPICS, 2).await;
        stage.take_in(step("a")).await.expect("taken");
        let a = worker.take().await;
        worker.report(&a, done()).await;
        stage.take_in(step("b")).await.expect("taken");
        let b = worker.take().await;
        worker.start(&b).await;
        stage.take_in(bad()).await.expect("taken");
        let failing = worker.take().await;
        worker.report(&failing, fatal()).await;
        assert!(matches!(&worker.next().await, ToWorker::Stop { job_id, .. } if job_id.as_str() == "b"));
        assert_eq!(worker.report_late(&b, done()).await, Acknowledged::Superseded, "it is on record from here on");
        if crashes {
            stage = stage.crash(Duration::from_secs(30)).await;
            worker = Hand::attach(&stage.engine, "w-2", &TOPICS, 2).await;
        }
        assert_eq!(worker.report_late(&b, done()).await, Acknowledged::Superseded, "said again");
        let mut undone = Vec::new();
        while undone.len() < 2 {
            // What the dead process sent comes again when its session is over, and until then somebody has to be there.
            let Some(ToWorker::Assign(undos)) = worker.said_now() else {
                worker.beat().await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            };
            for undo in &undos {
                undone.push(what(undo));
                worker.report_late(undo, done()).await;
            }
        }
        let view = stage.saga_is(RunState::Compensated).await;
        if crashes {
            // What the dead process sent may come again.
            undone.sort_unstable();
            undone.reverse();
        }
        assert_eq!(undone, ["b", "a"], "the last first");
        let late: Vec<_> = view.run.nodes.values().filter(|row| row.late).filter_map(|row| row.job.clone()).collect();
        assert_eq!(late, [JobId::from("b")]);
        assert_eq!(stage.job(&"b".into()).await.state(), JobState::Cancelled, "it stays as it ended");
        let rounds: Vec<u32> = view.run.nodes.values().filter_map(|row| Some(row.undo.as_ref()?.round)).collect();
        assert_eq!(rounds, [0, 0], "nothing is undone twice");
    }
}

/// A person cancelled one job of a workflow that went on, its worker finished all the same, and the rollback came later.
#[tokio::test(start_paused = true)]
async fn a_late_success_before_the_rollback_is_undone_in_its_turn() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &TOPICS, 2).await;
    stage.take_in(step("a")).await.expect("taken");
    let a = worker.take().await;
    stage.engine.cancel(&caller(), &"a".into(), None).await.expect("cancelled");
    assert_eq!(worker.report_late(&a, done()).await, Acknowledged::Superseded);
    stage.take_in(step("b")).await.expect("taken");
    let b = worker.take().await;
    worker.report(&b, done()).await;
    stage.ask(RunOrder::Cancel { compensate: true, note: None }).await;
    assert_eq!(undo(&mut worker, 2).await, ["b", "a"], "the last one that was done is the first");
    stage.saga_is(RunState::Compensated).await;
}
