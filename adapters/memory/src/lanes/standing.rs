//! Which lanes are claimable: those with a job in memory that every limit lets through.
//!
//! A lane that a limit refuses leaves its queue and joins that limit's line, so waiting lanes cost a claim nothing. Lanes
//! move only when their limit changes, and a limit closes only as many lanes as it let through before, so the total work is
//! bounded.

use super::catalog::LaneAddress;
use super::gates::{GateId, GatePassage, LimitGate};
use super::state::{Lane, LaneStanding, LanesState};

impl LanesState {
    /// Updates a lane's standing after a change of its window.
    pub(super) fn follow(&mut self, at: LaneAddress) {
        let Some(lane) = self.lanes.get_mut(&at) else { return };
        match (lane.standing, lane.window.head()) {
            (LaneStanding::Empty, Some(_)) => {
                self.arrivals += 1;
                lane.since = self.arrivals;
                self.admit(at, None);
            }
            (LaneStanding::Open(before), Some(head)) if before != head => {
                lane.standing = LaneStanding::Open(head);
                self.queues[lane.queue].head_changed(at, lane.fit, before, head);
            }
            (LaneStanding::Open(_), None) => self.close(at),
            (LaneStanding::Waiting(gate), None) => self.quit(at, gate),
            _ => {}
        }
        self.follow_demand(at);
    }

    /// Lets changed limits close and call lanes until no limit has changed.
    pub(super) fn settle_gates(&mut self) {
        while let Some(id) = self.stirred.pop_first() {
            for at in self.gates.get(id).map_or_else(Vec::new, |gate| gate.crowded_out(self.now)) {
                self.step_back(at, id);
            }
            for group in self.gates.get(id).map_or_else(Vec::new, |gate| gate.callable(self.now)) {
                while let Some(at) = self.gates.get(id).and_then(|gate| gate.next(group, self.now)) {
                    // Another limit may refuse the lane now. It leaves this line last, so that its tenant keeps its
                    // position.
                    self.admit(at, Some(id));
                    self.leave_line(at, id);
                }
            }
            self.gates.note_due(id, self.now);
        }
    }

    /// A claimable lane has to wait for a limit. It enters the line before it leaves its queue, so that its tenant keeps its
    /// position.
    pub(super) fn step_back(&mut self, at: LaneAddress, gate: GateId) {
        if self.lanes.get(&at).is_some_and(|lane| matches!(lane.standing, LaneStanding::Open(_))) {
            self.wait_at(at, gate);
            self.close(at);
            self.set_standing(at, LaneStanding::Waiting(gate));
        }
    }

    /// A lane with jobs enters its queue, or the line of the first limit that refuses it. A lane `called` by a limit has
    /// waited for that one already.
    fn admit(&mut self, at: LaneAddress, called: Option<GateId>) {
        let Some(lane) = self.lanes.get(&at) else { return };
        let refuses = |passage: &&GatePassage| {
            let refuses = |gate: &LimitGate| gate.refuses(lane.group(**passage), self.now);
            Some(passage.gate) != called && self.gates.get(passage.gate).is_some_and(refuses)
        };
        match lane.passages.iter().find(refuses).map(|passage| passage.gate) {
            Some(gate) => {
                self.wait_at(at, gate);
                self.set_standing(at, LaneStanding::Waiting(gate));
                self.stirred.insert(gate);
            }
            None => self.open(at),
        }
    }

    fn open(&mut self, at: LaneAddress) {
        let Some(lane) = self.lanes.get_mut(&at) else { return };
        let Some(head) = lane.window.head() else { return };
        lane.standing = LaneStanding::Open(head);
        self.openings += 1;
        if self.queues[lane.queue].join(at, lane.fit, head) {
            self.shares.begin((lane.queue, at.priority), at.tenant, lane.weight);
        }
        for passage in &lane.passages {
            self.gates.opened(passage.gate, at, lane.group(*passage));
        }
        self.follow_demand(at);
    }

    fn close(&mut self, at: LaneAddress) {
        let Some(lane) = self.lanes.get_mut(&at) else { return };
        let LaneStanding::Open(head) = lane.standing else { return };
        lane.standing = LaneStanding::Empty;
        if self.queues[lane.queue].leave(at, lane.fit, head) {
            self.shares.end((lane.queue, at.priority), at.tenant);
        }
        for passage in &lane.passages {
            self.gates.closed(passage.gate, at, lane.group(*passage));
            self.stirred.insert(passage.gate);
        }
        self.follow_demand(at);
    }

    /// A waiting lane has no jobs any more.
    fn quit(&mut self, at: LaneAddress, gate: GateId) {
        self.leave_line(at, gate);
        self.set_standing(at, LaneStanding::Empty);
        self.stirred.insert(gate);
    }

    fn wait_at(&mut self, at: LaneAddress, gate: GateId) {
        let Some(lane) = self.lanes.get(&at) else { return };
        if let Some(passage) = passage(lane, gate) {
            self.gates.wait(gate, at, lane.group(passage), lane.since);
        }
    }

    fn leave_line(&mut self, at: LaneAddress, gate: GateId) {
        let Some(lane) = self.lanes.get(&at) else { return };
        if let Some(passage) = passage(lane, gate) {
            self.gates.leave(gate, at, lane.group(passage), lane.since);
        }
    }

    fn set_standing(&mut self, at: LaneAddress, standing: LaneStanding) {
        if let Some(lane) = self.lanes.get_mut(&at) {
            lane.standing = standing;
        }
    }

    fn follow_demand(&mut self, at: LaneAddress) {
        let Some(lane) = self.lanes.get_mut(&at) else { return };
        let waiting = if matches!(lane.standing, LaneStanding::Open(_)) { lane.window.waiting() } else { 0 };
        if waiting == lane.demanded {
            return;
        }
        let demand = self.demand.entry(lane.fit).or_default();
        *demand = *demand + waiting - lane.demanded;
        lane.demanded = waiting;
        if *demand == 0 {
            self.demand.remove(&lane.fit);
        }
    }
}

fn passage(lane: &Lane, gate: GateId) -> Option<GatePassage> {
    lane.passages.iter().find(|passage| passage.gate == gate).copied()
}
