//! What belongs to the process that made it.

/// A value that is forgotten, not dropped, in a fork of the process that made it: its threads and locks are not there.
pub(crate) struct Owned<T> {
    value: Option<T>,
    process: u32,
}

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), process: std::process::id() }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
