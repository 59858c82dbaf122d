//! Statements that insert new jobs.

use lockgate_ports::store::KEY_LIFE;
use lockgate_sql::codes::state_code;

use super::plan::Item;
use crate::conn::{SqlCall, SqlParam};

/// Ids made by this program are unique, so none is looked up.
pub(super) const BIRTH: &str = concat!(
    include_str!("../../queries/proof.sql"),
    include_str!("../../queries/birth.sql"),
    include_str!("../../queries/tally.sql"),
    include_str!("../../queries/count.sql")
);
const REGISTER: &str = concat!(include_str!("../../queries/proof.sql"), include_str!("../../queries/register.sql"));
const TAKE_KEYS: &str = concat!(include_str!("../../queries/proof.sql"), include_str!("../../queries/take_keys.sql"));
const ENTER_HOT: &str = concat!(
    include_str!("../../queries/proof.sql"),
    include_str!("../../queries/enter_hot.sql"),
    include_str!("../../queries/tally.sql"),
    include_str!("../../queries/count.sql")
);
const ENTER_DONE: &str = concat!(
    include_str!("../../queries/proof.sql"),
    include_str!("../../queries/enter_done.sql"),
    include_str!("../../queries/tally.sql"),
    include_str!("../../queries/count.sql")
);
const LOCK_TWINS: &str = "SELECT 1 FROM jobs_hot WHERE job_id = ANY($1::text[]) ORDER BY job_id FOR UPDATE";
const FORGET_IDS: &str = "DELETE FROM job_ids WHERE job_id = ANY($1::text[])";
const FORGET_KEYS: &str = "DELETE FROM idempotency USING unnest($1::text[], $2::text[]) AS i(tenant, key)
    WHERE idempotency.tenant = i.tenant AND idempotency.key = i.key";

fn column<'a, T, V>(items: &[T], of: impl Fn(&T) -> V) -> SqlParam<'a>
where
    Vec<V>: tokio_postgres::types::ToSql + Sync + Send + 'a,
{
    Box::new(items.iter().map(of).collect::<Vec<V>>())
}

/// The columns of every new live job, whichever statement numbers it.
fn hot_columns<'a>(items: &[&Item<'a>]) -> Vec<SqlParam<'a>> {
    vec![
        column(items, |i| i.sheet.id().as_str()),
        column(items, |i| state_code(i.sheet.job().state())),
        column(items, |i| i.sheet.job().request.priority() as i64),
        column(items, |i| i.sheet.lane),
        column(items, |i| i.sheet.job().life.due_at.as_millis()),
        column(items, |i| i.sheet.job().deadline().map(|at| at.as_millis())),
        column(items, |i| i.sheet.job().request.tenant.as_str()),
        column(items, |i| i.sheet.job().request.topic.as_str()),
        column(items, |i| i.sheet.job().hash.0.as_slice()),
        column(items, |i| i.sheet.request.as_str()),
        column(items, |i| i.sheet.life.as_str()),
        column(items, |i| i.sheet.events.as_str()),
        column(items, |i| i.sheet.job().request.payload.as_str()),
    ]
}

pub(super) fn birth<'a>(mut params: Vec<SqlParam<'a>>, items: &[&Item<'a>]) -> SqlCall<'a> {
    params.push(column(items, |i| i.proof));
    params.extend(hot_columns(items));
    SqlCall { sql: BIRTH, params }
}

pub(super) fn register<'a>(mut params: Vec<SqlParam<'a>>, items: &[&Item<'a>]) -> SqlCall<'a> {
    params.push(column(items, |i| i.proof));
    params.push(column(items, |i| i.sheet.id().as_str()));
    SqlCall { sql: REGISTER, params }
}

/// A chosen id that looks like one made by this program may name an existing job, and such a job has no row in `job_ids`.
/// Locking its live row waits for a concurrent transaction that moves it to history.
pub(super) fn lock_twins<'a>(ids: Vec<&'a str>) -> SqlCall<'a> {
    SqlCall { sql: LOCK_TWINS, params: vec![Box::new(ids)] }
}

pub(super) fn take_keys<'a>(mut params: Vec<SqlParam<'a>>, keyed: &[(&Item<'a>, &'a str)]) -> SqlCall<'a> {
    let life = i64::try_from(KEY_LIFE.as_millis()).unwrap_or(i64::MAX);
    params.push(column(keyed, |(i, _)| i.proof));
    params.push(column(keyed, |(i, _)| i.sheet.job().request.tenant.as_str()));
    params.push(column(keyed, |(_, key)| *key));
    params.push(column(keyed, |(i, _)| i.sheet.id().as_str()));
    params.push(column(keyed, |_| life));
    SqlCall { sql: TAKE_KEYS, params }
}

pub(super) fn enter_hot<'a>(mut params: Vec<SqlParam<'a>>, items: &[&Item<'a>], seqs: Vec<i64>) -> SqlCall<'a> {
    params.push(Box::new(seqs));
    params.extend(hot_columns(items));
    SqlCall { sql: ENTER_HOT, params }
}

pub(super) fn enter_done<'a>(mut params: Vec<SqlParam<'a>>, items: &[&Item<'a>], seqs: Vec<i64>) -> SqlCall<'a> {
    let own: [SqlParam<'a>; 13] = [
        Box::new(seqs),
        column(items, |i| i.sheet.id().as_str()),
        column(items, |i| state_code(i.sheet.job().state())),
        column(items, |i| i.sheet.job().request.priority() as i64),
        column(items, |i| i.sheet.job().life.ended_at.map(|at| at.as_millis())),
        column(items, |i| i.sheet.job().request.tenant.as_str()),
        column(items, |i| i.sheet.job().request.topic.as_str()),
        column(items, |i| i.sheet.job().hash.0.as_slice()),
        column(items, |i| i.sheet.request.as_str()),
        column(items, |i| i.sheet.life.as_str()),
        column(items, |i| i.sheet.events.as_str()),
        column(items, |i| i.sheet.job().request.payload.as_str()),
        column(items, |i| i.sheet.result()),
    ];
    params.extend(own);
    SqlCall { sql: ENTER_DONE, params }
}

/// Removes the id and key rows of refused births; no other transaction ever saw them.
pub(super) fn forget<'a>(ids: &[&'a str], keys: &[(&'a str, &'a str)]) -> Vec<SqlCall<'a>> {
    let mut calls = Vec::new();
    if !ids.is_empty() {
        calls.push(SqlCall { sql: FORGET_IDS, params: vec![Box::new(ids.to_vec())] });
    }
    if !keys.is_empty() {
        calls.push(SqlCall {
            sql: FORGET_KEYS,
            params: vec![column(keys, |(tenant, _)| *tenant), column(keys, |(_, key)| *key)],
        });
    }
    calls
}
