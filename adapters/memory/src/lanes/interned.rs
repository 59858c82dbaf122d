//! Interning: small numbers for names, so that the hot path compares and copies numbers.

use std::collections::HashMap;
use std::hash::Hash;

/// Assigns each value a number, which is reused once the value was dropped.
#[derive(Debug)]
pub(super) struct Interned<T> {
    /// Looked up and never iterated, so its order does not matter.
    ids: HashMap<T, u32>,
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self { ids: HashMap::new(), values: Vec::new(), free: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Interned<T> {
    pub(super) fn find(&self, value: &T) -> Option<u32> {
        self.ids.get(value).copied()
    }

    /// The value's number, and whether the value is new.
    pub(super) fn intern(&mut self, value: &T) -> (u32, bool) {
        if let Some(id) = self.find(value) {
            return (id, false);
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.values.push(None);
            u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX)
        });
        self.values[id as usize] = Some(value.clone());
        self.ids.insert(value.clone(), id);
        (id, true)
    }

    /// Drops the values whose number `keep` rejects.
    pub(super) fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        for (id, slot) in (0u32..).zip(&mut self.values) {
            if let Some(value) = slot.take_if(|_| !keep(id)) {
                self.ids.remove(&value);
                self.free.push(id);
            }
        }
    }

    pub(super) fn get(&self, id: u32) -> Option<&T> {
        self.values.get(id as usize)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_reused_only_after_its_value_was_dropped() {
        let mut names = Interned::default();
        assert_eq!(names.intern(&"a"), (0, true));
        assert_eq!(names.intern(&"b"), (1, true));
        assert_eq!(names.intern(&"a"), (0, false));
        names.retain(|id| id != 0);
        assert_eq!(names.find(&"a"), None);
        assert_eq!(names.intern(&"c"), (0, true));
        assert_eq!((names.get(0), names.get(1), names.get(2)), (Some(&"c"), Some(&"b"), None));
    }
}
