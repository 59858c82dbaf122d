//! Queries, each one statement: it sees one state of the database, with everything committed before the call.

mod jobs;
mod lists;
mod runs;
mod sessions;
mod trail;

pub(crate) use jobs::{bound, detail, due, events, expired, held, load, logs, owing, pending, ready, ready_lanes};
pub(crate) use lists::{dead_letters, list};
pub(crate) use runs::{dag, dag_row, dags, list_runs, live_runs, load_runs, news, unheard, waking};
pub(crate) use sessions::{closed_holding, open_sessions, outbox, totals};
pub(crate) use trail::{active, audit, blocks, head, snapshot, snapshots};
