//! Decides the schedule's own times, one after the other.

use std::time::Duration;

use super::super::{Misfire, Series, SlotKey};
use super::{DUE_MAX, GivenUp, ScheduleStep};
use crate::time::Timestamp;

/// The most slots that one missed span adds: one for all lapsed times, and one to start.
const ROWS_OF_A_SPAN: usize = 2;

impl ScheduleStep {
    /// T-2: decides every due time, in order, each once.
    pub(super) fn own_times(&mut self) {
        while self.room() >= ROWS_OF_A_SPAN && self.due() < DUE_MAX {
            let Some((time, due)) = self.next_own().filter(|(_, due)| *due <= self.now) else { break };
            if self.next.catching_up.is_some_and(|until| time <= until) || !self.is_missed(due) {
                self.decide(time);
            } else {
                self.make_up(time);
            }
        }
        self.next.catching_up = self.next.catching_up.filter(|until| *until > self.next.done_until);
    }

    /// The next undecided time, and when it is due.
    pub(super) fn next_own(&self) -> Option<(Timestamp, Timestamp)> {
        let time = self.table.as_ref()?.next(self.next.done_until)?;
        Some((time, self.due_at(time)))
    }

    fn due_at(&self, time: Timestamp) -> Timestamp {
        if self.next.spec.jitter_ms == 0 {
            return time;
        }
        let next = self.table.as_ref().and_then(|table| table.next(time));
        time + self.next.jitter(&self.own(time), next)
    }

    fn is_missed(&self, due: Timestamp) -> bool {
        self.now.since(due).as_millis() > u128::from(self.next.spec.grace_ms)
    }

    fn decide(&mut self, time: Timestamp) {
        let (outcome, reason) = self.place_in_line(time);
        self.add(self.own(time), outcome, reason);
        self.next.done_until = self.next.done_until.max(time);
    }

    /// The time is missed, and perhaps later ones too: lapses or starts them by the misfire policy.
    fn make_up(&mut self, first: Timestamp) {
        let last = self.last_missed(first);
        let window = Duration::from_millis(self.next.spec.misfire_window_ms);
        let oldest = self.now - window;
        let given_up = match self.next.spec.misfire {
            Misfire::Skip => Some(last),
            _ if last < oldest => Some(last),
            Misfire::Latest => self.before(last),
            Misfire::All => self.before(oldest),
        };
        if let Some(given_up) = given_up.filter(|given_up| *given_up >= first) {
            self.lapse(given_up, GivenUp::Missed);
        }
        if self.next.done_until < last {
            // Fixed now, so that a time inside the window does not leave it while earlier ones are started.
            self.next.catching_up = Some(last);
        }
    }

    /// The latest undecided time before `time`.
    fn before(&self, time: Timestamp) -> Option<Timestamp> {
        self.table.as_ref()?.latest(self.next.done_until, Timestamp::from_millis(time.as_millis() - 1))
    }

    fn last_missed(&self, first: Timestamp) -> Timestamp {
        let grace = Duration::from_millis(self.next.spec.grace_ms);
        let latest = self.before(self.now - grace).unwrap_or(first);
        // With a jitter the latest time may be due so much later that it is not missed yet; then the one before it is.
        let missed = if self.is_missed(self.due_at(latest)) { Some(latest) } else { self.before(latest) };
        missed.unwrap_or(first).max(first)
    }

    /// The slot of one of the schedule's own times.
    pub(super) fn own(&self, nominal: Timestamp) -> SlotKey {
        SlotKey { series: Series::own(self.next.brought_back), nominal }
    }
}
