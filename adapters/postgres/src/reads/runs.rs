//! Reads DAGs, runs, and messages that runs have not taken yet.

use std::collections::BTreeMap;

use lockgate_core::dag::{NodeKey, NodeRun, Run, RunHead};
use lockgate_core::ids::{ActorId, RunId, TenantId};
use lockgate_core::job::{Earlier, JobState};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_ports::store::{DagRow, MemoKey, NewsRow, RunNews, RunQuery};
use lockgate_ports::{Listing, Unreadable};
use lockgate_sql::codes::{item, run_state, run_state_code};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::lists::{ListPage, ROWS_MAX};
use super::pages::PageSequence;
use crate::conn::Conn;
use crate::error::StatementError;
use crate::options::Now;
use crate::row::{self, bounded, get, text};

pub(crate) async fn dag(
    conn: &mut Conn,
    tenant: &TenantId,
    name: &str,
    version: Option<u32>,
) -> Result<Option<DagRow>, StatementError> {
    let until = version.map_or(i64::MAX, i64::from);
    let rows = conn.rows(include_str!("../../queries/dag.sql"), &[&tenant.as_str(), &name, &until]).await?;
    let found = rows.first().map(dag_row).transpose()?;
    Ok(found.filter(|row| version.is_none_or(|version| row.version == version)))
}

pub(crate) async fn dags(
    conn: &mut Conn,
    tenant: &TenantId,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<DagRow>, StatementError> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.as_str(), &after.unwrap_or_default(), &bounded(limit)];
    conn.rows(include_str!("../../queries/list_dags.sql"), &params).await?.iter().map(dag_row).collect()
}

pub(crate) fn dag_row(row: &Row) -> Result<DagRow, StatementError> {
    Ok(DagRow {
        tenant: TenantId::new(text(row, 0)?),
        name: text(row, 1)?,
        version: u32::try_from(get::<i64>(row, 2)?).map_err(|error| StatementError::Row(error.to_string()))?,
        snapshot: text(row, 3)?,
        actor: ActorId::new(text(row, 4)?),
        at: Timestamp::from_millis(get(row, 5)?),
        pins: serde_json::from_str(get(row, 6)?)?,
        text: text(row, 7)?,
    })
}

/// Runs with the nodes that changed after a version.
pub(crate) async fn load_runs(conn: &mut Conn, ids: &[RunId], version: i64) -> Result<Vec<Option<Run>>, StatementError> {
    let names: Vec<&str> = ids.iter().map(RunId::as_str).collect();
    let rows = conn.rows(include_str!("../../queries/load_runs.sql"), &[&names, &version]).await?;
    let mut heads: BTreeMap<RunId, RunHead> = BTreeMap::new();
    let mut nodes: BTreeMap<RunId, BTreeMap<NodeKey, NodeRun>> = BTreeMap::new();
    for row in &rows {
        let id = RunId::from(get::<&str>(row, 0)?);
        match get::<Option<i64>>(row, 5)? {
            None => drop(heads.insert(id, head(row, 1, 2)?)),
            Some(node) => {
                let node = u32::try_from(node).map_err(|error| StatementError::Row(error.to_string()))?;
                let key = NodeKey { node, item: item(get(row, 6)?)? };
                nodes.entry(id).or_default().insert(key, serde_json::from_str(get(row, 1)?)?);
            }
        }
    }
    let run = |id: &RunId| Some(Run { head: heads.get(id)?.clone(), nodes: nodes.get(id).cloned().unwrap_or_default() });
    Ok(ids.iter().map(run).collect())
}

/// The head in column `body`; its version, state and wake time are in the columns from `version` on.
fn head(row: &Row, body: usize, version: usize) -> Result<RunHead, StatementError> {
    let mut head: RunHead = serde_json::from_str(get(row, body)?)?;
    head.version = get(row, version)?;
    head.state = run_state(get(row, version + 1)?)?;
    head.wakes_at = get::<Option<i64>>(row, version + 2)?.map(Timestamp::from_millis);
    Ok(head)
}

