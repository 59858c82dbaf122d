//! The configuration in force as this process knows it: pools, what operators closed, timeouts, quotas.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lockgate_core::pools::{PoolStates, Pools, Routing};
use lockgate_core::quotas::Quotas;
use lockgate_core::time::Timestamp;
use lockgate_core::timeouts::Timeouts;
use lockgate_ports::{Adopted, Condition, LaneLayout, SnapshotKind, StoreError};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::Inner;
use crate::loops::HeldLimit;

/// Whoever lays shared lanes out by new pools has read these from the Store, so another process learns of them a tick or two
/// later. Lanes that are ahead for longer follow pools that the Store does not have.
const AHEAD_FOR: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct ActiveConfig {
    routing: Mutex<Arc<Routing>>,
    timeouts: Mutex<Arc<Timeouts>>,
    quotas: Mutex<Arc<Quotas>>,
    /// The version of the pools in force.
    version: AtomicU64,
    /// Whether all of this was read from the Store. The lanes may be out of reach long after.
    read: AtomicBool,
    /// Wakes those who wait for that, in the order in which they came.
    known: Notify,
    laid_out: Mutex<Option<LaidOut>>,
    ahead: Mutex<Option<Ahead>>,
    /// What is in force was written by another version of Lockgate and cannot be read here.
    unreadable: AtomicBool,
    /// One change at a time: what is known here, the roster and the lanes must come from the same one.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

/// By what the lanes are laid out from end to end.
struct LaidOut {
    version: u64,
    pools: Arc<str>,
    /// Everything that was due before is in them.
    at: Timestamp,
}

/// Shared lanes follow later pools than the Store has in force.
struct Ahead {
    /// What the Store has.
    version: u64,
    since: Instant,
    told: bool,
}

/// What became of a look at what is in force.
enum ConfigRead<T> {
    Same,
    New(T),
    Unreadable,
}

impl<T> ConfigRead<T> {
    fn into_new(self) -> Option<T> {
        match self {
            Self::New(new) => Some(new),
            Self::Same | Self::Unreadable => None,
        }
    }
}

impl ActiveConfig {
    pub(crate) fn routing(&self) -> Arc<Routing> {
        self.routing.lock().clone()
    }

    pub(crate) fn timeouts(&self) -> Arc<Timeouts> {
        self.timeouts.lock().clone()
    }

    pub(crate) fn quotas(&self) -> Arc<Quotas> {
        self.quotas.lock().clone()
    }
}

impl ActiveConfig {
    pub(crate) fn is_unreadable(&self) -> bool {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// The time before which everything due is in the lanes.
    pub(crate) fn laid_out_at(&self) -> Option<Timestamp> {
        self.laid_out.lock().as_ref().map(|laid_out| laid_out.at)
    }

    /// Whether the lanes follow these pools. Others do not know their limits: what was claimed from them would be dispatched under
    /// limits that did not admit it.
    pub(crate) fn is_laid_out_by(&self, pools: &str) -> bool {
        self.laid_out.lock().as_ref().is_some_and(|laid_out| *laid_out.pools == *pools)
    }

    /// The version of the pools in the Store, if shared lanes have been following a later one for too long.
    pub(crate) fn behind_the_lanes(&self) -> Option<u64> {
        self.ahead.lock().as_ref().filter(|ahead| ahead.since.elapsed() >= AHEAD_FOR).map(|ahead| ahead.version)
    }

    /// Lanes are ahead of this version, or of none. Whether that is to be told: once, when it has lasted.
    fn note_ahead(&self, of: Option<u64>) -> bool {
        let mut known = self.ahead.lock();
        let before = known.take();
        *known = of.map(|version| {
            let same = before.filter(|ahead| ahead.version == version);
            same.unwrap_or_else(|| Ahead { version, since: Instant::now(), told: false })
        });
        let lasting = known.as_mut().filter(|ahead| ahead.since.elapsed() >= AHEAD_FOR);
        lasting.is_some_and(|ahead| !std::mem::replace(&mut ahead.told, true))
    }
}

impl Inner {
    /// Follows what the Store has in force, whoever put it there. Repeated by the next tick until it went through.
    pub(crate) async fn configs_once(&self) -> Result<(), StoreError> {
        let _one_at_a_time = self.config.changing.lock().await;
        self.follow_config().await
    }

    /// Workers come back before a new process has read what is in force: they must not be measured by less. They do not wait for
    /// the lanes: what they run goes on without these, and nothing new is claimed before they are laid out.
    pub(crate) async fn configured(&self) -> Result<(), StoreError> {
        let mut known = std::pin::pin!(self.config.known.notified());
        // From here on nobody is missed who says so.
        known.as_mut().enable();
        if self.config.read.load(Ordering::Relaxed) {
            return Ok(());
        }
        let _one_at_a_time = tokio::select! {
            biased;
            () = known => return Ok(()),
            // Whoever reads it may have this for as long as the lanes are away.
            changing = self.config.changing.lock() => changing,
        };
        self.read_config().await
    }

    async fn follow_config(&self) -> Result<(), StoreError> {
        self.read_config().await?;
        self.lay_out().await?;
        self.wake.dispatch.notify_one();
        Ok(())
    }

    async fn read_config(&self) -> Result<(), StoreError> {
        let timeouts = self.config.timeouts();
        // Timeouts and quotas that cannot be read leave those that are known: nobody runs where he must not.
        if let (_, ConfigRead::New(changed)) =
            self.changed(SnapshotKind::Timeouts, timeouts.snapshot(), Timeouts::load).await?
        {
            *self.config.timeouts.lock() = Arc::new(changed);
        }
        let quotas = self.config.quotas();
        if let (_, ConfigRead::New(changed)) = self.changed(SnapshotKind::Quotas, quotas.snapshot(), Quotas::load).await? {
            tracing::info!(quotas = %changed.snapshot(), "quotas in force");
            *self.config.quotas.lock() = Arc::new(changed);
        }
        let known = self.routing();
        let (version, pools) = self.changed(SnapshotKind::Pools, &known.id().pools, Pools::load).await?;
        let read = |_: &str, text: &str| PoolStates::read(text);
        let (_, states) = self.changed(SnapshotKind::PoolStates, &known.id().states, read).await?;
        // With the pools or not at all: lanes that were laid out by older ones under this version would stay so.
        if !matches!(pools, ConfigRead::Unreadable) {
            self.config.version.store(version, Ordering::Relaxed);
        }
        let unreadable = matches!(pools, ConfigRead::Unreadable) || matches!(states, ConfigRead::Unreadable);
        self.config.unreadable.store(unreadable, Ordering::Relaxed);
        let (pools, states) = (pools.into_new(), states.into_new());
        if pools.is_some() || states.is_some() {
            let pools = pools.map_or_else(|| known.pools.clone(), Arc::new);
            let routing = Arc::new(Routing::new(pools, states.unwrap_or_else(|| known.states.clone())));
            // The roster first: who reads what is known here must not judge by less.
            self.edge.ask(|edge, _| edge.on_routing(routing.clone()));
            *self.config.routing.lock() = routing.clone();
            tracing::info!(pools = %routing.id().pools, states = %routing.id().states, "pools in force");
        }
        self.config.read.store(true, Ordering::Relaxed);
        self.config.known.notify_waiters();
        Ok(())
    }

    /// What is in force in the Store, if it is not what is known here, and its version.
    async fn changed<T, E: std::fmt::Debug>(
        &self,
        kind: SnapshotKind,
        known: &Arc<str>,
        read: impl FnOnce(&str, &str) -> Result<T, E>,
    ) -> Result<(u64, ConfigRead<T>), StoreError> {
        let active = self.ports.store.active(kind).await?;
        let version = active.as_ref().map_or(0, |active| active.version);
        let Some(active) = active.filter(|active| active.id != *known) else { return Ok((version, ConfigRead::Same)) };
        let read = match read(kind.as_str(), &active.text) {
            Ok(new) => ConfigRead::New(new),
            // It was checked before it was stored, so only another version of Lockgate can fail to read it.
            Err(errors) => {
                tracing::error!(kind = kind.as_str(), id = %active.id, ?errors, "active configuration cannot be parsed");
                ConfigRead::Unreadable
            }
        };
        Ok((version, read))
    }

    /// Puts what waits into the lanes of its pools anew, once for each configuration.
    async fn lay_out(&self) -> Result<(), StoreError> {
        let version = self.config.version.load(Ordering::Relaxed);
        let known = self.config.laid_out.lock().as_ref().map(|laid_out| laid_out.version);
        if known == Some(version) { Ok(()) } else { self.lay_out_anew(version).await }
    }

    /// Lanes that several processes share are laid out by the first of them, and filled by whoever then finds them empty.
    pub(crate) async fn lay_out_anew(&self, version: u64) -> Result<(), StoreError> {
        let mut counted = self.held_by_workers().await?;
        // From here on the lanes are those of no configuration, until all of it went through.
        *self.config.laid_out.lock() = None;
        let (at, routing) = (self.ports.clock.now(), self.routing());
        let (layout, held) =
            (LaneLayout { version, pools: routing.pools.clone() }, counted.iter().map(HeldLimit::hold).collect());
        let adopted = self.ports.lanes.adopt(layout, held).await;
        self.compare_lanes(version, adopted).await;
        match adopted {
            Adopted::Anew => counted.extend(self.fill_lanes().await?),
            Adopted::Already => {}
            // Somebody knows more than this process; the next look at the Store tells.
            Adopted::Outdated => return Ok(()),
        }
        *self.config.laid_out.lock() = Some(LaidOut { version, pools: routing.id().pools.clone(), at });
        self.wake.dispatch.notify_one();
        self.free_ended(counted).await;
        Ok(())
    }

    /// After a restore nobody knows more than this process: lanes that were not emptied with it follow pools that are gone, and
    /// without a word nothing would ever be claimed again.
    async fn compare_lanes(&self, version: u64, adopted: Adopted) {
        // Lanes that cannot be asked change nothing either, and what cannot be read here is known elsewhere.
        let is_ahead = adopted == Adopted::Outdated
            && !self.config.is_unreadable()
            && !matches!(self.ports.lanes.condition().await, Condition::Away(_));
        if self.config.note_ahead(is_ahead.then_some(version)) {
            tracing::error!(
                version,
                "Redis lanes have a newer pools version than the Store, so no jobs are claimed: if the Store was \
                 restored, delete their keys in Redis (docs/backup.md); else find out who uses them with another database"
            );
        }
    }

    /// Reads what waits and what is held from the Store. What the lanes were told is held: some of it may have ended since.
    pub(crate) async fn fill_lanes(&self) -> Result<Vec<HeldLimit>, StoreError> {
        // Read after the lanes were emptied: what is offered from now on lands in the new ones.
        let lanes = self.ports.store.ready_lanes().await?;
        self.ports.lanes.rebuild(lanes).await;
        // What was sent between the first look and the new lanes counts too.
        let held = self.held_by_workers().await?;
        self.ports.lanes.hold(held.iter().map(HeldLimit::hold).collect()).await;
        self.wake.feed.notify_one();
        Ok(held)
    }

    pub(crate) fn pools_version(&self) -> u64 {
        self.config.version.load(Ordering::Relaxed)
    }
}
