//! Commands that people give to a schedule.

use std::sync::Arc;

use super::turn::{GivenUp, ScheduleDecision, ScheduleStep};
use super::{
    BACKFILL_CONCURRENCY_MAX, BACKFILL_SLOTS_MAX, BACKFILLS_MAX, Backfill, Count, Overlap, Schedule, Series, SlotKey,
    SlotOutcome, Spec, Timetable,
};
use crate::clock_guard::stamped_ahead;
use crate::request::Caller;
use crate::time::Timestamp;

/// A slot is due and its target may have been begun: the schedule must take a turn first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schedule is about to start something; try again")]
pub struct Unsettled;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackfillRefused {
    #[error("from must not be after to; swap them")]
    Backwards,
    #[error("to lies in the future; a backfill makes up for times that have passed")]
    Future,
    #[error("no time of the schedule lies between from and to")]
    Empty,
    #[error("{0} times lie between from and to, and a backfill may start {BACKFILL_SLOTS_MAX}; choose a shorter span")]
    TooMany(Count),
    #[error("concurrency must be between 1 and {BACKFILL_CONCURRENCY_MAX}")]
    Concurrency,
    #[error("the schedule has overlap {}, so one at a time is at work; use 1, or set its overlap to allow first", .0.as_str())]
    OneAtATime(Overlap),
    #[error("the schedule has {BACKFILLS_MAX} backfills under way; wait for one of them, or cancel it")]
    Busy,
    #[error("a backfill {0:?} is under way already")]
    Taken(Arc<str>),
    #[error("the times of the schedule cannot be worked out: {0}")]
    Unreadable(String),
}

impl Schedule {
    /// A new schedule. It does not start times before now.
    pub fn begin(name: Arc<str>, spec: Spec, caller: &Caller, birth: Arc<str>, now: Timestamp) -> Self {
        let schedule = Self {
            tenant: caller.tenant.clone(),
            name,
            version: 0,
            actor: caller.actor.clone(),
            actor_type: caller.actor_type.clone(),
            actor_verified: caller.verified,
            wakes_at: None,
            birth,
            revision: 1,
            done_until: now,
            brought_back: 0,
            catching_up: None,
            paused_at: spec.paused.then_some(now),
            triggered_at: None,
            open: Vec::new(),
            backfills: Vec::new(),
            spec,
        };
        ScheduleStep::new(&schedule, now).finish().schedule
    }

    /// Applies another spec. Decided times stay decided; if the new spec has other times, undecided times up to now lapse.
    /// None if the spec is equal.
    pub fn apply(&self, spec: Spec, caller: &Caller, now: Timestamp) -> Result<Option<ScheduleDecision>, Unsettled> {
        if spec == self.spec {
            return Ok(None);
        }
        self.settled()?;
        let mut step = ScheduleStep::new(self, now);
        if self.paused_at.is_some() {
            step.lapse_until_now(GivenUp::Paused);
        } else if !spec.means_the_times_of(&self.spec) {
            step.lapse_until_now(GivenUp::Changed);
        }
        if spec.paused != self.spec.paused {
            step.next.paused_at = spec.paused.then_some(now);
        }
        step.next.revision += 1;
        step.next.actor = caller.actor.clone();
        step.next.actor_type = caller.actor_type.clone();
        step.next.actor_verified = caller.verified;
        step.table = Timetable::of(&spec).ok();
        step.next.spec = spec;
        Ok(Some(step.finish()))
    }

    /// Pauses the schedule: neither its own times nor backfills start. None if it is paused already.
    pub fn pause(&self, now: Timestamp) -> Option<ScheduleDecision> {
        let mut step = self.paused_at.is_none().then(|| ScheduleStep::new(self, now))?;
        step.next.paused_at = Some(now);
        Some(step.finish())
    }

    /// Resumes the schedule. Times during the pause are not started; one slot records how many they were.
    pub fn resume(&self, now: Timestamp) -> Option<ScheduleDecision> {
        self.paused_at?;
        let mut step = ScheduleStep::new(self, now);
        step.lapse_until_now(GivenUp::Paused);
        step.next.paused_at = None;
        Some(step.finish())
    }

