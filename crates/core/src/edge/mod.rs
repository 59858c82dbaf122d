//! The edge: one life of a gateway process as the holder of worker streams.

mod moment;
mod protocol;
mod sighting;

pub use moment::Moment;
pub use protocol::{
    Acknowledged, Assignment, AttemptProgress, Beat, Began, FromWorker, Hello, InventoryItem, LogReport, ResultReport,
    ToWorker, Welcome,
};
pub use sighting::{LEAVING_MAX, SEEN_LIFE, Sighting};
