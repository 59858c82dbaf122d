//! Queries, each within one read transaction.

mod credentials;
mod damage;
mod jobs;
mod lists;
mod names;
#[cfg(test)]
mod plans;
mod runs;
mod schedules;
mod sessions;
mod tenants;
mod trail;

pub(crate) use credentials::{credential, credentials};
pub(crate) use damage::newest;
pub(crate) use jobs::{
    DUE, EXPIRED, PENDING, bound, children, detail, events, family, held, live_children, load, logs, owing, queue, ready,
    ready_lanes, under_way,
};
pub(crate) use lists::{dead_letters, list};
pub(crate) use names::{duplicates, key_owner, owner, run_of_key};
pub(crate) use runs::{dag, dags, list_runs, live_runs, load_runs, memo, news, run_since, unheard, waking};
pub(crate) use schedules::{due_schedules, list_schedules, list_slots, load_schedules, next_schedule};
pub(crate) use sessions::{backlog, closed_holding, kept_tries, leases, open_edges, open_sessions, outbox, outbox_of};
pub(crate) use tenants::{erasable, tenants, usage};
pub(crate) use trail::{active, audit, blocks, head, snapshot, snapshots};

use std::sync::Arc;

use rusqlite::{Connection, Params, Row};

use crate::error::StatementError;

/// All rows of a query, each decoded into a core type.
fn collect<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    mut convert: impl FnMut(&Row<'_>) -> Result<T, StatementError>,
) -> Result<Vec<T>, StatementError> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(convert(row)?);
    }
    Ok(found)
}

fn text(row: &Row<'_>, column: usize) -> Result<Arc<str>, StatementError> {
    Ok(row.get_ref(column)?.as_str()?.into())
}

fn bounded(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
