//! Dead letters that are told to the world outside.

use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::{JobState, Outcome};
use lockgate_core::request::Json;
use lockgate_engine::{ProblemKind, ReplayRequest, Settings, StartRun};
use lockgate_memory::MemoryOutlet;
use lockgate_ports::{DeadLetterQuery, OutboxBacklog, Upkeep};
use tokio::time::Instant;

use super::stage::{Hand, Stage, caller, job, pass};

const SINK: &str = "nats:sys.job.dlq";
const PATIENCE: Duration = Duration::from_secs(600);

fn telling() -> Settings {
    Settings { dead_letters: Some(SINK.into()), ..Settings::default() }
}

async fn until(what: &str, mut wanted: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    while !wanted().await {
        assert!(Instant::now() < deadline, "{what}");
        tick.tick().await;
    }
}

async fn fail(stage: &Stage, worker: &mut Hand) -> JobId {
    let id = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.report(&assignment, Outcome::FailedFatal { error: "broken".into() }).await;
    stage.until(&id, |job| job.state() == JobState::Failed).await;
    id
}

fn told(outlet: &MemoryOutlet) -> Vec<(String, serde_json::Value)> {
    let body = |text: &str| serde_json::from_str(text).expect("JSON");
    outlet.taken().iter().map(|row| (row.entry.sink.to_string(), body(row.entry.body.as_str()))).collect()
}

async fn nothing_waits(stage: &Stage) {
    until("the outbox is empty", async || stage.store.backlog(10).await.expect("read") == OutboxBacklog::default()).await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_told_at_once_and_a_good_end_never() {
    let stage = Stage::with(telling());
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let good = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.report(&assignment, Outcome::Succeeded { result: Json::parse("1").expect("JSON") }).await;
    stage.until(&good, |job| job.state() == JobState::Succeeded).await;
    let began = Instant::now();
    let id = fail(&stage, &mut worker).await;
    until("it is told", async || !stage.outlet.taken().is_empty()).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    nothing_waits(&stage).await;
    let told = told(&stage.outlet);
    let [(sink, letter)] = &told[..] else { panic!("{told:?}") };
    assert_eq!(sink, SINK);
    assert_eq!((&letter["kind"], &letter["job_id"]), (&"dead_letter".into(), &id.as_str().into()));
    assert_eq!((&letter["state"], &letter["reason"]), (&"FAILED".into(), &"fatal".into()));
    assert_eq!((&letter["message"], &letter["life"]), (&"broken".into(), &1.into()));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_unless_somebody_wants_to_hear() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    fail(&stage, &mut worker).await;
    assert_eq!(stage.store.backlog(10).await.expect("read"), OutboxBacklog::default());
    assert_eq!(stage.outlet.taken(), []);
}

/// Each life has its letter, and a job that is denied at birth in a run has one too.
#[tokio::test(start_paused = true)]
async fn every_bad_end_is_told_in_the_order_of_the_job() {
    let stage = Stage::with(telling());
    stage.apply("version: 1\ndefault: {decision: allow, reason: fine}\nrules:\n  - {id: no, match: {topics: ['bad']}, decision: deny, reason: never}\n").await;
    stage.outlet.set_away(Some("on a walk"));
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = fail(&stage, &mut worker).await;
    stage.engine.replay_one(&caller(), &id).await.expect("a new life");
    let assignment = worker.take().await;
    worker.report(&assignment, Outcome::FailedFatal { error: "again".into() }).await;
    stage.until(&id, |job| job.life.no == 2 && job.state() == JobState::Failed).await;
    let dag = "version: 1\ndag: d\nnodes:\n  one: {topic: bad}\n";
    stage.engine.put_dag(&caller(), "d.yaml", dag).await.expect("a good definition");
    let start =
        StartRun { dag: "d".into(), version: None, params: serde_json::json!({}), idempotency_key: None, fresh: false };
    stage.engine.start_run(&caller(), start).await.expect("started");
    until("three wait", async || stage.store.backlog(10).await.expect("read").rows == 3).await;
    stage.outlet.set_away(None);
    nothing_waits(&stage).await;
    let told: Vec<_> = told(&stage.outlet).into_iter().map(|(_, letter)| letter).collect();
    let lives: Vec<_> = told.iter().filter(|letter| letter["job_id"] == id.as_str()).map(|letter| &letter["life"]).collect();
    assert_eq!(lives, [1, 2]);
    assert_eq!(told.iter().filter(|letter| letter["state"] == "DENIED").count(), 1);
}

/// A job of a run lives again with its run only.
#[tokio::test(start_paused = true)]
async fn a_dry_run_names_what_a_replay_would_replay() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let id = fail(&stage, &mut worker).await;
    let dag = "version: 1\ndag: d\nnodes:\n  one: {topic: t}\n";
    stage.engine.put_dag(&caller(), "d.yaml", dag).await.expect("a good definition");
    let start =
        StartRun { dag: "d".into(), version: None, params: serde_json::json!({}), idempotency_key: None, fresh: false };
    stage.engine.start_run(&caller(), start).await.expect("started");
    let of_run = worker.take().await;
    worker.report(&of_run, Outcome::FailedFatal { error: "broken".into() }).await;
    stage.until(&of_run.job.request.job_id, |job| job.state() == JobState::Failed).await;
    let filter = DeadLetterQuery { tenant: Some(caller().tenant), ..DeadLetterQuery::default() };
    for (dry_run, lives) in [(true, 0), (false, 1)] {
        let ask = ReplayRequest { filter: filter.clone(), dry_run, ..ReplayRequest::default() };
        let told = stage.engine.replay(&caller(), ask).await.expect("answered");
        assert_eq!((told.matched, told.left_out, told.replayed), (2, 1, lives), "dry: {dry_run}");
        assert_eq!(told.job_ids, std::slice::from_ref(&id), "dry: {dry_run}");
    }
}

