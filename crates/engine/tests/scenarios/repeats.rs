//! Inject-repeat: whatever is done or undone is done twice, and the end is the same.
//!
//! The effects are those of `job.db_tx`: a row under a unique key. What was written first stays, so the table says what was
//! done however often it was tried, and the count of calls that it was tried more than once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lockgate_core::dag::saga::run_id;
use lockgate_core::dag::{NodeState, RunState};
use lockgate_core::ids::RunId;
use lockgate_core::job::Outcome;
use lockgate_core::request::{Json, NewJob};
use lockgate_engine::{Acknowledged, Assignment, RunView, StartRun, ToWorker};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::stage::{Hand, Stage, caller, job};

const PATIENCE: Duration = Duration::from_secs(3600);
const TOPICS: [&str; 2] = ["job.db_tx", "job.bad"];
const WORKFLOW: &str = "trip-1";

/// What is repeated, of every job and of every undo.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Repeat {
    Nothing,
    /// The handler is called twice within one attempt.
    Handler,
    /// The result is reported twice.
    Report,
    /// The worker dies after the effect and before its report.
    Loss,
    /// The server dies after it acknowledged the result.
    Crash,
}

impl Repeat {
    /// How often the effect of each job is tried.
    fn calls(self) -> usize {
        if matches!(self, Self::Handler | Self::Loss) { 2 } else { 1 }
    }
}

#[derive(Default)]
struct Table {
    rows: BTreeMap<String, Value>,
    calls: usize,
}

impl Table {
    fn insert_once(&mut self, assignment: &Assignment) -> Outcome {
        let input: Value = serde_json::from_str(assignment.job.request.payload.as_str()).expect("JSON");
        self.calls += 1;
        let key = input["unique_key"].as_str().expect("a key").to_owned();
        let kept = self.rows.entry(key).or_insert_with(|| input["value"].clone());
        Outcome::Succeeded { result: Json::trusted(json!({ "kept": kept }).to_string()) }
    }
}

/// A trip as in `examples/dags/travel-booking.yaml`, with effects that can be counted.
fn trip(last: &str) -> String {
    let booking = |name: &str, needs: &str, value: &str| {
        format!(
            r#"
  {name}:
    {needs}
    topic: job.db_tx
    payload: {{unique_key: {name}, value: "{value}"}}
    on_fail: compensate
    compensation: {{topic: job.db_tx, payload: {{unique_key: cancel-{name}, value: "${{nodes.{name}.output.kept}}"}}}}"#
        )
    };
    let (flight, hotel) = (booking("flight", "needs: []", "seat"), booking("hotel", "needs: [flight]", "room"));
    format!(
        r#"
version: 1
dag: trip
nodes:{}{hotel}
  cars:
    needs: [flight]
    for_each: "[1, 2]"
    topic: job.db_tx
    payload: {{unique_key: "car-${{item}}", value: "${{item}}"}}
    compensation: {{topic: job.db_tx, payload: {{unique_key: "cancel-car-${{item}}", value: 0}}}}
  confirm: {{needs: [hotel, cars], topic: {last}, payload: {{unique_key: confirmed, value: 1}}, on_fail: compensate}}
"#,
        flight.replace("\n    needs: []", "")
    )
}

struct Story {
    stage: Stage,
    worker: Hand,
    lives: u32,
    table: Table,
}

impl Story {
    async fn new() -> Self {
        let stage = Stage::new();
        let worker = Hand::attach(&stage.engine, "w-0", &TOPICS, 1).await;
        Self { stage, worker, lives: 0, table: Table::default() }
    }

    async fn next_worker(&mut self) {
        self.lives += 1;
        self.worker = Hand::attach(&self.stage.engine, &format!("w-{}", self.lives), &TOPICS, 1).await;
    }

    async fn work(mut self, assignment: &Assignment, repeat: Repeat) -> Self {
        if assignment.job.request.topic.as_str() == "job.bad" {
            self.worker.report_late(assignment, Outcome::FailedFatal { error: "no trip".into() }).await;
            return self;
        }
        let outcome = self.table.insert_once(assignment);
        match repeat {
            Repeat::Loss if assignment.job.life.attempt.no == 1 => self.next_worker().await,
            Repeat::Handler => {
                let again = self.table.insert_once(assignment);
                assert_eq!(again, outcome);
                self.worker.report_late(assignment, again).await;
            }
            Repeat::Report => {
                let first = self.worker.report_late(assignment, outcome.clone()).await;
                assert_eq!(first, Acknowledged::Stored);
                assert_eq!(self.worker.report_late(assignment, outcome).await, Acknowledged::Superseded);
            }
            Repeat::Crash => {
                self.worker.report_late(assignment, outcome).await;
                self.stage = self.stage.crash(Duration::from_secs(1)).await;
                self.next_worker().await;
            }
            Repeat::Nothing | Repeat::Loss => {
                self.worker.report_late(assignment, outcome).await;
            }
        }
        self
    }

