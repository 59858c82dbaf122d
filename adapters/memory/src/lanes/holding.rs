//! Takes and frees the units of limits. L-6: never more than a limit has room for.

use lockgate_core::ids::{AttemptToken, PoolName};
use lockgate_core::lane::{LaneKey, ReadyKey};

use super::catalog::LaneAddress;
use super::gates::Use;
use super::holds::{HeldUnits, Holds};
use super::state::LanesState;
use lockgate_ports::lanes::{Hold, Settlement};

impl LanesState {
    pub(super) fn settle(&mut self, settlement: Settlement) {
        if self.is_old_news(&settlement) {
            return;
        }
        match settlement {
            Settlement::Sent { lane, key, token } => self.sent(lane, key, token),
            Settlement::Gone { lane, key, .. } => {
                self.change_known(&lane, |window, _| window.gone(key));
                self.end_claim(key, &lane);
            }
            Settlement::Returned { lane, key, job, .. } => {
                self.change(&lane, |window, room| window.give_back(key, job, room));
                self.end_claim(key, &lane);
            }
        }
    }

    /// Whether the settlement is of a claim whose job was claimed again since.
    fn is_old_news(&self, settlement: &Settlement) -> bool {
        let (lane, key, claim) = match settlement {
            Settlement::Returned { lane, key, claim, .. } | Settlement::Gone { lane, key, claim: Some(claim) } => {
                (lane, *key, *claim)
            }
            Settlement::Sent { .. } | Settlement::Gone { claim: None, .. } => return false,
        };
        let present = self.claim_of(key, lane).or_else(|| self.holds.claim_of(key, lane));
        present.is_some_and(|present| present != claim)
    }

    /// The claim recorded in the lane's window.
    fn claim_of(&self, key: ReadyKey, lane: &LaneKey) -> Option<u64> {
        self.find(lane).and_then(|at| self.lanes.get(&at))?.window.claim_of(key)
    }

    /// The attempt takes over what its claim holds. An unknown claim, because the lanes were rebuilt or the pools changed,
    /// is counted now as if it had been held all the time: running attempts count even without room.
    fn sent(&mut self, lane: LaneKey, key: ReadyKey, token: AttemptToken) {
        let known = self.claim_of(key, &lane).is_some();
        self.change_known(&lane, |window, _| window.gone(key));
        match self.holds.end_claim(key, &lane) {
            Some(held) if self.holds.attempt(&token).is_none() => self.holds.begin_attempt(token, held),
            Some(held) => self.free(held, Use::Started),
            None if known => {}
            None => {
                if let Ok(route) = self.pools.route(&lane.shape) {
                    self.hold(Hold { lane, pool: route.first().clone(), token });
                }
            }
        }
        self.settle_gates();
    }

    /// Counts an attempt; an attempt known elsewhere is counted anew.
    pub(super) fn hold(&mut self, hold: Hold) {
        let Hold { lane, pool, token } = hold;
        if self.holds.attempt(&token).is_some_and(|held| held.lane == lane && held.pool == pool) {
            return;
        }
        self.end_attempt(&token);
        if let Some(held) = self.count(lane, pool) {
            self.holds.begin_attempt(token, held);
        }
        self.settle_gates();
    }

    /// Returns whether something may have become claimable.
    pub(super) fn release(&mut self, tokens: &[AttemptToken]) -> bool {
        let before = self.openings;
        let mut room = false;
        for token in tokens {
            let full = self.holds.attempt(token).is_some_and(|held| self.room_in(&held.pool) == 0);
            self.end_attempt(token);
            room |= full;
        }
        self.settle_gates();
        self.openings != before || (room && !self.demand.is_empty())
    }

    /// How many more jobs a pool may run now.
    pub(super) fn room_in(&self, pool: &PoolName) -> usize {
        self.bound_of(pool).map_or(usize::MAX, |max| max.saturating_sub(self.holds.in_pool(pool)) as usize)
    }

    /// Takes one unit of every limit of the lane and of the serving pool.
    pub(super) fn take_limits(&mut self, at: LaneAddress, key: ReadyKey, number: u64, serving: &PoolName) {
        let Some(lane) = self.lanes.get(&at) else { return };
        let bounded = self.bound_of(serving).is_some();
        if lane.passages.is_empty() && !bounded {
            return;
        }
        let held = HeldUnits {
            lane: lane.key.clone(),
            pool: serving.clone(),
            gates: lane.passages.iter().map(|passage| passage.gate).collect(),
        };
        let mut yields_to = None;
        for passage in &lane.passages {
            self.gates.take(passage.gate, self.now);
            if self.gates.served(passage.gate, at.tenant, lane.weight, lane.group(*passage)) {
                yields_to = Some(passage.gate);
            }
            self.stirred.insert(passage.gate);
        }
        if bounded {
            self.holds.enter(serving);
        }
        if let Some(earlier) = self.holds.claim(key, number, held) {
            self.free(earlier, Use::Unused);
        }
        if let Some(gate) = yields_to {
            self.step_back(at, gate);
        }
    }

    /// Counts all holds anew under the present limits.
    pub(super) fn count_again(&mut self, before: Holds) {
        let Holds { claims, attempts, .. } = before;
        for ((key, _), (number, held)) in claims {
            if let Some(held) = self.count(held.lane, held.pool) {
                self.holds.claim(key, number, held);
            }
        }
        for (token, held) in attempts {
            if let Some(held) = self.count(held.lane, held.pool) {
                self.holds.begin_attempt(token, held);
            }
        }
    }

    /// None if no limit applies.
    fn count(&mut self, lane: LaneKey, pool: PoolName) -> Option<HeldUnits> {
        let gates: Vec<_> = self.pools.limits(&lane).iter().map(|limit| self.gates.count(limit)).collect();
        let bounded = self.bound_of(&pool).is_some();
        if bounded {
            self.holds.enter(&pool);
        }
        self.stirred.extend(&gates);
        (bounded || !gates.is_empty()).then_some(HeldUnits { lane, pool, gates })
    }

    fn end_claim(&mut self, key: ReadyKey, lane: &LaneKey) {
        if let Some(held) = self.holds.end_claim(key, lane) {
            self.free(held, Use::Unused);
            self.settle_gates();
        }
    }

    fn end_attempt(&mut self, token: &AttemptToken) {
        if let Some(held) = self.holds.end_attempt(token) {
            self.free(held, Use::Started);
        }
    }

    fn free(&mut self, held: HeldUnits, used: Use) {
        self.holds.exit(&held.pool);
        for gate in held.gates {
            self.gates.free(gate, used, self.now);
            self.stirred.insert(gate);
        }
    }

    fn bound_of(&self, pool: &PoolName) -> Option<u32> {
        self.pools.pool(pool)?.max_concurrent
    }
}
