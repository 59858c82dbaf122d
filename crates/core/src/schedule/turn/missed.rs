//! Lapsed times: one slot for all times of a span, however many they are.

use super::super::SlotOutcome;
use super::ScheduleStep;
use crate::config::read::write_span;
use crate::time::Timestamp;

/// Why times lapse.
#[derive(Clone, Copy)]
pub(in crate::schedule) enum GivenUp {
    Missed,
    Paused,
    Changed,
}

impl ScheduleStep {
    /// Lapses the undecided times up to `last`, which is one of them.
    pub(in crate::schedule) fn lapse(&mut self, last: Timestamp, why: GivenUp) {
        let Some(table) = &self.table else { return };
        let first = table.next(self.next.done_until).unwrap_or(last);
        let reason = if first == last {
            match why {
                GivenUp::Missed => format!("it was noticed {} late", write_span(self.now.since(last).as_secs() * 1000)),
                GivenUp::Paused => "the schedule was paused".to_owned(),
                GivenUp::Changed => "it had not begun when the schedule was changed".to_owned(),
            }
        } else {
            let count = table.count(self.next.done_until, last);
            let what = match why {
                GivenUp::Missed => "were missed",
                GivenUp::Paused => "fell into a pause",
                GivenUp::Changed => "had not begun when the schedule was changed",
            };
            format!("{count} times from {} to {} {what}", table.write(first), table.write(last))
        };
        self.add(self.own(last), SlotOutcome::Missed, Some(reason));
        self.next.done_until = self.next.done_until.max(last);
    }

    /// Lapses all undecided times up to now.
    pub(in crate::schedule) fn lapse_until_now(&mut self, why: GivenUp) {
        let latest = self.table.as_ref().and_then(|table| table.latest(self.next.done_until, self.now));
        if let Some(latest) = latest {
            self.lapse(latest, why);
        }
        self.next.done_until = self.next.done_until.max(self.now);
        self.next.catching_up = None;
    }
}
