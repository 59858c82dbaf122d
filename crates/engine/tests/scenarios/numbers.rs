//! Every metric family moves, and the reference names every one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockgate_core::job::{JobState, Outcome};
use lockgate_core::request::{Caller, Json, NewJob};
use lockgate_engine::{Described, RunOrder, Settings, StartRun};
use lockgate_ports::Pinned;

use super::stage::{Hand, Stage, caller, job};

const POLICY: &str = "
version: 1
default: {decision: allow, reason: fine}
rules:
  - {id: no-bad, match: {topics: ['bad*']}, decision: deny, reason: never}
  - {id: ask, match: {topics: ['pay']}, decision: require_approval, reason: money moves}
output:
  fail_mode: closed
  rules:
    - {id: cards, match: {topics: ['t'], scan: [credit_card]}, decision: quarantine, reason: a card}
";
/// The same, and what nobody can judge runs.
const OPEN: &str = "input_policy: {fail_mode: open}\n";

const SAGA: &str = "
version: 1
dag: saga
nodes:
  one: {topic: t, compensation: {topic: t}}
  bad: {needs: one, topic: t, on_fail: compensate}
";

/// Which families were seen to say something, and with which labels.
#[derive(Default)]
pub(super) struct Witness(BTreeMap<String, BTreeSet<String>>);

impl Witness {
    fn look(&mut self, stage: &Stage) {
        for (series, value) in stage.series() {
            let (name, labels) = series.split_once('{').unwrap_or((&series, ""));
            if value != 0.0 {
                let names = labels.split("\",").filter_map(|label| label.split_once('=')).map(|(name, _)| name.to_owned());
                self.0.entry(name.to_owned()).or_default().extend(names.filter(|name| name != "le"));
            }
        }
    }

    /// The labels of a family that moved.
    fn labels(&self, family: &Described) -> Option<String> {
        let name = if family.kind == "histogram" { format!("{}_count", family.name) } else { family.name.clone() };
        self.0.get(&name).map(|labels| labels.iter().cloned().collect::<Vec<_>>().join(", "))
    }

    pub(super) async fn wait_for(&mut self, stage: &Stage, families: &[&str]) {
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..3_000 {
            self.look(stage);
            if families.iter().all(|family| self.0.contains_key(*family)) {
                return;
            }
            tick.tick().await;
        }
        panic!("not all of {families:?} moved");
    }
}

fn good(result: &str) -> Outcome {
    Outcome::Succeeded { result: Json::parse(result).expect("JSON") }
}

fn fatal() -> Outcome {
    Outcome::FailedFatal { error: "never".into() }
}

async fn somebody_who_asks_for_too_much(stage: &Stage, witness: &mut Witness) {
    stage.quotas("tenants: {crowded: {jobs: 0}}\n").await;
    let refused = stage.engine.submit(&Caller::new("crowded", "ann"), vec![job("t")]).await.expect("a good batch");
    assert!(refused[0].is_err());
    witness.look(stage);
}

async fn a_clock_that_jumps(witness: &mut Witness) {
    let wall = super::clocks::Wall::new();
    let clock = wall.guarded();
    let stage = Stage::with_clocks(Settings::default(), std::sync::Arc::default(), clock.clone(), clock);
    witness.look(&stage);
    wall.set(-60_000);
    witness.wait_for(&stage, &["lockgate_clock_jumps_total", "lockgate_clock_jump_seconds"]).await;
    let wall = super::clocks::Wall::new();
    let clock = wall.guarded_for(Duration::ZERO);
    let stage = Stage::with_clocks(Settings::default(), std::sync::Arc::default(), clock.clone(), clock);
    witness.look(&stage);
    wall.set(3_600_000);
    stage.submit(job("unserved")).await;
    wall.set(0);
    witness.wait_for(&stage, &["lockgate_clock_restamped_total"]).await;
}

async fn a_transaction_that_stays_open(witness: &mut Witness) {
    let stage = Stage::new();
    let held_for = Some(Duration::from_mins(9));
    stage.store.pin(Some(Pinned { holder: "a report".to_owned(), held_for, transactions: 1, dead_rows: 9 }));
    witness.wait_for(&stage, &["lockgate_store_horizon_held_seconds", "lockgate_store_horizon_dead_rows"]).await;
}

