//! Simulated shared lanes, like those on a Redis server: they may forget everything, miss a call of one process, execute a
//! call and lose the answer, and keep the claims of a dead process until they expire.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::ids::{AttemptToken, PoolName};
use lockgate_core::job::Job;
use lockgate_core::lane::{LaneKey, ReadyKey};
use lockgate_memory::MemoryLanes;
use lockgate_ports::{
    Adopted, ClaimRequest, Claimed, Condition, Demand, Hold, LaneDepth, LaneLayout, Lanes, LanesAway, LimitView, Refill,
    RefillRequest, Settlement, TenantShare,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::faults::{Fault, Faults};
use crate::link::Link;
use crate::process::{BOUNDS, Lifeline};

/// A claim that is not settled within this time may be claimed again.
const CLAIM_LEASE: Duration = Duration::from_secs(10);

/// How long an adapter waits for them.
const CALL_DEADLINE: Duration = Duration::from_millis(500);

/// The single server.
#[derive(Default)]
pub(crate) struct SharedLanes(Mutex<BuiltLanes>);

struct BuiltLanes {
    lanes: Arc<MemoryLanes>,
    /// None while the server knows nothing.
    version: Option<u64>,
    built: bool,
    /// The numbers and times of claims.
    claims: BTreeMap<(ReadyKey, LaneKey), (u64, Instant)>,
}

impl Default for BuiltLanes {
    fn default() -> Self {
        Self { lanes: Arc::new(MemoryLanes::new(BOUNDS)), version: None, built: false, claims: BTreeMap::new() }
    }
}

impl SharedLanes {
    /// Settled claims no longer expire.
    fn note_settled(&self, settlements: &[Settlement]) {
        let mut known = self.0.lock();
        for settlement in settlements {
            let (lane, key, claim) = match settlement {
                Settlement::Sent { lane, key, .. } => (lane, key, None),
                Settlement::Gone { lane, key, claim } => (lane, key, *claim),
                Settlement::Returned { lane, key, claim, .. } => (lane, key, Some(*claim)),
            };
            let at = (*key, lane.clone());
            if known.claims.get(&at).is_some_and(|(number, _)| claim.is_none_or(|claim| claim == *number)) {
                known.claims.remove(&at);
            }
        }
    }

    /// Claims of dead processes that have expired: their limits are freed, and their jobs are read again.
    fn expired(&self) -> Vec<Settlement> {
        let mut known = self.0.lock();
        let now = Instant::now();
        let over = known.claims.extract_if(.., |_, (_, at)| *at + CLAIM_LEASE < now);
        let gone: Vec<_> =
            over.map(|((key, lane), (number, _))| Settlement::Gone { lane, key, claim: Some(number) }).collect();
        known.built &= gone.is_empty();
        gone
    }

    fn note_claimed(&self, claimed: &Claimed) {
        let mut known = self.0.lock();
        let now = Instant::now();
        known.claims.extend(claimed.claims.iter().map(|claim| ((claim.key, claim.lane.clone()), (claim.number, now))));
    }
}

/// The server as one process sees it.
pub(crate) struct FaultyLanes {
    pub(crate) shared: Arc<SharedLanes>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) lifeline: Lifeline,
    pub(crate) link: Link,
    /// Whether a call of this process was lost.
    pub(crate) behind: Mutex<bool>,
}

impl FaultyLanes {
    /// Whether a call of this process reaches the server.
    async fn arrives(&self) -> bool {
        if self.faults.chance(300) {
            tokio::time::sleep(self.faults.millis(8)).await;
        }
        if self.faults.inject(1, Fault::Crash) {
            self.lifeline.crash().await;
        }
        self.link.thawed().await;
        self.lifeline.alive_or_never().await;
        if !self.link.is_cut_off() {
            return true;
        }
        *self.behind.lock() = true;
        tokio::time::sleep(CALL_DEADLINE).await;
        false
    }

    /// The lanes; None if they know nothing or the call does not reach them.
    async fn reach(&self) -> Option<Arc<MemoryLanes>> {
        if !self.arrives().await {
            return None;
        }
        if self.faults.inject(1, Fault::LanesWiped) {
            *self.shared.0.lock() = BuiltLanes::default();
        }
        let lost = self.faults.inject(10, Fault::LanesMissed);
        let known = self.shared.0.lock();
        if lost || known.version.is_none() {
            *self.behind.lock() = true;
            return None;
        }
        Some(known.lanes.clone())
    }

