//! A slab: values under small numbers, so that one array access finds a worker where a search by session would take a dozen
//! steps.

/// The position of a value. Reused once the value is removed.
pub(super) type SlabKey = usize;

#[derive(Debug)]
pub(super) struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<SlabKey>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(super) fn insert(&mut self, value: T) -> SlabKey {
        match self.free.pop() {
            Some(slot) => {
                self.values[slot] = Some(value);
                slot
            }
            None => {
                self.values.push(Some(value));
                self.values.len() - 1
            }
        }
    }

    pub(super) fn remove(&mut self, slot: SlabKey) -> Option<T> {
        let value = self.values.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(value)
    }

    pub(super) fn get(&self, slot: SlabKey) -> Option<&T> {
        self.values.get(slot)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: SlabKey) -> Option<&mut T> {
        self.values.get_mut(slot)?.as_mut()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (SlabKey, &mut T)> {
        self.values.iter_mut().enumerate().filter_map(|(slot, value)| Some((slot, value.as_mut()?)))
    }
}
