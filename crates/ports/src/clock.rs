//! Wall-clock time.

use lockgate_core::time::Timestamp;

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}