#[tokio::test(start_paused = true)]
async fn letters_wait_for_a_sink_that_is_away_and_the_process_says_so() {
    let stage = Stage::with(telling());
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    stage.outlet.set_refusing(true);
    for _ in 0..3 {
        fail(&stage, &mut worker).await;
    }
    until("the process says so", async || {
        let findings = stage.engine.health().await.findings;
        findings.iter().any(|finding| finding.trouble == ProblemKind::OutboxLate && finding.detail.contains("refused"))
    })
    .await;
    assert!(stage.engine.health().await.is_ready());
    stage.until_number("lockgate_outbox_waiting", 3.0).await;
    until("how long they wait is seen", async || stage.number("lockgate_outbox_oldest_seconds") > 60.0).await;
    assert!(stage.number("lockgate_outbox_failed_total") > 3.0);
    assert_eq!(stage.outlet.taken(), []);
    stage.outlet.set_refusing(false);
    nothing_waits(&stage).await;
    assert_eq!(stage.outlet.taken().len(), 3);
    assert!((stage.number("lockgate_outbox_relayed_total") - 3.0).abs() < f64::EPSILON);
    until("all is well", async || stage.engine.health().await.findings.is_empty()).await;
}

/// kill -9 between the commit and the relay.
#[tokio::test(start_paused = true)]
async fn what_a_dead_process_did_not_tell_another_does() {
    let stage = Stage::with(telling());
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    stage.outlet.set_away(Some("on a walk"));
    let id = fail(&stage, &mut worker).await;
    let stage = stage.crash(Duration::from_secs(1)).await;
    nothing_waits(&stage).await;
    let told = told(&stage.outlet);
    assert!(told.len() == 1 && told[0].1["job_id"] == id.as_str(), "{told:?}");
}

