//! DAG runs in the simulation: started, disturbed by people, and checked in the end.

use lockgate_core::dag::{NodeKey, NodeRun, NodeState, Run, RunState, UndoState};
use lockgate_core::ids::RunId;
use lockgate_core::request::Caller;
use lockgate_engine::{RunOrder, StartRun};
use lockgate_ports::RunStore;
use serde_json::{Map, Value};

use crate::check::{Violation, ensure};
use crate::plan::JobScript;
use crate::witness::Piece;
use crate::world::SimWorld;

const NAME: &str = "flow";

/// What each node does is a parameter; its compensation always succeeds in the end.
const TEXT: &str = "
version: 1
dag: flow
params: { first: any, left: any, right: any, items: list, last: any }
max_parallelism: 4
nodes:
  first: { topic: sim.a, payload: \"${params.first}\", timeout: 5s, on_fail: compensate, compensation: { topic: sim.b, max_attempts: 50 } }
  left: { needs: first, topic: sim.b, payload: \"${params.left}\", timeout: 5s, on_fail: compensate, compensation: { topic: sim.c, max_attempts: 50 } }
  right: { needs: first, topic: sim.c, payload: \"${params.right}\", timeout: 5s, on_fail: continue }
  wait: { needs: left, delay: 2s }
  each: { needs: [right, wait], join: all_done, for_each: params.items, concurrency: 2, min_success: 50%, topic: sim.a, payload: \"${item}\", timeout: 5s, on_fail: compensate, compensation: { topic: sim.a, max_attempts: 50 } }
  last: { needs: each, topic: sim.b, payload: \"${params.last}\", timeout: 5s }
";

fn plan(world: &SimWorld) -> Value {
    serde_json::from_str(JobScript::draw(&world.faults).encode().as_str()).unwrap_or_default()
}

/// Starts a run, repeated until it is acknowledged: the key makes repeats harmless.
pub(crate) async fn start(world: &SimWorld, caller: &Caller, serial: u64) {
    let mut params: Map<String, Value> =
        ["first", "left", "right", "last"].into_iter().map(|name| (name.to_owned(), plan(world))).collect();
    params.insert("items".to_owned(), (0..world.faults.below(5)).map(|_| plan(world)).collect());
    let start = StartRun {
        dag: NAME.to_owned(),
        version: None,
        params: Value::Object(params),
        idempotency_key: Some(format!("run-key-{serial}")),
        fresh: false,
    };
    for _ in 0..20 {
        let process = world.process().await;
        let begun = async {
            process.engine.put_dag(caller, "flow.yaml", TEXT).await?;
            process.engine.start_run(caller, start.clone()).await
        };
        let begun = tokio::select! {
            biased;
            () = process.lifeline.died() => continue,
            begun = begun => begun,
        };
        if let Ok(begun) = begun {
            let mut ledger = world.ledger.lock();
            let key = format!("{} {serial}", caller.tenant);
            let first = ledger.runs.entry(key.clone()).or_insert_with(|| begun.run.clone()).clone();
            if first != begun.run {
                ledger.broken.push(Violation::new("S-3 one run per idempotency key", key));
            }
            return;
        }
        tokio::time::sleep(world.faults.millis(500)).await;
    }
}

/// A person pauses, resumes or cancels one of the caller's runs. A command that does not apply is refused.
pub(crate) async fn disturb(world: &SimWorld, caller: &Caller) {
    let mine = runs_of(world, caller);
    if mine.is_empty() {
        return;
    }
    let id = &mine[usize::try_from(world.faults.below(mine.len() as u64)).unwrap_or(0)];
    let order = match world.faults.below(4) {
        0 => RunOrder::Pause,
        1 => RunOrder::Resume,
        2 => RunOrder::Cancel { compensate: false, note: None },
        _ => RunOrder::Cancel { compensate: true, note: None },
    };
    tell(world, caller, id, order).await;
}

async fn tell(world: &SimWorld, caller: &Caller, id: &RunId, order: RunOrder) {
    let process = world.process().await;
    tokio::select! {
        biased;
        () = process.lifeline.died() => {}
        // The command may be refused, or the Store may fail; both are allowed.
        _ = process.engine.order_run(caller, id, order) => {}
    }
}

fn runs_of(world: &SimWorld, caller: &Caller) -> Vec<RunId> {
    let prefix = format!("{} ", caller.tenant);
    let ledger = world.ledger.lock();
    ledger.runs.iter().filter(|(key, _)| key.starts_with(&prefix)).map(|(_, run)| run.clone()).collect()
}

/// Runs that still go on.
pub(crate) async fn open(world: &SimWorld) -> Result<Vec<Run>, Violation> {
    let all: Vec<RunId> = world.ledger.lock().runs.values().cloned().collect();
    let runs = world.disk.load_runs(&all).await.map_err(|e| Violation::new("runs are read", e.to_string()))?;
    Ok(runs.into_iter().flatten().filter(|run| !run.head.state.is_over()).collect())
}

/// How many runs, over or not, have untaken messages.
async fn unheard(world: &SimWorld) -> Result<usize, Violation> {
    let all: Vec<RunId> = world.ledger.lock().runs.values().cloned().collect();
    let news = world.disk.news(&all, usize::MAX).await.map_err(|e| Violation::new("news are read", e.to_string()))?;
    Ok(all.iter().filter(|run| news.iter().any(|row| row.run == **run)).count())
}

/// How many runs are live. Runs that wait for a person get the approval or the retry that they wait for.
pub(crate) async fn settle(world: &SimWorld) -> Result<usize, Violation> {
    let mut live = unheard(world).await?;
    for run in open(world).await? {
        live += 1;
        let caller = Caller::new(run.head.tenant.clone(), run.head.actor.clone());
        if run.head.state == RunState::Paused {
            tell(world, &caller, &run.head.id, RunOrder::Resume).await;
        }
        let stuck = |node: &NodeRun| node.undo.as_ref().is_some_and(|undo| undo.state == UndoState::Stuck);
        for (key, _) in run.nodes.iter().filter(|(_, node)| stuck(node)) {
            let node = NODES[key.node as usize].to_owned();
            tell(world, &caller, &run.head.id, RunOrder::Retry { node, item: key.item }).await;
        }
    }
    Ok(live)
}

/// In the order of the file, which is topological.
const NODES: [&str; 6] = ["first", "left", "right", "wait", "each", "last"];
/// Those that have a job of their own.
const WORK: [u32; 4] = [0, 1, 2, 5];
/// Those that name a compensation. Each comes after all of them that are before it.
pub(crate) const UNDONE: [u32; 3] = [0, 1, 4];

/// Every acknowledged run exists and is over, and its nodes are consistent.
pub(crate) async fn check(world: &SimWorld) -> Result<(), Violation> {
    let all: Vec<RunId> = world.ledger.lock().runs.values().cloned().collect();
    let runs = world.disk.load_runs(&all).await.map_err(|e| Violation::new("runs are read", e.to_string()))?;
    for (id, run) in all.iter().zip(runs) {
        let run = run.ok_or_else(|| Violation::new("no acknowledged run is lost", id.to_string()))?;
        ensure(run.head.state.is_over(), "every run ends", || format!("{run:?}"))?;
        judge(&run, &world.witness.pieces(id))?;
    }
    Ok(())
}

/// Compares the run with its jobs: a run that forgot work would claim that there was none.
fn judge(run: &Run, pieces: &[Piece]) -> Result<(), Violation> {
    let told = || format!("{pieces:?} {run:?}");
    ensure(run.nodes.values().all(|node| node.state.is_over()), "no node of a run that is over goes on", told)?;
    let undoes = run.head.state == RunState::Compensated;
    for piece in pieces {
        let owed = undoes && piece.done && UNDONE.contains(&piece.node);
        ensure(piece.undone == owed && (owed || !piece.tried), "R-4 undone is exactly what was done", || {
            format!("{piece:?} {}", told())
        })?;
    }
    if run.head.state == RunState::Succeeded {
        let done = |node: u32| pieces.iter().any(|piece| piece.node == node && piece.item.is_none() && piece.done);
        let well = |node: u32| run.nodes.get(&NodeKey::of(node)).is_some_and(|row| row.state == NodeState::Succeeded);
        ensure((0..6).all(well) && WORK.into_iter().all(done), "a run that succeeded did all of it", told)?;
    }
    Ok(())
}
