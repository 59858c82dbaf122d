//! Relays outbox rows to external sinks. The process that committed a row relays it at once; the leader takes rows that are
//! older than a few seconds. Both may deliver the same row: the receiver knows it by its id.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_ports::{Delivered, OutboxRow, Outlet, StoreError, Upkeep};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Lead, Leadership, LoopReports, wait};
use crate::Settings;
use crate::health::{jittered, progress};
use crate::metrics::OutboxMetrics;
use crate::outgoing::OutboxQueue;

/// How old rows are that their committer did not relay.
const OLD: Duration = Duration::from_secs(5);
/// Rows that are older than this are late, and the process says so.
const LATE: Duration = Duration::from_secs(60);
/// Rows of one delivery.
const PAGE: usize = 1_000;
/// Deliveries of one round, so that a long backlog does not hold up what comes in meanwhile.
const PAGES: usize = 10;

/// Relays what leaves the system.
pub(crate) struct OutboxRelay {
    rows: Arc<dyn Upkeep>,
    outlets: Vec<Arc<dyn Outlet>>,
    leadership: Arc<Leadership>,
    reports: LoopReports,
    metrics: OutboxMetrics,
    every: Duration,
    /// Processes of another role relay only what they committed themselves.
    may_lead: bool,
    queue: OutboxQueue,
}

impl OutboxRelay {
    pub(crate) fn new(
        rows: Arc<dyn Upkeep>,
        outlets: Vec<Arc<dyn Outlet>>,
        leadership: Arc<Leadership>,
        reports: LoopReports,
        metrics: OutboxMetrics,
        settings: &Settings,
    ) -> Self {
        let (every, may_lead) = (settings.outbox_every, settings.roles.scheduler);
        Self { rows, outlets, leadership, reports, metrics, every, may_lead, queue: OutboxQueue::default() }
    }

    /// After a commit: its rows are relayed by the process that wrote them. Rows of a change that was refused are not there.
    pub(crate) fn relay_soon(&self, jobs: Vec<JobId>) {
        if !jobs.is_empty() && !self.outlets.is_empty() {
            self.queue.call(jobs);
        }
    }

    /// Why rows that are late could not be delivered.
    pub(crate) fn late(&self) -> Option<String> {
        self.queue.late()
    }

