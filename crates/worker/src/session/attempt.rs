//! One assignment held by this worker, and the signals to its handler.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use lockgate_proto::v1::Assignment;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::wall;

/// How long a handler may take to stop after it was told to, before it is dropped. Less than the 2 s between the lease-loss
/// signal and the end of the lease, so that no handler runs beyond it.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(1);

const GOING: u8 = 0;
const CANCELLED: u8 = 1;
const ABORTED: u8 = 2;
const NOT_STARTED: i64 = i64::MIN;

#[derive(Debug)]
pub(crate) struct RunningAttempt {
    pub assignment: Assignment,
    level: AtomicU8,
    raised: Notify,
    hidden: AtomicBool,
    started_at_ms: AtomicI64,
    /// 0 before the start.
    started_at_ns: AtomicU64,
    began: OnceLock<Instant>,
}

impl RunningAttempt {
    pub(crate) fn new(assignment: Assignment) -> Self {
        Self {
            assignment,
            level: AtomicU8::new(GOING),
            raised: Notify::new(),
            hidden: AtomicBool::new(false),
            started_at_ms: AtomicI64::new(NOT_STARTED),
            started_at_ns: AtomicU64::new(0),
            began: OnceLock::new(),
        }
    }

    pub(crate) fn token(&self) -> &str {
        &self.assignment.token
    }

    /// The job's timeout; None if the server sent none.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        (self.assignment.timeout_ms > 0).then(|| Duration::from_millis(self.assignment.timeout_ms))
    }

    pub(crate) fn start(&self) {
        let now = wall::now_ns();
        self.started_at_ms.store(i64::try_from(now / 1_000_000).unwrap_or(i64::MAX), Ordering::Relaxed);
        self.started_at_ns.store(now, Ordering::Relaxed);
        self.began.get_or_init(Instant::now);
    }

    /// How long its handler has been running.
    pub(crate) fn took(&self) -> Option<Duration> {
        self.began.get().map(Instant::elapsed)
    }

    /// The start time for the attempt's span; returned once.
    pub(crate) fn take_start_ns(&self) -> Option<u64> {
        Some(self.started_at_ns.swap(0, Ordering::Relaxed)).filter(|at| *at != 0)
    }

    pub(crate) fn started_at_ms(&self) -> Option<i64> {
        Some(self.started_at_ms.load(Ordering::Relaxed)).filter(|at| *at != NOT_STARTED)
    }

    pub(crate) fn hide(&self) {
        self.hidden.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_hidden(&self) -> bool {
        self.hidden.load(Ordering::Relaxed)
    }

    /// Tells the handler to stop; it is dropped after [`STOP_GRACE`].
    pub(crate) fn cancel(&self) {
        self.raise(CANCELLED);
    }

    /// Drops the handler at its next await point.
    pub(crate) fn abort(&self) {
        self.raise(ABORTED);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.level.load(Ordering::Acquire) >= CANCELLED
    }

    pub(crate) async fn cancelled(&self) {
        self.reached(CANCELLED).await;
    }

    /// Completes when the handler must no longer run.
    pub(crate) async fn cut_off(&self) {
        self.cancelled().await;
        let _ = timeout(STOP_GRACE, self.reached(ABORTED)).await;
    }

    fn raise(&self, level: u8) {
        self.level.fetch_max(level, Ordering::AcqRel);
        self.raised.notify_waiters();
    }

    async fn reached(&self, level: u8) {
        loop {
            let raised = self.raised.notified();
            if self.level.load(Ordering::Acquire) >= level {
                return;
            }
            raised.await;
        }
    }
}
