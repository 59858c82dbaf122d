//! The edge: holds worker sessions, claims for their free places, takes their reports.
//!
//! What it decides is [`lockgate_core::edge`]; here it is locked, called, and its effects are performed.

mod attach;
mod bus_workers;
mod claim;
mod dispatch;
mod outbound;
mod perform;
mod recall;
mod report;
mod streams;

pub use attach::Attachment;
pub(crate) use bus_workers::DetachedSessions;
pub(crate) use dispatch::Batch;
pub use lockgate_core::edge::{
    Acknowledged, Assignment, AttemptProgress, Beat, Began, FromWorker, Hello, InventoryItem, LogReport, ResultReport,
    ToWorker, Welcome,
};
pub(crate) use report::NOBODY_SCANNED;
pub(crate) use streams::Edge;
