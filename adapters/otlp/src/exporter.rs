//! The queue of spans, and the task that sends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockgate_core::trace::{Span, TraceId, TraceParent};
use lockgate_ports::Spans;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::queue::SpanQueue;
use crate::send::{SendError, SpanSender};
use crate::settings::Settings;
use crate::wire::{ExportTraceServiceRequest, Resource, ResourceSpans, ScopeSpans, WireScope};

/// Tries per batch. Meanwhile the queue fills, and then spans are dropped: an outage costs spans and not memory.
const TRIES: u32 = 4;
/// The delay before the second try; doubled before the next.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// How often one outage is logged.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);
/// How long the remaining spans may take when the process ends.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Counts of spans by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounters {
    pub exported: u64,
    pub dropped: u64,
}

pub struct Exporter {
    settings: Settings,
    queue: SpanQueue,
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl Exporter {
    pub fn new(settings: Settings) -> Arc<Self> {
        let queue = SpanQueue::new(settings.room, settings.batch.min(settings.room));
        Arc::new(Self { queue, settings, exported: AtomicU64::new(0), dropped: AtomicU64::new(0) })
    }

    pub fn counters(&self) -> ExportCounters {
        let (exported, dropped) = (self.exported.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed));
        ExportCounters { exported, dropped }
    }

    /// Sends spans until `stop` turns true, then the remaining ones within a short time.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        let mut desk = ExportRound { exporter: self, sender: SpanSender::new(&self.settings), hand: None, complained: None };
        loop {
            tokio::select! {
                biased;
                // A dropped sender also means stop.
                _ = stop.wait_for(|stop| *stop) => break,
                () = self.queue.full() => {}
                () = tokio::time::sleep(self.settings.delay) => {}
            }
            // A stop in the middle of a long outage must not wait for its end.
            let sent = async {
                loop {
                    desk.send_some(TRIES).await;
                    if !self.queue.has_batch() {
                        break;
                    }
                }
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                () = sent => {}
            }
        }
        let last = async { while desk.send_some(1).await {} };
        if tokio::time::timeout(LAST_WORDS, last).await.is_err() {
            tracing::warn!("final export of spans failed");
        }
    }

    fn drop_spans(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    fn message(&self, spans: Vec<Span>) -> ExportTraceServiceRequest {
        let scope = WireScope { name: "lockgate".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans: spans.into_iter().map(Into::into).collect() }];
        let resource = Some(Resource { attributes: self.settings.resource.clone() });
        ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { resource, scope_spans }] }
    }
}

impl Spans for Exporter {
    #[expect(clippy::disallowed_methods, reason = "spans tell microseconds apart, and nothing is decided by them")]
    fn now(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    fn wants(&self, trace: &TraceId, parent: Option<&TraceParent>) -> bool {
        self.settings.sampler.wants(trace, parent)
    }

    fn record(&self, spans: Vec<Span>) {
        let dropped = self.queue.put(spans);
        if dropped > 0 {
            self.drop_spans(dropped);
        }
    }
}

/// The state of the sending task.
struct ExportRound<'e> {
    exporter: &'e Exporter,
    sender: SpanSender,
    /// A batch being sent, and its number of spans: a stop during the send does not lose it.
    hand: Option<(ExportTraceServiceRequest, usize)>,
    complained: Option<Instant>,
}

impl ExportRound<'_> {
    /// Sends a batch; false if no span waited.
    async fn send_some(&mut self, tries: u32) -> bool {
        if self.hand.is_none() {
            let spans = self.exporter.queue.take();
            let count = spans.len();
            self.hand = (count > 0).then(|| (self.exporter.message(spans), count));
        }
        let Some((message, count)) = &self.hand else { return false };
        let (mut rest, mut left, count) = (RETRY_AFTER, tries, *count);
        let outcome = loop {
            left -= 1;
            match self.sender.send(&self.exporter.settings, message).await {
                Err(SendError::Away(why)) if left > 0 => {
                    tracing::debug!(%why, spans = count, "spans could not be sent; trying again");
                    tokio::time::sleep(rest).await;
                    rest *= 2;
                }
                outcome => break outcome,
            }
        };
        self.hand = None;
        match outcome {
            Ok(refused) => self.sent(count, refused),
            Err(error) => self.lost(count, &error),
        }
        true
    }

    fn sent(&self, count: usize, refused: Option<(u64, String)>) {
        let rejected = refused.as_ref().map_or(0, |(rejected, _)| usize::try_from(*rejected).unwrap_or(count).min(count));
        self.exporter.exported.fetch_add((count - rejected) as u64, Ordering::Relaxed);
        self.exporter.drop_spans(rejected);
        if let Some((rejected, why)) = refused {
            tracing::warn!(rejected, why, "collector rejected spans");
        }
    }

    fn lost(&mut self, count: usize, error: &SendError) {
        self.exporter.drop_spans(count);
        if self.complained.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) {
            self.complained = Some(Instant::now());
            let to = self.exporter.settings.target();
            tracing::warn!(%error, to, spans = count, "spans were dropped; lockgate_spans_dropped_total counts them");
        }
    }
}