    pub(super) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        // Where the leader's next round goes on: rows that fail do not keep those behind them waiting.
        let mut after = 0;
        let mut looked = Instant::now();
        loop {
            let mut called = false;
            let call = async {
                self.queue.wake.notified().await;
                called = true;
            };
            let every = jittered(self.every);
            if !wait(&mut stop, every, call).await {
                return;
            }
            let mut relayed = if called { self.relay_called().await } else { Ok(()) };
            // Also while calls never end.
            if relayed.is_ok() && looked.elapsed() >= every {
                looked = Instant::now();
                relayed = self.relay_old(&mut after).await;
            }
            if let Err(error) = relayed {
                self.reports.failed("outbox", &error);
                tracing::warn!(%error, "the outbox could not be read; its rows wait for the next round");
            }
        }
    }

    /// What this process committed a moment ago. What fails is the leader's.
    async fn relay_called(&self) -> Result<(), StoreError> {
        loop {
            let jobs = self.queue.take(PAGE);
            if jobs.is_empty() {
                return Ok(());
            }
            if self.all_away().is_some() {
                continue;
            }
            let rows = self.rows.outbox_of(&jobs).await?;
            self.relay(rows).await?;
        }
    }

    /// One round of the leader, from where the last one stopped.
    async fn relay_old(&self, after: &mut i64) -> Result<(), StoreError> {
        if !self.may_lead {
            return Ok(());
        }
        // A process that reaches no sink does not lead: another one may.
        if let Some(why) = self.all_away() {
            self.leadership.stand_aside(Lead::Outbox);
            return self.say_how_late(Some(why)).await;
        }
        if !self.leadership.leads(Lead::Outbox, self.every).await? {
            self.queue.set_late(None);
            return Ok(());
        }
        let mut failure = None;
        for _ in 0..PAGES {
            let rows = self.rows.outbox(*after, OLD, PAGE).await?;
            let (count, last) = (rows.len(), rows.last().map(|row| row.id));
            let failed = self.relay(rows).await?.failed;
            failure = failure.or_else(|| failed.into_iter().next().map(|(_, why)| why));
            *after = last.filter(|_| count == PAGE).unwrap_or(0);
            if *after == 0 {
                break;
            }
        }
        self.say_how_late(failure).await
    }

    /// Why nothing can be delivered anywhere. Then nothing is read either.
    fn all_away(&self) -> Option<String> {
        let mut away = self.outlets.iter().map(|outlet| outlet.away());
        away.by_ref().try_fold(None, |_, why| why.map(Some)).flatten()
    }

    async fn say_how_late(&self, failure: Option<String>) -> Result<(), StoreError> {
        let backlog = self.rows.backlog(PAGE).await?;
        let why = || failure.unwrap_or_else(|| "more comes in than sinks take".to_owned());
        let seconds = backlog.oldest.as_secs();
        let late =
            (backlog.oldest > LATE).then(|| format!("the oldest message for outside waits for {seconds} s: {}", why()));
        if let (true, text) = (self.queue.set_late(late.clone()), late) {
            match text {
                Some(why) => tracing::warn!(why, "outbox rows are late; they wait in the Store"),
                None => tracing::info!("outbox rows are no longer late"),
            }
        }
        Ok(())
    }

    /// Delivers rows, and has the Store forget those that arrived.
    async fn relay(&self, rows: Vec<OutboxRow>) -> Result<Delivered, StoreError> {
        let mut all = Delivered::default();
        for (outlet, rows) in self.by_outlet(rows) {
            let outlet = &self.outlets[outlet];
            let delivered = match outlet.away() {
                Some(why) => Delivered { done: Vec::new(), failed: rows.iter().map(|row| (row.id, why.clone())).collect() },
                None => outlet.deliver(rows).await,
            };
            progress();
            if !delivered.done.is_empty() {
                self.rows.outbox_done(&delivered.done).await?;
            }
            self.metrics.delivered(&delivered);
            all.done.extend(delivered.done);
            all.failed.extend(delivered.failed);
        }
        Ok(all)
    }

    /// Rows for sinks that are not served here are another process's, or wait until one serves them.
    fn by_outlet(&self, rows: Vec<OutboxRow>) -> BTreeMap<usize, Vec<OutboxRow>> {
        let mut parts: BTreeMap<usize, Vec<OutboxRow>> = BTreeMap::new();
        for row in rows {
            let serving = self.outlets.iter().position(|outlet| outlet.serves(&row.entry.sink));
            if let Some(outlet) = serving {
                parts.entry(outlet).or_default().push(row);
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use lockgate_core::job::{Env, submit};
    use lockgate_core::limits::Limits;
    use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
    use lockgate_core::retry::Jitter;
    use lockgate_core::time::Timestamp;
    use lockgate_core::verdict::Judgement;
    use lockgate_model::{ManualClock, MemoryStore};
    use lockgate_ports::{Clock, JobChange, JobStore, OutboxEntry};
    use parking_lot::Mutex;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::Metrics;
    use crate::config::ActiveConfig;
    use crate::loops::StoreHealth;

    /// A sink that may be away, and remembers what it was told.
    #[derive(Default)]
    struct Sink {
        away: Mutex<Option<String>>,
        told: Mutex<Vec<i64>>,
    }

    #[async_trait::async_trait]
    impl Outlet for Sink {
        fn serves(&self, sink: &str) -> bool {
            sink == "letters"
        }

        fn away(&self) -> Option<String> {
            self.away.lock().clone()
        }

        async fn deliver(&self, rows: Vec<OutboxRow>) -> Delivered {
            let done: Vec<i64> = rows.iter().map(|row| row.id).collect();
            self.told.lock().extend(&done);
            Delivered { done, failed: Vec::new() }
        }
    }

    /// A job that leaves a message behind, as a commit of it.
    fn birth(now: Timestamp) -> JobChange {
        let limits = Limits::default();
        let new = NewJob { topic: "job.echo".into(), ..NewJob::default() };
        let request = JobRequest::check(new, &Caller::new("acme", "ann"), || "job-1".into()).expect("valid");
        let hash = request.hash();
        let (jitter, judgement) = (Jitter::from_bits(0), Judgement::UNASKED);
        let env = Env { now, token: "token".into(), jitter, limits: &limits, timeouts: Arc::default(), judgement };
        let entry = OutboxEntry { sink: "letters".into(), body: Json::null() };
        JobChange { transition: submit(Arc::new(request), hash, &env), outbox: vec![entry] }
    }

    #[tokio::test]
    async fn what_was_committed_here_is_relayed_at_once_and_stays_while_its_sink_is_away() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_000_000)));
        let (store, sink) = (Arc::new(MemoryStore::new(clock.clone())), Arc::new(Sink::default()));
        let (settings, metrics) = (Settings::default(), Metrics::new(&mut Registry::default()));
        let (config, loops) = (Arc::new(ActiveConfig::default()), metrics.loops.clone());
        let reports = LoopReports { health: Arc::new(StoreHealth::new(&settings)), metrics: loops.clone() };
        let leads = Arc::new(Leadership::new(store.clone(), clock.clone(), config, loops, "a".into(), false));
        let relay = OutboxRelay::new(store.clone(), vec![sink.clone()], leads, reports, metrics.outbox, &settings);
        assert!(store.commit(vec![birth(clock.now())]).await.expect("committed")[0].is_ok());

        *sink.away.lock() = Some("it restarts".to_owned());
        relay.relay_soon(vec!["job-1".into()]);
        relay.relay_called().await.expect("no error");
        assert!(sink.told.lock().is_empty());

        *sink.away.lock() = None;
        relay.relay_soon(vec!["job-1".into()]);
        relay.relay_called().await.expect("relayed");
        assert_eq!(sink.told.lock().len(), 1);
        assert!(store.outbox_of(&["job-1".into()]).await.expect("read").is_empty(), "a delivered row is forgotten");
    }
}
