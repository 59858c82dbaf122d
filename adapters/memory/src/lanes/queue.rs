//! The claimable lanes of one pool, in turns.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::fairness::{PriorityTurns, TenantRing};
use lockgate_core::ids::PoolName;
use lockgate_core::lane::{Priority, ReadyKey};
use lockgate_core::pools::PriorityShares;

use super::catalog::LaneAddress;
use super::seats::Seats;

#[derive(Debug)]
pub(super) struct PoolQueue {
    /// None for the lanes that no pool may take.
    pub(super) pool: Option<PoolName>,
    turns: PriorityTurns,
    /// By priority.
    tiers: [Tier; 4],
}

#[derive(Debug, Default)]
struct Tier {
    /// Tenants with claimable jobs; the kinds of the ring are requirements.
    ring: TenantRing<u32, u32>,
    /// The lanes of a tenant and requirements, the one with the oldest head first.
    heads: BTreeMap<(u32, u32), BTreeSet<(ReadyKey, u32)>>,
    /// Grows when a lane joins, since requirements without jobs may then have some.
    joins: u64,
    /// Grows when the turn may pass to another tenant.
    moves: u64,
}

/// The tenants whose turn it is for the seats of one claim, cached while nothing changes them.
#[derive(Default)]
pub(super) struct ClaimTurn {
    tiers: [TierTurn; 4],
}

#[derive(Default)]
struct TierTurn {
    joins: u64,
    moves: u64,
    /// Requirements for which some seat has room and some tenant has jobs.
    wanted: Vec<u32>,
    next: Option<u32>,
}

impl PoolQueue {
    pub(super) fn new(pool: Option<PoolName>, shares: PriorityShares) -> Self {
        Self { pool, turns: PriorityTurns::new(shares), tiers: Default::default() }
    }

    /// The highest priority with claimable jobs of these requirements.
    pub(super) fn urgency(&self, fit: u32) -> Option<Priority> {
        Priority::ALL.into_iter().find(|priority| self.tiers[*priority as usize].ring.has(fit))
    }

    /// A lane became claimable. True if it is the first of its tenant and priority.
    pub(super) fn join(&mut self, at: LaneAddress, fit: u32, head: ReadyKey) -> bool {
        let tier = &mut self.tiers[at.priority as usize];
        tier.joins += 1;
        tier.moves += 1;
        let first = tier.ring.kinds_of(at.tenant).is_empty();
        tier.ring.join(at.tenant, fit);
        tier.heads.entry((at.tenant, fit)).or_default().insert((head, at.shape));
        first
    }

    /// A lane is not claimable any more. True if it was the last of its tenant and priority.
    pub(super) fn leave(&mut self, at: LaneAddress, fit: u32, head: ReadyKey) -> bool {
        let tier = &mut self.tiers[at.priority as usize];
        tier.moves += 1;
        if let Some(heads) = tier.heads.get_mut(&(at.tenant, fit)) {
            heads.remove(&(head, at.shape));
            if heads.is_empty() {
                tier.heads.remove(&(at.tenant, fit));
                tier.ring.leave(at.tenant, fit);
            }
        }
        tier.ring.kinds_of(at.tenant).is_empty()
    }

    /// The head of a claimable lane changed.
    pub(super) fn head_changed(&mut self, at: LaneAddress, fit: u32, before: ReadyKey, head: ReadyKey) {
        if let Some(heads) = self.tiers[at.priority as usize].heads.get_mut(&(at.tenant, fit)) {
            heads.remove(&(before, at.shape));
            heads.insert((head, at.shape));
        }
    }

    /// The lane whose turn it is: a priority first, then a tenant, then its oldest job that fits some seat.
    pub(super) fn next(&mut self, turn: &ClaimTurn, seats: &Seats) -> Option<LaneAddress> {
        let priority = self.turns.take(|p| turn.tiers[p as usize].next.is_some())?;
        let tenant = turn.tiers[priority as usize].next?;
        let tier = &self.tiers[priority as usize];
        let fits = tier.ring.kinds_of(tenant).iter().filter(|fit| seats.has(**fit));
        let heads = fits.filter_map(|fit| tier.heads.get(&(tenant, *fit))?.first());
        heads.min().map(|(_, shape)| LaneAddress { priority, tenant, shape: *shape })
    }

    /// Counts a turn of the tenant.
    pub(super) fn served(&mut self, at: LaneAddress, weight: u32) {
        let tier = &mut self.tiers[at.priority as usize];
        tier.moves += 1;
        tier.ring.served(at.tenant, weight);
    }
}

impl ClaimTurn {
    /// Begins a claim.
    pub(super) fn new(queue: &PoolQueue, seats: &Seats) -> Self {
        let mut turn = Self::default();
        turn.look(queue, seats, true);
        turn
    }

    /// Continues after a job was taken; `closed` if some requirements have no seat left.
    pub(super) fn look(&mut self, queue: &PoolQueue, seats: &Seats, closed: bool) {
        for (turn, tier) in self.tiers.iter_mut().zip(&queue.tiers) {
            if closed || turn.joins != tier.joins {
                turn.wanted = seats.fits().filter(|fit| tier.ring.has(*fit)).collect();
            }
            if closed || turn.moves != tier.moves {
                turn.next = tier.ring.first(turn.wanted.iter().copied());
            }
            (turn.joins, turn.moves) = (tier.joins, tier.moves);
        }
    }
}
