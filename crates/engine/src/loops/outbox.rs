//! Relays outbox rows to external sinks. The process that committed a row relays it at once; the leader takes rows that are
//! older than a few seconds. Both may deliver the same row: the receiver knows it by its id.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_ports::{Delivered, OutboxRow, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Lead, wait};
use crate::Inner;
use crate::health::{jittered, progress};

/// How old rows are that their committer did not relay.
const OLD: Duration = Duration::from_secs(5);
/// Rows that are older than this are late, and the process says so.
const LATE: Duration = Duration::from_secs(60);
/// Rows of one delivery.
const PAGE: usize = 1_000;
/// Deliveries of one round, so that a long backlog does not hold up what comes in meanwhile.
const PAGES: usize = 10;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    // Where the leader's next round goes on: rows that fail do not keep those behind them waiting.
    let mut after = 0;
    let mut looked = Instant::now();
    loop {
        let mut called = false;
        let call = async {
            inner.outgoing.wake.notified().await;
            called = true;
        };
        let every = jittered(inner.settings.outbox_every);
        if !wait(&mut stop, every, call).await {
            return;
        }
        let mut relayed = if called { inner.relay_called().await } else { Ok(()) };
        // Also while calls never end.
        if relayed.is_ok() && looked.elapsed() >= every {
            looked = Instant::now();
            relayed = inner.relay_old(&mut after).await;
        }
        if let Err(error) = relayed {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("outbox");
            tracing::warn!(%error, "the outbox could not be read; its rows wait for the next round");
        }
    }
}

impl Inner {
    /// What this process committed a moment ago. What fails is the leader's.
    async fn relay_called(&self) -> Result<(), StoreError> {
        loop {
            let jobs = self.outgoing.take(PAGE);
            if jobs.is_empty() {
                return Ok(());
            }
            if self.all_away().is_some() {
                continue;
            }
            let rows = self.ports.store.outbox_of(&jobs).await?;
            self.relay(rows).await?;
        }
    }

    /// One round of the leader, from where the last one stopped.
    pub(crate) async fn relay_old(&self, after: &mut i64) -> Result<(), StoreError> {
        if !self.settings.roles.scheduler {
            return Ok(());
        }
        // A process that reaches no sink does not lead: another one may.
        if let Some(why) = self.all_away() {
            self.stand_aside(Lead::Outbox);
            return self.say_how_late(Some(why)).await;
        }
        if !self.leads(Lead::Outbox, self.settings.outbox_every).await? {
            self.outgoing.set_late(None);
            return Ok(());
        }
        let mut failure = None;
        for _ in 0..PAGES {
            let rows = self.ports.store.outbox(*after, OLD, PAGE).await?;
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
        let mut away = self.ports.outlets.iter().map(|outlet| outlet.away());
        away.by_ref().try_fold(None, |_, why| why.map(Some)).flatten()
    }

    async fn say_how_late(&self, failure: Option<String>) -> Result<(), StoreError> {
        let backlog = self.ports.store.backlog(PAGE).await?;
        let why = || failure.unwrap_or_else(|| "more comes in than sinks take".to_owned());
        let seconds = backlog.oldest.as_secs();
        let late =
            (backlog.oldest > LATE).then(|| format!("the oldest message for outside waits for {seconds} s: {}", why()));
        if let (true, text) = (self.outgoing.set_late(late.clone()), late) {
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
            let outlet = &self.ports.outlets[outlet];
            let delivered = match outlet.away() {
                Some(why) => Delivered { done: Vec::new(), failed: rows.iter().map(|row| (row.id, why.clone())).collect() },
                None => outlet.deliver(rows).await,
            };
            progress();
            if !delivered.done.is_empty() {
                self.ports.store.outbox_done(&delivered.done).await?;
            }
            self.metrics.outbox.delivered(&delivered);
            all.done.extend(delivered.done);
            all.failed.extend(delivered.failed);
        }
        Ok(all)
    }

    /// Rows for sinks that are not served here are another process's, or wait until one serves them.
    fn by_outlet(&self, rows: Vec<OutboxRow>) -> BTreeMap<usize, Vec<OutboxRow>> {
        let mut parts: BTreeMap<usize, Vec<OutboxRow>> = BTreeMap::new();
        for row in rows {
            let serving = self.ports.outlets.iter().position(|outlet| outlet.serves(&row.entry.sink));
            if let Some(outlet) = serving {
                parts.entry(outlet).or_default().push(row);
            }
        }
        parts
    }
}
