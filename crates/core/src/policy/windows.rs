//! Sliding windows of job ids for velocity conditions. They are sets, so counting a job twice changes nothing.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::VelocityWindow;
use crate::time::Timestamp;

/// Above this many windows, empty ones are dropped.
const SWEEP_AT: usize = 4_096;

/// The rule, and the values that the jobs of the window share.
type WindowKey = (Arc<str>, Arc<str>);

/// The velocity windows of one process.
#[derive(Default)]
pub struct VelocityWindows {
    open: BTreeMap<WindowKey, OpenWindow>,
}

#[derive(Default)]
struct OpenWindow {
    /// Job ids by the time when they were first counted.
    order: VecDeque<(Timestamp, Arc<str>)>,
    /// The position of each job since the window was opened.
    ids: HashMap<Arc<str>, u64>,
    /// How many jobs have left the window.
    gone: u64,
    span: Duration,
}

impl OpenWindow {
    fn forget_before(&mut self, now: Timestamp) {
        while let Some((at, _)) = self.order.front()
            && *at + self.span <= now
            && let Some((_, id)) = self.order.pop_front()
        {
            self.ids.remove(&id);
            self.gone += 1;
        }
    }

    /// The position that a new job would get, counted from the oldest that is still inside.
    fn next_place(&self) -> u64 {
        self.ids.len() as u64 + 1
    }

    /// A job keeps its position: one that was allowed before is not refused because of later jobs when it is judged again.
    fn place(&self, id: &str) -> Option<u64> {
        self.ids.get(id).map(|place| place.saturating_sub(self.gone))
    }

    fn add(&mut self, id: &str, now: Timestamp) -> u64 {
        if let Some(place) = self.place(id) {
            return place;
        }
        let (id, place): (Arc<str>, u64) = (id.into(), self.next_place());
        self.ids.insert(id.clone(), self.gone + place);
        self.order.push_back((now, id));
        place
    }
}

impl VelocityWindows {
    /// Adds the job to its window and returns its position.
    pub fn enter(&mut self, asked: &VelocityWindow<'_>) -> u64 {
        if self.open.len() >= SWEEP_AT {
            self.open.retain(|_, window| {
                window.forget_before(asked.now);
                !window.ids.is_empty()
            });
        }
        let window = self.open.entry((asked.rule.into(), asked.key.into())).or_default();
        window.span = asked.span;
        window.forget_before(asked.now);
        window.add(asked.job_id, asked.now)
    }

    /// The position that the job has or would get. Changes nothing.
    pub fn look(&mut self, asked: &VelocityWindow<'_>) -> u64 {
        let Some(window) = self.open.get_mut(&(asked.rule.into(), asked.key.into())) else { return 1 };
        window.forget_before(asked.now);
        window.place(asked.job_id).unwrap_or_else(|| window.next_place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(job_id: &str, ms: i64) -> VelocityWindow<'_> {
        let span = Duration::from_millis(100);
        VelocityWindow { rule: "r", key: "k", job_id, now: Timestamp::from_millis(ms), span }
    }

    fn at(windows: &mut VelocityWindows, job_id: &str, ms: i64) -> u64 {
        windows.enter(&asked(job_id, ms))
    }

    #[test]
    fn a_job_counts_once_and_leaves_after_the_span() {
        let windows = &mut VelocityWindows::default();
        assert_eq!([at(windows, "a", 0), at(windows, "a", 10), at(windows, "b", 50)], [1, 1, 2]);
        assert_eq!(at(windows, "c", 100), 2, "a left");
        assert_eq!(at(windows, "d", 1_000), 1);
    }

    #[test]
    fn looking_changes_nothing() {
        let windows = &mut VelocityWindows::default();
        at(windows, "a", 0);
        assert_eq!(["b", "c", "a"].map(|job_id| windows.look(&asked(job_id, 1))), [2, 2, 1]);
    }

    #[test]
    fn a_job_that_was_let_in_keeps_its_place_however_many_follow() {
        let windows = &mut VelocityWindows::default();
        assert_eq!([at(windows, "a", 0), at(windows, "b", 10), at(windows, "c", 20)], [1, 2, 3]);
        assert_eq!([at(windows, "b", 30), at(windows, "b", 105)], [2, 1], "and moves up when others leave");
    }
}
