//! The edge: holds worker sessions, claims for their free places, takes their reports.

mod attach;
mod claim;
mod dispatch;
mod elsewhere;
mod outbound;
mod pace;
mod posted;
mod protocol;
mod recall;
mod report;
mod revoke;
mod seats;
mod session;
mod sessions;

pub use attach::Attachment;
pub(crate) use dispatch::Batch;
pub(crate) use elsewhere::StrangerView;
pub(crate) use posted::Adrift;
pub use protocol::{
    Acknowledged, Assignment, Beat, Began, FromWorker, Hello, InventoryItem, LogReport, Progress, ResultReport, ToWorker,
    Welcome,
};
pub(crate) use report::NOBODY_SCANNED;
pub(crate) use sessions::{Edge, Freed, Gone, SessionView};
