//! The edge: holds worker sessions, claims for their free places, takes their reports.

mod attach;
mod bus_workers;
mod claim;
mod dispatch;
mod elsewhere;
mod outbound;
mod pace;
mod recall;
mod report;
mod revoke;
mod seats;
mod session;
mod sessions;

pub use attach::Attachment;
pub(crate) use bus_workers::DetachedSessions;
pub(crate) use dispatch::Batch;
pub(crate) use elsewhere::StrangerView;
pub use lockgate_core::edge::{
    Acknowledged, Assignment, AttemptProgress, Beat, Began, FromWorker, Hello, InventoryItem, LogReport, ResultReport,
    ToWorker, Welcome,
};
pub(crate) use report::NOBODY_SCANNED;
pub(crate) use sessions::{Edge, Freed, Gone, SessionView};
