//! Waiting jobs by priority, and the turns before each.

use crate::lane::Priority;
use crate::pools::PriorityShares;

/// Waiting jobs in the order of `Priority::ALL`. Extrapolated over time, so there are fractions of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Backlog([f64; 4]);

impl Backlog {
    pub(super) fn of(waiting: [u64; 4]) -> Self {
        Self(waiting.map(|jobs| jobs as f64))
    }

    pub(super) fn add(&mut self, priority: Priority, jobs: u64) {
        self.0[priority as usize] += jobs as f64;
    }

    pub(super) fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    /// Removes the jobs that `turns` turns serve, as the priorities share them. Turns without a waiting job are lost,
    /// because no job can be served before it comes.
    pub(super) fn drain(&mut self, mut turns: f64, shares: PriorityShares) {
        let PriorityShares::Weights(weights) = shares else {
            for jobs in &mut self.0 {
                let gone = f64::min(*jobs, turns);
                *jobs -= gone;
                turns -= gone;
            }
            return;
        };
        // Each pass empties at least one more priority, which leaves its turns to the others.
        for _ in Priority::ALL {
            let busy = self.0.iter().zip(weights).filter(|(jobs, _)| **jobs > 0.0);
            let round: f64 = busy.map(|(_, weight)| f64::from(weight)).sum();
            if round == 0.0 {
                return;
            }
            let rounds = turns / round;
            for (jobs, weight) in self.0.iter_mut().zip(weights) {
                let gone = f64::min(*jobs, rounds * f64::from(weight));
                *jobs -= gone;
                turns -= gone;
            }
        }
    }

    /// Turns until one more job of this priority is served. Jobs that are at least as urgent come first; less urgent ones
    /// meanwhile get no more than their share of the rounds, however many wait.
    pub(super) fn turns_before(&self, priority: Priority, shares: PriorityShares) -> f64 {
        let (first, others) = self.parted(priority);
        first + others.min(first * between(priority, shares))
    }

    /// Like [`turns_before`](Self::turns_before), for as many less urgent jobs as there can be.
    pub(super) fn turns_at_most(&self, priority: Priority, shares: PriorityShares) -> f64 {
        let (first, _) = self.parted(priority);
        first * (1.0 + between(priority, shares))
    }

    /// Jobs at least as urgent, and less urgent jobs.
    fn parted(&self, priority: Priority) -> (f64, f64) {
        let (first, others) = self.0.split_at(priority as usize + 1);
        (first.iter().sum(), others.iter().sum())
    }
}

/// The most turns of less urgent jobs for each turn of a job at least as urgent as this.
fn between(priority: Priority, shares: PriorityShares) -> f64 {
    let PriorityShares::Weights(weights) = shares else { return 0.0 };
    let (first, others) = weights.split_at(priority as usize + 1);
    // The priority with the smallest weight may be the only one of them with work.
    let fewest = first.iter().copied().min().unwrap_or(1).max(1);
    f64::from(others.iter().sum::<u32>()) / f64::from(fewest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARES: PriorityShares = PriorityShares::Weights([64, 16, 4, 1]);

    #[test]
    fn a_backlog_delays_the_more_urgent_by_its_turns_and_the_less_urgent_by_all_of_it() {
        let backlog = Backlog::of([64, 0, 1_000, 0]);
        let before = |shares| Priority::ALL.map(|priority| backlog.turns_before(priority, shares));
        assert_eq!(before(SHARES), [85.0, 84.0, 1_064.0, 1_064.0]);
        assert_eq!(before(PriorityShares::Strict), [64.0, 64.0, 1_064.0, 1_064.0]);
        assert_eq!(Backlog::of([0, 0, 1_000, 1_000]).turns_before(Priority::Critical, SHARES), 0.0);
    }

    #[test]
    fn turns_are_shared_by_those_who_wait_and_none_is_saved_up() {
        let mut backlog = Backlog::of([0, 160, 400, 100]);
        backlog.drain(105.0, SHARES);
        assert_eq!(backlog, Backlog::of([0, 80, 380, 95]));
        // The high jobs need 105 turns until none is left; of the other turns four in five go to default jobs.
        backlog.drain(205.0, SHARES);
        let expected: [f64; 4] = [0.0, 0.0, 280.0, 70.0];
        assert!(backlog.0.into_iter().zip(expected).all(|(jobs, expected)| (jobs - expected).abs() < 1e-9), "{backlog:?}");
        backlog.drain(1_000.0, SHARES);
        assert!(backlog.total() < 1e-9, "{backlog:?}");
        backlog.add(Priority::Low, 3);
        assert!((backlog.total() - 3.0).abs() < 1e-9, "{backlog:?}");
        backlog.add(Priority::Critical, 2);
        backlog.drain(4.0, PriorityShares::Strict);
        assert!((backlog.total() - 1.0).abs() < 1e-9, "{backlog:?}");
    }
}
