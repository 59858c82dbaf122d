//! Sets the gauges. A round costs what there are of lanes, pools, tenants and workers, however many jobs wait: the Store and
//! the lanes keep their counts, and of what is owed, and of approvals, only the first pages are read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::edge::EdgeState;
use lockgate_core::ids::{JobSeq, PoolName};
use lockgate_core::job::Duty;
use lockgate_core::lane::ReadyKey;
use lockgate_ports::{LaneDepth, LanesAway, StoreError};
use tokio::sync::watch;

use super::tick;
use crate::Inner;
use crate::metrics::{LaneGauges, Levels, PoolLevel, PoolLevels};

const EVERY: Duration = Duration::from_secs(2);
/// Whole rows are read to tell what is owed and since when, so this comes round more rarely.
const OWED_EVERY: u32 = 5;
/// More than this many are as bad as this many.
const OWED_COUNTED: usize = 100;
const APPROVALS_COUNTED: usize = 1_000;
const OUTBOX_COUNTED: usize = 10_000;

/// Tenants with gauges of their own: those with the most claims.
const TENANTS_SHOWN: usize = 100;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut rounds = 0_u32;
    let mut away = false;
    let mut approvals = [0; 4];
    while tick(&mut stop, EVERY).await {
        let due = rounds.is_multiple_of(OWED_EVERY);
        rounds = rounds.wrapping_add(1);
        if due {
            match inner.approvals().await {
                Ok(counted) => approvals = counted,
                Err(error) => tracing::warn!(%error, "approvals could not be counted; their gauge keeps its last value"),
            }
        }
        match inner.levels_once(approvals).await {
            Ok(looked) => away = say_if_away(away, looked.as_ref().err()),
            Err(error) => tracing::warn!(%error, "gauges could not be read; they keep their last value"),
        }
        let owed = due && inner.settings.roles.scheduler;
        if owed && let Err(error) = inner.owed_once().await {
            tracing::warn!(%error, "bypass ledger and outbox could not be counted; their gauges keep the last value");
        }
    }
}

/// Once when it begins and once when it ends. Whether it is so now.
fn say_if_away(was_away: bool, why: Option<&LanesAway>) -> bool {
    match why {
        Some(why) if !was_away => tracing::warn!(%why, "lane depths could not be read; their gauges keep the last value"),
        None if was_away => tracing::info!("lane depths can be read again"),
        Some(_) | None => {}
    }
    why.is_some()
}

impl Inner {
    async fn levels_once(&self, approvals: [u64; 4]) -> Result<Result<(), LanesAway>, StoreError> {
        self.look_for_damage();
        self.metrics.governance.breakers(&self.ports.kernel.breakers());
        self.metrics.sharing.bus_is(self.ports.bus.away().as_deref());
        self.metrics.loops.tasks(tokio::runtime::Handle::current().metrics().num_alive_tasks());
        let totals = self.ports.store.totals().await?;
        let (live, held) = (totals.live, self.edge.look(EdgeState::held));
        self.metrics.set_levels(&Levels { live, dead: totals.dead_letters, held });
        self.metrics.pools.set_workers(&self.pool_levels(&[]));
        Ok(self.queues_once(live, held, approvals).await)
    }

    /// Jobs that wait for a person, by priority. Whole rows are read for it, so only so many are counted.
    async fn approvals(&self) -> Result<[u64; 4], StoreError> {
        let (mut waiting, mut after, mut counted) = ([0; 4], JobSeq::default(), 0);
        loop {
            let page = self.ports.store.owing(Duty::Approve, after, OWED_COUNTED).await?;
            for job in page.iter().filter(|job| !job.state().is_terminal() && !job.state().is_held()) {
                waiting[job.request.priority() as usize] += 1;
            }
            counted += page.len();
            match page.last() {
                Some(last) if page.len() == OWED_COUNTED && counted < APPROVALS_COUNTED => after = last.seq,
                _ => return Ok(waiting),
            }
        }
    }

