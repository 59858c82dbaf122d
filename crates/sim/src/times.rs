//! A schedule in the simulation: each of its times must be started exactly once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::TenantId;
use lockgate_core::request::Caller;
use lockgate_core::schedule::{Series, Slot, SlotOutcome, Target};
use lockgate_core::time::Timestamp;
use lockgate_ports::{JobStore, ScheduleStore, SlotQuery};

use crate::check::{Violation, ensure};
use crate::clock::BASE;
use crate::world::SimWorld;

const TENANT: &str = "tenant-0";
const NAME: &str = "often";
const TEXT: &str = "
version: 1
schedules:
  often:
    every: 4s
    start_at: 2026-01-01T00:00:03Z
    end_at: 2026-01-01T00:00:40Z
    misfire: all
    misfire_window: 1h
    overlap: allow
    job: {topic: sim.a, payload: [0, 0]}
";

/// The times of the schedule's text, computed independently of the engine.
fn nominal() -> impl Iterator<Item = Timestamp> {
    (3..40).step_by(4).map(|second| BASE + Duration::from_secs(second))
}

/// Applies the schedule, repeated until it is acknowledged. Later times are guaranteed.
pub(crate) async fn apply(world: Arc<SimWorld>) {
    let caller = Caller::new(TENANT, "client");
    loop {
        let process = world.process().await;
        let applied = tokio::select! {
            biased;
            () = process.lifeline.died() => continue,
            applied = process.engine.put_schedules(&caller, "often.yaml", TEXT) => applied,
        };
        if applied.is_ok() {
            world.ledger.lock().schedule = Some(world.clock.now());
            return;
        }
        tokio::time::sleep(world.faults.millis(500)).await;
    }
}

/// Triggers the schedule by hand. The call may be refused, or the Store may fail; both are allowed.
pub(crate) async fn trigger(world: &SimWorld, caller: &Caller) {
    if !world.cast.schedules || caller.tenant.as_str() != TENANT {
        return;
    }
    let process = world.process().await;
    tokio::select! {
        biased;
        () = process.lifeline.died() => {}
        _ = process.engine.trigger_schedule(caller, NAME) => {}
    }
}

/// Slots of its own times, without triggers.
async fn slots(world: &SimWorld) -> Result<Vec<Slot>, Violation> {
    let query = SlotQuery { tenant: TenantId::from(TENANT), schedule: NAME.into(), cursor: None, limit: 1_000 };
    let page = world.disk.list_slots(query).await;
    let own = |slot: &Slot| slot.key.series == Series::default();
    page.map(|page| page.items.into_iter().filter(own).collect())
        .map_err(|error| Violation::new("slots are read", error.to_string()))
}

/// Guaranteed times that have not been started.
pub(crate) async fn left(world: &SimWorld) -> Result<usize, Violation> {
    let Some(promised) = world.ledger.lock().schedule else { return Ok(0) };
    let started: Vec<Timestamp> = slots(world)
        .await?
        .into_iter()
        .filter(|slot| slot.outcome == SlotOutcome::Started)
        .map(|slot| slot.key.nominal)
        .collect();
    Ok(nominal().filter(|time| *time > promised && !started.contains(time)).count())
}

/// Every slot is one of the schedule's times and was started once, by an existing job of its own.
pub(crate) async fn check(world: &SimWorld) -> Result<(), Violation> {
    let mut by_target = BTreeMap::new();
    for slot in slots(world).await? {
        let told = || format!("{slot:?}");
        ensure(nominal().any(|time| time == slot.key.nominal), "T-2 only the times of a schedule come to something", told)?;
        ensure(slot.outcome == SlotOutcome::Started, "T-2 every time is started", told)?;
        let Some(Target::Job(id)) = &slot.target else {
            return Err(Violation::new("T-3 a slot names what it started", told()));
        };
        let job = world.disk.load(std::slice::from_ref(id)).await.ok().and_then(|mut jobs| jobs.pop().flatten());
        ensure(job.is_some(), "T-3 what a slot started is there", told)?;
        let before = by_target.insert(id.clone(), slot.key.nominal);
        ensure(before.is_none(), "T-3 each time has a job of its own", told)?;
    }
    ensure(left(world).await? == 0, "T-2 no promised time is left out", String::new)
}
