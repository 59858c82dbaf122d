//! The turns that tenants got, and those that they were entitled to.
//!
//! Every claim is worth one turn, shared by weight among the tenants with claimable work of that pool and priority. Instead
//! of adding to each of them at each claim, a track counts turns per unit of weight, and a tenant reads the count when its
//! work begins and ends: so a claim costs the same with one tenant as with ten thousand.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::lane::Priority;

/// A pool and a priority.
type Track = (usize, Priority);

#[derive(Debug, Default)]
pub(super) struct TierShares {
    tracks: BTreeMap<Track, TierPace>,
    tenants: BTreeMap<u32, Share>,
}

#[derive(Debug, Default)]
struct TierPace {
    turns_per_weight: f64,
    /// The total weight of the tenants with work.
    weight: f64,
}

#[derive(Debug, Default)]
struct Share {
    claims: u64,
    /// Turns on the tracks that it has left.
    entitled: f64,
    /// For each track that it is on: its weight, and the count when it joined.
    on: BTreeMap<Track, (f64, f64)>,
}

impl TierShares {
    /// The tenant has claimable work from now on.
    pub(super) fn begin(&mut self, track: Track, tenant: u32, weight: u32) {
        let weight = f64::from(weight);
        let pace = self.tracks.entry(track).or_default();
        pace.weight += weight;
        self.tenants.entry(tenant).or_default().on.insert(track, (weight, pace.turns_per_weight));
    }

    /// The tenant has no more claimable work.
    pub(super) fn end(&mut self, track: Track, tenant: u32) {
        let (Some(pace), Some(share)) = (self.tracks.get_mut(&track), self.tenants.get_mut(&tenant)) else { return };
        if let Some((weight, began)) = share.on.remove(&track) {
            share.entitled += weight * (pace.turns_per_weight - began);
            pace.weight -= weight;
        }
    }

    pub(super) fn claimed(&mut self, track: Track, tenant: u32) {
        if let Some(pace) = self.tracks.get_mut(&track).filter(|pace| pace.weight > 0.0) {
            pace.turns_per_weight += 1.0 / pace.weight;
        }
        self.tenants.entry(tenant).or_default().claims += 1;
    }

    /// Each tenant with its claims and the turns it was entitled to.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u64, f64)> {
        self.tenants.iter().map(|(tenant, share)| (*tenant, share.claims, self.entitled(share)))
    }

    /// Forgets all other tenants.
    pub(super) fn retain(&mut self, tenants: &BTreeSet<u32>) {
        self.tenants.retain(|tenant, _| tenants.contains(tenant));
    }

    fn entitled(&self, share: &Share) -> f64 {
        let running = share.on.iter().filter_map(|(track, (weight, began))| {
            let pace = self.tracks.get(track)?;
            Some(weight * (pace.turns_per_weight - began))
        });
        share.entitled + running.sum::<f64>()
    }
}
