//! What people tell a schedule.

use std::sync::Arc;

use lockgate_core::audit::AuditAction;
use lockgate_core::request::Caller;
use lockgate_core::schedule::{Backfill, BackfillRefused, Schedule, ScheduleDecision, Slot};
use lockgate_core::time::Timestamp;
use lockgate_ports::Mint;
use serde_json::{Value, json};

use super::ScheduleView;
use crate::error::ApiError;
use crate::schedules::{DecidedSchedule, Unturned};
use crate::service::to_the_end;
use crate::{Engine, Inner};

/// Each conflict means that the schedule was turned meanwhile.
const CONFLICTS_MAX: usize = 16;

/// The times to make up for, both ends included.
#[derive(Clone, Debug)]
pub struct BackfillSpan {
    pub from: Timestamp,
    pub to: Timestamp,
    /// How many may be at work at once.
    pub concurrency: u32,
}

/// Something that changes a schedule.
#[derive(Clone, Debug)]
enum ScheduleOrder {
    Pause,
    Resume,
    Remove,
    Trigger,
    Backfill(Backfill),
    CancelBackfill(Arc<str>),
}

impl Engine {
    /// Nothing of it starts by itself from now on. Pausing what is paused changes nothing.
    pub async fn pause_schedule(&self, caller: &Caller, name: &str) -> Result<ScheduleView, ApiError> {
        self.order_schedule(caller, name, ScheduleOrder::Pause).await.map(|turn| self.inner.view_of(turn.schedule))
    }

    pub async fn resume_schedule(&self, caller: &Caller, name: &str) -> Result<ScheduleView, ApiError> {
        self.order_schedule(caller, name, ScheduleOrder::Resume).await.map(|turn| self.inner.view_of(turn.schedule))
    }

    /// What it started goes on; its slots stay as long as ended jobs do.
    pub async fn remove_schedule(&self, caller: &Caller, name: &str) -> Result<(), ApiError> {
        self.order_schedule(caller, name, ScheduleOrder::Remove).await.map(drop)
    }

    /// Starts it now, out of turn. The slot says what became of that: it may have to wait, or be left out.
    pub async fn trigger_schedule(&self, caller: &Caller, name: &str) -> Result<Slot, ApiError> {
        let mut turn = self.order_schedule(caller, name, ScheduleOrder::Trigger).await?;
        turn.fresh.pop().ok_or_else(|| ApiError::Internal("a start out of turn left no slot".into()))
    }

    /// Makes up for the times of a span. The id of the backfill.
    pub async fn backfill_schedule(&self, caller: &Caller, name: &str, span: BackfillSpan) -> Result<Arc<str>, ApiError> {
        let id: Arc<str> = self.inner.ports.entropy.uuid(self.inner.ports.clock.now()).into();
        let order = ScheduleOrder::Backfill(Backfill::new(id.clone(), span.from, span.to, span.concurrency));
        self.order_schedule(caller, name, order).await?;
        Ok(id)
    }

    /// Starts no more of a backfill; what it started goes on.
    pub async fn cancel_backfill(&self, caller: &Caller, name: &str, id: &str) -> Result<(), ApiError> {
        self.order_schedule(caller, name, ScheduleOrder::CancelBackfill(id.into())).await.map(drop)
    }

    async fn order_schedule(&self, caller: &Caller, name: &str, order: ScheduleOrder) -> Result<ScheduleDecision, ApiError> {
        let (inner, caller, name) = (self.inner.clone(), caller.clone(), name.to_owned());
        to_the_end(async move { inner.order_schedule(&caller, &name, &order).await }).await?
    }
}

impl Inner {
    /// Decides on the schedule as it is, commits, and decides again if a turn came between.
    async fn order_schedule(
        &self,
        caller: &Caller,
        name: &str,
        order: &ScheduleOrder,
    ) -> Result<ScheduleDecision, ApiError> {
        let (action, detail) = record(order);
        for _ in 0..CONFLICTS_MAX {
            // By the Store's clock, like every turn.
            let (_, now) = self.store_time().await?;
            let schedule = self.find_schedule(caller, name).await?;
            // What is due up to now comes first: the order is about what comes after.
            let Some(schedule) = self.settle_schedules(vec![schedule], now).await?.pop() else { continue };
            let Some(turn) = decide(&schedule, order, now)? else {
                return Ok(ScheduleDecision { schedule, fresh: Vec::new(), changed: Vec::new(), stop: Vec::new() });
            };
            let audit = vec![self.entry(caller, action, &schedule.name, &detail)];
            let gone = matches!(order, ScheduleOrder::Remove);
            match self.commit_turns(vec![DecidedSchedule { turn: turn.clone(), gone, audit }], now).await?.pop() {
                Some(Ok(())) | None => {
                    self.call_schedules(vec![(schedule.tenant.clone(), schedule.name.clone())]).await;
                    return Ok(turn);
                }
                Some(Err(Unturned::Refused(why))) => return Err(ApiError::refused(format_args!("schedule {name}"), &why)),
                Some(Err(Unturned::Conflict)) => {}
            }
        }
        Err(ApiError::Unavailable("the schedule keeps changing; try again".into()))
    }
}

/// `None` if it is so already.
fn decide(schedule: &Schedule, order: &ScheduleOrder, now: Timestamp) -> Result<Option<ScheduleDecision>, ApiError> {
    let unsettled = |error: lockgate_core::schedule::Unsettled| ApiError::Unavailable(error.to_string());
    match order {
        ScheduleOrder::Pause => Ok(schedule.pause(now)),
        ScheduleOrder::Resume => Ok(schedule.resume(now)),
        ScheduleOrder::Trigger => Ok(Some(schedule.trigger(now))),
        ScheduleOrder::Remove => schedule.retire(now).map(Some).map_err(unsettled),
        ScheduleOrder::Backfill(ask) => schedule.backfill(ask.clone(), now).map(Some).map_err(refused),
        ScheduleOrder::CancelBackfill(id) => {
            let none = || ApiError::no_such("backfill", id);
            schedule.cancel_backfill(id, now).map(Some).ok_or_else(none)
        }
    }
}

fn refused(refusal: BackfillRefused) -> ApiError {
    match refusal {
        BackfillRefused::Busy => ApiError::Exhausted(refusal.to_string()),
        BackfillRefused::Concurrency | BackfillRefused::OneAtATime(_) => ApiError::invalid("concurrency", refusal),
        BackfillRefused::Unreadable(_) | BackfillRefused::Taken(_) => ApiError::Internal(refusal.to_string()),
        _ => ApiError::invalid("from, to", refusal),
    }
}

fn record(order: &ScheduleOrder) -> (AuditAction, Value) {
    match order {
        ScheduleOrder::Pause => (AuditAction::SchedulePaused, Value::Null),
        ScheduleOrder::Resume => (AuditAction::ScheduleResumed, Value::Null),
        ScheduleOrder::Remove => (AuditAction::ScheduleRemoved, Value::Null),
        ScheduleOrder::Trigger => (AuditAction::ScheduleTriggered, Value::Null),
        ScheduleOrder::Backfill(ask) => {
            let from = ask.done_until.as_millis() + 1;
            let detail = json!({ "id": ask.id, "from_ms": from, "to_ms": ask.until, "concurrency": ask.concurrency });
            (AuditAction::BackfillStarted, detail)
        }
        ScheduleOrder::CancelBackfill(id) => (AuditAction::BackfillCancelled, json!({ "id": id })),
    }
}
