//! Workers that are spoken with by messages, over a bus, and not over a stream.
//!
//! Whatever carries the messages may lose, double and delay them, and a process never hears that a worker is gone. So every message
//! to a worker names its session and epoch; a worker that is quiet for a moment gets no more jobs, as one whose stream broke; and
//! what is lost on the way is found by the next beat or the next hello, as with a stream.

mod session;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::access::{ApiKey, Identity, Permission};
use lockgate_core::ids::{ActorId, PoolName, SessionId, WorkerId, check_name};
use lockgate_engine::{ApiError, Engine};
use lockgate_ports::Clock;
use lockgate_proto::v1;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Gateway;
use crate::auth::{AccessMode, Entrance};
use crate::grpc::exchange;
use session::{MailboxReader, MailboxWriter};

/// How messages get to a worker.
#[tonic::async_trait]
pub trait WorkerMessenger: Send + Sync {
    async fn tell(&self, worker: &WorkerId, message: &v1::ServerMessage) -> Result<(), SendFailure>;

    /// The largest message that can be sent.
    fn bytes_max(&self) -> usize;
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendFailure {
    /// Nothing gets through now.
    Away,
    /// It is larger than any message may be.
    TooLarge,
}

#[derive(Clone)]
pub struct BusWorkerSettings {
    /// How workers find this process: a name that no other process has, nor an earlier life of this one.
    pub address: String,
    /// Silence after which a worker is lost.
    pub lost_after: Duration,
    /// Silence after which it gets no more jobs.
    pub quiet_after: Duration,
    /// Stands for all workers, where credentials are asked for.
    pub key: Option<ApiKey>,
}

/// Messages of one worker that wait to be read. What does not fit is lost, as messages may be.
const MAILBOX: usize = 1_024;

const KEY_ENDED: &str = "the key that stands for workers is not one that may work, or has ended; give the server another one with \
    --nats-worker-key";

/// The workers that are attached to this process by messages.
#[derive(Clone)]
pub struct BusWorkers(Arc<BusWorkersShared>);

struct BusWorkersShared {
    engine: Engine,
    clock: Arc<dyn Clock>,
    settings: BusWorkerSettings,
    known: Option<(Arc<Entrance>, ApiKey)>,
    outlet: Arc<dyn WorkerMessenger>,
    mailboxes: Mutex<BTreeMap<SessionId, Mailbox>>,
    closing: CancellationToken,
    running: TaskTracker,
}

struct Mailbox {
    epoch: u64,
    bus_submits: mpsc::Sender<v1::WorkerMessage>,
}

impl Gateway {
    /// None where credentials are asked for and there is no key.
    pub fn bus_workers(&self, settings: BusWorkerSettings, outlet: Arc<dyn WorkerMessenger>) -> Option<BusWorkers> {
        let known = match (&self.settings.access, &settings.key) {
            (AccessMode::Open, _) => None,
            (AccessMode::Closed(entrance), Some(key)) => Some((entrance.clone(), key.clone())),
            (AccessMode::Closed(_), None) => return None,
        };
        Some(BusWorkers(Arc::new(BusWorkersShared {
            engine: self.engine.clone(),
            clock: self.clock.clone(),
            settings,
            known,
            outlet,
            mailboxes: Mutex::default(),
            closing: CancellationToken::new(),
            running: TaskTracker::new(),
        })))
    }
}

impl BusWorkers {
    pub fn address(&self) -> &str {
        &self.0.settings.address
    }

    /// A worker wants to be attached to this process. It is welcomed, or told why not.
    pub async fn hello(&self, wire: v1::Hello) {
        let (worker, session) = (WorkerId::from(wire.worker_id.as_str()), wire.session.clone());
        if check_name(worker.as_str()).is_err() || worker.as_str().contains("..") {
            tracing::warn!(worker_id = ?worker.as_str(), "worker rejected: its name cannot be a NATS subject");
            return;
        }
        if let Err(error) = self.attach(&worker, wire).await {
            tracing::warn!(worker_id = %worker, %error, "worker rejected");
            let refused = v1::Refusal { code: error.code().to_owned(), message: error.to_string() };
            let message = v1::ServerMessage { session, refused: Some(refused), ..v1::ServerMessage::default() };
            // Untold, it says hello again.
            let _ = self.0.outlet.tell(&worker, &message).await;
        }
    }

