//! Writes DAG definitions, and deletes runs past their retention.

use std::time::Duration;

use lockgate_core::ids::TenantId;
use lockgate_ports::store::{DagRow, NewDag};
use tokio_postgres::Row;

use super::{millis, transact};
use crate::conn::{Conn, SqlCall, SqlParam};
use crate::error::StatementError;
use crate::reads::dag_row;
use crate::row::{bounded, get};

pub(crate) async fn put_dag(conn: &mut Conn, now: Option<i64>, begin: &str, dag: &NewDag) -> Result<DagRow, StatementError> {
    let audit = &dag.audit;
    let params: Vec<SqlParam<'_>> = vec![
        Box::new(now),
        Box::new(dag.tenant.as_str()),
        Box::new(&*dag.name),
        Box::new(&*dag.snapshot),
        Box::new(dag.actor.as_str()),
        Box::new(serde_json::to_string(&dag.pins)?),
        Box::new(&*dag.text),
        Box::new(audit.at.as_millis()),
        Box::new(audit.tenant.as_str()),
        Box::new(audit.actor.as_str()),
        Box::new(audit.action.as_str()),
        Box::new(&*audit.subject),
        Box::new(audit.detail.as_str()),
    ];
    let put = SqlCall { sql: include_str!("../../queries/put_dag.sql"), params };
    let begin = format!("{begin}; SELECT 1 FROM dag_lock FOR UPDATE");
    let rows = transact(conn, &begin, &[put]).await?;
    let row = rows.first().and_then(|rows| rows.first());
    row.map_or_else(|| Err(StatementError::Row("a definition was put and is not there".to_owned())), dag_row)
}

/// Deletes ended runs. Returns how many, and how many rows they and their nodes were.
pub(crate) async fn prune_runs(
    conn: &mut Conn,
    now: Option<i64>,
    keep: Duration,
    limit: usize,
) -> Result<(u64, usize), StatementError> {
    let sql = concat!(include_str!("../../queries/prune_runs.sql"), include_str!("../../queries/forget_runs.sql"));
    let rows = conn.rows(sql, &[&now, &millis(keep), &bounded(limit)]).await?;
    runs_and_rows(&rows)
}

/// Like [`prune_runs`], for all runs of a tenant.
pub(crate) async fn erase_runs(conn: &mut Conn, tenant: &TenantId, limit: usize) -> Result<(u64, usize), StatementError> {
    let sql = concat!(include_str!("../../queries/runs_to_erase.sql"), include_str!("../../queries/forget_runs.sql"));
    runs_and_rows(&conn.rows(sql, &[&tenant.as_str(), &bounded(limit)]).await?)
}

fn runs_and_rows(rows: &[Row]) -> Result<(u64, usize), StatementError> {
    let Some(row) = rows.first() else { return Ok((0, 0)) };
    Ok((get::<i64>(row, 0)?.unsigned_abs(), usize::try_from(get::<i64>(row, 1)?).unwrap_or(usize::MAX)))
}

/// Deletes expired keys and memos that belong to no run.
pub(crate) async fn forget_of_runs(conn: &mut Conn, now: Option<i64>, keep: Duration) -> Result<(), StatementError> {
    conn.rows(include_str!("../../queries/forget_run_keys.sql"), &[&now]).await?;
    conn.rows(include_str!("../../queries/forget_memos.sql"), &[&now]).await?;
    conn.rows(include_str!("../../queries/forget_stray_news.sql"), &[&now, &millis(keep)]).await?;
    Ok(())
}
