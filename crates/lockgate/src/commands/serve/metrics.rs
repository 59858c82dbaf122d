//! Exports the counters of stores, lanes and buses.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use lockgate_nats::{IngressCounters, NatsBus};
use lockgate_otlp::{ExportCounters, Exporter};
use lockgate_postgres::PostgresStore;
use lockgate_redis::RedisLanes;
use lockgate_sqlite::SqliteStore;
use lockgate_worker::{BreakerCounts, Breakers};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// A metric's name and help text.
type NameAndHelp = (&'static str, &'static str);

const COMMITS: NameAndHelp = ("lockgate_store_commits", "Transactions made durable, one sync each");
/// Metrics of a cluster.
const SHARED: [NameAndHelp; 8] = [
    ("lockgate_store_statements", "Statements sent to the database"),
    ("lockgate_store_round_trips", "Times somebody waited for the database"),
    ("lockgate_store_rows_written", "Rows inserted, updated and deleted by changes of jobs"),
    ("lockgate_lanes_round_trips", "Times somebody waited for Redis"),
    ("lockgate_bus_published", "Messages with doorbells sent over NATS"),
    ("lockgate_bus_received", "Messages with doorbells that came over NATS"),
    ("lockgate_bus_dropped", "Messages with doorbells that could not be sent"),
    (
        "lockgate_bus_subscriptions_ended",
        "Subscriptions for doorbells that ended although they were wanted, and were made again",
    ),
];

/// Metrics of a process that takes submits over NATS.
const LETTERS: [NameAndHelp; 5] = [
    ("lockgate_letters_answered", "Submits and results over NATS that were answered, be it with a refusal"),
    ("lockgate_letters_committed", "Submits and results taken from streams of NATS and committed"),
    ("lockgate_letters_doubled", "Submits and results found in streams of NATS that were done already"),
    ("lockgate_letters_dead", "Submits and results over NATS that became dead letters"),
    (
        "lockgate_letters_subscriptions_ended",
        "Subscriptions for submits, results and workers over NATS that ended although they were wanted, and were made again",
    ),
];

/// Metrics of a process that exports spans.
const SPANS: [NameAndHelp; 2] = [
    ("lockgate_spans_exported", "Spans that the collector took"),
    ("lockgate_spans_dropped", "Spans that found no room, or that the collector did not take"),
];

/// Metrics of a process with a built-in worker: the breakers of the hosts that job.http_call calls.
const BREAKERS: [NameAndHelp; 2] = [
    ("lockgate_worker_breaker_opens", "Times that the built-in worker's job.http_call stopped calling a host that failed"),
    (
        "lockgate_worker_breaker_refused",
        "Calls of the built-in worker's job.http_call that waited because their host failed",
    ),
];
const BREAKERS_OPEN: NameAndHelp =
    ("lockgate_worker_breakers_open", "Hosts that the built-in worker's job.http_call does not call now, but for probes");

/// Reads numbers whenever the metrics are scraped.
struct CounterReader<F>(F);

impl<F> Debug for CounterReader<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Numbers")
    }
}

impl<F: Fn() -> Vec<(NameAndHelp, u64)> + Send + Sync + 'static> Collector for CounterReader<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for ((name, help), value) in (self.0)() {
            let counter = ConstCounter::new(value);
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        Ok(())
    }
}

/// A number that can also fall.
struct GaugeReader<F>(NameAndHelp, F);

impl<F> Debug for GaugeReader<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Level")
    }
}

impl<F: Fn() -> u64 + Send + Sync + 'static> Collector for GaugeReader<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Self((name, help), read) = self;
        let gauge = ConstGauge::new(i64::try_from(read()).unwrap_or(i64::MAX));
        let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
        gauge.encode(metric)
    }
}

pub(super) fn of_sqlite(registry: &mut Registry, store: &Arc<SqliteStore>) {
    let store = store.clone();
    registry.register_collector(Box::new(CounterReader(move || vec![(COMMITS, store.commits())])));
}

pub(super) fn of_spans(registry: &mut Registry, exporter: &Arc<Exporter>) {
    let exporter = exporter.clone();
    let numbers = move || {
        let ExportCounters { exported, dropped } = exporter.counters();
        SPANS.into_iter().zip([exported, dropped]).collect()
    };
    registry.register_collector(Box::new(CounterReader(numbers)));
}

pub(super) fn of_breakers(registry: &mut Registry, breakers: &Breakers) {
    let (counted, open) = (breakers.clone(), breakers.clone());
    let numbers = move || {
        let BreakerCounts { opened, refused, open: _ } = counted.counts();
        BREAKERS.into_iter().zip([opened, refused]).collect()
    };
    registry.register_collector(Box::new(CounterReader(numbers)));
    registry.register_collector(Box::new(GaugeReader(BREAKERS_OPEN, move || open.counts().open)));
}

pub(super) fn of_letters(registry: &mut Registry, meter: impl Fn() -> IngressCounters + Send + Sync + 'static) {
    let numbers = move || {
        let IngressCounters { answered, committed, doubled, dead, held: _, lapsed } = meter();
        LETTERS.into_iter().zip([answered, committed, doubled, dead, lapsed]).collect()
    };
    registry.register_collector(Box::new(CounterReader(numbers)));
}

pub(super) fn of_cluster(registry: &mut Registry, store: &Arc<PostgresStore>, lanes: &Arc<RedisLanes>, bus: &Arc<NatsBus>) {
    let (store, lanes, bus) = (store.clone(), lanes.clone(), bus.clone());
    let numbers = move || {
        let (sql, redis, nats) = (store.counters(), lanes.counters(), bus.counters());
        let shared = [
            sql.statements,
            sql.round_trips,
            sql.rows_written,
            redis.round_trips,
            nats.published,
            nats.received,
            nats.dropped,
            nats.lapsed,
        ];
        std::iter::once((COMMITS, sql.transactions)).chain(SHARED.into_iter().zip(shared)).collect()
    };
    registry.register_collector(Box::new(CounterReader(numbers)));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use lockgate_gateway::ConnectionMetrics;

    use super::*;

    #[test]
    fn the_reference_names_every_family_outside_of_the_engine() {
        let mut text = String::from("| name | type | labels | says |\n|---|---|---|---|\n");
        for (name, kind, labels, help) in ConnectionMetrics::described() {
            text += &format!("| `{name}` | {kind} | {labels} | {help} |\n");
        }
        for (name, help) in std::iter::once(COMMITS).chain(SHARED).chain(LETTERS).chain(SPANS).chain(BREAKERS) {
            text += &format!("| `{name}_total` | counter |  | {help} |\n");
        }
        let (name, help) = BREAKERS_OPEN;
        text += &format!("| `{name}` | gauge |  | {help} |\n");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        let page = std::fs::read_to_string(&path).expect("the reference");
        let (begin, end) = ("<!-- sockets and adapters: generated -->\n", "<!-- sockets and adapters: end -->");
        let (before, rest) = page.split_once(begin).expect("where the part begins");
        let (written, after) = rest.split_once(end).expect("where the part ends");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, format!("{before}{begin}{text}{end}{after}")).expect("written");
        } else {
            assert_eq!(written, text, "docs/metrics.md differs; UPDATE_EXPECT=1 rewrites it");
        }
    }
}