    async fn attach(&self, worker: &WorkerId, wire: v1::Hello) -> Result<(), ApiError> {
        let office = &self.0;
        let owner = office.admit(&PoolName::from(wire.pool.as_str())).await?;
        let mut hello = exchange::hello(wire, None)?;
        hello.profile.owner = owner;
        hello.profile.lost_after_ms = u64::try_from(office.settings.lost_after.as_millis()).ok();
        let (attachment, welcome, waiting) = office.engine.attach(hello).await?;
        let (session, epoch) = (attachment.session().clone(), welcome.epoch);
        let mut first = exchange::welcome(&welcome);
        (first.session, first.epoch) = (session.to_string(), epoch);
        if let Some(welcome) = &mut first.welcome {
            welcome.address.clone_from(&office.settings.address);
        }
        let (bus_submits, mailbox) = mpsc::channel(MAILBOX);
        office.register(&session, Mailbox { epoch, bus_submits });
        // Before anything else that is for this epoch.
        if office.outlet.tell(worker, &first).await.is_err() {
            office.unregister(&session, epoch);
            return Ok(());
        }
        let ended = office.closing.child_token();
        let reader = MailboxReader { office: office.clone(), attachment, epoch, mailbox, ended: ended.clone() };
        let writer = MailboxWriter { office: office.clone(), worker: worker.clone(), session, epoch, waiting, ended };
        office.running.spawn(reader.run());
        office.running.spawn(writer.run());
        Ok(())
    }

    /// What a worker said to this process. Of one that is not attached here nothing is heard: it notices that no answer comes.
    pub fn heard(&self, message: v1::WorkerMessage) {
        let mailboxes = self.0.mailboxes.lock();
        if let Some(mailbox) = mailboxes.get(message.session.as_str()) {
            let _ = mailbox.bus_submits.try_send(message);
        }
    }

    /// Takes results, of whatever worker. Answers after the commit; an error that passes means that they must come again, as they
    /// must when the process has a good key again.
    pub async fn report(&self, message: v1::WorkerMessage) -> Result<v1::ServerMessage, ApiError> {
        if self.0.is_over().await {
            return Err(ApiError::Unavailable(KEY_ENDED.to_owned()));
        }
        let name = message.session.clone();
        let said = exchange::from_worker(message, self.0.clock.now())?;
        let count = said.results.len();
        let acks = self.0.engine.report(&SessionId::from(name.as_str()), said.results).await?;
        if acks.len() < count {
            return Err(ApiError::Unavailable("some results are not decided yet".to_owned()));
        }
        Ok(v1::ServerMessage { session: name, acks: exchange::acks(&acks), ..v1::ServerMessage::default() })
    }

    /// No worker could be heard for a while.
    pub fn deaf(&self) {
        self.0.engine.deaf();
    }

    /// Tells every worker to attach elsewhere.
    pub async fn close(&self) {
        self.0.closing.cancel();
        self.0.running.close();
        self.0.running.wait().await;
    }
}

impl BusWorkersShared {
    /// A message carries no credential, so one key stands for all who may publish, and C-2 knows them by its actor.
    async fn admit(&self, pool: &PoolName) -> Result<Option<ActorId>, ApiError> {
        let Some((entrance, key)) = &self.known else { return Ok(None) };
        let identity = self.bearer(entrance, key).await?.ok_or_else(|| ApiError::Unavailable(KEY_ENDED.to_owned()))?;
        if identity.grant.holds_pool(pool) {
            return Ok(Some(identity.actor));
        }
        Err(ApiError::Forbidden(format!("the key that stands for workers is not for pool {:?}", pool.as_str())))
    }

    /// Whether the key has ended. Only certain knowledge counts: while the Store cannot be asked, work goes on, as with streams.
    async fn is_over(&self) -> bool {
        let Some((entrance, key)) = &self.known else { return false };
        matches!(self.bearer(entrance, key).await, Ok(None))
    }

    /// Whose the key is, if it is one that may work.
    async fn bearer(&self, entrance: &Entrance, key: &ApiKey) -> Result<Option<Identity>, ApiError> {
        let identity = self.engine.identify_key(&entrance.digest, key).await?;
        Ok(identity.filter(|identity| identity.grant.allows(Permission::Work)))
    }

    fn register(&self, session: &SessionId, mailbox: Mailbox) {
        let mut mailboxes = self.mailboxes.lock();
        // A hello that was slower does not replace a newer one.
        if mailboxes.get(session).is_none_or(|known| known.epoch < mailbox.epoch) {
            mailboxes.insert(session.clone(), mailbox);
        }
    }

    fn unregister(&self, session: &SessionId, epoch: u64) {
        let mut mailboxes = self.mailboxes.lock();
        if mailboxes.get(session).is_some_and(|known| known.epoch == epoch) {
            mailboxes.remove(session);
        }
    }
}
