//! Bounds on how much of the backlog is held in memory (L-5).

use lockgate_core::job::Job;

/// The memory of a job besides its payload: its row, ids, labels and map entries, rounded up generously.
const JOB_BYTES: usize = 1024;

/// Bounds of the windows. Smaller windows read the Store in smaller pages; larger ones only cost memory once a window
/// outlasts one refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowBounds {
    /// The most jobs in one window.
    pub window_jobs: usize,
    /// The most bytes in one window.
    pub window_bytes: usize,
    /// Once all windows together hold this many jobs, a window above `floor_jobs` stops growing.
    pub total_jobs: usize,
    /// Once all windows together hold this many bytes, windows keep ids only; the Store has the jobs.
    pub total_bytes: usize,
    /// Jobs that a window may hold however full the others are, so that no other backlog can starve it.
    pub floor_jobs: usize,
}

impl Default for WindowBounds {
    fn default() -> Self {
        Self {
            window_jobs: 4096,
            window_bytes: 8 * 1024 * 1024,
            total_jobs: 200_000,
            total_bytes: 64 * 1024 * 1024,
            floor_jobs: 16,
        }
    }
}

/// What all windows hold together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowTotals {
    pub(super) jobs: usize,
    pub(super) bytes: usize,
}

impl WindowTotals {
    /// Replaces one window's former share by its present one.
    pub(super) fn adjust(&mut self, before: Self, after: Self) {
        self.jobs = self.jobs + after.jobs - before.jobs;
        self.bytes = self.bytes + after.bytes - before.bytes;
    }
}

/// The bounds for one window at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowRoom {
    /// The most jobs that the window may hold now.
    pub(super) jobs: usize,
    pub(super) bytes: usize,
    /// Keep ids only.
    pub(super) slim: bool,
}

impl WindowBounds {
    /// `others` is the total of all windows, `own` the share of this window.
    pub(super) fn room(&self, others: WindowTotals, own: WindowTotals) -> WindowRoom {
        let tight = others.jobs >= self.total_jobs;
        let jobs = if tight { self.floor_jobs.max(own.jobs).min(self.window_jobs) } else { self.window_jobs };
        WindowRoom { jobs: jobs.max(1), bytes: self.window_bytes, slim: others.bytes >= self.total_bytes }
    }
}

pub(super) fn weight(job: &Job) -> usize {
    JOB_BYTES + job.request.payload.as_str().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: WindowBounds =
        WindowBounds { window_jobs: 10, window_bytes: 1000, total_jobs: 20, total_bytes: 2000, floor_jobs: 3 };

    #[test]
    fn a_window_stops_growing_when_all_together_are_full_but_never_below_the_floor() {
        let full = WindowTotals { jobs: 20, bytes: 0 };
        assert_eq!(BOUNDS.room(WindowTotals::default(), WindowTotals::default()).jobs, 10);
        assert_eq!(BOUNDS.room(full, WindowTotals { jobs: 7, bytes: 0 }).jobs, 7);
        assert_eq!(BOUNDS.room(full, WindowTotals::default()).jobs, 3);
    }

    #[test]
    fn only_ids_are_kept_when_the_bytes_are_used_up() {
        assert!(!BOUNDS.room(WindowTotals { jobs: 1, bytes: 1999 }, WindowTotals::default()).slim);
        assert!(BOUNDS.room(WindowTotals { jobs: 1, bytes: 2000 }, WindowTotals::default()).slim);
    }
}
