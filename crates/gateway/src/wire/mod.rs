//! The engine's answers on the wire. gRPC sends them, and REST writes as JSON what `lockgate_api::view` makes of them.

mod access;
mod dag;
mod governance;
mod health;
mod job;
mod overview;
mod pools;
mod schedule;
mod tenants;
mod why;

use lockgate_ports::Cursor;

use crate::queries::cursor_text;

pub(crate) use access::{credentials, made_key, who_am_i};
pub(crate) use dag::{dag, dags, runs, started, stored_dag};
pub(crate) use governance::{activated, activated_policy, audit, breakers, verified};
pub(crate) use health::health;
pub(crate) use job::{
    accepted, approvals, child, dead_letters, job_view, jobs, log_line, logs, progress, replayed, watch_item,
};
pub(crate) use overview::{queues, workers};
pub(crate) use pools::{drained, pool_changed, pools};
pub(crate) use schedule::{applied, begun, schedule, schedules, slots};
pub(crate) use tenants::{erased, tenants};
pub(crate) use why::why;

/// Where a list goes on; empty at its end.
fn next(cursor: Option<Cursor>) -> String {
    cursor.map(cursor_text).unwrap_or_default()
}
