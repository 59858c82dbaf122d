//! Queries. Each page is one statement, so it sees one state of the database, with everything committed before the call.

mod credentials;
mod jobs;
mod lists;
mod names;
mod pages;
mod runs;
mod schedules;
mod sessions;
mod tenants;
mod trail;

pub(crate) use credentials::{CREDENTIAL, credential, credential_row, credentials};
pub(crate) use jobs::{
    DUE, EXPIRED, PENDING, bound, children, detail, events, family, held, live_children, load, logs, owing, queue, ready,
    ready_lanes, under_way,
};
pub(crate) use lists::{dead_letters, list};
pub(crate) use names::{duplicates, run_of_key};
pub(crate) use runs::{dag, dag_row, dags, list_runs, live_runs, load_runs, memos, news, unheard, waking};
pub(crate) use schedules::{due_schedules, list_schedules, list_slots, load_schedules, next_schedule};
pub(crate) use sessions::{
    backlog, closed_holding, kept_tries, leases, open_edges, open_sessions, outbox, outbox_of, pinned, totals,
};
pub(crate) use tenants::{erasable, remains, tenants, usage};
pub(crate) use trail::{active, audit, blocks, head, snapshot, snapshots};
