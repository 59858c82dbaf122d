//! The lanes of one limit: those let through and those that wait, in order.
//!
//! Tenants take turns here as in the queues, so that a tenant with a thousand lanes does not keep a limit from one with a
//! single lane. A tenant keeps its position while any of its lanes is in the line, let through or waiting: only being served
//! moves it to the back.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::fairness::TenantRing;
use lockgate_core::lane::Priority;

use super::super::catalog::LaneAddress;

/// Interchangeable lanes: equal bound, priority and requirements. Room for one of them is offered to each group, because the
/// workers that could use it may serve one group only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct LineGroup {
    /// The first field, so that groups whose bound is reached are adjacent.
    pub(in super::super) max: u32,
    pub(in super::super) priority: Priority,
    pub(in super::super) fit: u32,
}

impl LineGroup {
    /// The smallest group with a bound above `held`.
    fn above(held: u32) -> Self {
        Self { max: held.saturating_add(1), priority: Priority::Critical, fit: 0 }
    }
}

/// Why a tenant is in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stands {
    LetThrough,
    Waiting(LineGroup),
}

#[derive(Debug, Default)]
pub(super) struct LimitLine {
    ring: TenantRing<u32, Stands>,
    /// Contains no empty set.
    open: BTreeMap<LineGroup, BTreeSet<LaneAddress>>,
    /// How many lanes of `open` a tenant has.
    open_of: BTreeMap<u32, usize>,
    /// By group and tenant, in the order in which they were first refused. Contains no empty set.
    waiting: BTreeMap<LineGroup, BTreeMap<u32, BTreeSet<(u64, LaneAddress)>>>,
}

impl LimitLine {
    pub(super) fn opened(&mut self, at: LaneAddress, group: LineGroup) {
        if self.open.entry(group).or_default().insert(at) {
            *self.open_of.entry(at.tenant).or_default() += 1;
            self.ring.join(at.tenant, Stands::LetThrough);
        }
    }

    pub(super) fn closed(&mut self, at: LaneAddress, group: LineGroup) {
        let Some(lanes) = self.open.get_mut(&group) else { return };
        if !lanes.remove(&at) {
            return;
        }
        if lanes.is_empty() {
            self.open.remove(&group);
        }
        if let Some(count) = self.open_of.get_mut(&at.tenant) {
            *count -= 1;
            if *count == 0 {
                self.open_of.remove(&at.tenant);
                self.ring.leave(at.tenant, Stands::LetThrough);
            }
        }
    }

    pub(super) fn wait(&mut self, at: LaneAddress, group: LineGroup, since: u64) {
        self.waiting.entry(group).or_default().entry(at.tenant).or_default().insert((since, at));
        self.ring.join(at.tenant, Stands::Waiting(group));
    }

    pub(super) fn leave(&mut self, at: LaneAddress, group: LineGroup, since: u64) {
        let Some(tenants) = self.waiting.get_mut(&group) else { return };
        let Some(lanes) = tenants.get_mut(&at.tenant) else { return };
        lanes.remove(&(since, at));
        if lanes.is_empty() {
            tenants.remove(&at.tenant);
            self.ring.leave(at.tenant, Stands::Waiting(group));
        }
        if tenants.is_empty() {
            self.waiting.remove(&group);
        }
    }

    /// Counts one unit that a lane of the tenant took. True if its tenant's turn is over.
    pub(super) fn served(&mut self, tenant: u32, weight: u32) -> bool {
        self.ring.served(tenant, weight)
    }

    pub(super) fn waits(&self, group: LineGroup) -> bool {
        self.waiting.contains_key(&group)
    }

    /// Groups that wait although their bound is not reached.
    pub(super) fn waiting_above(&self, held: u32) -> impl Iterator<Item = LineGroup> {
        self.waiting.range(LineGroup::above(held)..).map(|(group, _)| *group)
    }

    /// The next lane of a group to be let through.
    pub(super) fn next(&self, group: LineGroup) -> Option<LaneAddress> {
        let tenant = self.ring.first([Stands::Waiting(group)])?;
        self.waiting.get(&group)?.get(&tenant)?.first().map(|(_, at)| *at)
    }

    pub(super) fn open_in(&self, group: LineGroup) -> usize {
        self.open.get(&group).map_or(0, BTreeSet::len)
    }

    /// Lanes that were let through and whose bound is now reached.
    pub(super) fn open_up_to(&self, held: u32) -> Vec<LaneAddress> {
        self.open.range(..LineGroup::above(held)).flat_map(|(_, lanes)| lanes).copied().collect()
    }

    pub(super) fn all_open(&self) -> Vec<LaneAddress> {
        self.open.values().flatten().copied().collect()
    }
}
