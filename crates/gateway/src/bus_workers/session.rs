//! One worker that is attached by messages: two directions that do not wait for each other.

use std::collections::VecDeque;
use std::sync::Arc;

use lockgate_core::ids::{SessionId, WorkerId};
use lockgate_core::job::Outcome;
use lockgate_engine::{Attachment, FromWorker, ResultReport, ToWorker};
use lockgate_proto::v1;
use prost::Message;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{BusWorkersShared, SendFailure};
use crate::auth::LOOK_EVERY;
use crate::grpc::exchange;

/// Messages of the engine taken at once.
const DRAIN_MAX: usize = 1_024;
/// What a message needs besides its items: names, numbers, a welcome.
const ENVELOPE_BYTES: usize = 4 * 1024;

/// Takes what the worker says, in the order in which it came.
pub(super) struct MailboxReader {
    pub(super) office: Arc<BusWorkersShared>,
    pub(super) attachment: Attachment,
    pub(super) epoch: u64,
    pub(super) mailbox: Receiver<v1::WorkerMessage>,
    pub(super) ended: CancellationToken,
}

impl MailboxReader {
    /// Ends when the worker is quiet or has said hello anew, and with the key that stands for it. The session lives on until it is
    /// silent for too long; dropping the attachment keeps new jobs from it and ends the other direction.
    pub(super) async fn run(mut self) {
        let quiet_after = self.office.settings.quiet_after;
        let mut quiet_at = Instant::now() + quiet_after;
        let mut looks = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = tokio::select! {
                biased;
                () = self.ended.cancelled() => break,
                () = self.attachment.given_up() => break,
                _ = looks.tick() => {
                    if self.office.is_over().await {
                        tracing::info!(session = %self.attachment.session(), "worker disconnected: its key ended");
                        break;
                    }
                    continue;
                }
                next = timeout_at(quiet_at, self.mailbox.recv()) => next,
            };
            let Ok(Some(first)) = next else { break };
            let mut said = self.read(first);
            // What arrived meanwhile is taken as one, as from a stream.
            while let Ok(next) = self.mailbox.try_recv() {
                said.absorb(self.read(next));
            }
            self.attachment.receive(said).await;
            quiet_at = Instant::now() + quiet_after;
        }
        self.office.unregister(self.attachment.session(), self.epoch);
    }

    /// What a message says. One that no worker may send says nothing, as if it had been lost.
    fn read(&self, message: v1::WorkerMessage) -> FromWorker {
        exchange::from_worker(message, self.office.clock.now()).unwrap_or_else(|error| {
            tracing::warn!(session = %self.attachment.session(), %error, "worker message rejected");
            FromWorker::default()
        })
    }
}

/// Sends what waits for the worker.
pub(super) struct MailboxWriter {
    pub(super) office: Arc<BusWorkersShared>,
    pub(super) worker: WorkerId,
    pub(super) session: SessionId,
    pub(super) epoch: u64,
    pub(super) waiting: Receiver<ToWorker>,
    pub(super) ended: CancellationToken,
}

impl MailboxWriter {
    /// Ends with the attachment, and asks the worker to attach anew. One that has done so already leaves the older epoch alone.
    pub(super) async fn run(mut self) {
        let _reader = self.ended.clone().drop_guard();
        while self.send_next().await.is_ok() {}
        let mut again = v1::ServerMessage { attach_again: true, ..v1::ServerMessage::default() };
        let _ = self.tell(&mut again).await;
    }

    /// Fails when nothing more can or need be sent.
    async fn send_next(&mut self) -> Result<(), SendFailure> {
        let mut taken = Vec::new();
        let count = self.ended.clone().run_until_cancelled(self.waiting.recv_many(&mut taken, DRAIN_MAX)).await;
        if count.is_none_or(|count| count == 0) {
            return Err(SendFailure::Away);
        }
        let mut ready = VecDeque::new();
        let bytes_max = self.office.outlet.bytes_max().saturating_sub(ENVELOPE_BYTES);
        exchange::merge(taken.into_iter(), bytes_max, &mut ready);
        for mut message in ready {
            let mut told = self.tell(&mut message).await;
            if told == Err(SendFailure::TooLarge) {
                self.give_up(std::mem::take(&mut message.assignments)).await;
                told = self.tell(&mut message).await;
            }
            told?;
        }
        Ok(())
    }

    async fn tell(&self, message: &mut v1::ServerMessage) -> Result<(), SendFailure> {
        (message.session, message.epoch) = (self.session.to_string(), self.epoch);
        self.office.outlet.tell(&self.worker, message).await
    }

    /// An assignment that no message can carry would be sent for ever: it ends with its reason.
    async fn give_up(&self, assignments: Vec<v1::Assignment>) {
        let bytes_max = self.office.outlet.bytes_max();
        let failed = |assignment: v1::Assignment| ResultReport {
            outcome: Outcome::FailedFatal {
                error: format!(
                    "the job takes {} bytes, and a message to worker {} at most {bytes_max}",
                    assignment.encoded_len(),
                    self.worker
                )
                .into(),
            },
            job_id: assignment.job_id.into(),
            token: assignment.token.into(),
            began: None,
        };
        let results = assignments.into_iter().map(failed).collect();
        if let Err(error) = self.office.engine.report(&self.session, results).await {
            // It is sent again when the worker attaches anew.
            tracing::warn!(worker_id = %self.worker, %error, "job exceeds the message size and could not be failed yet");
        }
    }
}
