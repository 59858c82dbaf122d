//! Workflows of plain jobs in the simulation: submitted job by job, rolled back by failures and by people, and checked in
//! the end.

use std::collections::BTreeSet;

use lockgate_core::dag::saga::run_id;
use lockgate_core::dag::{NodeRun, Run, RunState, UndoState};
use lockgate_core::ids::{JobId, RunId, TenantId};
use lockgate_core::job::{EventKind, JobEvent, Reason};
use lockgate_core::request::{Caller, Json, NewJob};
use lockgate_engine::RunOrder;
use lockgate_ports::{JobStore, RunStore};

use crate::check::{Violation, ensure};
use crate::client::{self, TOPICS};
use crate::plan::JobScript;
use crate::world::SimWorld;

/// Workflows of one tenant at a time. The first fatal failure closes one, so new ones begin all the time.
const AT_ONCE: u64 = 3;
const LASTS_MS: i64 = 15_000;

/// A workflow of a tenant: its saga, and every job that a client tried to submit into it.
#[derive(Clone, Debug)]
pub(crate) struct Workflow {
    pub(crate) tenant: TenantId,
    pub(crate) jobs: BTreeSet<JobId>,
}

/// Submits some jobs of one workflow. Returns how many serial numbers they took.
pub(crate) async fn submit(world: &SimWorld, caller: &Caller, serial: u64) -> u64 {
    let now = world.clock.now().as_millis() / LASTS_MS;
    let workflow = format!("order-{now}-{}", world.faults.below(AT_ONCE));
    let batch = 1 + world.faults.below(4);
    let jobs: Vec<NewJob> = (serial..serial + batch).map(|serial| step(world, caller, &workflow, serial)).collect();
    {
        let mut ledger = world.ledger.lock();
        let fresh = || Workflow { tenant: caller.tenant.clone(), jobs: BTreeSet::new() };
        let known = ledger.workflows.entry(run_id(&caller.tenant, &workflow)).or_insert_with(fresh);
        known.jobs.extend(jobs.iter().filter_map(|job| job.job_id.as_deref()).map(JobId::from));
    }
    client::submit(world, caller, jobs).await;
    batch
}

/// A job whose compensation succeeds in the end, and names the job that it undoes.
fn step(world: &SimWorld, caller: &Caller, workflow: &str, serial: u64) -> NewJob {
    let faults = &world.faults;
    let topic = || TOPICS[usize::try_from(faults.below(3)).unwrap_or(0)];
    let id = format!("{}.{serial}", caller.tenant);
    let half = faults.chance(200);
    let undo = format!(
        r#"{{"topic":"{}","payload":[0,0,"{id}"],"budget":{{"max_attempts":50}},"undo_on_failure":{half}}}"#,
        topic()
    );
    NewJob {
        topic: topic().to_owned(),
        payload: Some(JobScript::draw(faults).encode()),
        workflow_id: Some(workflow.to_owned()),
        compensation: faults.chance(850).then(|| Json::trusted(undo)),
        max_attempts: Some(1 + u32::try_from(faults.below(3)).unwrap_or(0)),
        timeout_ms: Some(2_000 + faults.below(8_000)),
        job_id: Some(id),
        ..NewJob::default()
    }
}

/// A person rolls back one of the caller's workflows, or only ends it. A command that does not apply is refused.
pub(crate) async fn roll_back(world: &SimWorld, caller: &Caller) {
    let mine: Vec<RunId> = {
        let ledger = world.ledger.lock();
        ledger.workflows.iter().filter(|(_, known)| known.tenant == caller.tenant).map(|(id, _)| id.clone()).collect()
    };
    if mine.is_empty() {
        return;
    }
    let id = &mine[usize::try_from(world.faults.below(mine.len() as u64)).unwrap_or(0)];
    let compensate = world.faults.chance(700);
    tell(world, caller, id, RunOrder::Cancel { compensate, note: None }).await;
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

/// Sagas with untaken messages, or with an unfinished rollback. Idle ones wait for more jobs, so they do not keep the story
/// from ending.
pub(crate) async fn open(world: &SimWorld) -> Result<Vec<(RunId, Option<Run>)>, Violation> {
    let all: Vec<RunId> = world.ledger.lock().workflows.keys().cloned().collect();
    let read = |error: lockgate_ports::StoreError| Violation::new("sagas are read", error.to_string());
    let mut open = Vec::new();
    for (id, run) in all.iter().zip(world.disk.load_runs(&all).await.map_err(read)?) {
        let unheard = !world.disk.news(std::slice::from_ref(id), 1).await.map_err(read)?.is_empty();
        let closing = run.as_ref().is_some_and(|run| run.head.closing.is_some() && !run.head.state.is_over());
        if unheard || closing {
            open.push((id.clone(), run));
        }
    }
    Ok(open)
}

/// How many sagas are live. Stuck compensations are retried.
pub(crate) async fn settle(world: &SimWorld) -> Result<usize, Violation> {
    let open = open(world).await?;
    for run in open.iter().filter_map(|(_, run)| run.as_ref()) {
        let caller = Caller::new(run.head.tenant.clone(), run.head.actor.clone());
        let stuck = |node: &NodeRun| node.undo.as_ref().is_some_and(|undo| undo.state == UndoState::Stuck);
        for (key, row) in run.nodes.iter().filter(|(_, row)| stuck(row)) {
            let Some(node) = row.job.as_ref().map(ToString::to_string) else { continue };
            tell(world, &caller, &run.head.id, RunOrder::Retry { node, item: key.item }).await;
        }
    }
    Ok(open.len())
}

/// Every workflow has a saga, was closed by what must close it, and exactly its completed work was undone. The witness has
/// checked the order.
pub(crate) async fn check(world: &SimWorld) -> Result<(), Violation> {
    let workflows = world.ledger.lock().workflows.clone();
    for (id, workflow) in workflows {
        let read = |error: lockgate_ports::StoreError| Violation::new("sagas are read", error.to_string());
        let run = world.disk.load_runs(std::slice::from_ref(&id)).await.map_err(read)?.pop().flatten();
        let mut there = 0;
        for job in &workflow.jobs {
            // A submit that was not acknowledged may have been stored nevertheless.
            let Some(detail) = world.disk.detail(job).await.map_err(read)? else { continue };
            there += 1;
            let closing = run.as_ref().and_then(|run| run.head.closing);
            let fatal = detail.events.iter().any(rolls_back);
            ensure(!fatal || closing.is_some(), "R-8 what fails for good closes its workflow", || format!("{job} of {id}"))?;
        }
        ensure(there == 0 || run.is_some(), "R-8 no workflow is unheard of", || id.to_string())?;
        if let Some(run) = run {
            judge(world, &run)?;
        }
    }
    Ok(())
}

fn rolls_back(event: &JobEvent) -> bool {
    match event.kind {
        EventKind::TimedOut => true,
        EventKind::Failed => event.reason == Some(Reason::Fatal),
        _ => false,
    }
}

fn judge(world: &SimWorld, run: &Run) -> Result<(), Violation> {
    let told = || format!("{run:?}");
    ensure(run.nodes.values().all(|row| row.state.is_over()), "R-8 no job of a workflow is forgotten", told)?;
    let undoes = run.head.closing.is_some_and(lockgate_core::dag::Closing::undoes);
    ensure(!undoes || run.head.state == RunState::Compensated, "R-8 a rollback comes to its end", told)?;
    world.witness.undone(&run.head.id, undoes)
}
