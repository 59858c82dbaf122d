//! Times that are given up: one slot for all of a span, however many they are.

use super::super::Outcome;
use super::Step;
use crate::config::read::write_span;
use crate::time::Timestamp;

/// Why times are given up.
#[derive(Clone, Copy)]
pub(in crate::schedule) enum Why {
    Missed,
    Paused,
    Changed,
}

impl Step {
    /// Gives up the undecided times up to `last`, which is one of them.
    pub(in crate::schedule) fn lapse(&mut self, last: Timestamp, why: Why) {
        let Some(table) = &self.table else { return };
        let first = table.next(self.next.done_until).unwrap_or(last);
        let reason = if first == last {
            match why {
                Why::Missed => format!("it was noticed {} late", write_span(self.now.since(last).as_secs() * 1000)),
                Why::Paused => "the schedule was paused".to_owned(),
                Why::Changed => "it had not begun when the schedule was changed".to_owned(),
            }
        } else {
            let count = table.count(self.next.done_until, last);
            let what = match why {
                Why::Missed => "were missed",
                Why::Paused => "fell into a pause",
                Why::Changed => "had not begun when the schedule was changed",
            };
            format!("{count} times from {} to {} {what}", table.write(first), table.write(last))
        };
        self.add(self.own(last), Outcome::Missed, Some(reason));
        self.next.done_until = self.next.done_until.max(last);
    }

    /// Gives up all undecided times up to now.
    pub(in crate::schedule) fn lapse_until_now(&mut self, why: Why) {
        let latest = self.table.as_ref().and_then(|table| table.latest(self.next.done_until, self.now));
        if let Some(latest) = latest {
            self.lapse(latest, why);
        }
        self.next.done_until = self.next.done_until.max(self.now);
        self.next.catching_up = None;
    }
}
