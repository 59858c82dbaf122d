//! The limits of lanes, by key. A limit exists while some lane has it, something is held of it, or its rate remembers recent
//! starts.

mod gate;
mod line;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_core::pools::Limit;
use lockgate_core::rate::Bucket;
use lockgate_core::time::Timestamp;

use super::catalog::LaneAddress;
pub(super) use gate::LimitGate;
pub(super) use line::LineGroup;
use lockgate_ports::lanes::LimitView;

/// Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GateId(u64);

/// A limit as one lane passes it. Lanes may share a count with different bounds, because each verdict sets its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct GatePassage {
    pub(super) gate: GateId,
    pub(super) max: u32,
}

/// Whether a unit of a rate was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// A job was started.
    Started,
    /// No job was started: the unit returns to the rate.
    Unused,
}

#[derive(Debug, Default)]
pub(super) struct Gates {
    ids: BTreeMap<Arc<str>, GateId>,
    gates: BTreeMap<GateId, LimitGate>,
    last: u64,
    /// Limits that lanes wait for, by the time at which their rate has room.
    due: BTreeSet<(Timestamp, GateId)>,
    /// Unused limits, by the time from which their rate has nothing to remember.
    cooling: BTreeSet<(Timestamp, GateId)>,
}

impl Gates {
    /// The rates, which a new configuration keeps: reloading it must not reset them.
    pub(super) fn rates_only(self, now: Timestamp) -> Self {
        let mut kept = Self { last: self.last, ..Self::default() };
        for (id, gate) in self.gates {
            if gate.bucket.is_some() {
                kept.ids.insert(gate.key.clone(), id);
                kept.gates.insert(
                    id,
                    LimitGate { bucket: gate.bucket, ..LimitGate::new(&Limit { key: gate.key, max: None, rate: None }) },
                );
                kept.forget_if_unused(id, now);
            }
        }
        kept
    }

    pub(super) fn get(&self, id: GateId) -> Option<&LimitGate> {
        self.gates.get(&id)
    }

    /// Adds a lane that passes this limit.
    pub(super) fn join(&mut self, limit: &Limit) -> GatePassage {
        let (id, gate) = self.gate(limit);
        gate.lanes += 1;
        GatePassage { gate: id, max: gate::bound(limit) }
    }

    /// Removes a lane that passed this limit.
    pub(super) fn part(&mut self, id: GateId, now: Timestamp) {
        if let Some(gate) = self.gates.get_mut(&id) {
            gate.lanes -= 1;
            self.forget_if_unused(id, now);
        }
    }

    /// Takes one unit for a job that is being claimed.
    pub(super) fn take(&mut self, id: GateId, now: Timestamp) {
        if let Some(gate) = self.gates.get_mut(&id) {
            gate.held += 1;
            if let Some(bucket) = &mut gate.bucket {
                bucket.take(now);
            }
        }
    }

    /// Takes one unit for a running attempt, regardless of room. Its start time is unknown, so no rate is charged.
    pub(super) fn count(&mut self, limit: &Limit) -> GateId {
        let (id, gate) = self.gate(limit);
        gate.held += 1;
        id
    }

    pub(super) fn free(&mut self, id: GateId, used: Use, now: Timestamp) {
        let Some(gate) = self.gates.get_mut(&id) else { return };
        gate.held = gate.held.saturating_sub(1);
        if let Some(bucket) = gate.bucket.as_mut().filter(|_| used == Use::Unused) {
            bucket.give_back();
        }
        self.forget_if_unused(id, now);
    }

    pub(super) fn opened(&mut self, id: GateId, at: LaneAddress, group: LineGroup) {
        self.line(id, |line| line.opened(at, group));
    }

    pub(super) fn closed(&mut self, id: GateId, at: LaneAddress, group: LineGroup) {
        self.line(id, |line| line.closed(at, group));
    }

    pub(super) fn wait(&mut self, id: GateId, at: LaneAddress, group: LineGroup, since: u64) {
        self.line(id, |line| line.wait(at, group, since));
    }

    pub(super) fn leave(&mut self, id: GateId, at: LaneAddress, group: LineGroup, since: u64) {
        self.line(id, |line| line.leave(at, group, since));
    }

    /// A lane of the tenant took its unit. True when others of its group wait and it is their turn: however much room there
    /// is, a lane that stayed would be served again and again before them.
    pub(super) fn served(&mut self, id: GateId, tenant: u32, weight: u32, group: LineGroup) -> bool {
        self.gates.get_mut(&id).is_some_and(|gate| gate.line.served(tenant, weight) && gate.line.waits(group))
    }

    /// Notes when a limit by time has room again, if a lane waits for that.
    pub(super) fn note_due(&mut self, id: GateId, now: Timestamp) {
        let Some(gate) = self.gates.get_mut(&id) else { return };
        let next = gate.next_room_at(now);
        if let Some(before) = std::mem::replace(&mut gate.due, next) {
            self.due.remove(&(before, id));
        }
        if let Some(next) = next {
            self.due.insert((next, id));
        }
    }

    /// The earliest time at which a limit by time has room for a waiting lane.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Time went from `before` to `now`: gates whose room that changed for a waiting lane.
    pub(super) fn pass(&mut self, before: Timestamp, now: Timestamp) -> Vec<GateId> {
        while let Some((_, id)) = self.cooling.first().copied().filter(|(at, _)| *at <= now) {
            self.cooling.pop_first();
            self.forget_if_unused(id, now);
        }
        if now < before {
            return self.set_back(now);
        }
        self.due.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| *id).collect()
    }

    pub(super) fn view(&self, limit: &Limit, now: Timestamp) -> LimitView {
        match self.ids.get(&limit.key).and_then(|id| self.gates.get(id)) {
            Some(gate) => gate.view(limit, now),
            None => LimitGate::new(limit).view(limit, now),
        }
    }

    fn gate(&mut self, limit: &Limit) -> (GateId, &mut LimitGate) {
        let last = &mut self.last;
        let id = *self.ids.entry(limit.key.clone()).or_insert_with(|| {
            *last += 1;
            GateId(*last)
        });
        let gate = self.gates.entry(id).or_insert_with(|| LimitGate::new(limit));
        if gate.bucket.as_ref().map(Bucket::rate) != limit.rate {
            gate.bucket = limit.rate.map(Bucket::new);
        }
        (id, gate)
    }

    fn line(&mut self, id: GateId, change: impl FnOnce(&mut line::LimitLine)) {
        if let Some(gate) = self.gates.get_mut(&id) {
            change(&mut gate.line);
        }
    }

    fn set_back(&mut self, now: Timestamp) -> Vec<GateId> {
        let mut rates = Vec::new();
        for (id, gate) in &mut self.gates {
            if let Some(bucket) = &mut gate.bucket {
                bucket.set_back(now);
                rates.push(*id);
            }
        }
        rates
    }

    fn forget_if_unused(&mut self, id: GateId, now: Timestamp) {
        let Some(gate) = self.gates.get(&id).filter(|gate| !gate.is_used()) else { return };
        match gate.bucket.as_ref().map(|bucket| bucket.full_at(now)).filter(|full_at| *full_at > now) {
            Some(full_at) => {
                self.cooling.insert((full_at, id));
            }
            None => {
                self.ids.remove(&gate.key);
                if let Some(due) = gate.due {
                    self.due.remove(&(due, id));
                }
                self.gates.remove(&id);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.gates.len()
    }
}
