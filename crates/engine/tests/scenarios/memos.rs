//! Work that was done before is not done again, as far as policy goes along.

use std::time::Duration;

use lockgate_core::dag::{NodeRun, NodeState, RunState};
use lockgate_core::ids::RunId;
use lockgate_core::job::{JobState, Outcome};
use lockgate_core::request::Json;
use lockgate_engine::{RunOrder, RunView, StartRun};
use serde_json::{Value, json};

use super::stage::{Hand, Stage, caller};

const DAG: &str = "
version: 1
dag: known
params: {who: {type: text, default: ann}}
output: {said: \"${nodes.ask.output}\"}
nodes:
  ask:
    topic: job.ask
    payload: {who: \"${params.who}\"}
    memoise: {for: 1h}
";

impl Stage {
    async fn ask_who(&self, who: &str, fresh: bool) -> RunId {
        let params = json!({ "who": who });
        let start = StartRun { dag: "known".into(), version: None, params, idempotency_key: None, fresh };
        self.engine.start_run(&caller(), start).await.expect("started").run
    }

    async fn over(&self, run: &RunId) -> RunView {
        self.run_until(run, |view| view.run.head.state.is_over()).await
    }
}

fn said(view: &RunView) -> Value {
    serde_json::from_str(view.run.head.output.as_ref().expect("an answer").as_str()).expect("JSON")
}

fn only(view: &RunView) -> &NodeRun {
    view.run.nodes.values().next().expect("a node")
}

fn good(result: &str) -> Outcome {
    Outcome::Succeeded { result: Json::parse(result).expect("JSON") }
}

async fn known() -> (Stage, Hand, RunView) {
    known_on(Stage::new()).await
}

async fn known_on(stage: Stage) -> (Stage, Hand, RunView) {
    stage.engine.put_dag(&caller(), "known.yaml", DAG).await.expect("a good definition");
    let mut worker = Hand::attach(&stage.engine, "w", &["job.ask"], 4).await;
    let first = stage.ask_who("ann", false).await;
    let assignment = worker.take().await;
    worker.report(&assignment, good("\"hello\"")).await;
    let first = stage.over(&first).await;
    (stage, worker, first)
}

#[tokio::test(start_paused = true)]
async fn the_same_work_is_done_once_and_says_by_whom() {
    let (stage, mut worker, first) = known().await;
    let again = stage.over(&stage.ask_who("ann", false).await).await;
    assert_eq!((again.run.head.state, said(&again)), (RunState::Succeeded, json!({ "said": "hello" })));
    assert_eq!(only(&again).memo_of, only(&first).job, "the job that did it");
    let job = stage.job(only(&again).job.as_ref().expect("a job of its own")).await;
    assert_eq!((job.state(), job.memo_of().cloned()), (JobState::Succeeded, only(&first).job.clone()));
    let other = stage.ask_who("bob", false).await;
    let assignment = worker.take().await;
    worker.report(&assignment, good("\"hi\"")).await;
    assert_eq!(said(&stage.over(&other).await), json!({ "said": "hi" }), "other work");
    let fresh = stage.ask_who("ann", true).await;
    let assignment = worker.take().await;
    worker.report(&assignment, good("\"hello again\"")).await;
    let fresh = stage.over(&fresh).await;
    assert_eq!((said(&fresh), only(&fresh).memo_of.clone()), (json!({ "said": "hello again" }), None));
    let last = stage.over(&stage.ask_who("ann", false).await).await;
    assert_eq!(only(&last).memo_of, only(&fresh).job, "the latest stands");
    assert!(stage.number("lockgate_dag_nodes_memoised_total") >= 2.0);
    // Once its time is over, it is done again.
    tokio::time::sleep(Duration::from_secs(3700)).await;
    let mut worker = Hand::attach(&stage.engine, "w-2", &["job.ask"], 1).await;
    stage.ask_who("ann", false).await;
    worker.take().await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_denies_now_denies_what_was_allowed_before() {
    let (stage, _worker, _) = known().await;
    let rule = "{id: no, match: {topics: [job.ask]}, decision: deny, reason: not any more}";
    stage.apply(&format!("version: 1\ndefault: {{decision: allow, reason: fine}}\nrules:\n  - {rule}\n")).await;
    let view = stage.over(&stage.ask_who("ann", false).await).await;
    assert_eq!((view.run.head.state, only(&view).state), (RunState::Failed, NodeState::Failed));
    assert_eq!(only(&view).memo_of, None);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_this_process_has_not_heard_of_denies_as_well() {
    let (stage, _worker, _) = known_on(Stage::shared()).await;
    let rule = "{id: no, match: {topics: [job.ask]}, decision: deny, reason: not any more}";
    let rules = format!("version: 1\ndefault: {{decision: allow, reason: fine}}\nrules:\n  - {rule}\n");
    let other = stage.beside_unheard();
    other.apply(&rules).await;
    let view = stage.over(&stage.ask_who("ann", false).await).await;
    assert_eq!((view.run.head.state, only(&view).state), (RunState::Failed, NodeState::Failed));
    assert_eq!(only(&view).memo_of, None);
}

#[tokio::test(start_paused = true)]
async fn a_rerun_takes_what_is_known_unless_it_is_to_be_fresh() {
    let (stage, mut worker, first) = known().await;
    let rerun = |fresh| RunOrder::Rerun { from: vec!["ask".into()], params: serde_json::Map::new(), fresh };
    let run = first.run.head.id.clone();
    stage.engine.order_run(&caller(), &run, rerun(false)).await.expect("taken");
    let again = stage.over(&run).await;
    assert_eq!(only(&again).memo_of, only(&first).job);
    stage.engine.order_run(&caller(), &run, rerun(true)).await.expect("taken");
    let assignment = worker.take().await;
    worker.report(&assignment, good("2")).await;
    let fresh = stage.over(&run).await;
    assert_eq!((said(&fresh), only(&fresh).memo_of.clone()), (json!({ "said": 2 }), None));
}