    /// A clock that was ahead decided times that are still to come. They come again at the right time, in a series of their
    /// own, so that the slots of the wrong decisions stay as they are. None if there is no such time.
    pub fn bring_back(&self, right: Timestamp) -> Option<ScheduleDecision> {
        stamped_ahead(self.done_until, right)?;
        let mut step = ScheduleStep::new(self, right);
        step.next.done_until = right;
        step.next.catching_up = None;
        step.next.brought_back += 1;
        step.next.paused_at = self.paused_at.map(|at| at.min(right));
        Some(step.finish())
    }

    /// Starts the work now, paused or not. It queues with the schedule's own times as the overlap policy says.
    pub fn trigger(&self, now: Timestamp) -> ScheduleDecision {
        let mut step = ScheduleStep::new(self, now);
        let after = |last: Timestamp| Timestamp::from_millis(last.as_millis() + 1);
        let nominal = self.triggered_at.map_or(now, |last| now.max(after(last)));
        let (outcome, reason) = step.place_in_line(nominal);
        step.add(SlotKey { series: Series::manual(), nominal }, outcome, reason);
        step.next.triggered_at = Some(nominal);
        step.finish()
    }

    /// Starts the times of a past span, both ends included, regardless of `start_at` and `end_at`.
    pub fn backfill(&self, ask: Backfill, now: Timestamp) -> Result<ScheduleDecision, BackfillRefused> {
        if ask.done_until >= ask.until {
            return Err(BackfillRefused::Backwards);
        }
        if ask.until > now {
            return Err(BackfillRefused::Future);
        }
        if ask.concurrency == 0 || ask.concurrency > BACKFILL_CONCURRENCY_MAX {
            return Err(BackfillRefused::Concurrency);
        }
        if ask.concurrency > 1 && self.spec.overlap != Overlap::Allow {
            return Err(BackfillRefused::OneAtATime(self.spec.overlap));
        }
        if self.backfills.len() >= BACKFILLS_MAX {
            return Err(BackfillRefused::Busy);
        }
        if self.backfills.iter().any(|other| other.id == ask.id) {
            return Err(BackfillRefused::Taken(ask.id));
        }
        let table = Timetable::of(&self.spec).map_err(BackfillRefused::Unreadable)?.unbounded();
        match table.count_up_to(BACKFILL_SLOTS_MAX, ask.done_until, ask.until) {
            Count::Exactly(0) => return Err(BackfillRefused::Empty),
            Count::Exactly(count) if count <= BACKFILL_SLOTS_MAX as u64 => {}
            count => return Err(BackfillRefused::TooMany(count)),
        }
        let mut step = ScheduleStep::new(self, now);
        step.next.backfills.push(ask);
        Ok(step.finish())
    }

    /// Cancels a backfill: it starts nothing more, and its running targets continue. None if there is no such backfill.
    pub fn cancel_backfill(&self, id: &str, now: Timestamp) -> Option<ScheduleDecision> {
        let at = self.backfills.iter().position(|backfill| *backfill.id == *id)?;
        let mut step = ScheduleStep::new(self, now);
        step.next.backfills.remove(at);
        let series = self.backfills[at].series();
        // Where only one target may run at a time, later times still wait for the backfill's running target.
        let is_awaited = step.is_one_at_a_time();
        step.next.open.retain(|slot| is_awaited || slot.key.series != series || slot.outcome == SlotOutcome::Due);
        Some(step.finish())
    }

    /// The last turn of the schedule. Queued slots are not started any more; running targets continue.
    pub fn retire(&self, now: Timestamp) -> Result<ScheduleDecision, Unsettled> {
        self.settled()?;
        let mut step = ScheduleStep::new(self, now);
        step.skip_queued("the schedule was removed");
        Ok(step.finish())
    }

    /// Whether nothing is due: the target of a due slot was made from this spec and must be begun with it.
    fn settled(&self) -> Result<(), Unsettled> {
        let due = self.open.iter().any(|slot| slot.outcome == SlotOutcome::Due);
        if due { Err(Unsettled) } else { Ok(()) }
    }

    /// The next nominal times of the schedule.
    pub fn upcoming(&self, now: Timestamp, count: usize) -> Result<Vec<Timestamp>, String> {
        Timetable::of(&self.spec).map(|table| table.upcoming(self.done_until.max(now), count))
    }
}
