//! Clients: they submit, repeat unacknowledged calls, cancel and replay.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::lane::Priority;
use lockgate_core::request::{Caller, NewJob};
use lockgate_engine::{ApiError, ReplayRequest};
use lockgate_ports::DeadLetterQuery;
use tokio::time::Instant;

use crate::check::Violation;
use crate::faults::Fault;
use crate::plan::JobScript;
use crate::world::SimWorld;
use crate::{flow, outputs, sagas, times};

pub(crate) const TOPICS: [&str; 3] = ["sim.a", "sim.b", "sim.c"];

pub(crate) async fn run(world: Arc<SimWorld>, number: u64, how_long: Duration) {
    let caller = Caller::new(format!("tenant-{number}"), "client");
    let end = Instant::now() + how_long;
    let mut serial = 0;
    while Instant::now() < end {
        tokio::time::sleep(world.faults.millis(2_000)).await;
        match world.faults.below(15) {
            0 => cancel_one(&world, &caller).await,
            1 => replay(&world, &caller).await,
            2 => flow::disturb(&world, &caller).await,
            4 => times::trigger(&world, &caller).await,
            3 => {
                flow::start(&world, &caller, serial).await;
                serial += 1;
            }
            5 | 6 => serial += sagas::submit(&world, &caller, serial).await,
            8 if world.cast.outputs.is_some() => outputs::release(&world, &caller).await,
            7 if world.faults.chance(300) => sagas::roll_back(&world, &caller).await,
            _ => {
                let batch = 1 + world.faults.below(6);
                let jobs = (0..batch).map(|n| draw(&world, &caller, serial + n)).collect();
                serial += batch;
                submit(&world, &caller, jobs).await;
            }
        }
    }
}

/// Sometimes a client goes away in the middle of a call.
pub(crate) async fn hang_up(world: &SimWorld) {
    if !world.faults.inject(100, Fault::CallDropped) {
        return std::future::pending().await;
    }
    tokio::time::sleep(world.faults.millis(10)).await;
}

/// A request that is equal for equal keys.
fn keyed(caller: &Caller, key: u64) -> NewJob {
    NewJob {
        topic: TOPICS[usize::try_from(key % 3).unwrap_or(0)].to_owned(),
        payload: Some(JobScript::Succeed.encode()),
        idempotency_key: Some(format!("key-{}-{key}", caller.tenant)),
        ..NewJob::default()
    }
}

fn draw(world: &SimWorld, caller: &Caller, serial: u64) -> NewJob {
    let faults = &world.faults;
    if faults.chance(150) {
        return keyed(caller, faults.below(20));
    }
    let now = world.clock.now();
    NewJob {
        job_id: Some(format!("{}.{serial}", caller.tenant)),
        topic: TOPICS[usize::try_from(faults.below(3)).unwrap_or(0)].to_owned(),
        payload: Some(JobScript::draw(faults).encode()),
        priority: Some(Priority::ALL[usize::try_from(faults.below(4)).unwrap_or(0)]),
        max_attempts: faults.chance(300).then(|| 1 + u32::try_from(faults.below(5)).unwrap_or(0)),
        timeout_ms: Some(2_000 + faults.below(15_000)),
        not_before: faults.chance(200).then(|| now + faults.millis(20_000)),
        deadline_ms: faults.chance(100).then(|| 1_000 + faults.below(60_000)),
        ..NewJob::default()
    }
}

/// Repeats the whole batch until every job is acknowledged or refused. The ids make repeats harmless.
pub(crate) async fn submit(world: &SimWorld, caller: &Caller, jobs: Vec<NewJob>) {
    for _ in 0..20 {
        let process = world.process().await;
        let answered = tokio::select! {
            biased;
            () = process.lifeline.died() => continue,
            () = hang_up(world) => continue,
            answered = process.engine.submit(caller, jobs.clone()) => answered,
        };
        if let Ok(items) = answered {
            let mut ledger = world.ledger.lock();
            for (job, item) in jobs.iter().zip(items) {
                let Ok(submitted) = item else { continue };
                if let Some(key) = &job.idempotency_key {
                    let first = ledger.keys.entry(key.clone()).or_insert_with(|| submitted.job_id.clone()).clone();
                    if first != submitted.job_id {
                        let detail = format!("{key} names {first} and {}", submitted.job_id);
                        ledger.broken.push(Violation::new("S-3 one job per idempotency key", detail));
                    }
                }
                ledger.acknowledged.insert(submitted.job_id);
            }
            return;
        }
        tokio::time::sleep(world.faults.millis(500)).await;
    }
}

async fn cancel_one(world: &SimWorld, caller: &Caller) {
    let id = {
        let mut ledger = world.ledger.lock();
        let mine: Vec<JobId> =
            ledger.acknowledged.iter().filter(|id| id.as_str().starts_with(caller.tenant.as_str())).cloned().collect();
        if mine.is_empty() {
            return;
        }
        let id = mine[usize::try_from(world.faults.below(mine.len() as u64)).unwrap_or(0)].clone();
        // Recorded before the call, because a call of unknown outcome may have succeeded.
        ledger.cancelled.insert(id.clone());
        id
    };
    let process = world.process().await;
    tokio::select! {
        biased;
        () = process.lifeline.died() => {}
        () = hang_up(world) => {}
        outcome = process.engine.cancel(caller, &id, None) => {
            debug_assert!(!matches!(outcome, Err(ApiError::NotFound(_))), "an acknowledged job was not found: {id}");
        }
    }
}

async fn replay(world: &SimWorld, caller: &Caller) {
    let filter = DeadLetterQuery { tenant: Some(caller.tenant.clone()), ..DeadLetterQuery::default() };
    let limit = Some(1 + usize::try_from(world.faults.below(3)).unwrap_or(0));
    let process = world.process().await;
    tokio::select! {
        biased;
        () = process.lifeline.died() => {}
        // The call may fail with the Store; a later replay covers what is left.
        _ = process.engine.replay(caller, ReplayRequest { filter, limit, ..ReplayRequest::default() }) => {}
    }
}