    /// Like `reach`, for calls whose caller must know whether there was an answer.
    async fn ask(&self) -> Result<Arc<MemoryLanes>, LanesAway> {
        let lanes = self.reach().await.ok_or_else(|| LanesAway("the call did not arrive".into()))?;
        // A query changes nothing, so it does not matter whether the server executed it.
        if self.goes_unanswered() { Err(LanesAway("the answer did not arrive".into())) } else { Ok(lanes) }
    }

    /// Whether the answer of an executed call is lost. The caller cannot tell that from a call that was lost.
    fn goes_unanswered(&self) -> bool {
        let lost = self.faults.inject(5, Fault::LanesUnanswered);
        *self.behind.lock() |= lost;
        lost
    }
}

#[async_trait]
impl Lanes for FaultyLanes {
    async fn adopt(&self, layout: LaneLayout, held: Vec<Hold>) -> Adopted {
        if !self.arrives().await {
            return Adopted::Outdated;
        }
        let lanes = {
            let mut known = self.shared.0.lock();
            match known.version {
                Some(version) if version == layout.version => return Adopted::Already,
                Some(version) if version > layout.version => return Adopted::Outdated,
                _ => {}
            }
            (known.version, known.built) = (Some(layout.version), false);
            known.lanes.clone()
        };
        lanes.adopt(layout, held).await
    }

    async fn condition(&self) -> Condition {
        if !self.arrives().await {
            return Condition::Away("simulated: cut off".into());
        }
        let known = self.shared.0.lock();
        match () {
            () if known.version.is_none() => Condition::Blank,
            () if !known.built || *self.behind.lock() => Condition::Behind,
            () => Condition::Sound,
        }
    }

    async fn offer(&self, jobs: Vec<Arc<Job>>) {
        if let Some(lanes) = self.reach().await {
            lanes.offer(jobs).await;
            self.goes_unanswered();
        }
    }

    async fn refill(&self, page: Refill) {
        if let Some(lanes) = self.reach().await {
            lanes.refill(page).await;
        }
    }

    async fn claim(&self, request: ClaimRequest) -> Claimed {
        let Some(lanes) = self.reach().await else { return Claimed::default() };
        lanes.settle(self.shared.expired()).await;
        let claimed = lanes.claim(request).await;
        self.shared.note_claimed(&claimed);
        // No rebuild is needed: claims with a lost answer expire.
        if self.faults.inject(5, Fault::LanesUnanswered) { Claimed::default() } else { claimed }
    }

    async fn settle(&self, settlements: Vec<Settlement>) {
        if let Some(lanes) = self.reach().await {
            self.shared.note_settled(&settlements);
            lanes.settle(settlements).await;
            self.goes_unanswered();
        }
    }

    async fn demand(&self) -> Result<Vec<Demand>, LanesAway> {
        self.ask().await?.demand().await
    }

    async fn hold(&self, attempts: Vec<Hold>) {
        if let Some(lanes) = self.reach().await {
            lanes.hold(attempts).await;
            self.goes_unanswered();
        }
    }

    async fn release(&self, attempts: Vec<AttemptToken>) -> bool {
        match self.reach().await {
            Some(lanes) => lanes.release(attempts).await && !self.goes_unanswered(),
            None => false,
        }
    }

    async fn holding(&self) -> Result<Vec<AttemptToken>, LanesAway> {
        self.ask().await?.holding().await
    }

    async fn limits(&self, lane: &LaneKey) -> Vec<LimitView> {
        match self.reach().await {
            Some(lanes) => lanes.limits(lane).await,
            None => Vec::new(),
        }
    }

    async fn shares(&self, limit: usize) -> Result<Vec<TenantShare>, LanesAway> {
        self.ask().await?.shares(limit).await
    }

    async fn claimed_total(&self) -> Result<Vec<(PoolName, u64)>, LanesAway> {
        self.ask().await?.claimed_total().await
    }

    async fn refill_requests(&self) -> Vec<RefillRequest> {
        match self.reach().await {
            Some(lanes) => {
                let asked = lanes.refill_requests().await;
                if self.goes_unanswered() { Vec::new() } else { asked }
            }
            None => Vec::new(),
        }
    }

    async fn depths(&self, limit: usize) -> Result<Vec<LaneDepth>, LanesAway> {
        self.ask().await?.depths(limit).await
    }

    async fn rebuild(&self, lanes: Vec<(LaneKey, u64)>) {
        // Calls from now on arrive after the rebuild, or are recorded as lost again.
        *self.behind.lock() = false;
        let Some(shared) = self.reach().await else { return };
        shared.rebuild(lanes).await;
        let mut known = self.shared.0.lock();
        known.built = known.version.is_some();
        drop(known);
        self.goes_unanswered();
    }
}
