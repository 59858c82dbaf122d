//! Statements that move jobs: between live states, to history, within history, and back to live.
//!
//! Each statement names the version that it replaces; a move that updates no row was overtaken by another change.

use super::plan::Item;
use crate::conn::{SqlCall, SqlParam};
use lockgate_core::job::Duty;
use lockgate_sql::codes::state_code;

pub(super) const MOVE: &str = concat!(
    include_str!("../../queries/proof.sql"),
    include_str!("../../queries/move.sql"),
    include_str!("../../queries/tally.sql"),
    include_str!("../../queries/changed.sql")
);
pub(super) const END: &str = concat!(
    include_str!("../../queries/proof.sql"),
    include_str!("../../queries/end.sql"),
    include_str!("../../queries/tally.sql"),
    include_str!("../../queries/count.sql")
);
pub(super) const END_AGAIN: &str = concat!(
    include_str!("../../queries/proof.sql"),
    include_str!("../../queries/end_again.sql"),
    include_str!("../../queries/tally.sql"),
    include_str!("../../queries/changed.sql")
);
pub(super) const REVIVE: &str = concat!(
    include_str!("../../queries/proof.sql"),
    include_str!("../../queries/revive.sql"),
    include_str!("../../queries/tally.sql"),
    include_str!("../../queries/count.sql")
);

fn column<'a, V>(items: &[&Item<'a>], of: impl Fn(&Item<'a>) -> V) -> SqlParam<'a>
where
    Vec<V>: tokio_postgres::types::ToSql + Sync + Send + 'a,
{
    Box::new(items.iter().map(|item| of(item)).collect::<Vec<V>>())
}

/// Adds the columns that identify the row, and its next state.
fn named<'a>(mut params: Vec<SqlParam<'a>>, items: &[&Item<'a>]) -> Vec<SqlParam<'a>> {
    params.push(column(items, |i| i.proof));
    params.push(column(items, |i| i.sheet.id().as_str()));
    params.push(column(items, |i| i.sheet.job().version));
    params.push(column(items, |i| state_code(i.sheet.job().state())));
    params
}

/// Adds the columns by which queues find a live job.
fn waiting<'a>(params: &mut Vec<SqlParam<'a>>, items: &[&Item<'a>]) {
    params.push(column(items, |i| i.sheet.lane));
    params.push(column(items, |i| i.sheet.job().life.due_at.as_millis()));
    params.push(column(items, |i| i.sheet.job().deadline().map(|at| at.as_millis())));
}

fn texts<'a>(params: &mut Vec<SqlParam<'a>>, items: &[&Item<'a>]) {
    params.push(column(items, |i| i.sheet.life.as_str()));
    params.push(column(items, |i| i.sheet.events.as_str()));
}

pub(super) fn move_on<'a>(params: Vec<SqlParam<'a>>, items: &[&Item<'a>]) -> SqlCall<'a> {
    let mut params = named(params, items);
    waiting(&mut params, items);
    params.push(column(items, |i| i.sheet.job().holder().map(|binding| binding.session.as_str().to_owned())));
    texts(&mut params, items);
    params.push(column(items, |i| i.sheet.result().filter(|_| i.sheet.job().in_output_check())));
    SqlCall { sql: MOVE, params }
}

pub(super) fn end<'a>(params: Vec<SqlParam<'a>>, items: &[&Item<'a>]) -> SqlCall<'a> {
    let mut params = named(params, items);
    params.push(column(items, |i| i.sheet.job().life.ended_at.map(|at| at.as_millis())));
    texts(&mut params, items);
    params.push(column(items, |i| i.sheet.result()));
    params.push(column(items, |i| i.sheet.duties.contains(&(Duty::Scan, false))));
    SqlCall { sql: END, params }
}

pub(super) fn end_again<'a>(params: Vec<SqlParam<'a>>, items: &[&Item<'a>]) -> SqlCall<'a> {
    let mut params = named(params, items);
    params.push(column(items, |i| i.sheet.job().life.ended_at.map(|at| at.as_millis())));
    texts(&mut params, items);
    params.push(column(items, |i| i.sheet.result()));
    params.push(column(items, |i| i64::from(i.sheet.job().life.no)));
    SqlCall { sql: END_AGAIN, params }
}

pub(super) fn revive<'a>(params: Vec<SqlParam<'a>>, items: &[&Item<'a>]) -> SqlCall<'a> {
    let mut params = named(params, items);
    waiting(&mut params, items);
    texts(&mut params, items);
    SqlCall { sql: REVIVE, params }
}
