//! Schedules are turned when their time comes, or when something ended that one of them waits for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::schedule::Schedule;
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Lead;
use crate::Inner;
use crate::health::{idle, jittered, progress};
use crate::schedules::ScheduleKey;

/// Schedules turned together: a few commits for all of them, however many come due in one second.
const SCHEDULES_MAX: usize = 1_000;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut rings = inner.ports.bus.overhear();
    // The first round at once: times may have passed while no process ran. A moment, not a span: rings must not put it off.
    let mut wake_at = Instant::now();
    loop {
        // A look comes a little early; what is due comes when it is.
        let every = jittered(inner.settings.schedules_every);
        idle(every);
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep_until(wake_at) => {}
            () = inner.schedules.called() => {}
            rung = rings.next() => {
                rung.iter().for_each(|id| inner.schedules.rang(id));
                continue;
            }
        }
        progress();
        let wait = match inner.schedules_once().await {
            Ok(next) => next.map_or(every, |next| next.min(every)),
            Err(error) => {
                inner.health.store_failed(&error);
                inner.metrics.loops.failed("schedules");
                tracing::warn!(%error, "schedules could not be evaluated; trying again with the next tick");
                every
            }
        };
        wake_at = Instant::now() + wait;
    }
}

impl Inner {
    /// Turns what was called, and one batch of what is due, if this process leads. How long until the next is due: no time at all if
    /// there is more.
    pub(crate) async fn schedules_once(&self) -> Result<Option<Duration>, StoreError> {
        if !self.leads_schedules().await? {
            // What was called stays called, for the time when this process leads.
            return Ok(None);
        }
        let called = self.schedules.take(SCHEDULES_MAX);
        let wait = self.turn_called_and_due(&called).await;
        if wait.is_err() {
            // The ends that called them are not told again.
            self.schedules.put_back(called);
        }
        wait
    }

    async fn turn_called_and_due(&self, called: &[ScheduleKey]) -> Result<Option<Duration>, StoreError> {
        // By the Store's clock, which says what is due: two clocks would disagree about what is to be done.
        let (next, now) = self.store_time().await?;
        if !called.is_empty() {
            let schedules = self.load_schedules(called).await?;
            self.settle_schedules(schedules, now).await?;
        }
        let Some(next) = next else { return Ok(None) };
        if next > now {
            // What was called may be due sooner by now.
            return Ok(Some(if called.is_empty() { next.since(now) } else { Duration::ZERO }));
        }
        Ok(self.turn_due(now).await?.then_some(Duration::ZERO))
    }

    /// When the next schedule wakes, and the Store's time as long as its clock does not jump.
    pub(crate) async fn store_time(&self) -> Result<(Option<Timestamp>, Timestamp), StoreError> {
        let asked = Instant::now();
        let (next, said) = self.ports.store.next_schedule().await?;
        if self.settings.exclusive_store {
            // The Store has this process's own clock, which is guarded.
            return Ok((next, said));
        }
        Ok((next, self.clocks.of_store(said, asked, self.ports.clock.now(), self.ports.clock.state().settle)))
    }

    /// Renewed with time to spare: a batch may take longer than a tick.
    async fn leads_schedules(&self) -> Result<bool, StoreError> {
        self.leadership.leads(Lead::Schedules, self.settings.schedules_every * 2).await
    }

    /// Whether any of them moved. If none did, another process evaluates them, or nothing can be done before the next tick.
    async fn turn_due(&self, now: Timestamp) -> Result<bool, StoreError> {
        let due = self.ports.store.due_schedules(SCHEDULES_MAX).await?;
        let before: BTreeSet<(Arc<str>, i64)> = due.iter().map(version).collect();
        let turned = self.settle_schedules(due, now).await?;
        Ok(turned.iter().any(|schedule| !before.contains(&version(schedule))))
    }
}

fn version(schedule: &Schedule) -> (Arc<str>, i64) {
    (schedule.birth.clone(), schedule.version)
}
