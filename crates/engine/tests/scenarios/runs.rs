//! Workflows: what starts when, what is undone, and what survives.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lockgate_core::dag::{NodeState, RunState, UndoState};
use lockgate_core::ids::{JobId, RunId};
use lockgate_core::job::{Answer, Illegal, JobState, Outcome};
use lockgate_core::request::Json;
use lockgate_engine::{Acknowledged, ApiError, ApprovalAnswer, Assignment, RunOrder, RunView, StartRun, ToWorker};
use lockgate_ports::RunStore;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::stage::{Hand, Stage, caller, somebody};

const PATIENCE: Duration = Duration::from_secs(600);

impl Stage {
    pub(crate) async fn put(&self, text: &str) {
        self.engine.put_dag(&caller(), "test.yaml", text).await.expect("a good definition");
    }

    pub(crate) async fn begin(&self, dag: &str, params: Value) -> RunId {
        let start = StartRun { dag: dag.to_owned(), version: None, params, idempotency_key: None, fresh: false };
        self.engine.start_run(&caller(), start).await.expect("started").run
    }

    pub(crate) async fn view(&self, id: &RunId) -> RunView {
        self.engine.run_view(&caller(), id).await.expect("there")
    }

    pub(crate) async fn run_until(&self, id: &RunId, wanted: impl Fn(&RunView) -> bool) -> RunView {
        let deadline = Instant::now() + PATIENCE;
        let mut tick = tokio::time::interval(Duration::from_millis(10));
        loop {
            let view = self.view(id).await;
            if wanted(&view) {
                return view;
            }
            assert!(Instant::now() < deadline, "it did not happen: {:?}", view.run);
            tick.tick().await;
        }
    }

    pub(crate) async fn run_ends(&self, id: &RunId, state: RunState) -> RunView {
        let view = self.run_until(id, |view| view.run.head.state.is_over()).await;
        assert_eq!(view.run.head.state, state, "{:?}", view.run);
        view
    }

    pub(crate) async fn order(&self, id: &RunId, order: RunOrder) {
        self.engine.order_run(&caller(), id, order).await.expect("taken");
    }
}

fn states(view: &RunView) -> BTreeMap<String, NodeState> {
    let own = view.run.in_order(view.dag.nodes.len()).into_iter().filter(|(key, _)| key.item.is_none());
    own.map(|(key, node)| (view.dag.node(key.node).name.to_string(), node.map_or(NodeState::Pending, |node| node.state)))
        .collect()
}

fn state(view: &RunView, node: &str) -> NodeState {
    states(view)[node]
}

fn done(result: &Value) -> Outcome {
    Outcome::Succeeded { result: Json::parse(&result.to_string()).expect("JSON") }
}

fn fatal() -> Outcome {
    Outcome::FailedFatal { error: "boom".into() }
}

fn payload(assignment: &Assignment) -> Value {
    serde_json::from_str(assignment.job.request.payload.as_str()).expect("JSON")
}

fn topic(assignment: &Assignment) -> &str {
    assignment.job.request.topic.as_str()
}

