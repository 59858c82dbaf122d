//! The engine's answers on the wire. gRPC sends them, and REST writes as JSON what `lockgate_api::view` makes of them.

mod governance;
mod job;
mod overview;
mod why;

use lockgate_ports::Cursor;

use crate::queries::cursor_text;

pub(crate) use governance::{activated, audit_row, breaker};
pub(crate) use job::{
    accepted, approvals, child, dead_letters, job_view, jobs, log_line, logs, progress, replayed, watch_item,
};
pub(crate) use overview::{queues, worker};
pub(crate) use why::why;

/// Where a list goes on; empty at its end.
fn next(cursor: Option<Cursor>) -> String {
    cursor.map(cursor_text).unwrap_or_default()
}