pub(crate) async fn list_runs(
    conn: &mut Conn,
    unreadable: &Unreadable,
    query: &RunQuery,
) -> Result<Listing<RunHead>, StatementError> {
    let (tenant, state) = (query.tenant.as_ref().map(TenantId::as_str), query.state.map(run_state_code));
    let mut page = ListPage::new(query.limit);
    while page.wants_more() {
        let (before, asked) = (page.before(query.cursor), page.next_look());
        let params: [&(dyn ToSql + Sync); 6] =
            [&before, &bounded(asked), &tenant, &query.dag.as_deref(), &state, &query.sagas];
        let rows = conn.rows(include_str!("../../queries/list_runs.sql"), &params).await?;
        page.take(unreadable, "run", asked, &rows, |row| get::<Option<&str>>(row, 1)?.map(|_| head(row, 1, 2)).transpose())?;
    }
    Ok(page.done())
}

pub(crate) async fn news(
    conn: &mut Conn,
    unreadable: &Unreadable,
    runs: &[RunId],
    limit: usize,
) -> Result<Vec<NewsRow>, StatementError> {
    let mut names: Vec<&str> = runs.iter().map(RunId::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let (mut after, mut pages) = (i64::MIN, PageSequence::of(limit));
    while let Some(wanted) = pages.wanted() {
        let rows = conn.rows(include_str!("../../queries/news.sql"), &[&names, &after, &wanted]).await?;
        pages.take(&rows, |row| {
            let (no, run): (i64, _) = (get(row, 7)?, RunId::new(text(row, 8)?));
            after = no;
            let what = unreadable.or_told(|| format!("news {no} of run {run}"), told(row))?;
            Ok(what.map(|what| NewsRow { no, run, what }))
        })?;
    }
    Ok(pages.done())
}

/// The message of a row: about a job if the row has one, otherwise about a sub-run.
fn told(row: &Row) -> Result<RunNews, StatementError> {
    if get::<Option<i64>>(row, 0)?.is_none() {
        return Ok(RunNews::Run(Box::new(head(row, 9, 10)?)));
    }
    let job = Box::new(row::job(row, Json::null())?);
    let result = get::<Option<String>>(row, 6)?.map(Json::trusted).filter(|_| job.result_is_out());
    Ok(RunNews::Job { job, result })
}

/// Stored results for memo keys, in the order of the keys.
pub(crate) async fn memos(
    conn: &mut Conn,
    unreadable: &Unreadable,
    now: Now,
    keys: &[MemoKey],
) -> Result<Vec<Option<Earlier>>, StatementError> {
    let tenants: Vec<&str> = keys.iter().map(|key| key.tenant.as_str()).collect();
    let names: Vec<&str> = keys.iter().map(|key| &*key.key).collect();
    let rows = conn.rows(include_str!("../../queries/memos.sql"), &[&now, &tenants, &names]).await?;
    let mut found: BTreeMap<MemoKey, Earlier> = BTreeMap::new();
    for row in &rows {
        let key = MemoKey { tenant: TenantId::new(text(row, 7)?), key: text(row, 8)? };
        let seq: Option<i64> = get(row, 0)?;
        let told = unreadable.or_told(|| format!("job number {}", seq.unwrap_or_default()), told(row))?;
        if let Some(RunNews::Job { job, result: Some(result) }) = told
            && job.state() == JobState::Succeeded
        {
            found.insert(key, Earlier { job, result });
        }
    }
    Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
}

pub(crate) async fn unheard(conn: &mut Conn, now: Now, age: i64, limit: usize) -> Result<Vec<RunId>, StatementError> {
    let params: [&(dyn ToSql + Sync); 4] = [&now, &age, &bounded(ROWS_MAX), &bounded(limit)];
    names(&conn.rows(include_str!("../../queries/unheard.sql"), &params).await?)
}

pub(crate) async fn waking(conn: &mut Conn, now: Now, limit: usize) -> Result<Vec<RunId>, StatementError> {
    names(&conn.rows(include_str!("../../queries/waking.sql"), &[&now, &bounded(limit)]).await?)
}

pub(crate) async fn live_runs(conn: &mut Conn, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StatementError> {
    let params: [&(dyn ToSql + Sync); 2] = [&after.map_or("", RunId::as_str), &bounded(limit)];
    names(&conn.rows(include_str!("../../queries/live_runs.sql"), &params).await?)
}

fn names(rows: &[Row]) -> Result<Vec<RunId>, StatementError> {
    rows.iter().map(|row| Ok(RunId::new(text(row, 0)?))).collect()
}
