//! What stores, lanes and buses count by themselves.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use lockgate_nats::NatsBus;
use lockgate_postgres::PostgresStore;
use lockgate_redis::RedisLanes;
use lockgate_sqlite::SqliteStore;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;

/// A name, what it means, and its value now.
type Number = (&'static str, &'static str, u64);

const COMMITS: (&str, &str) = ("lockgate_store_commits", "Transactions made durable, one sync each");

/// Reads numbers whenever somebody asks for the metrics.
struct Numbers<F>(F);

impl<F> Debug for Numbers<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Numbers")
    }
}

impl<F: Fn() -> Vec<Number> + Send + Sync + 'static> Collector for Numbers<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, help, value) in (self.0)() {
            let counter = ConstCounter::new(value);
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        Ok(())
    }
}

pub(super) fn of_sqlite(registry: &mut Registry, store: &Arc<SqliteStore>) {
    let store = store.clone();
    registry.register_collector(Box::new(Numbers(move || vec![(COMMITS.0, COMMITS.1, store.commits())])));
}

pub(super) fn of_cluster(registry: &mut Registry, store: &Arc<PostgresStore>, lanes: &Arc<RedisLanes>, bus: &Arc<NatsBus>) {
    let (store, lanes, bus) = (store.clone(), lanes.clone(), bus.clone());
    let numbers = move || {
        let (sql, redis, nats) = (store.counters(), lanes.counters(), bus.counters());
        vec![
            (COMMITS.0, COMMITS.1, sql.transactions),
            ("lockgate_store_statements", "Statements sent to the database", sql.statements),
            ("lockgate_store_round_trips", "Times somebody waited for the database", sql.round_trips),
            ("lockgate_store_rows_written", "Rows inserted, updated and deleted by changes of jobs", sql.rows_written),
            ("lockgate_lanes_round_trips", "Times somebody waited for Redis", redis.round_trips),
            ("lockgate_bus_published", "Messages with doorbells sent over NATS", nats.published),
            ("lockgate_bus_received", "Messages with doorbells that came over NATS", nats.received),
            ("lockgate_bus_dropped", "Messages with doorbells that could not be sent", nats.dropped),
        ]
    };
    registry.register_collector(Box::new(Numbers(numbers)));
}
