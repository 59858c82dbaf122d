//! What became of real calls lately. A Store may pass every probe and still fail what clients ask of it: a disk with room for one
//! page and not for ten, a damaged page in the middle of a table, a lock that comes and goes.

use std::collections::VecDeque;
use std::time::Duration;

use lockgate_ports::StoreError;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Outcomes count for so long. Without calls, a process is ready again after it, and the next calls decide anew.
const WINDOW: Duration = Duration::from_secs(10);
/// Fewer failures say nothing about the Store: one damaged row that is tried again every five seconds must not make a process unready.
/// So many in a row say that it fails now, however well it did a few seconds ago.
const FAILURES_MIN: u32 = 3;

/// Kinds of calls that are judged apart: submits may be stored while no result can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreCall {
    /// New jobs.
    Submit,
    /// Ends of jobs.
    Result,
    /// All other moves of jobs: claims, starts, retries.
    Claim,
}

impl StoreCall {
    const ALL: [Self; 3] = [Self::Submit, Self::Result, Self::Claim];

    const fn plural(self) -> &'static str {
        match self {
            Self::Submit => "commits of new jobs",
            Self::Result => "commits of results",
            Self::Claim => "commits of claims",
        }
    }
}

/// Calls of one kind of which the latest ones failed, or at least half.
#[derive(Clone, Debug)]
pub struct Failing {
    pub calls: &'static str,
    pub failed: u32,
    pub of: u32,
    /// The latest failure.
    pub error: StoreError,
}

#[derive(Default)]
pub(crate) struct Outcomes([Mutex<OutcomeWindow>; 3]);

#[derive(Default)]
struct OutcomeWindow {
    /// By second, the oldest first.
    seconds: VecDeque<Second>,
    /// Failures since the latest success.
    in_a_row: u32,
    error: Option<StoreError>,
}

struct Second {
    began: Instant,
    calls: u32,
    failed: u32,
}

impl Outcomes {
    /// What the Store said to a whole call. A row that it refuses says nothing about other rows.
    pub(crate) fn told<T>(&self, call: StoreCall, outcome: &Result<T, StoreError>) {
        let error = match outcome {
            Ok(_) => None,
            Err(StoreError::Refused(_)) => return,
            Err(error) => Some(error),
        };
        let mut window = self.0[call as usize].lock();
        window.forget_old();
        let now = Instant::now();
        if window.seconds.back().is_none_or(|second| now >= second.began + Duration::from_secs(1)) {
            window.seconds.push_back(Second { began: now, calls: 0, failed: 0 });
        }
        if let Some(second) = window.seconds.back_mut() {
            second.calls = second.calls.saturating_add(1);
            second.failed = second.failed.saturating_add(u32::from(error.is_some()));
        }
        match error {
            Some(error) => {
                window.in_a_row = window.in_a_row.saturating_add(1);
                window.error = Some(error.clone());
            }
            None => window.in_a_row = 0,
        }
    }

    /// The kind of calls that fails, if one does.
    pub(super) fn failing(&self) -> Option<Failing> {
        StoreCall::ALL.into_iter().find_map(|call| self.failing_of(call))
    }

    pub(super) fn failing_of(&self, call: StoreCall) -> Option<Failing> {
        let mut window = self.0[call as usize].lock();
        window.forget_old();
        let sum = |count: fn(&Second) -> u32| window.seconds.iter().map(count).fold(0, u32::saturating_add);
        let (of, failed) = (sum(|second| second.calls), sum(|second| second.failed));
        let is_failing = failed >= FAILURES_MIN && (window.in_a_row >= FAILURES_MIN || failed >= of - failed);
        let error = window.error.clone().filter(|_| is_failing)?;
        Some(Failing { calls: call.plural(), failed, of, error })
    }
}

impl OutcomeWindow {
    fn forget_old(&mut self) {
        while self.seconds.front().is_some_and(|second| second.began.elapsed() > WINDOW) {
            self.seconds.pop_front();
        }
        if self.seconds.is_empty() {
            self.in_a_row = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(outcomes: &Outcomes, call: StoreCall, times: usize) {
        (0..times).for_each(|_| outcomes.told::<()>(call, &Err(StoreError::Full("disk".to_owned()))));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_fail_when_half_of_their_kind_does_and_for_as_long_as_that_is_news() {
        let outcomes = Outcomes::default();
        fail(&outcomes, StoreCall::Result, 2);
        assert!(outcomes.failing().is_none(), "two may be one bad row");
        (0..100).for_each(|_| outcomes.told(StoreCall::Submit, &Ok(())));
        fail(&outcomes, StoreCall::Result, 1);
        let failing = outcomes.failing().expect("results fail, whatever submits do");
        assert_eq!((failing.calls, failing.failed, failing.of), ("commits of results", 3, 3));
        (0..4).for_each(|_| outcomes.told(StoreCall::Result, &Ok(())));
        assert!(outcomes.failing().is_none(), "most go through");
        fail(&outcomes, StoreCall::Result, 1);
        assert!(outcomes.failing().is_some());
        (0..400).for_each(|_| outcomes.told(StoreCall::Result, &Ok(())));
        assert!(outcomes.failing().is_none());
        fail(&outcomes, StoreCall::Result, 3);
        assert!(outcomes.failing().is_some(), "none goes through now, although most did a moment ago");
        tokio::time::advance(WINDOW + Duration::from_millis(1)).await;
        assert!(outcomes.failing().is_none(), "that was long ago");
    }

    #[tokio::test(start_paused = true)]
    async fn a_row_that_is_refused_is_no_failure_of_the_store() {
        let outcomes = Outcomes::default();
        (0..9).for_each(|_| outcomes.told::<()>(StoreCall::Submit, &Err(StoreError::Refused("a trigger".to_owned()))));
        assert!(outcomes.failing().is_none());
    }
}
