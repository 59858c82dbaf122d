//! Outbox rows on their way to NATS. A row is forgotten when JetStream has acknowledged it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use futures::future::join_all;
use lockgate_core::ids::JobId;
use lockgate_ports::{OutboxRow, StoreError, Upkeep};

use crate::link::Health;
use crate::transport::Transport;

/// Before the subject in the name of a sink.
const SINK: &str = "nats:";

pub struct Relay {
    transport: Arc<Transport>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relayed {
    /// Acknowledged by JetStream.
    pub done: Vec<i64>,
    /// What went wrong, for the first row of each job that did. Its later rows were not tried: they stay behind it.
    pub failed: Vec<(i64, String)>,
}

impl Relay {
    pub fn new(transport: Arc<Transport>) -> Self {
        Self { transport }
    }

    /// Relays the oldest rows that are meant for NATS, and has the Store forget those that arrived.
    pub async fn drain(&self, upkeep: &dyn Upkeep, limit: usize) -> Result<Relayed, StoreError> {
        let relayed = self.publish(upkeep.outbox(limit).await?).await;
        if !relayed.done.is_empty() {
            upkeep.outbox_done(&relayed.done).await?;
        }
        Ok(relayed)
    }

    /// Publishes rows in the order of their ids for each job, jobs side by side. Rows for other sinks are left alone. A row
    /// that is published again has the same message id, by which JetStream and consumers know it.
    pub async fn publish(&self, rows: Vec<OutboxRow>) -> Relayed {
        let mut by_job = by_job(rows);
        let mut relayed = Relayed::default();
        // Each round takes the next row of every job, so none overtakes one of its job that failed.
        while !by_job.is_empty() {
            let heads: Vec<OutboxRow> = by_job.values_mut().filter_map(VecDeque::pop_front).collect();
            let outcomes = join_all(heads.iter().map(|row| self.publish_one(row))).await;
            let mut stuck = BTreeSet::new();
            for (row, outcome) in heads.into_iter().zip(outcomes) {
                match outcome {
                    Ok(()) => relayed.done.push(row.id),
                    Err(why) => {
                        relayed.failed.push((row.id, why));
                        stuck.insert(row.job_id);
                    }
                }
            }
            by_job.retain(|job, rows| !rows.is_empty() && !stuck.contains(job));
        }
        relayed
    }

    async fn publish_one(&self, row: &OutboxRow) -> Result<(), String> {
        if let Health::Away(why) = self.transport.health() {
            return Err(format!("NATS is away: {why}"));
        }
        let subject = row.entry.sink.strip_prefix(SINK).unwrap_or_default().to_owned();
        let message = PublishMessage::build().payload(row.entry.body.as_str().to_owned().into()).message_id(format!(
            "{}:outbox:{}",
            self.transport.installation(),
            row.id
        ));
        let explain = |kind: PublishErrorKind, error: &dyn std::fmt::Display| match kind {
            PublishErrorKind::StreamNotFound => {
                format!("no JetStream stream takes messages of subject {subject}; create one")
            }
            _ => format!("subject {subject}: {error}"),
        };
        let sent = self.transport.jetstream().send_publish(subject.clone(), message).await;
        let acknowledged = sent.map_err(|error| explain(error.kind(), &error))?.await;
        acknowledged.map(drop).map_err(|error| explain(error.kind(), &error))
    }
}

fn by_job(rows: Vec<OutboxRow>) -> BTreeMap<JobId, VecDeque<OutboxRow>> {
    let mut by_job: BTreeMap<JobId, VecDeque<OutboxRow>> = BTreeMap::new();
    let mut rows: Vec<OutboxRow> = rows.into_iter().filter(|row| row.entry.sink.starts_with(SINK)).collect();
    rows.sort_by_key(|row| row.id);
    for row in rows {
        by_job.entry(row.job_id.clone()).or_default().push_back(row);
    }
    by_job
}
