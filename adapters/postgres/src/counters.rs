//! Counts the Store's requests to the server, for benchmarks.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the Store connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounters {
    /// Committed transactions with changes of jobs.
    pub transactions: u64,
    pub statements: u64,
    /// Waits for the network; statements sent together share one.
    pub round_trips: u64,
    /// Rows inserted, updated and deleted by committed changes of jobs.
    pub rows_written: u64,
}

#[derive(Default)]
pub(crate) struct LiveCounters {
    transactions: AtomicU64,
    statements: AtomicU64,
    round_trips: AtomicU64,
    rows_written: AtomicU64,
}

impl LiveCounters {
    pub(crate) fn sent(&self, statements: usize) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        self.statements.fetch_add(statements as u64, Ordering::Relaxed);
    }

    pub(crate) fn committed(&self, rows: u64) {
        self.transactions.fetch_add(1, Ordering::Relaxed);
        self.rows_written.fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> StoreCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreCounters {
            transactions: read(&self.transactions),
            statements: read(&self.statements),
            round_trips: read(&self.round_trips),
            rows_written: read(&self.rows_written),
        }
    }
}