    /// Lanes that are away have no empty queues: nothing is set then, and the gauge of their age shows it.
    async fn queues_once(&self, live: [u64; 4], held: [u64; 4], approvals: [u64; 4]) -> Result<(), LanesAway> {
        let depths = self.ports.lanes.depths(usize::MAX).await?;
        let shares = self.ports.lanes.shares(TENANTS_SHOWN).await?;
        let mut waiting = LaneGauges { approvals, ..LaneGauges::default() };
        for depth in &depths {
            waiting.queued[depth.lane.priority as usize] += depth.waiting;
        }
        for (p, live) in live.into_iter().enumerate() {
            waiting.later[p] = live.saturating_sub(held[p] + waiting.queued[p] + approvals[p]);
        }
        self.metrics.set_waiting(&waiting);
        let pools = self.pool_levels(&depths);
        self.metrics.pools.set_waiting(&pools);
        self.show(&pools).await;
        self.levels.send_replace(PoolLevels::looked_at_now(pools));
        self.metrics.sharing.set(&shares, self.ports.clock.now());
        Ok(())
    }

    /// For autoscalers that look into Redis. An unreachable Redis has an alert of its own.
    async fn show(&self, pools: &BTreeMap<PoolName, PoolLevel>) {
        let Some(counters) = self.ports.counters.as_ref().filter(|_| self.settings.roles.scheduler) else { return };
        let lengths: Vec<(Arc<str>, u64)> =
            pools.iter().map(|(pool, level)| (Arc::from(pool.as_str()), level.waiting)).collect();
        if let Err(error) = counters.show_lengths(&lengths).await {
            tracing::debug!(%error, "the lengths of queues could not be shown");
        }
    }

    /// Every pool of the configuration.
    fn pool_levels(&self, depths: &[LaneDepth]) -> BTreeMap<PoolName, PoolLevel> {
        let routing = self.routing();
        let names = routing.pools.pools().map(|pool| (pool.name.clone(), PoolLevel::default()));
        let mut pools: BTreeMap<PoolName, PoolLevel> = names.collect();
        for depth in depths {
            if let Some(level) = depth.pool.as_ref().and_then(|pool| pools.get_mut(pool)) {
                level.waiting += depth.waiting;
                level.waiting_by[depth.lane.priority as usize] += depth.waiting;
            }
        }
        for view in self.edge.survey(|edge, _| edge.views()) {
            if let Some(level) = pools.get_mut(&view.profile.pool) {
                level.workers += 1;
                level.slots += u64::from(view.profile.slots);
                level.busy += view.busy as u64;
            }
        }
        for view in self.edge.ask(|edge, now| edge.elsewhere(now)) {
            if let Some(level) = pools.get_mut(&view.profile.pool) {
                // A worker that was not heard of lately may be at work, and must not be taken away as if it were not.
                level.busy_elsewhere += view.seen.map_or(1, |(sighting, _)| u64::from(sighting.busy));
            }
        }
        pools
    }

    /// What waits for a person or a service instead of a worker, and since when.
    async fn owed_once(&self) -> Result<(), StoreError> {
        for duty in Duty::ALL {
            let jobs = self.ports.store.owing(duty, JobSeq::default(), OWED_COUNTED).await?;
            self.metrics.owed.owing(duty, &jobs, self.ports.clock.now());
        }
        let pending = self.ports.store.pending(ReadyKey::default(), 1).await?;
        let head = self.ports.store.head().await?;
        let unsealed = self.ports.store.audit(head.map_or(0, |head| head.last), 1).await?;
        self.metrics.outbox.waits(self.ports.store.backlog(OUTBOX_COUNTED).await?);
        let now = self.ports.clock.now();
        let age = |since: Option<_>| since.map_or(Duration::ZERO, |since| now.since(since));
        self.metrics.owed.oldest_pending(age(pending.first().map(|job| job.life.due_at)));
        self.metrics.owed.oldest_unsealed(age(unsealed.first().map(|row| row.entry.at)));
        Ok(())
    }
}
