//! What is held of limits: by claims until they are settled, then by attempts until they end.

use std::collections::BTreeMap;

use lockgate_core::ids::{AttemptToken, PoolName};
use lockgate_core::lane::{LaneKey, ReadyKey};

use super::gates::GateId;

#[derive(Debug, Default)]
pub(super) struct Holds {
    /// Claims with their numbers.
    pub(super) claims: BTreeMap<(ReadyKey, LaneKey), (u64, HeldUnits)>,
    pub(super) attempts: BTreeMap<AttemptToken, HeldUnits>,
    /// Running jobs of pools with a limit.
    in_pool: BTreeMap<PoolName, u32>,
}

/// One unit of each of these limits.
#[derive(Debug)]
pub(super) struct HeldUnits {
    pub(super) lane: LaneKey,
    /// The pool that the job runs in.
    pub(super) pool: PoolName,
    pub(super) gates: Vec<GateId>,
}

impl Holds {
    pub(super) fn in_pool(&self, pool: &PoolName) -> u32 {
        self.in_pool.get(pool).copied().unwrap_or(0)
    }

    pub(super) fn enter(&mut self, pool: &PoolName) {
        *self.in_pool.entry(pool.clone()).or_default() += 1;
    }

    pub(super) fn exit(&mut self, pool: &PoolName) {
        if let Some(count) = self.in_pool.get_mut(pool) {
            *count -= 1;
            if *count == 0 {
                self.in_pool.remove(pool);
            }
        }
    }

    /// Records a claim. Returns what an earlier claim of the job held, if its lane was rebuilt since.
    pub(super) fn claim(&mut self, key: ReadyKey, number: u64, held: HeldUnits) -> Option<HeldUnits> {
        self.claims.insert((key, held.lane.clone()), (number, held)).map(|(_, earlier)| earlier)
    }

    /// The number of the claim that holds something for this place.
    pub(super) fn claim_of(&self, key: ReadyKey, lane: &LaneKey) -> Option<u64> {
        if self.claims.is_empty() { None } else { self.claims.get(&(key, lane.clone())).map(|(number, _)| *number) }
    }

    pub(super) fn end_claim(&mut self, key: ReadyKey, lane: &LaneKey) -> Option<HeldUnits> {
        if self.claims.is_empty() { None } else { self.claims.remove(&(key, lane.clone())).map(|(_, held)| held) }
    }

    pub(super) fn attempt(&self, token: &AttemptToken) -> Option<&HeldUnits> {
        self.attempts.get(token)
    }

    pub(super) fn begin_attempt(&mut self, token: AttemptToken, held: HeldUnits) {
        self.attempts.insert(token, held);
    }

    pub(super) fn end_attempt(&mut self, token: &AttemptToken) -> Option<HeldUnits> {
        self.attempts.remove(token)
    }

    pub(super) fn tokens(&self) -> impl Iterator<Item = &AttemptToken> {
        self.attempts.keys()
    }
}
