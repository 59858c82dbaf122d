//! Metric families of pools. Their names come from the configuration, so they are few.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::PoolName;
use lockgate_core::lane::Priority;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

use super::catalogue::MetricFamilies;
use super::{PriorityGauge, begin_at_zero, latency, level};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPool {
    pool: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPoolPriority {
    pool: String,
    priority: PriorityGauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByWay {
    way: &'static str,
}

/// One pool as this process sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolLevel {
    /// Jobs that have the pool as their first choice; of the whole installation.
    pub waiting: u64,
    /// Those jobs by priority, in the order of `Priority::ALL`.
    pub waiting_by: [u64; 4],
    /// Attached to this process, as the two below.
    pub workers: u64,
    pub slots: u64,
    pub busy: u64,
    /// Attempts that workers of other processes hold, as far as can be told, and at least one for each of which it cannot.
    pub busy_elsewhere: u64,
}

/// What was looked at longer ago says nothing of now. Five looks.
const FRESH: Duration = Duration::from_secs(10);

/// Every pool of the configuration, as they were looked at last; none before that.
#[derive(Clone, Debug, Default)]
pub struct PoolLevels {
    pools: Arc<BTreeMap<PoolName, PoolLevel>>,
    looked_at: Option<Instant>,
}

impl PoolLevels {
    pub fn looked_at_now(pools: BTreeMap<PoolName, PoolLevel>) -> Self {
        Self { pools: Arc::new(pools), looked_at: Some(Instant::now()) }
    }

    pub fn get(&self, pool: &PoolName) -> Option<&PoolLevel> {
        self.pools.get(pool)
    }

    /// Not if nobody could look for a while: who acts on what was then takes a backlog that came since for none.
    pub fn is_fresh(&self) -> bool {
        self.looked_at.is_some_and(|at| at.elapsed() <= FRESH)
    }
}

#[derive(Clone)]
pub(crate) struct PoolMetrics {
    waiting: Family<ByPool, Gauge>,
    waiting_by: Family<ByPoolPriority, Gauge>,
    run_seconds: Family<ByPool, Histogram>,
    workers: Family<ByPool, Gauge>,
    slots: Family<ByPool, Gauge>,
    busy: Family<ByPool, Gauge>,
    resized: Family<ByWay, Counter>,
    streams_cut: Counter,
    /// Pools that have gauges now.
    shown: Arc<Mutex<BTreeSet<PoolName>>>,
}

impl PoolMetrics {
    pub(super) fn new(registry: &mut MetricFamilies<'_>) -> Self {
        let resized = Family::<ByWay, Counter>::default();
        registry.register("worker_slots_changed", "Workers that changed how many jobs they run at once", resized.clone());
        begin_at_zero(&resized, ["up", "down"].map(|way| ByWay { way }));
        let streams_cut = Counter::default();
        let help = "Streams of workers that were ended because nobody read what waited for them";
        registry.register("worker_streams_cut", help, streams_cut.clone());
        let waiting_by = Family::<ByPoolPriority, Gauge>::default();
        registry.register("pool_priority_depth", "The jobs of pool_queue_depth by priority", waiting_by.clone());
        let run_seconds = Family::<ByPool, Histogram>::new_with_constructor(latency);
        registry.register("pool_run_seconds", "Running time of attempts, by the pool of their worker", run_seconds.clone());
        let mut gauge = |name, help| {
            let family = Family::<ByPool, Gauge>::default();
            registry.register(name, help, family.clone());
            family
        };
        Self {
            waiting: gauge("pool_queue_depth", "Jobs that wait and have the pool as their first choice"),
            workers: gauge("pool_workers", "Worker sessions of the pool that are attached to this process"),
            slots: gauge("pool_slots", "Places of those workers"),
            busy: gauge("pool_slots_busy", "Places of those workers that hold an attempt"),
            waiting_by,
            run_seconds,
            resized,
            streams_cut,
            shown: Arc::default(),
        }
    }

    pub(crate) fn resized(&self, grown: bool) {
        self.resized.get_or_create(&ByWay { way: if grown { "up" } else { "down" } }).inc();
    }

    /// To be moved where streams are given up.
    pub(crate) fn streams_cut(&self) -> Counter {
        self.streams_cut.clone()
    }

    /// What this process knows by itself, whether or not anybody can tell what waits.
    pub(crate) fn set_workers(&self, pools: &BTreeMap<PoolName, PoolLevel>) {
        let label = |pool: &PoolName| ByPool { pool: pool.to_string() };
        let mut shown = self.shown.lock();
        for gone in shown.iter().filter(|pool| !pools.contains_key(*pool)) {
            for family in [&self.waiting, &self.workers, &self.slots, &self.busy] {
                family.remove(&label(gone));
            }
            for priority in Priority::ALL {
                self.waiting_by.remove(&of_priority(gone, priority));
            }
        }
        for (pool, now) in pools {
            let label = label(pool);
            self.workers.get_or_create(&label).set(level(now.workers));
            self.slots.get_or_create(&label).set(level(now.slots));
            self.busy.get_or_create(&label).set(level(now.busy));
        }
        *shown = pools.keys().cloned().collect();
    }

    pub(crate) fn set_waiting(&self, pools: &BTreeMap<PoolName, PoolLevel>) {
        for (pool, now) in pools {
            self.waiting.get_or_create(&ByPool { pool: pool.to_string() }).set(level(now.waiting));
            for (priority, waiting) in Priority::ALL.into_iter().zip(now.waiting_by) {
                self.waiting_by.get_or_create(&of_priority(pool, priority)).set(level(waiting));
            }
        }
    }

    /// An attempt on a worker of the pool came to an end after so long.
    pub(crate) fn ran(&self, pool: &PoolName, span: Duration) {
        self.run_seconds.get_or_create(&ByPool { pool: pool.to_string() }).observe(span.as_secs_f64());
    }
}

fn of_priority(pool: &PoolName, priority: Priority) -> ByPoolPriority {
    ByPoolPriority { pool: pool.to_string(), priority: PriorityGauge(priority) }
}
