//! One round: news of many schedules together, a turn of each.

use std::sync::Arc;

use lockgate_core::schedule::{Schedule, ScheduleNews, SlotOutcome};
use lockgate_core::time::Timestamp;
use lockgate_ports::{Bell, StoreError};

use super::awaited::key_of;
use super::{DecidedSchedule, Unturned};
use crate::Inner;
use crate::error::ApiError;

/// How often a schedule is turned before something else is done with it. Each turn begins up to a hundred.
const TURNS_MAX: usize = 3;

impl Inner {
    /// Turns schedules until nothing of theirs is about to start: what comes due is written, begun, and written as begun.
    /// As they are then; those that somebody else turned meanwhile are left out.
    pub(crate) async fn settle_schedules(
        &self,
        mut schedules: Vec<Schedule>,
        now: Timestamp,
    ) -> Result<Vec<Schedule>, StoreError> {
        let mut settled = Vec::with_capacity(schedules.len());
        for _ in 0..TURNS_MAX {
            let turned = self.turn_schedules(schedules, now).await?;
            let (due, still) = turned.into_iter().partition(is_about_to_start);
            schedules = due;
            settled.extend::<Vec<_>>(still);
            if schedules.is_empty() {
                break;
            }
        }
        settled.extend(schedules);
        Ok(settled)
    }

    /// Begins what is due, asks what has ended, decides, commits, acts.
    async fn turn_schedules(&self, schedules: Vec<Schedule>, now: Timestamp) -> Result<Vec<Schedule>, StoreError> {
        let mut news = ScheduleNews { now, keep: self.settings.retention, ..ScheduleNews::default() };
        self.begin_due(&schedules, &mut news).await?;
        self.look_for_ends(&schedules, &mut news).await?;
        let (mut turned, mut decided) = (Vec::new(), Vec::new());
        for schedule in schedules {
            match schedule.turn(&news) {
                Some(turn) => decided.push(DecidedSchedule::of(turn)),
                None => {
                    // Another process may have taken the turn that started what it waits for.
                    self.schedules.watch(&schedule);
                    turned.push(schedule);
                }
            }
        }
        let stops: Vec<_> =
            decided.iter().map(|decided| (decided.turn.schedule.caller(), decided.turn.stop.clone())).collect();
        let next: Vec<Schedule> = decided.iter().map(|decided| decided.turn.schedule.clone()).collect();
        let committed = self.commit_turns(decided, now).await?;
        let mut stop = Vec::new();
        for ((schedule, stops), outcome) in next.into_iter().zip(stops).zip(committed) {
            match outcome {
                Ok(()) => {
                    self.schedules.watch(&schedule);
                    stop.push(stops);
                    turned.push(schedule);
                }
                // Another process turned it, perhaps one that calls nobody: what that turn started is to be watched here. One more look.
                Err(Unturned::Conflict) => self.schedules.call(key_of(&schedule)),
                // Looked at again at its next time: at once it would not be taken either.
                Err(Unturned::Refused(_)) => {}
            }
        }
        self.stop_targets(stop).await;
        Ok(turned)
    }

    /// Has changed schedules turned soon, by whichever process leads.
    pub(crate) async fn call_schedules(&self, keys: Vec<super::ScheduleKey>) {
        if keys.is_empty() {
            return;
        }
        let bells = keys.iter().map(|(tenant, name)| Bell::schedule(tenant, name)).collect();
        keys.into_iter().for_each(|key| self.schedules.call(key));
        self.ports.bus.ring(bells).await;
    }

    /// What is there under each name, in the order asked. One that cannot be read is an error that names it.
    pub(crate) async fn find_schedules(&self, keys: &[super::ScheduleKey]) -> Result<Vec<Option<Schedule>>, ApiError> {
        match self.ports.store.load_schedules(keys).await {
            Ok(found) => return Ok(found),
            Err(StoreError::Corrupt(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let one = self.ports.store.load_schedules(std::slice::from_ref(key)).await;
            found.push(one.map_err(|error| self.unread(|| named(key), error))?.pop().flatten());
        }
        Ok(found)
    }

    /// Schedules by name, as they are; those that are gone or cannot be read are left out.
    pub(crate) async fn load_schedules(&self, keys: &[super::ScheduleKey]) -> Result<Vec<Schedule>, StoreError> {
        let keys: Vec<(_, Arc<str>)> = keys.to_vec();
        let mut found = Vec::with_capacity(keys.len());
        match self.ports.store.load_schedules(&keys).await {
            Ok(schedules) => found.extend(schedules.into_iter().flatten()),
            // One that cannot be read must not stand in the way of the others.
            Err(StoreError::Corrupt(_)) => {
                for key in &keys {
                    match self.ports.store.load_schedules(std::slice::from_ref(key)).await {
                        Ok(schedules) => found.extend(schedules.into_iter().flatten()),
                        Err(StoreError::Corrupt(why)) => self.cannot_read(&named(key), &why),
                        Err(error) => return Err(error),
                    }
                }
            }
            Err(error) => return Err(error),
        }
        Ok(found)
    }
}

fn named((tenant, name): &super::ScheduleKey) -> String {
    format!("schedule {name} of {tenant}")
}

fn is_about_to_start(schedule: &Schedule) -> bool {
    schedule.open.iter().any(|slot| slot.outcome == SlotOutcome::Due)
}
