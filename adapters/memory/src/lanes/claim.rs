//! A claim: takes turns until the seats, the limits or the jobs are used up.

use std::time::Duration;

use lockgate_core::time::Timestamp;

use super::catalog::LaneAddress;
use super::queue::ClaimTurn;
use super::seats::Seats;
use super::state::LanesState;
use super::window::TakenJob;
use lockgate_ports::lanes::{Claim, ClaimRequest, Claimed};

/// How much older than the latest claim a claim's time may be because another claim overtook it. A larger difference means
/// that the clock was set back.
const OVERTAKEN_MAX: Duration = Duration::from_secs(1);

impl LanesState {
    pub(super) fn claim(&mut self, request: &ClaimRequest) -> Claimed {
        self.pass_time(request.now);
        let claims = self.queue_of(&request.pool).map_or_else(Vec::new, |queue| self.claim_from(queue, request));
        Claimed { claims, again_at: self.gates.next_due() }
    }

    /// Rates may have room again.
    fn pass_time(&mut self, now: Timestamp) {
        let overtaken = now < self.now && self.now.since(now) <= OVERTAKEN_MAX;
        let now = if overtaken { self.now } else { now };
        let due = self.gates.pass(self.now, now);
        self.now = now;
        self.stirred.extend(due);
        self.settle_gates();
    }

    fn claim_from(&mut self, queue: usize, request: &ClaimRequest) -> Vec<Claim> {
        let limit = request.limit.min(self.room_in(&request.serving));
        let mut seats = Seats::new(&request.seats, &self.catalog);
        let mut turn = ClaimTurn::new(&self.queues[queue], &seats);
        let mut claims = Vec::with_capacity(seats.free().min(self.ledger.total.jobs).min(limit));
        while claims.len() < limit
            && let Some(at) = self.queues[queue].next(&turn, &seats)
            && let Some((claim, closed)) = self.claim_head(at, &mut seats, request)
        {
            claims.push(claim);
            turn.look(&self.queues[queue], &seats, closed);
        }
        if !claims.is_empty() {
            *self.taken.entry(request.pool.clone()).or_default() += claims.len() as u64;
        }
        claims
    }

    /// Claims the head of a lane for a seat, with its limits. Also returns whether some requirements have no seat left.
    fn claim_head(&mut self, at: LaneAddress, seats: &mut Seats, request: &ClaimRequest) -> Option<(Claim, bool)> {
        let lane = self.lanes.get_mut(&at)?;
        let (seat, closed) = seats.take(lane.fit)?;
        let (lane_key, queue, weight) = (lane.key.clone(), lane.queue, lane.weight);
        self.arrivals += 1;
        lane.since = self.arrivals;
        self.shares.claimed((queue, at.priority), at.tenant);
        self.queues[queue].served(at, weight);
        let number = self.next_ticket();
        let mut taken = None;
        self.change_at(at, |window, _| taken = window.take(number));
        let TakenJob { key, job_id, job } = taken?;
        self.take_limits(at, key, number, &request.serving);
        self.settle_gates();
        Some((Claim { seat, job_id, lane: lane_key, key, number, job }, closed))
    }
}