const DIAMOND: &str = "
version: 1
dag: diamond
params: { who: text }
output: { said: \"${nodes.last.output}\" }
nodes:
  first: { topic: job.a, payload: { hello: \"${params.who}\" } }
  left: { needs: [first], topic: job.b, payload: { from: \"${nodes.first.output.n}\" } }
  right: { needs: [first], topic: job.b, payload: { text: \"n is ${nodes.first.output.n}\" } }
  last: { needs: [left, right], topic: job.c, payload: [\"${nodes.left.output}\", \"${nodes.right.output}\"] }
";

#[tokio::test(start_paused = true)]
async fn outputs_flow_along_the_edges_and_the_run_answers() {
    let stage = Stage::new();
    stage.put(DIAMOND).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a", "job.b", "job.c"], 8).await;
    let run = stage.begin("diamond", json!({ "who": "ann" })).await;
    let first = worker.take().await;
    assert_eq!((topic(&first), payload(&first)), ("job.a", json!({ "hello": "ann" })));
    assert!(worker.is_quiet(), "nothing starts before its parents are done");
    worker.report(&first, done(&json!({ "n": 3 }))).await;
    for assignment in worker.take_many(2).await {
        let answer = if payload(&assignment) == json!({ "from": 3 }) { json!("l") } else { json!("r") };
        if answer == json!("r") {
            assert_eq!(payload(&assignment), json!({ "text": "n is 3" }));
        }
        worker.report(&assignment, done(&answer)).await;
    }
    let last = worker.take().await;
    assert_eq!(payload(&last), json!(["l", "r"]));
    worker.report(&last, done(&json!("bye"))).await;
    let view = stage.run_ends(&run, RunState::Succeeded).await;
    assert_eq!(view.run.head.output.as_ref().map(Json::as_str), Some(r#"{"said":"bye"}"#));
    assert_eq!((view.run.head.done, view.run.head.total), (4, 4));
    assert!(stage.number("lockgate_dag_runs_started_total") >= 1.0);
}

#[tokio::test(start_paused = true)]
async fn children_wait_while_their_parent_may_be_retried() {
    let stage = Stage::new();
    stage.put("version: 1\ndag: pair\nnodes:\n  first: { topic: job.a }\n  next: { needs: first, topic: job.b }\n").await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a", "job.b"], 2).await;
    let run = stage.begin("pair", json!({})).await;
    let first = worker.take().await;
    worker.report(&first, Outcome::FailedRetryable { error: "not yet".into(), code: None, retry_after: None }).await;
    let again = worker.take().await;
    assert_eq!(again.job.request.job_id, first.job.request.job_id);
    let view = stage.view(&run).await;
    assert_eq!((state(&view, "first"), state(&view, "next")), (NodeState::Running, NodeState::Pending));
    worker.report(&again, done(&json!(1))).await;
    let next = worker.take().await;
    worker.report(&next, done(&json!(2))).await;
    stage.run_ends(&run, RunState::Succeeded).await;
}

const SLOW: &str = "
version: 1
dag: slow
nodes:
  first: { topic: job.a, timeout: 1s, max_attempts: 3 }
  next: { needs: [first], topic: job.b, payload: \"${nodes.first.output}\" }
";

#[tokio::test(start_paused = true)]
async fn nobody_downstream_reads_the_result_of_an_attempt_that_was_given_up() {
    let stage = Stage::new();
    stage.put(SLOW).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a", "job.b"], 4).await;
    let run = stage.begin("slow", json!({})).await;
    let slow = worker.take().await;
    worker.start(&slow).await;
    let stop = worker.next().await;
    assert!(matches!(&stop, ToWorker::Stop { job_id, .. } if *job_id == slow.job.request.job_id), "{stop:?}");
    let again = worker.take().await;
    assert_eq!(again.job.request.job_id, slow.job.request.job_id);
    assert_eq!(worker.report_late(&slow, done(&json!("old"))).await, Acknowledged::Superseded);
    assert_eq!(state(&stage.view(&run).await, "first"), NodeState::Running);
    worker.report(&again, done(&json!("new"))).await;
    let next = worker.take().await;
    assert_eq!((topic(&next), payload(&next)), ("job.b", json!("new")));
    worker.report(&next, done(&json!(null))).await;
    stage.run_ends(&run, RunState::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_any_two_steps_loses_nothing() {
    let mut stage = Stage::new();
    stage.put(DIAMOND).await;
    let run = stage.begin("diamond", json!({ "who": "ann" })).await;
    for _ in 0..4 {
        stage = stage.crash(Duration::from_secs(30)).await;
        let mut worker = Hand::attach(
            &stage.engine,
            &format!("w-{}", stage.view(&run).await.run.head.version),
            &["job.a", "job.b", "job.c"],
            1,
        )
        .await;
        let assignment = worker.take().await;
        let answer = if topic(&assignment) == "job.a" { json!({ "n": 1 }) } else { json!("x") };
        worker.report(&assignment, done(&answer)).await;
        // Died right after the result was acknowledged: whatever follows is somebody else's.
    }
    stage = stage.crash(Duration::from_secs(30)).await;
    stage.run_ends(&run, RunState::Succeeded).await;
}

const SAGA: &str = "
version: 1
dag: saga
nodes:
  one: { topic: job.do, payload: 1, compensation: { topic: job.undo, payload: \"${nodes.one.output}\" } }
  two: { needs: [one], topic: job.do, payload: 2, compensation: { topic: job.undo, payload: 2 } }
  side: { needs: [one], topic: job.side, payload: 3, compensation: { topic: job.undo, payload: 3 } }
  bad: { needs: [two], topic: job.bad, on_fail: compensate }
";

#[tokio::test(start_paused = true)]
async fn a_failure_stops_the_sibling_that_runs_and_undoes_what_was_done_in_reverse() {
    let stage = Stage::new();
    stage.put(SAGA).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.do", "job.side", "job.bad", "job.undo"], 8).await;
    let run = stage.begin("saga", json!({})).await;
    let one = worker.take().await;
    worker.report(&one, done(&json!("booked-1"))).await;
    let pair = worker.take_many(2).await;
    let (two, side) = if topic(&pair[0]) == "job.do" { (&pair[0], &pair[1]) } else { (&pair[1], &pair[0]) };
    worker.report(two, done(&json!(null))).await;
    worker.start(side).await;
    let bad = worker.take().await;
    worker.report(&bad, fatal()).await;
    let stop = worker.next().await;
    assert!(matches!(&stop, ToWorker::Stop { job_id, .. } if *job_id == side.job.request.job_id), "{stop:?}");
    stage.run_until(&run, |view| view.run.head.state == RunState::Compensating).await;
    worker.let_go(side).await;
    let mut undone = Vec::new();
    for _ in 0..2 {
        let undo = worker.take().await;
        assert_eq!(undo.job.request.labels.get("saga_compensation").map(String::as_str), Some("true"));
        assert_eq!(undo.job.request.priority(), lockgate_core::lane::Priority::Critical);
        undone.push(payload(&undo));
        worker.report(&undo, done(&json!(null))).await;
    }
    assert_eq!(undone, [json!(2), json!("booked-1")], "reverse order; the sibling was cancelled before it completed");
    let view = stage.run_ends(&run, RunState::Compensated).await;
    assert_eq!(state(&view, "side"), NodeState::Canceled);
}

const SIDE: &str = "
version: 1
dag: late
nodes:
  side: { topic: job.side, compensation: { topic: job.undo, payload: \"${nodes.side.output.booking}\" } }
  bad: { topic: job.bad, on_fail: compensate }
";

/// The run cancelled it while it ran, or people did, and its worker had just finished. What undoes it knows its result.
#[tokio::test(start_paused = true)]
async fn a_sibling_that_was_cancelled_and_done_all_the_same_is_undone_with_its_result() {
    for by_people in [false, true] {
        let stage = Stage::new();
        stage.put(SIDE).await;
        let mut worker = Hand::attach(&stage.engine, "w", &["job.side", "job.bad", "job.undo"], 8).await;
        let run = stage.begin("late", json!({})).await;
        let pair = worker.take_many(2).await;
        let (side, bad) = if topic(&pair[0]) == "job.side" { (&pair[0], &pair[1]) } else { (&pair[1], &pair[0]) };
        worker.start(side).await;
        if by_people {
            stage.order(&run, RunOrder::Cancel { compensate: true, note: None }).await;
            stage.run_until(&run, |view| state(view, "bad") == NodeState::Canceled).await;
            worker.let_go(bad).await;
        } else {
            worker.report(bad, fatal()).await;
        }
        let view = stage.run_until(&run, |view| state(view, "side") == NodeState::Canceled).await;
        assert_eq!(view.run.head.state, RunState::Compensating, "its worker has not answered yet");
        assert_eq!(worker.report_late(side, done(&json!({ "booking": 7 }))).await, Acknowledged::Superseded);
        let undo = worker.take().await;
        assert_eq!((topic(&undo), payload(&undo)), ("job.undo", json!(7)));
        assert_eq!(worker.report_late(side, done(&json!({ "booking": 7 }))).await, Acknowledged::Superseded);
        worker.report(&undo, done(&json!(null))).await;
        let view = stage.run_ends(&run, RunState::Compensated).await;
        assert_eq!(state(&view, "side"), NodeState::Canceled, "as its job says");
        let rounds: Vec<u32> = view.run.nodes.values().filter_map(|row| Some(row.undo.as_ref()?.round)).collect();
        assert_eq!(rounds, [0], "nothing is undone twice");
    }
}

const CHAIN: &str = "
version: 1
dag: chain
nodes:
  a: { topic: job.do, payload: a, compensation: { topic: job.undo, payload: a } }
  b: { needs: [a], topic: job.side, timeout: 60s, compensation: { topic: job.undo, payload: b } }
  f: { needs: [a], topic: job.bad, on_fail: compensate }
";

/// `b` is cancelled while its worker has it: done all the same, given up, never heard of again, or held on to for good. What
/// bounds the wait is the session of a worker that is gone, and the job's timeout and 30 s more of one that beats on.
#[tokio::test(start_paused = true)]
async fn what_a_cancelled_node_needed_is_undone_only_when_its_worker_is_through_with_it() {
    let words = [
        ("done", vec!["b", "a"], 0..5),
        ("let go", vec!["a"], 0..5),
        ("gone", vec!["a"], 5..30),
        ("holds on", vec!["a"], 80..95),
    ];
    for (word, expected, seconds) in words {
        let stage = Stage::new();
        let mut worker = Hand::attach(&stage.engine, "w", &["job.do", "job.bad", "job.undo"], 8).await;
        let mut other = Hand::attach(&stage.engine, "other", &["job.side"], 1).await;
        let (run, b) = closed_while_b_is_at_work(&stage, &mut worker, &mut other).await;
        let began = tokio::time::Instant::now();
        let mut other = match word {
            "done" => {
                assert_eq!(other.report_late(&b, done(&json!(null))).await, Acknowledged::Superseded);
                Some(other)
            }
            "let go" => {
                other.let_go(&b).await;
                Some(other)
            }
            "gone" => {
                drop(other);
                None
            }
            _ => Some(other),
        };
        let mut undone = Vec::new();
        let mut waited = None;
        while undone.len() < expected.len() {
            let Some(ToWorker::Assign(undos)) = worker.said_now() else {
                worker.beat().await;
                if let Some(other) = &mut other {
                    other.beat().await;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            };
            waited.get_or_insert_with(|| began.elapsed().as_secs());
            for undo in &undos {
                undone.push(payload(undo).as_str().expect("a name").to_owned());
                worker.report_late(undo, done(&json!(null))).await;
            }
        }
        assert_eq!(undone, expected, "{word}");
        assert!(waited.is_some_and(|waited| seconds.contains(&waited)), "{word}: {waited:?} s of {seconds:?}");
        let view = stage.run_ends(&run, RunState::Compensated).await;
        assert_eq!(state(&view, "b"), NodeState::Canceled, "{word}: as its job says");
    }
}

/// The run, and the assignment of `b`. `why` of the run says what it waits for.
async fn closed_while_b_is_at_work(stage: &Stage, worker: &mut Hand, other: &mut Hand) -> (RunId, Assignment) {
    stage.put(CHAIN).await;
    let run = stage.begin("chain", json!({})).await;
    let a = worker.take().await;
    worker.report(&a, done(&json!(null))).await;
    let b = other.take().await;
    other.start(&b).await;
    stage.until(&b.job.request.job_id, |job| job.state() == JobState::Running).await;
    let f = worker.take().await;
    worker.report(&f, fatal()).await;
    let view = stage.run_until(&run, |view| state(view, "b") == NodeState::Canceled).await;
    assert_eq!(view.run.nodes.values().filter(|row| row.undo.is_some()).count(), 0, "b may be done yet");
    let waits = view.run.nodes.values().filter_map(|row| view.run.head.waits_for_workers_of(row));
    assert_eq!(waits.count(), 1, "the run says what it waits for");
    let why = stage.engine.why(&caller(), &b.job.request.job_id).await.expect("told");
    assert_eq!((why.reason.as_str(), why.next_at.is_some()), ("waiting_for_worker", true), "{why:?}");
    (run, b)
}

#[tokio::test(start_paused = true)]
async fn a_late_success_in_a_run_that_was_merely_cancelled_stays() {
    let stage = Stage::new();
    stage.put(SIDE).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.side", "job.bad", "job.undo"], 8).await;
    let run = stage.begin("late", json!({})).await;
    let pair = worker.take_many(2).await;
    let side = if topic(&pair[0]) == "job.side" { &pair[0] } else { &pair[1] };
    stage.order(&run, RunOrder::Cancel { compensate: false, note: None }).await;
    stage.run_ends(&run, RunState::Canceled).await;
    worker.report_late(side, done(&json!({ "booking": 7 }))).await;
    stage.run_until(&run, |view| view.run.nodes.values().any(|row| row.late)).await;
    let view = stage.run_ends(&run, RunState::Canceled).await;
    assert!(view.run.nodes.values().all(|row| row.undo.is_none()), "nobody asked for that");
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_fails_waits_for_a_person() {
    let stage = Stage::new();
    stage.put("version: 1\ndag: two\nnodes:\n  one: {topic: job.do, compensation: {topic: job.undo}}\n  bad: {needs: one, topic: job.bad, on_fail: compensate}\n").await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.do", "job.bad", "job.undo"], 1).await;
    let run = stage.begin("two", json!({})).await;
    let one = worker.take().await;
    worker.report(&one, done(&json!(null))).await;
    let bad = worker.take().await;
    worker.report(&bad, fatal()).await;
    let mut undo_ids = BTreeSet::new();
    for _ in 0..2 {
        let undo = worker.take().await;
        undo_ids.insert(undo.job.request.job_id.clone());
        worker.report(&undo, fatal()).await;
        let view = stage.run_until(&run, |view| view.run.head.state == RunState::CompensationStuck).await;
        let stuck = view.run.nodes.values().filter_map(|node| node.undo.as_ref());
        assert_eq!(stuck.map(|undo| undo.state).collect::<Vec<_>>(), [UndoState::Stuck]);
        if undo_ids.len() == 1 {
            stage.order(&run, RunOrder::Retry { node: "one".into(), item: None }).await;
        }
    }
    assert_eq!(undo_ids.len(), 2, "another try is another job");
    stage.order(&run, RunOrder::Resolve { node: "one".into(), item: None }).await;
    stage.run_ends(&run, RunState::Compensated).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_is_worked_off_within_its_concurrency_and_tolerates_as_many_failures_as_it_says() {
    let stage = Stage::new();
    stage
        .put(
            "
version: 1
dag: each
params: { list: list }
nodes:
  each: { for_each: params.list, topic: job.item, payload: [\"${item}\", \"${index}\"], concurrency: 2, min_success: 75%, max_attempts: 1 }
  join: { needs: [each], topic: job.join, payload: \"${nodes.each.output}\" }
",
        )
        .await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.item", "job.join"], 16).await;
    let run = stage.begin("each", json!({ "list": ["a", "b", "c", "d"] })).await;
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let pair = worker.take_many(2).await;
        assert!(worker.is_quiet(), "no more than two at once");
        for assignment in pair {
            let what = payload(&assignment);
            let outcome = if what[0] == json!("b") { fatal() } else { done(&what[0]) };
            worker.report(&assignment, outcome).await;
            seen.push(what[1].as_u64().expect("an index"));
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3]);
    let join = worker.take().await;
    assert_eq!(payload(&join), json!(["a", null, "c", "d"]));
    worker.report(&join, done(&json!(null))).await;
    stage.run_ends(&run, RunState::Succeeded).await;
    let run = stage.begin("each", json!({ "list": [] })).await;
    let join = worker.take().await;
    assert_eq!(payload(&join), json!([]), "an empty list is done at once");
    worker.report(&join, done(&json!(null))).await;
    stage.run_ends(&run, RunState::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn people_and_time_are_nodes_too() {
    let stage = Stage::new();
    stage
        .put(
            "
version: 1
dag: slow
nodes:
  wait: { delay: 5m }
  ask: { needs: [wait], approval: { reason: ship it?, expires: 1d } }
  go: { needs: [ask], topic: job.go }
",
        )
        .await;
    let began = Instant::now();
    let run = stage.begin("slow", json!({})).await;
    let view = stage.run_until(&run, |view| state(view, "ask") == NodeState::Running).await;
    assert!(began.elapsed() >= Duration::from_secs(300), "{:?}", began.elapsed());
    let ask = view.dag.index("ask").expect("a node");
    let job = view.run.nodes[&lockgate_core::dag::NodeKey::of(ask)].job.clone().expect("a question is a job");
    let asked = stage.until(&job, |job| job.state() == JobState::ApprovalRequired).await;
    let rule_hash = asked.life.approval.as_ref().expect("asked").rule_hash.clone();
    let yes = ApprovalAnswer {
        job_id: job,
        answer: Answer::Approve,
        note: None,
        request_hash: asked.hash,
        rule_hash,
        acknowledge_hidden: false,
    };
    let refused = stage.engine.answer(&caller(), yes.clone()).await.expect_err("nobody agrees with themselves");
    assert!(matches!(refused, ApiError::State(Illegal::SelfApproval)), "{refused}");
    stage.engine.answer(&somebody("bob"), yes).await.expect("taken");
    let mut worker = Hand::attach(&stage.engine, "w", &["job.go"], 1).await;
    let go = worker.take().await;
    worker.report(&go, done(&json!(null))).await;
    stage.run_ends(&run, RunState::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_starts_nothing_and_goes_on_when_it_is_resumed() {
    let stage = Stage::new();
    stage.put(DIAMOND).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a", "job.b", "job.c"], 8).await;
    let run = stage.begin("diamond", json!({ "who": "ann" })).await;
    let first = worker.take().await;
    stage.order(&run, RunOrder::Pause).await;
    worker.report(&first, done(&json!({ "n": 1 }))).await;
    stage.run_until(&run, |view| state(view, "first") == NodeState::Succeeded).await;
    assert_eq!(stage.view(&run).await.run.head.state, RunState::Paused);
    assert!(worker.is_quiet());
    stage.order(&run, RunOrder::Resume).await;
    assert_eq!(worker.take_many(2).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_stops_its_jobs_and_ends() {
    let stage = Stage::new();
    stage.put(DIAMOND).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a", "job.b", "job.c"], 8).await;
    let run = stage.begin("diamond", json!({ "who": "ann" })).await;
    let first = worker.take().await;
    worker.start(&first).await;
    stage.order(&run, RunOrder::Cancel { compensate: false, note: None }).await;
    let view = stage.run_ends(&run, RunState::Canceled).await;
    assert!(states(&view).values().all(|state| *state == NodeState::Canceled), "{:?}", states(&view));
    stage.until(&first.job.request.job_id, |job| job.state() == JobState::Cancelled).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_run_again_from_where_it_failed_with_other_parameters_and_keeps_what_was_good() {
    let stage = Stage::new();
    stage.put(DIAMOND).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a", "job.b", "job.c"], 8).await;
    let run = stage.begin("diamond", json!({ "who": "ann" })).await;
    let first = worker.take().await;
    worker.report(&first, done(&json!({ "n": 1 }))).await;
    for assignment in worker.take_many(2).await {
        worker.report(&assignment, done(&json!("x"))).await;
    }
    let last = worker.take().await;
    worker.report(&last, fatal()).await;
    stage.run_ends(&run, RunState::Failed).await;
    stage.order(&run, RunOrder::Rerun { from: vec!["last".into()], params: serde_json::Map::new(), fresh: false }).await;
    let again = worker.take().await;
    assert_eq!((topic(&again), payload(&again)), ("job.c", json!(["x", "x"])));
    assert_ne!(again.job.request.job_id, last.job.request.job_id, "a new job");
    worker.report(&again, done(&json!("bye"))).await;
    stage.run_ends(&run, RunState::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_inside_of_a_run_gives_its_output_to_the_one_around_it() {
    let stage = Stage::new();
    stage.put("version: 1\ndag: inner\nparams: {n: number}\noutput: \"${nodes.a.output}\"\nnodes:\n  a: {topic: job.in, payload: \"${params.n}\"}\n").await;
    stage
        .put("version: 1\ndag: outer\nnodes:\n  sub: {dag: inner, params: {n: 7}}\n  after: {needs: [sub], topic: job.out, payload: \"${nodes.sub.output}\"}\n")
        .await;
    // A newer version does not change what is pinned.
    stage.put("version: 1\ndag: inner\nnodes:\n  other: {topic: job.never}\n").await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.in", "job.out"], 1).await;
    let run = stage.begin("outer", json!({})).await;
    let inner = worker.take().await;
    assert_eq!((topic(&inner), payload(&inner)), ("job.in", json!(7)));
    worker.report(&inner, done(&json!("deep"))).await;
    let after = worker.take().await;
    assert_eq!(payload(&after), json!("deep"));
    worker.report(&after, done(&json!(null))).await;
    stage.run_ends(&run, RunState::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_names_its_run() {
    let stage = Stage::new();
    stage.put(DIAMOND).await;
    let start = |who: &str| StartRun {
        dag: "diamond".into(),
        version: None,
        params: json!({ "who": who }),
        idempotency_key: Some("k".into()),
        fresh: false,
    };
    let first = stage.engine.start_run(&caller(), start("ann")).await.expect("started");
    let again = stage.engine.start_run(&caller(), start("ann")).await.expect("the same");
    assert_eq!((again.run, first.existing, again.existing), (first.run, false, true));
    let other = stage.engine.start_run(&caller(), start("bob")).await.expect_err("something else");
    assert!(matches!(other, ApiError::KeyTaken { .. }), "{other}");
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_start_is_named_and_changes_nothing() {
    let stage = Stage::new();
    stage.put(DIAMOND).await;
    let params = json!({ "whom": 1 });
    let start = StartRun { dag: "diamond".into(), version: None, params, idempotency_key: None, fresh: false };
    let Err(ApiError::Invalid(errors)) = stage.engine.start_run(&caller(), start).await else { panic!("refused") };
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["params.whom", "params.who"]);
    let listing = stage.store.list_runs(lockgate_ports::RunQuery { limit: 10, ..Default::default() }).await.expect("read");
    assert!(listing.items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_of_a_run_is_denied_by_policy_like_any_other_and_the_run_says_so() {
    let stage = Stage::new();
    stage.apply("version: 1\ndefault: {decision: allow, reason: fine}\nrules:\n  - {id: no-b, match: {topics: [job.b]}, decision: deny, reason: not today}\n").await;
    stage.put(DIAMOND).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a", "job.b", "job.c"], 8).await;
    let run = stage.begin("diamond", json!({ "who": "ann" })).await;
    let first = worker.take().await;
    worker.report(&first, done(&json!({ "n": 1 }))).await;
    let view = stage.run_ends(&run, RunState::Failed).await;
    assert!(
        view.run.head.failure.as_ref().is_some_and(|failure| failure.message.contains("not today")),
        "{:?}",
        view.run.head
    );
}

/// Works off whole runs of the diamond, one job at a time.
async fn work_off(worker: &mut Hand, jobs: usize) -> Vec<JobId> {
    let mut taken = Vec::new();
    while taken.len() < jobs {
        worker.beat().await;
        let assignment = worker.take().await;
        let answer = if topic(&assignment) == "job.a" { json!({ "n": 1 }) } else { json!("x") };
        worker.report(&assignment, done(&answer)).await;
        taken.push(assignment.job.request.job_id.clone());
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn runs_of_two_processes_end_and_every_job_starts_once() {
    let first = Stage::shared();
    first.put(DIAMOND).await;
    let second = first.beside();
    let mut worker = Hand::attach(&second.engine, "w", &["job.a", "job.b", "job.c"], 1).await;
    let runs = [first.begin("diamond", json!({ "who": "a" })).await, second.begin("diamond", json!({ "who": "b" })).await];
    let taken: BTreeSet<JobId> = work_off(&mut worker, 8).await.into_iter().collect();
    assert_eq!(taken.len(), 8);
    for run in &runs {
        first.run_ends(run, RunState::Succeeded).await;
    }
    assert!(worker.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_read_waits_and_the_others_go_on() {
    let stage = Stage::new();
    stage.put(DIAMOND).await;
    let [bad, good] =
        [stage.begin("diamond", json!({ "who": "a" })).await, stage.begin("diamond", json!({ "who": "b" })).await];
    for run in [&bad, &good] {
        stage.run_until(run, |view| state(view, "first") == NodeState::Running).await;
    }
    stage.store.spoil_runs([bad.clone()]);
    // Nobody remembers them any more.
    let stage = stage.crash(Duration::from_secs(1)).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["job.a", "job.b", "job.c"], 1).await;
    // The first job of both, and the other three of one.
    work_off(&mut worker, 5).await;
    stage.run_ends(&good, RunState::Succeeded).await;
    assert!(stage.number("lockgate_store_unreadable_rows_total") > 0.0);

    stage.store.mend();
    work_off(&mut worker, 3).await;
    stage.run_ends(&bad, RunState::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn news_that_nobody_rang_for_are_found() {
    let first = Stage::shared();
    first.put(DIAMOND).await;
    let run = first.begin("diamond", json!({ "who": "a" })).await;
    first.run_until(&run, |view| state(view, "first") == NodeState::Running).await;
    // The first leads; nothing that ends in the second is rung for there.
    let second = first.beside_unheard();
    let mut worker = Hand::attach(&second.engine, "w", &["job.a", "job.b", "job.c"], 1).await;
    work_off(&mut worker, 4).await;
    first.run_ends(&run, RunState::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_leads_next_goes_on() {
    let first = Stage::shared();
    first.put(DIAMOND).await;
    let run = first.begin("diamond", json!({ "who": "a" })).await;
    let second = first.beside();
    let mut worker = Hand::attach(&second.engine, "w", &["job.a", "job.b", "job.c"], 1).await;
    work_off(&mut worker, 1).await;
    first.kill();
    work_off(&mut worker, 3).await;
    second.run_ends(&run, RunState::Succeeded).await;
}