async fn a_process_that_starts_beside_another(witness: &mut Witness) {
    let one = Stage::shared();
    let _worker = Hand::attach(&one.engine, "w", &["t"], 1).await;
    let rounds = ["lockgate_workers_snapshot_rounds_total", "lockgate_workers_snapshot_size"];
    witness.wait_for(&one, &rounds).await;
    tokio::time::advance(Duration::from_millis(10)).await;
    witness.wait_for(&one.beside(), &["lockgate_workers_warm", "lockgate_workers_warm_age_seconds"]).await;
}

#[tokio::test(start_paused = true)]
async fn every_family_moves_and_is_in_the_reference() {
    // Rows that wait to be sealed are seen only if sealing takes its time.
    let sink = Some("nats:sys.job.dlq".into());
    let stage = Stage::with(Settings { seal_every: Duration::from_secs(60), dead_letters: sink, ..Settings::default() });
    stage.outlet.set_refusing(true);
    let mut witness = Witness::default();
    ends_of_all_kinds(&stage, &mut witness).await;
    a_kernel_that_goes_away(&stage, &mut witness).await;
    a_run_that_is_undone(&stage, &mut witness).await;
    super::sagas::an_entry_that_nobody_can_read(&stage).await;
    witness.wait_for(&stage, &["lockgate_saga_unmarshal_errors_total"]).await;
    a_time_that_comes(&stage, &mut witness).await;
    super::families::a_parent_that_waits(&stage).await;
    witness.wait_for(&stage, &["lockgate_barriers_total", "lockgate_children_submitted_total"]).await;
    somebody_who_asks_for_too_much(&stage, &mut witness).await;
    a_process_that_starts_beside_another(&mut witness).await;
    a_clock_that_jumps(&mut witness).await;
    super::troubles::all(&mut witness).await;
    a_transaction_that_stays_open(&mut witness).await;
    witness
        .wait_for(&stage, &["lockgate_outbox_waiting", "lockgate_outbox_oldest_seconds", "lockgate_outbox_failed_total"])
        .await;
    stage.outlet.set_refusing(false);
    witness.wait_for(&stage, &["lockgate_outbox_relayed_total"]).await;

    let described = stage.engine.metrics().described();
    let mut reference = String::from("| name | type | labels | says |\n|---|---|---|---|\n");
    for family in described {
        let labels = witness.labels(family).unwrap_or_else(|| panic!("{} did not move", family.name));
        reference += &format!("| `{}` | {} | {labels} | {} |\n", family.name, family.kind, family.help);
    }
    compare("engine", &reference);
}

/// Success, a retry, failure, silence, a deadline, and what is seen of those that wait.
async fn ends_of_all_kinds(stage: &Stage, witness: &mut Witness) {
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    // Waits for good, so that the re-offer loop has a lane to compare.
    stage.submit(job("unserved")).await;
    let other = stage.engine.submit(&Caller::new("acme", "tester"), vec![job("unserved")]).await;
    assert!(other.is_ok_and(|answers| answers.iter().all(Result::is_ok)));
    let good_one = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    stage.until(&good_one, |job| job.state() == JobState::Running).await;
    let waiting = stage.submit(job("t")).await;
    let later = stage.job(&good_one).await.life.submitted_at + Duration::from_secs(8);
    let later = stage.submit(NewJob { not_before: Some(later), ..job("t") }).await;
    stage.submit(NewJob { deadline_ms: Some(1_000), ..job("unserved") }).await;
    let gauges = ["queue_depth", "inflight_leases", "retry_depth", "pool_queue_depth", "pool_slots_busy"];
    let gauges = gauges.map(|name| format!("lockgate_{name}"));
    witness.wait_for(stage, &gauges.each_ref().map(String::as_str)).await;
    worker.report(&assignment, good("null")).await;

    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, waiting);
    worker.report(&assignment, Outcome::FailedRetryable { error: "no".into(), code: None, retry_after: None }).await;
    let assignment = worker.take().await;
    worker.report(&assignment, fatal()).await;
    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, later);
    // Silence: the reaper takes it.
    stage.until(&later, |job| job.life.attempt.no == 2).await;
    let mut worker = Hand::attach(&stage.engine, "w-2", &["t"], 1).await;
    let assignment = worker.take().await;
    worker.report(&assignment, good("null")).await;
    worker.slots = Some(2);
    worker.beat().await;
    witness.look(stage);
}

