//! Runs move when they are called; the rest of this loop finds runs that were not woken.

use std::sync::Arc;

use lockgate_core::ids::RunId;
use lockgate_ports::StoreError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Lead;
use crate::Inner;
use crate::health::{idle, jittered, progress};
use crate::metrics::Swept;

/// Runs stepped in one commit.
const RUNS_MAX: usize = 256;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut rings = inner.ports.bus.overhear();
    let now = Instant::now();
    let mut rounds = Rounds { tick_at: now, sweep_at: now, swept: None, counted: Swept::default(), leads: false };
    loop {
        let wake_in = inner.run_queue.next_wake().map(|at| at.since(inner.ports.clock.now()));
        let tick_at = wake_in.map_or(rounds.tick_at, |wait| rounds.tick_at.min(Instant::now() + wait));
        idle(inner.settings.runs_every);
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep_until(tick_at) => {}
            () = inner.run_queue.woken() => {}
            rung = rings.next() => inner.run_queue.wake(rung.iter().filter_map(RunId::of)),
        }
        progress();
        if let Err(error) = inner.runs_once(&mut rounds).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("runs");
            tracing::warn!(%error, "runs could not be stepped; trying again with the next tick");
        }
    }
}

pub(crate) struct Rounds {
    tick_at: Instant,
    /// When the next page of the sweep is due. The first one at once: an earlier life may have left something.
    sweep_at: Instant,
    /// How far the sweep came.
    swept: Option<RunId>,
    /// What it saw on its way.
    counted: Swept,
    leads: bool,
}

impl Inner {
    pub(crate) async fn runs_once(&self, rounds: &mut Rounds) -> Result<(), StoreError> {
        let every = self.settings.runs_every;
        let now = Instant::now();
        if now >= rounds.tick_at {
            rounds.tick_at = now + jittered(every);
            // Renewed with time to spare: between ticks it is not asked again.
            rounds.leads = self.leadership.leads(Lead::Runs, every * 2).await?;
            if rounds.leads {
                self.call_unheard().await?;
            }
        }
        self.run_queue.wake_due(self.ports.clock.now());
        let called = self.run_queue.take(RUNS_MAX);
        if !rounds.leads {
            // The present leader counts them, all of them and at once: what was counted before is old.
            (rounds.sweep_at, rounds.swept, rounds.counted) = (now, None, Swept::default());
            self.metrics.runs.swept(Swept::default());
            return Ok(());
        }
        let stepped = self.step_called(called).await;
        if stepped.as_ref().is_err_and(|error| !error.is_damage()) {
            return stepped;
        }
        if now >= rounds.sweep_at {
            rounds.swept = self.sweep(rounds.swept.as_ref(), &mut rounds.counted).await?;
            if rounds.swept.is_none() {
                self.metrics.runs.swept(std::mem::take(&mut rounds.counted));
            }
            // The next page comes with the next tick, so that runs move between pages.
            rounds.sweep_at =
                if rounds.swept.is_some() { rounds.tick_at } else { now + jittered(self.settings.sweep_every) };
        }
        stepped
    }

    /// If something makes no sense among many, each is tried alone: the others move on, and that one waits for its next call.
    async fn step_called(&self, called: Vec<RunId>) -> Result<(), StoreError> {
        let mut stepped = self.steps_once(called.clone()).await;
        if stepped.as_ref().is_err_and(StoreError::is_damage) && called.len() > 1 {
            stepped = self.step_each(&called).await;
        }
        if stepped.as_ref().is_err_and(|error| !error.is_damage()) {
            self.run_queue.put_back(called);
        }
        stepped
    }

    async fn step_each(&self, called: &[RunId]) -> Result<(), StoreError> {
        let mut stepped = Ok(());
        for id in called {
            match self.steps_once(vec![id.clone()]).await {
                Err(error) if !error.is_damage() => return Err(error),
                one => stepped = stepped.and(one),
            }
        }
        stepped
    }

    /// What rings did not tell of, and what only time brings.
    async fn call_unheard(&self) -> Result<(), StoreError> {
        let batch = self.settings.batch_max;
        let waking = self.ports.store.waking(batch).await?;
        let unheard = self.ports.store.unheard(self.settings.unheard_after, batch).await?;
        for ids in [waking, unheard] {
            // They should have moved, so what is remembered of them may be old.
            self.forget(&ids);
            self.run_queue.wake(ids);
        }
        Ok(())
    }
}