    /// Does what it is sent until the run is over, and says what came of it.
    async fn wait_for_end(mut self, run: &RunId, repeat: Repeat) -> (RunView, Self) {
        let deadline = Instant::now() + PATIENCE;
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        loop {
            let view = self.stage.engine.run_view(&caller(), run).await.ok();
            if let Some(view) = view.filter(|view| view.run.head.state.is_over()) {
                return (view, self);
            }
            assert!(Instant::now() < deadline, "{repeat:?}: it does not end");
            tick.tick().await;
            let Some(ToWorker::Assign(assignments)) = self.worker.said_now() else {
                self.worker.beat().await;
                continue;
            };
            for assignment in assignments {
                self = self.work(&assignment, repeat).await;
            }
        }
    }
}

fn states(view: &RunView) -> BTreeMap<String, (NodeState, bool)> {
    let name = |node: u32, item: Option<u32>| format!("{} {item:?}", view.dag.node(node).name);
    view.run.nodes.iter().map(|(key, row)| (name(key.node, key.item), (row.state, row.undo.is_some()))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_every_do_and_undo_is_repeated_ends_the_same() {
    for (last, end) in [("job.db_tx", RunState::Succeeded), ("job.bad", RunState::Compensated)] {
        let mut told = Vec::new();
        for repeat in [Repeat::Nothing, Repeat::Handler, Repeat::Report, Repeat::Loss, Repeat::Crash] {
            let story = Story::new().await;
            story.stage.engine.put_dag(&caller(), "trip.yaml", &trip(last)).await.expect("a good definition");
            let start =
                StartRun { dag: "trip".into(), version: None, params: json!({}), idempotency_key: None, fresh: false };
            let run = story.stage.engine.start_run(&caller(), start).await.expect("started").run;
            let (view, story) = story.wait_for_end(&run, repeat).await;
            assert_eq!(view.run.head.state, end, "{repeat:?}: {:?}", view.run);
            told.push((states(&view), story.table.rows));
            let done = if end == RunState::Succeeded { 5 } else { 8 };
            assert_eq!(story.table.calls, done * repeat.calls(), "{repeat:?}");
        }
        assert_eq!(told[0].1.len(), if end == RunState::Succeeded { 5 } else { 8 }, "{:?}", told[0].1);
        for other in &told[1..] {
            assert_eq!(*other, told[0]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_workflow_of_plain_jobs_whose_every_do_and_undo_is_repeated_ends_the_same() {
    let step = |id: &str| {
        let undo = json!({ "topic": "job.db_tx", "payload": { "unique_key": format!("cancel-{id}"), "value": id } });
        NewJob {
            job_id: Some(id.into()),
            workflow_id: Some(WORKFLOW.into()),
            payload: Some(Json::trusted(json!({ "unique_key": id, "value": 1 }).to_string())),
            compensation: Some(Json::trusted(undo.to_string())),
            ..job("job.db_tx")
        }
    };
    let bad = || NewJob { job_id: Some("bad".into()), workflow_id: Some(WORKFLOW.into()), ..job("job.bad") };
    let run = run_id(&caller().tenant, WORKFLOW);
    for repeat in [Repeat::Nothing, Repeat::Handler, Repeat::Report, Repeat::Loss, Repeat::Crash] {
        let mut story = Story::new().await;
        for id in ["flight", "hotel"] {
            story.stage.submit(step(id)).await;
            story = story.wait_for_job(id, repeat).await;
        }
        story.stage.submit(bad()).await;
        let (view, story) = story.wait_for_end(&run, repeat).await;
        assert_eq!(view.run.head.state, RunState::Compensated, "{repeat:?}");
        let keys: BTreeSet<&str> = story.table.rows.keys().map(String::as_str).collect();
        assert_eq!(keys, BTreeSet::from(["flight", "hotel", "cancel-flight", "cancel-hotel"]), "{repeat:?}");
        assert_eq!(story.table.calls, 4 * repeat.calls(), "{repeat:?}");
    }
}

impl Story {
    async fn wait_for_job(mut self, id: &str, repeat: Repeat) -> Self {
        let deadline = Instant::now() + PATIENCE;
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        while !self.stage.job(&id.into()).await.state().is_terminal() {
            assert!(Instant::now() < deadline, "{repeat:?}: {id} does not end");
            tick.tick().await;
            let Some(ToWorker::Assign(assignments)) = self.worker.said_now() else {
                self.worker.beat().await;
                continue;
            };
            for assignment in assignments {
                self = self.work(&assignment, repeat).await;
            }
        }
        self
    }
}
