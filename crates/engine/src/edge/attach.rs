//! A worker attaches: its session gets a new epoch, and what it holds is compared with what the Store says it holds.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::edge::{Arrival, FromWorker, Hello, InventoryItem, Reconciled, ToWorker, Welcome};
use lockgate_core::ids::SessionId;
use lockgate_core::worker::WorkerProfile;
use lockgate_ports::{AttachedSession, StoreError, Unattached};
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;

use super::outbound::Outbound;
use crate::damage::ReadRow;
use crate::error::ApiError;
use crate::{Engine, Inner};

/// One attached stream. Dropping it detaches the session; the session itself lives on until it is silent for too long.
pub struct Attachment {
    inner: Arc<Inner>,
    session: SessionId,
    epoch: u64,
    /// Closed once the edge has given the stream up.
    open: watch::Receiver<()>,
}

impl Engine {
    /// Opens a stream for a worker. What must be sent to it comes out of the receiver; the receiver ends when the same
    /// session attaches again elsewhere, or when its stream is not read.
    pub async fn attach(&self, hello: Hello) -> Result<(Attachment, Welcome, Receiver<ToWorker>), ApiError> {
        let attached = self.take_up(hello).await;
        if matches!(attached, Err(ApiError::Unavailable(_) | ApiError::Exhausted(_))) {
            self.inner.health.unheard();
        }
        attached
    }

    async fn take_up(&self, hello: Hello) -> Result<(Attachment, Welcome, Receiver<ToWorker>), ApiError> {
        let inner = &self.inner;
        inner.configured().await?;
        inner.governed().await;
        if let Err(errors) = hello.check(&inner.routing().pools) {
            // The pool may have been put in force by another process a moment ago.
            inner.configs_once().await?;
            hello.check(&inner.routing().pools).map_err(|_| ApiError::Invalid(errors))?;
        }
        let lost_after = hello.profile.lost_after(inner.settings.lost_after);
        let promised = promised(&hello.profile, lost_after);
        let edge = inner.edge.id();
        let attached = inner.ports.store.attach(&hello.session, &edge, &promised).await?;
        let AttachedSession { epoch, sent_away } = attached.map_err(refused)?;
        let (worker, cut) = (hello.profile.worker.clone(), inner.metrics.pools.streams_cut());
        let (outbound, far_end) = Outbound::open(worker, hello.inventory.len(), cut);
        let reconciled = Reconciled::new(&hello, inner.ports.store.held(&hello.session).await?);
        let over = inner.over(reconciled.strangers(&hello)).await?;
        let session = hello.session.clone();
        let arrival = Arrival { edge, epoch, hello, sent_away, reconciled, over };
        let effects = inner.edge.attach(arrival, outbound, inner.ports.clock.now()).map_err(refused)?;
        // From here on, whatever fails, dropping this detaches the session.
        let attachment = Attachment { inner: inner.clone(), session, epoch, open: far_end.open };
        inner.follow_up(effects).await?;
        // Two beats may be lost before a session is.
        let beat_every = inner.settings.beat_every.min(lost_after.min(inner.settings.lost_after) / 3);
        let welcome = Welcome { epoch, beat_every, lost_after };
        Ok((attachment, welcome, far_end.waiting))
    }
}

impl Attachment {
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Takes one message of the worker. Returns after everything in it is durable and acknowledged.
    pub async fn receive(&self, message: FromWorker) {
        self.inner.receive(&self.session, self.epoch, message).await;
    }

    /// Comes when the edge has given the stream up: the task that reads the worker's stream must stop then, or it would go on as if it were
    /// attached. The end of what is to be sent says the same, but only to those who can send.
    pub async fn given_up(&mut self) {
        while self.open.changed().await.is_ok() {}
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // Nothing but the stream and what other processes hear depends on it.
        let _ = self.inner.edge.step(|edge, _| edge.on_stream_ended(&self.session, self.epoch));
    }
}

/// What the Store keeps of a worker names the silence that it was promised: the process that judges it once this one is gone
/// keeps to that word, whatever its own settings say.
fn promised(profile: &WorkerProfile, lost_after: Duration) -> WorkerProfile {
    let lost_after_ms = u64::try_from(lost_after.as_millis()).ok();
    WorkerProfile { lost_after_ms, ..profile.clone() }
}

/// A process whose edge was closed has another within seconds.
fn refused(why: Unattached) -> ApiError {
    match why {
        Unattached::AnotherOwner => ApiError::Forbidden(why.to_string()),
        Unattached::EdgeClosed => ApiError::Unavailable(format!("{why} while this process was away; attach again")),
    }
}

impl Inner {
    /// Those of a worker's attempts, which the Store does not count as held by its session, that do not count any more.
    async fn over(&self, strangers: Vec<InventoryItem>) -> Result<Vec<InventoryItem>, StoreError> {
        if strangers.is_empty() {
            return Ok(strangers);
        }
        let ids: Vec<_> = strangers.iter().map(|item| item.job_id.clone()).collect();
        let may_win = |item: &InventoryItem, job: &ReadRow<_>| match job {
            ReadRow::There(job) => item.may_still_win(job),
            ReadRow::Gone => false,
            // No attempt is stopped on account of a row that cannot be read.
            ReadRow::Unreadable => true,
        };
        let jobs = self.load_each(&ids).await?;
        Ok(strangers.into_iter().zip(jobs).filter(|(item, job)| !may_win(item, job)).map(|(item, _)| item).collect())
    }
}
