//! The velocity windows of this process, as the policy asks for them.

use lockgate_core::policy::{Velocity, VelocityWindow, VelocityWindows};
use parking_lot::Mutex;

pub(super) type OwnWindows = Mutex<VelocityWindows>;

/// A job that is judged enters the windows it meets.
pub(super) struct Entering<'a>(pub(super) &'a OwnWindows);

/// A question that is no job leaves the windows as they are.
pub(super) struct Looking<'a>(pub(super) &'a OwnWindows);

impl Velocity for Entering<'_> {
    fn count(&self, window: &VelocityWindow<'_>) -> u64 {
        self.0.lock().enter(window)
    }
}

impl Velocity for Looking<'_> {
    fn count(&self, window: &VelocityWindow<'_>) -> u64 {
        self.0.lock().look(window)
    }
}
