//! Publishes outbox rows to NATS. A row is deleted once JetStream has acknowledged it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_trait::async_trait;
use futures::future::join_all;
use lockgate_core::ids::JobId;
use lockgate_ports::{Delivered, OutboxRow, Outlet};
use parking_lot::Mutex;

use crate::ingress::DeliveryTerms;
use crate::ingress::streams::dead_letters;
use crate::link::ConnectionHealth;
use crate::transport::Transport;

/// The prefix of a sink's name, before the subject.
const SINK: &str = "nats:";
const CONTENT_TYPE: &str = "content-type";
const JOB: &str = "x-lockgate-job";

pub struct Relay {
    transport: Arc<Transport>,
    terms: DeliveryTerms,
    /// The number of the connection on which the stream of dead letters is known to exist.
    ensured: Mutex<Option<u64>>,
}

impl Relay {
    /// The sink of dead letters.
    pub const DEAD_LETTERS: &str = "nats:sys.job.dlq";

    pub fn new(transport: Arc<Transport>, terms: DeliveryTerms) -> Self {
        Self { transport, terms, ensured: Mutex::new(None) }
    }

    /// Makes sure that the stream of dead letters exists, which a wiped server has forgotten. Streams of other subjects are
    /// created by their owners.
    async fn ensure(&self) {
        let connection = *self.transport.connects().borrow();
        if *self.ensured.lock() == Some(connection) {
            return;
        }
        match self.transport.jetstream().create_or_update_stream(dead_letters(&self.terms)).await {
            Ok(_) => *self.ensured.lock() = Some(connection),
            // Rows that need the stream get an error when they are published.
            Err(error) => tracing::warn!(%error, "JetStream stream for dead letters could not be created"),
        }
    }

    async fn publish(&self, row: &OutboxRow) -> Result<(), String> {
        if let Some(why) = self.away() {
            return Err(why);
        }
        let subject = row.entry.sink.strip_prefix(SINK).unwrap_or_default().to_owned();
        let message = PublishMessage::build().payload(row.entry.body.as_str().to_owned().into()).headers(self.headers(row));
        let sent = self.transport.jetstream().send_publish(subject.clone(), message).await;
        let acknowledged = match sent {
            Ok(sent) => sent.await.map(drop),
            Err(error) => Err(error),
        };
        acknowledged.map_err(|error| match error.kind() {
            PublishErrorKind::StreamNotFound => {
                // The stream is created again at the next try.
                *self.ensured.lock() = None;
                format!("no JetStream stream takes messages of subject {subject}")
            }
            _ => format!("subject {subject}: {error}"),
        })
    }

    /// Row numbers start again after a restore from a backup, but not at the same time, so the time is part of the id.
    fn headers(&self, row: &OutboxRow) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let id = format!("{}:outbox:{}:{}", self.transport.installation(), row.id, row.at.as_millis());
        headers.insert(NATS_MESSAGE_ID, id.as_str());
        headers.insert(CONTENT_TYPE, "application/json");
        headers.insert(JOB, row.job_id.as_str());
        headers
    }
}

#[async_trait]
impl Outlet for Relay {
    fn serves(&self, sink: &str) -> bool {
        sink.starts_with(SINK)
    }

    fn away(&self) -> Option<String> {
        match self.transport.health() {
            ConnectionHealth::Connected => None,
            ConnectionHealth::Away(why) => Some(format!("NATS is away: {why}")),
        }
    }

    /// Publishes the rows of each job in the order of their ids, and different jobs concurrently, a bounded number at once.
    /// A row that is published again has its message id again, by which JetStream and consumers recognise it.
    async fn deliver(&self, rows: Vec<OutboxRow>) -> Delivered {
        if rows.iter().any(|row| &*row.entry.sink == Self::DEAD_LETTERS) {
            self.ensure().await;
        }
        let mut by_job = by_job(rows);
        let mut delivered = Delivered::default();
        // Each round publishes the next row of every job, so that no row overtakes a failed one of its job.
        while !by_job.is_empty() {
            let heads: Vec<OutboxRow> = by_job.values_mut().filter_map(VecDeque::pop_front).collect();
            let outcomes = join_all(heads.iter().map(|row| self.publish(row))).await;
            let mut stuck = BTreeSet::new();
            for (row, outcome) in heads.into_iter().zip(outcomes) {
                match outcome {
                    Ok(()) => delivered.done.push(row.id),
                    Err(why) => {
                        delivered.failed.push((row.id, why));
                        stuck.insert(row.job_id);
                    }
                }
            }
            by_job.retain(|job, rows| !rows.is_empty() && !stuck.contains(job));
        }
        delivered
    }
}

fn by_job(mut rows: Vec<OutboxRow>) -> BTreeMap<JobId, VecDeque<OutboxRow>> {
    let mut by_job: BTreeMap<JobId, VecDeque<OutboxRow>> = BTreeMap::new();
    rows.sort_by_key(|row| row.id);
    for row in rows {
        by_job.entry(row.job_id.clone()).or_default().push_back(row);
    }
    by_job
}
