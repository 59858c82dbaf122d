//! Short words for schedules.

use lockgate_core::audit::AuditEntry;
use lockgate_core::request::Caller;
use lockgate_core::schedule::{
    DagWork, Misfire, Overlap, Rhythm, Schedule, ScheduledWork, Series, Slot, SlotKey, SlotOutcome, Spec, Target,
};
use lockgate_core::time::Timestamp;

use super::runs_stage::audited;
use super::stage::{Found, Proof, Spoilt, StoreHarness};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{ScheduleChange, SlotQuery, Store, TurnConflict};

pub(super) const TENANT: &str = "acme";

impl StoreHarness {
    pub(super) async fn turn(&self, change: ScheduleChange) -> Found<Result<(), TurnConflict>> {
        let mut results = self.store.turn(vec![change]).await?;
        results.pop().ok_or_else(|| "the turn was not answered".into())
    }

    /// A new schedule without slots.
    pub(super) async fn put(&self, name: &str) -> Found<Schedule> {
        let schedule = schedule(TENANT, name);
        self.turn(turn(schedule.clone())).await??;
        Ok(schedule)
    }

    pub(super) async fn spoil_schedule(&self, name: &str) -> Proof {
        self.spoil_row(Spoilt::Schedule { tenant: TENANT.into(), name: name.into() }).await
    }

    pub(super) async fn schedule(&self, name: &str) -> Found<Option<Schedule>> {
        Ok(self.store.load_schedules(&[(TENANT.into(), name.into())]).await?.pop().flatten())
    }

    pub(super) async fn slots(&self, name: &str) -> Found<Vec<Slot>> {
        all_slots(&*self.store, TENANT, name, 100).await
    }

    /// Everything that a refused turn must leave as it is.
    pub(super) async fn around_schedules(&self, names: &[&str]) -> Found<String> {
        let mut all = String::new();
        for tenant in [TENANT, "other"] {
            all += &format!("{:?}", self.store.list_schedules(&tenant.into(), None, 100).await?);
            for name in names {
                all += &format!("{:?}", all_slots(&*self.store, tenant, name, 100).await?);
            }
        }
        let audit = self.store.audit(0, 1_000).await?;
        Ok(format!("{all} {audit:?} {:?}", self.store.next_schedule().await?.0))
    }

    pub(super) fn audit_of(&self, subject: &str) -> Vec<AuditEntry> {
        vec![audited(self, subject)]
    }

    /// A slot of the schedule's own series, decided now.
    pub(super) fn slot(&self, nominal: i64, outcome: SlotOutcome) -> Slot {
        self.slot_of("", nominal, outcome)
    }

    pub(super) fn slot_of(&self, series: &str, nominal: i64, outcome: SlotOutcome) -> Slot {
        let target = matches!(outcome, SlotOutcome::Due | SlotOutcome::Started)
            .then(|| Target::Job(format!("cron-{series}-{nominal}").as_str().into()));
        Slot { key: key(series, nominal), outcome, reason: None, target, decided_at: self.clock.now() }
    }
}

/// Over all pages of this size.
pub(super) async fn all_slots(store: &dyn Store, tenant: &str, name: &str, limit: usize) -> Found<Vec<Slot>> {
    let mut query = SlotQuery { tenant: tenant.into(), schedule: name.into(), cursor: None, limit };
    let mut slots = Vec::new();
    loop {
        let page = store.list_slots(query.clone()).await?;
        slots.extend(page.items);
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(slots);
        }
    }
}

pub(super) fn key(series: &str, nominal: i64) -> SlotKey {
    SlotKey { series: Series(series.into()), nominal: Timestamp::from_millis(nominal) }
}

/// In its first version; it sleeps.
pub fn schedule(tenant: &str, name: &str) -> Schedule {
    let spec = Spec {
        description: None,
        rhythm: Rhythm::EveryMs(60_000),
        time_zone: "UTC".into(),
        start_at: None,
        end_at: None,
        jitter_ms: 0,
        grace_ms: 60_000,
        misfire: Misfire::Skip,
        misfire_window_ms: 60_000,
        overlap: Overlap::Allow,
        queue: 0,
        paused: false,
        work: ScheduledWork::Dag(DagWork { name: "etl".into(), version: None, params: serde_json::Value::Null }),
    };
    let begun = Schedule::begin(name.into(), spec, &Caller::new(tenant, "ann"), "birth".into(), Timestamp::ZERO);
    Schedule { wakes_at: None, ..begun }
}

/// The schedule with the next version.
pub fn later(schedule: &Schedule) -> Schedule {
    Schedule { version: schedule.version + 1, ..schedule.clone() }
}

/// The schedule with another wake time.
pub(super) fn waking(schedule: Schedule, at: i64) -> Schedule {
    Schedule { wakes_at: Some(Timestamp::from_millis(at)), ..schedule }
}

/// A turn that only writes its schedule.
pub fn turn(schedule: Schedule) -> ScheduleChange {
    ScheduleChange { schedule, gone: false, fresh: Vec::new(), changed: Vec::new(), audit: Vec::new() }
}

/// The last turn of a schedule.
pub(super) fn gone(schedule: &Schedule) -> ScheduleChange {
    ScheduleChange { gone: true, ..turn(later(schedule)) }
}

pub(super) fn names(schedules: &[Schedule]) -> Vec<&str> {
    schedules.iter().map(|schedule| &*schedule.name).collect()
}

/// Series and nominal time.
pub(super) fn keys(slots: &[Slot]) -> Vec<(&str, i64)> {
    slots.iter().map(|slot| (&*slot.key.series.0, slot.key.nominal.as_millis())).collect()
}
