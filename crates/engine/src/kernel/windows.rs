//! Velocity: how many different jobs fell into a sliding window. Sets of job ids, so asking twice counts once.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::policy::{Velocity, VelocityWindow};
use lockgate_core::time::Timestamp;
use parking_lot::Mutex;

/// Windows kept before those that ran empty are forgotten.
const SWEEP_AT: usize = 4_096;

/// The rule, and what the jobs of a window have in common.
type Key = (Arc<str>, Arc<str>);

#[derive(Default)]
pub(super) struct Windows {
    open: Mutex<BTreeMap<Key, Window>>,
}

#[derive(Default)]
struct Window {
    /// By time of the first question.
    order: VecDeque<(Timestamp, Arc<str>)>,
    ids: HashSet<Arc<str>>,
    span: Duration,
}

impl Window {
    fn forget_before(&mut self, now: Timestamp) {
        while let Some((at, _)) = self.order.front()
            && *at + self.span <= now
            && let Some((_, id)) = self.order.pop_front()
        {
            self.ids.remove(&id);
        }
    }

    fn add(&mut self, id: &str, now: Timestamp) {
        if !self.ids.contains(id) {
            let id: Arc<str> = id.into();
            self.ids.insert(id.clone());
            self.order.push_back((now, id));
        }
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
        window.add(asked.job_id, asked.now);
        window.ids.len() as u64
    }
}

/// Looks into the windows and leaves them as they are: for questions that are no jobs.
pub(super) struct OnlyLooking<'a>(pub(super) &'a Windows);

impl Velocity for OnlyLooking<'_> {
    fn count(&self, asked: &VelocityWindow<'_>) -> u64 {
        let mut open = self.0.open.lock();
        let Some(window) = open.get_mut(&(asked.rule.into(), asked.key.into())) else { return 1 };
        window.forget_before(asked.now);
        let counted = window.ids.contains(asked.job_id);
        window.ids.len() as u64 + u64::from(!counted)
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
}
