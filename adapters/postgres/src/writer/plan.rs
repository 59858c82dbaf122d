//! A group of calls as items, and the waves in which they are written.

use std::collections::HashMap;

use super::proofs::Proofs;
use crate::encoded_change::EncodedChange;

pub(super) struct Item<'a> {
    /// The call that the item belongs to.
    pub(super) call: usize,
    pub(super) sheet: &'a EncodedChange,
    pub(super) proof: i64,
}

pub(super) struct WritePlan<'a> {
    pub(super) items: Vec<Item<'a>>,
    /// Positions of items. A wave contains no job and no key twice, so statements over the whole wave can write it. An item
    /// comes in a later wave than everything in the group that it may depend on.
    pub(super) waves: Vec<Vec<usize>>,
    pub(super) proofs: Proofs<'a>,
}

/// What two items of one wave must not share.
#[derive(PartialEq, Eq, Hash)]
enum WaveKey<'a> {
    Job(&'a str),
    Key(&'a str, &'a str),
}

/// Extra order within a call. A refused key is answered with the state of the job that it names, which another change of the
/// same call may have moved: so births with keys and such changes keep their order. Most calls contain only one of the two
/// kinds. Births are numbered wave by wave, so the births of a call never go back to an earlier wave: one that waits for a
/// key holds back those after it.
#[derive(Default)]
struct WaveOrder {
    births_from: usize,
    after_keyed: usize,
    after_moves: usize,
}

impl WaveOrder {
    fn place(&mut self, sheet: &EncodedChange, wave: usize) -> usize {
        if !sheet.is_birth() {
            let wave = wave.max(self.after_keyed);
            self.after_moves = self.after_moves.max(wave + 1);
            return wave;
        }
        let mut wave = wave.max(self.births_from);
        if sheet.key().is_some() {
            wave = wave.max(self.after_moves);
            self.after_keyed = self.after_keyed.max(wave + 1);
        }
        self.births_from = wave;
        wave
    }
}

impl<'a> WritePlan<'a> {
    pub(super) fn of(calls: impl Iterator<Item = &'a [EncodedChange]>) -> Self {
        let mut plan = Self { items: Vec::new(), waves: Vec::new(), proofs: Proofs::default() };
        // The first wave without the key. Looked up and never iterated, so the order of the map does not matter.
        let mut free: HashMap<WaveKey<'a>, usize> = HashMap::new();
        for (call, sheets) in calls.enumerate() {
            let mut order = WaveOrder::default();
            for sheet in sheets {
                let claims =
                    [Some(WaveKey::Job(sheet.id().as_str())), sheet.key().map(|(tenant, key)| WaveKey::Key(tenant, key))];
                let claims: Vec<WaveKey<'a>> = claims.into_iter().flatten().collect();
                let wave = claims.iter().filter_map(|claim| free.get(claim).copied()).max().unwrap_or_default();
                let wave = order.place(sheet, wave);
                for claim in claims {
                    free.insert(claim, wave + 1);
                }
                let proof = plan.proofs.number(&sheet.transition().evidence);
                plan.place(wave, Item { call, sheet, proof });
            }
        }
        plan
    }

    fn place(&mut self, wave: usize, item: Item<'a>) {
        if self.waves.len() <= wave {
            self.waves.resize_with(wave + 1, Vec::new);
        }
        self.waves[wave].push(self.items.len());
        self.items.push(item);
    }
}
