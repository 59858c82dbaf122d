//! Values that several conditions of a policy read from one job: each is read or calculated once.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use super::fact::Fact;
use crate::policy::facts::Facts;

/// The most values kept; further ones are read each time.
const MOST: u8 = 32;

/// The slot of a value, if it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::policy) struct ScratchSlot(Option<u8>);

impl ScratchSlot {
    pub(super) const NONE: Self = Self(None);
}

/// Assigns slots to the values that a policy reads, by name.
#[derive(Debug, Default)]
pub(in crate::policy) struct ScratchLayout(HashMap<String, u8>);

impl ScratchLayout {
    pub(super) fn slot(&mut self, name: String) -> ScratchSlot {
        let next = u8::try_from(self.0.len()).ok().filter(|next| *next < MOST);
        match next {
            Some(next) => ScratchSlot(Some(*self.0.entry(name).or_insert(next))),
            None => ScratchSlot(self.0.get(&name).copied()),
        }
    }
}

/// `None` until the value was read; then the value, if there is one.
type ScratchValue<'f> = Cell<Option<Option<Fact<'f>>>>;

/// A job's facts, with the values read so far.
pub(in crate::policy) struct PredicateScratch<'f, 's> {
    facts: &'f Facts<'s>,
    kept: OnceCell<[ScratchValue<'f>; MOST as usize]>,
}

impl<'f, 's> PredicateScratch<'f, 's> {
    pub(in crate::policy) fn new(facts: &'f Facts<'s>) -> Self {
        Self { facts, kept: OnceCell::new() }
    }

    pub(in crate::policy) fn facts(&self) -> &'f Facts<'s> {
        self.facts
    }

    pub(super) fn once(&self, slot: ScratchSlot, read: impl FnOnce(&'f Facts<'s>) -> Option<Fact<'f>>) -> Option<Fact<'f>> {
        let Some(slot) = slot.0 else { return read(self.facts) };
        let kept = &self.kept.get_or_init(Default::default)[usize::from(slot)];
        kept.get().unwrap_or_else(|| {
            let value = read(self.facts);
            kept.set(Some(value));
            value
        })
    }
}