/// Rows for a sink that nobody serves keep nobody waiting.
#[tokio::test(start_paused = true)]
async fn rows_of_others_are_left_alone_and_paged_past() {
    let unserved = Settings { dead_letters: Some("smoke:signal".into()), exclusive_store: false, ..Settings::default() };
    let stage = Stage::with(unserved);
    stage.apply("version: 1\ndefault: {decision: deny, reason: never}\n").await;
    for _ in 0..3 {
        stage.engine.submit(&caller(), vec![job("t"); 500]).await.expect("taken");
    }
    assert_eq!(stage.store.backlog(10_000).await.expect("read").rows, 1_500);
    let other = stage.beside_with(Settings { exclusive_store: false, ..telling() });
    other.outlet.set_away(Some("on a walk"));
    until("it knows the policy", async || {
        let id = other.submit(job("t")).await;
        other.job(&id).await.state() == JobState::Denied
    })
    .await;
    until("it is told", async || !stage.outlet.taken().is_empty()).await;
    until("nothing else is", async || stage.store.backlog(10_000).await.expect("read").rows == 1_500).await;
    assert_eq!(stage.outlet.taken().len() + other.outlet.taken().len(), 1);
}

/// What a gauge says of the loop that relays.
fn relay(stage: &Stage, gauge: &str) -> f64 {
    let wanted = format!("{gauge}{{loop=\"lockgate:outbox:relay\"}}");
    stage.series().into_iter().find(|(series, _)| *series == wanted).map_or(f64::NAN, |(_, value)| value)
}

/// How old its last round is, in seconds.
fn idle_for(stage: &Stage) -> f64 {
    let now = Duration::from_millis(stage.clock().now().as_millis().unsigned_abs());
    now.as_secs_f64() - relay(stage, "lockgate_loop_tick_timestamp_seconds")
}

/// An alert goes by when a loop last came round.
#[tokio::test(start_paused = true)]
async fn a_relay_that_reaches_no_sink_comes_round_and_leaves_the_lead_to_others() {
    let one = Stage::with(Settings { exclusive_store: false, ..telling() });
    until("it leads", async || relay(&one, "lockgate_leader") > 0.0).await;
    one.outlet.set_away(Some("on a walk"));
    let other = one.beside_with(telling());
    until("the other one leads", async || relay(&other, "lockgate_leader") > 0.0).await;
    other.outlet.set_away(Some("on a walk"));
    pass(Duration::from_secs(400)).await;
    for stage in [&one, &other] {
        assert!(relay(stage, "lockgate_leader").abs() < f64::EPSILON, "nobody can");
        assert!(idle_for(stage) < 3.0, "{} s", idle_for(stage));
    }
    one.outlet.set_away(None);
    until("who reaches a sink leads", async || relay(&one, "lockgate_leader") > 0.0).await;
}

/// Its run can run the node again; for the letter itself an operator decides.
#[tokio::test(start_paused = true)]
async fn the_letter_of_a_node_is_discarded_and_its_run_stays_as_it_was() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let dag = "version: 1\ndag: d\nnodes:\n  one: {topic: t}\n";
    stage.engine.put_dag(&caller(), "d.yaml", dag).await.expect("a good definition");
    let start =
        StartRun { dag: "d".into(), version: None, params: serde_json::json!({}), idempotency_key: None, fresh: false };
    let run = stage.engine.start_run(&caller(), start).await.expect("started").run;
    let of_run = worker.take().await;
    worker.report(&of_run, Outcome::FailedFatal { error: "broken".into() }).await;
    let id = of_run.job.request.job_id.clone();
    let failed = async || stage.engine.run_head(&caller(), &run).await.expect("there");
    until("the run has failed", async || failed().await.state.is_over()).await;
    let before = failed().await;
    assert_eq!(stage.engine.discard(&caller(), &id, "known".into()).await.expect("discarded"), JobState::Failed);
    let filter = || DeadLetterQuery { tenant: Some(caller().tenant), limit: 10, ..DeadLetterQuery::default() };
    assert_eq!(stage.engine.dead_letters(&caller(), filter()).await.expect("read").items, []);
    let discarded = stage.engine.discarded_letters(&caller(), filter()).await.expect("read").items;
    assert_eq!(discarded.iter().map(|letter| &letter.job_id).collect::<Vec<_>>(), [&id]);
    pass(Duration::from_secs(10)).await;
    assert_eq!(failed().await, before);
}
