//! Velocity: the place of a job in a sliding window. Sets of job ids, so asking twice counts once.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::policy::{Velocity, VelocityWindow};
use lockgate_core::time::Timestamp;
use parking_lot::Mutex;

/// Windows kept before those that ran empty are forgotten.
const SWEEP_AT: usize = 4_096;

/// The rule, and what the jobs of a window have in common.
type Key = (Arc<str>, Arc<str>);

/// Velocity windows of one process.
#[derive(Default)]
pub struct Windows {
    open: Mutex<BTreeMap<Key, Window>>,
}

#[derive(Default)]
struct Window {
    /// By time of the first question.
    order: VecDeque<(Timestamp, Arc<str>)>,
    /// The place of each since the window was opened.
    ids: HashMap<Arc<str>, u64>,
    /// Jobs that have left it.
    gone: u64,
    span: Duration,
}

impl Window {
    fn forget_before(&mut self, now: Timestamp) {
        while let Some((at, _)) = self.order.front()
            && *at + self.span <= now
            && let Some((_, id)) = self.order.pop_front()
        {
            self.ids.remove(&id);
            self.gone += 1;
        }
    }

    /// The place a new job would take, counted from the oldest that is still in.
    fn next_place(&self) -> u64 {
        self.ids.len() as u64 + 1
    }

    /// A job keeps its place: one that was let in is not shut out by those after it when it is judged again.
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

impl Velocity for Windows {
    fn count(&self, asked: &VelocityWindow<'_>) -> u64 {
        let mut open = self.open.lock();
        if open.len() >= SWEEP_AT {
            open.retain(|_, window| {
                window.forget_before(asked.now);
                !window.ids.is_empty()
            });
        }
        let window = open.entry((asked.rule.into(), asked.key.into())).or_default();
        window.span = asked.span;
        window.forget_before(asked.now);
        window.add(asked.job_id, asked.now)
    }
}

/// Looks into the windows and leaves them as they are: for questions that are no jobs.
pub struct OnlyLooking<'a>(pub &'a Windows);

impl Velocity for OnlyLooking<'_> {
    fn count(&self, asked: &VelocityWindow<'_>) -> u64 {
        let mut open = self.0.open.lock();
        let Some(window) = open.get_mut(&(asked.rule.into(), asked.key.into())) else { return 1 };
        window.forget_before(asked.now);
        window.place(asked.job_id).unwrap_or_else(|| window.next_place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(windows: &dyn Velocity, job_id: &str, ms: i64) -> u64 {
        let span = Duration::from_millis(100);
        windows.count(&VelocityWindow { rule: "r", key: "k", job_id, now: Timestamp::from_millis(ms), span })
    }

    #[test]
    fn a_job_counts_once_and_leaves_after_the_span() {
        let windows = Windows::default();
        assert_eq!([at(&windows, "a", 0), at(&windows, "a", 10), at(&windows, "b", 50)], [1, 1, 2]);
        assert_eq!(at(&windows, "c", 100), 2, "a left");
        assert_eq!(at(&windows, "d", 1_000), 1);
    }

    #[test]
    fn looking_changes_nothing() {
        let windows = Windows::default();
        at(&windows, "a", 0);
        let looking = OnlyLooking(&windows);
        assert_eq!([at(&looking, "b", 1), at(&looking, "c", 1), at(&looking, "a", 1)], [2, 2, 1]);
    }

    #[test]
    fn a_job_that_was_let_in_keeps_its_place_however_many_follow() {
        let windows = Windows::default();
        assert_eq!([at(&windows, "a", 0), at(&windows, "b", 10), at(&windows, "c", 20)], [1, 2, 3]);
        assert_eq!([at(&windows, "b", 30), at(&windows, "b", 105)], [2, 1], "and moves up when others leave");
    }
}