/// First nothing runs without it, then, by another policy, everything does; when it is back it says what it thinks.
async fn a_kernel_that_goes_away(stage: &Stage, witness: &mut Witness) {
    stage.apply(POLICY).await;
    stage.submit(job("bad")).await;
    stage.submit(job("pay")).await;
    stage.kernel_off.store(true, Ordering::Relaxed);
    let pending = stage.submit(job("unserved")).await;
    let owed = ["lockgate_pending_oldest_seconds", "lockgate_duties_oldest_seconds", "lockgate_audit_unsealed_seconds"];
    witness.wait_for(stage, &owed).await;
    stage.kernel_off.store(false, Ordering::Relaxed);
    stage.until(&pending, |job| job.state() == JobState::Scheduled).await;

    stage.apply(&format!("{POLICY}{OPEN}")).await;
    let mut worker = Hand::attach(&stage.engine, "w-3", &["t", "bad"], 2).await;
    stage.kernel_off.store(true, Ordering::Relaxed);
    let unchecked = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    worker.report(&assignment, good(r#""4111 1111 1111 1111""#)).await;
    let refused = stage.submit(job("bad")).await;
    worker.take().await;
    stage.kernel_off.store(false, Ordering::Relaxed);
    stage.until(&refused, |job| job.state() == JobState::Denied).await;
    stage.until(&unchecked, |job| job.state() == JobState::OutputQuarantined).await;
    witness.look(stage);
    worker.drain().await;
}

async fn a_run_that_is_undone(stage: &Stage, witness: &mut Witness) {
    stage.engine.put_dag(&caller(), "saga.yaml", SAGA).await.expect("a good definition");
    let mut worker = Hand::attach(&stage.engine, "w-4", &["t"], 1).await;
    let params = serde_json::json!({});
    let start = StartRun { dag: "saga".into(), version: None, params, idempotency_key: None, fresh: false };
    let run = stage.engine.start_run(&caller(), start).await.expect("started").run;
    for outcome in [good("1"), fatal(), fatal()] {
        let assignment = worker.take().await;
        worker.start(&assignment).await;
        worker.report(&assignment, outcome).await;
    }
    witness.wait_for(stage, &["lockgate_saga_active", "lockgate_saga_stuck", "lockgate_dag_runs_live"]).await;
    let resolve = RunOrder::Resolve { node: "one".into(), item: None };
    stage.engine.order_run(&caller(), &run, resolve).await.expect("taken");
    witness.wait_for(stage, &["lockgate_saga_rollback_seconds_count"]).await;
    known_work(stage, witness).await;
}

/// Done once, and taken over once.
async fn known_work(stage: &Stage, witness: &mut Witness) {
    let text = "version: 1\ndag: known\nnodes:\n  one: {topic: known, payload: 7, memoise: true}\n";
    let mut worker = Hand::attach(&stage.engine, "w-known", &["known"], 1).await;
    stage.engine.put_dag(&caller(), "known.yaml", text).await.expect("a good definition");
    for done in [true, false] {
        let params = serde_json::json!({});
        let start = StartRun { dag: "known".into(), version: None, params, idempotency_key: None, fresh: false };
        let run = stage.engine.start_run(&caller(), start).await.expect("started").run;
        if done {
            let assignment = worker.take().await;
            worker.report(&assignment, good("1")).await;
        }
        stage.run_until(&run, |view| view.run.head.state.is_over()).await;
    }
    witness.wait_for(stage, &["lockgate_dag_nodes_memoised_total"]).await;
}

async fn a_time_that_comes(stage: &Stage, witness: &mut Witness) {
    let text = "version: 1\nschedules:\n  s: {every: 1m, job: {topic: unserved}}\n";
    stage.engine.put_schedules(&caller(), "s.yaml", text).await.expect("a good schedule");
    witness.wait_for(stage, &["lockgate_schedule_slots_total", "lockgate_schedule_lag_seconds_count"]).await;
}

/// Compares a part of the reference with what it should be, or writes it.
fn compare(part: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = std::fs::read_to_string(&path).expect("the reference");
    let (begin, end) = (format!("<!-- {part}: generated -->\n"), format!("<!-- {part}: end -->"));
    let (before, rest) = page.split_once(&begin).expect("where the part begins");
    let (written, after) = rest.split_once(&end).expect("where the part ends");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, format!("{before}{begin}{text}{end}{after}")).expect("written");
    } else {
        assert_eq!(written, text, "docs/metrics.md differs; UPDATE_EXPECT=1 rewrites it");
    }
}
