//! Statements that write runs.

use std::collections::BTreeMap;

use lockgate_core::dag::NodeKey;
use lockgate_ports::store::KEY_LIFE;
use lockgate_sql::codes::{item_code, run_state_code};

use super::run_plan::PlannedStep;
use crate::conn::{SqlCall, SqlParam};
use crate::row::bounded;

const NUMBERS: &str = "SELECT nextval('job_seq') FROM generate_series(1, $1::bigint)";
const POLICY: &str = "SELECT id FROM in_force WHERE kind = 'policy'";
const FORGET_RUNS: &str = "DELETE FROM runs WHERE run_id = ANY($1::text[])";
const FORGET_KEYS: &str = "DELETE FROM run_keys USING unnest($1::text[], $2::text[]) AS i(tenant, key)
    WHERE run_keys.tenant = i.tenant AND run_keys.key = i.key";

fn column<'a, V>(steps: &[&PlannedStep<'a>], of: impl Fn(&PlannedStep<'a>) -> V) -> SqlParam<'a>
where
    Vec<V>: tokio_postgres::types::ToSql + Sync + Send + 'a,
{
    Box::new(steps.iter().map(|step| of(step)).collect::<Vec<V>>())
}

/// All transactions lock heads in one order, so that they cannot deadlock.
pub(super) fn lock<'a>(steps: &[&PlannedStep<'a>]) -> SqlCall<'a> {
    SqlCall { sql: include_str!("../../queries/lock_runs.sql"), params: vec![column(steps, |step| step.sheet.id())] }
}

pub(super) fn take_keys<'a>(now: Option<i64>, steps: &[&PlannedStep<'a>]) -> SqlCall<'a> {
    let params: Vec<SqlParam<'a>> = vec![
        Box::new(now),
        Box::new(i64::try_from(KEY_LIFE.as_millis()).unwrap_or(i64::MAX)),
        column(steps, |step| step.sheet.head.tenant.as_str()),
        column(steps, |step| step.sheet.key().map(|(_, key)| key)),
        column(steps, |step| step.sheet.id()),
        column(steps, |step| step.sheet.key.as_ref().map(|key| key.hash.0.as_slice())),
    ];
    SqlCall { sql: include_str!("../../queries/take_run_keys.sql"), params }
}

fn head_columns<'a>(now: Option<i64>, steps: &[&PlannedStep<'a>]) -> Vec<SqlParam<'a>> {
    vec![
        Box::new(now),
        column(steps, |step| step.sheet.id()),
        column(steps, |step| run_state_code(step.sheet.head.state)),
        column(steps, |step| step.sheet.head.wakes_at.map(|at| at.as_millis())),
        column(steps, |step| step.sheet.head.ended_at.map(|at| at.as_millis())),
        column(steps, |step| step.sheet.head.parent.as_ref().map(|parent| parent.run.as_str())),
        column(steps, |step| step.sheet.head_text.as_str()),
    ]
}

pub(super) fn begin<'a>(now: Option<i64>, steps: &[&PlannedStep<'a>]) -> SqlCall<'a> {
    let mut params = head_columns(now, steps);
    params.push(column(steps, |step| step.sheet.head.tenant.as_str()));
    params.push(column(steps, |step| &*step.sheet.head.dag.name));
    SqlCall { sql: include_str!("../../queries/begin_runs.sql"), params }
}

pub(super) fn move_on<'a>(now: Option<i64>, steps: &[&PlannedStep<'a>]) -> SqlCall<'a> {
    let mut params = head_columns(now, steps);
    params.push(column(steps, |step| step.sheet.head.version));
    SqlCall { sql: include_str!("../../queries/move_runs.sql"), params }
}

pub(super) fn taken<'a>(ids: Vec<&'a str>) -> SqlCall<'a> {
    SqlCall { sql: include_str!("../../queries/taken_ids.sql"), params: vec![Box::new(ids)] }
}

/// Sequence numbers for all births of the steps, even if some are refused.
pub(super) fn numbers<'a>(count: usize) -> SqlCall<'a> {
    SqlCall { sql: NUMBERS, params: vec![Box::new(bounded(count))] }
}

/// Locks the policy in force: an activation waits until this transaction is over.
pub(super) fn policy<'a>() -> SqlCall<'a> {
    SqlCall { sql: POLICY, params: Vec::new() }
}

pub(super) fn write_nodes<'a>(steps: &[&PlannedStep<'a>]) -> Option<SqlCall<'a>> {
    let nodes = || steps.iter().flat_map(|step| step.sheet.nodes.iter().map(move |(key, body)| (step, key, body)));
    let numbers =
        |of: fn(&NodeKey) -> i64| -> SqlParam<'a> { Box::new(nodes().map(|(_, key, _)| of(key)).collect::<Vec<_>>()) };
    let params: Vec<SqlParam<'a>> = vec![
        Box::new(nodes().map(|(step, ..)| step.sheet.id()).collect::<Vec<_>>()),
        numbers(|key| i64::from(key.node)),
        numbers(|key| item_code(key.item)),
        Box::new(nodes().map(|(step, ..)| step.sheet.head.version).collect::<Vec<_>>()),
        Box::new(nodes().map(|(_, _, body)| body.as_str()).collect::<Vec<_>>()),
    ];
    let sql = include_str!("../../queries/write_nodes.sql");
    nodes().next().is_some().then_some(SqlCall { sql, params })
}

/// Deletes the messages that the steps have taken, if they belong to the step's own run.
pub(super) fn forget_heard<'a>(steps: &[&PlannedStep<'a>]) -> Option<SqlCall<'a>> {
    let heard = || steps.iter().flat_map(|step| step.sheet.heard.iter().map(move |no| (*no, step.sheet.id())));
    let (numbers, runs): (Vec<i64>, Vec<&'a str>) = heard().unzip();
    let sql = include_str!("../../queries/forget_heard.sql");
    (!numbers.is_empty()).then(|| SqlCall { sql, params: vec![Box::new(numbers), Box::new(runs)] })
}

pub(super) fn tally<'a>(shard: i64, runs: &BTreeMap<&'a str, i64>) -> Option<SqlCall<'a>> {
    let sql = concat!(
        include_str!("../../queries/tally_runs.sql"),
        include_str!("../../queries/tally.sql"),
        "SELECT count(*) FROM weighed"
    );
    let (tenants, counts): (Vec<&str>, Vec<i64>) = runs.iter().map(|(tenant, count)| (*tenant, *count)).unzip();
    let params: Vec<SqlParam<'a>> = vec![Box::new(shard), Box::new(tenants), Box::new(counts)];
    (!runs.is_empty()).then_some(SqlCall { sql, params })
}

/// Removes the heads and keys of refused starts; no other transaction ever saw them.
pub(super) fn forget<'a>(begun: Vec<&'a str>, keys: &[(&'a str, &'a str)]) -> Vec<SqlCall<'a>> {
    let mut calls = Vec::new();
    if !begun.is_empty() {
        calls.push(SqlCall { sql: FORGET_RUNS, params: vec![Box::new(begun)] });
    }
    if !keys.is_empty() {
        let (tenants, keys): (Vec<&str>, Vec<&str>) = keys.iter().copied().unzip();
        calls.push(SqlCall { sql: FORGET_KEYS, params: vec![Box::new(tenants), Box::new(keys)] });
    }
    calls
}
