//! What many conditions of a policy ask of the same job: read, or calculated, once.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use super::fact::Fact;
use crate::policy::facts::Facts;

/// So many values are kept; what a policy asks for beyond them is read whenever it is asked for.
const MOST: u8 = 32;

/// Where a value is kept, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::policy) struct ScratchSlot(Option<u8>);

impl ScratchSlot {
    pub(super) const NONE: Self = Self(None);
}

/// Gives slots to the values that a policy asks for, by what they are called.
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

/// `None` until it was read; then the value, if there is one.
type ScratchValue<'f> = Cell<Option<Option<Fact<'f>>>>;

/// What is known of a job, with what was read of it so far.
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
