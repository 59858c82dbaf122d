//! Time that never goes back, as the edge is told it.

use std::ops::Add;
use std::time::Duration;

/// A point of a process's own monotonic time. Wall time is a [`Timestamp`](crate::time::Timestamp): it may jump, so silence and
/// patience are not measured with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// When the edge began. It lies a day after zero, so that what other processes saw shortly before has a moment too.
    pub const BEGAN: Self = Self(Duration::from_secs(24 * 3_600));

    /// The time that passed since an earlier moment; zero if that lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// So long before; zero at the earliest.
    #[must_use]
    pub fn back(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}
