//! Reads DAGs, runs, and messages that runs have not taken yet.

use std::collections::BTreeSet;

use lockgate_core::dag::{NodeKey, NodeRun, Run, RunHead};
use lockgate_core::ids::{ActorId, JobSeq, RunId, TenantId};
use lockgate_core::job::{Earlier, JobState};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_ports::store::{DagRow, MemoKey, NewsRow, RunNews, RunQuery};
use lockgate_ports::{Listing, Unreadable};
use lockgate_sql::codes::{item, run_state, run_state_code};
use rusqlite::{Connection, Row, params};

use super::damage::name_of;
use super::lists::{ListPage, ROWS_MAX, is_text};
use super::{bounded, collect, text};
use crate::error::StatementError;
use crate::row;

pub(crate) fn dag(
    conn: &Connection,
    tenant: &TenantId,
    name: &str,
    version: Option<u32>,
) -> Result<Option<DagRow>, StatementError> {
    let sql = "SELECT tenant, name, version, snapshot, actor, at, pins, text FROM dags
        WHERE tenant = ?1 AND name = ?2 AND version <= ?3 ORDER BY version DESC LIMIT 1";
    let params = params![tenant.as_str(), name, version.map_or(i64::MAX, i64::from)];
    let found = collect(conn, sql, params, dag_row)?.pop();
    Ok(found.filter(|row| version.is_none_or(|version| row.version == version)))
}

pub(crate) fn dags(
    conn: &Connection,
    tenant: &TenantId,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<DagRow>, StatementError> {
    let params = params![tenant.as_str(), after.unwrap_or_default(), bounded(limit)];
    collect(conn, include_str!("../../queries/list_dags.sql"), params, dag_row)
}

fn dag_row(row: &Row<'_>) -> Result<DagRow, StatementError> {
    Ok(DagRow {
        tenant: TenantId::new(text(row, 0)?),
        name: text(row, 1)?,
        version: row.get(2)?,
        snapshot: text(row, 3)?,
        actor: ActorId::new(text(row, 4)?),
        at: Timestamp::from_millis(row.get(5)?),
        pins: serde_json::from_str(row.get_ref(6)?.as_str()?)?,
        text: text(row, 7)?,
    })
}

pub(crate) fn load_runs(conn: &Connection, ids: &[RunId]) -> Result<Vec<Option<Run>>, StatementError> {
    ids.iter().map(|id| run_since(conn, id, 0)).collect()
}

pub(crate) fn run_since(conn: &Connection, id: &RunId, version: i64) -> Result<Option<Run>, StatementError> {
    let Some((run_no, head)) = head_of(conn, id)? else { return Ok(None) };
    let sql = "SELECT node, item, body FROM run_nodes WHERE run_no = ?1 AND version > ?2";
    let nodes = collect(conn, sql, [run_no, version], |row| {
        let key = NodeKey { node: row.get(0)?, item: item(row.get(1)?)? };
        Ok((key, serde_json::from_str::<NodeRun>(row.get_ref(2)?.as_str()?)?))
    })?;
    Ok(Some(Run { head, nodes: nodes.into_iter().collect() }))
}

fn head_of(conn: &Connection, id: &RunId) -> Result<Option<(i64, RunHead)>, StatementError> {
    let sql = "SELECT run_no, version, state, wakes_at, head FROM runs WHERE run_id = ?1";
    Ok(collect(conn, sql, [id.as_str()], |row| Ok((row.get(0)?, head(row)?)))?.pop())
}

/// Columns: number, version, state, time to wake, head.
fn head(row: &Row<'_>) -> Result<RunHead, StatementError> {
    let mut head: RunHead = serde_json::from_str(row.get_ref(4)?.as_str()?)?;
    head.version = row.get(1)?;
    head.state = run_state(row.get(2)?)?;
    head.wakes_at = row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis);
    Ok(head)
}

pub(crate) fn list_runs(
    conn: &Connection,
    unreadable: &Unreadable,
    query: &RunQuery,
) -> Result<Listing<RunHead>, StatementError> {
    let mut statement = conn.prepare_cached(include_str!("../../queries/list_runs.sql"))?;
    let mut rows = statement.query([query.cursor.map_or(i64::MAX, |cursor| cursor.0)])?;
    let mut page = ListPage::new(query.limit);
    while !page.is_full() {
        let Some(row) = rows.next()? else { break };
        let number: i64 = row.get(0)?;
        page.look_at(number);
        let fits = query.state.is_none_or(|state| row.get(2).is_ok_and(|code: i64| code == run_state_code(state)))
            && is_text(row, 5, query.tenant.as_ref().map(|tenant| tenant.as_str()))?
            && is_text(row, 6, query.dag.as_deref())?
            && query.sagas.is_none_or(|sagas| row.get(7).is_ok_and(|saga: bool| saga == sagas));
        if fits {
            page.items.extend(unreadable.or_told(|| format!("run number {number}"), head(row))?);
        }
    }
    Ok(page.done())
}

pub(crate) fn news(
    conn: &Connection,
    unreadable: &Unreadable,
    runs: &[RunId],
    limit: usize,
) -> Result<Vec<NewsRow>, StatementError> {
    let sql = "SELECT news_no, seq, child FROM run_news WHERE run_id = ?1 ORDER BY news_no";
    let mut found = Vec::new();
    for run in runs {
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query([run.as_str()])?;
        let before = found.len();
        while found.len() - before < limit
            && let Some(row) = rows.next()?
        {
            let no: i64 = row.get(0)?;
            let what = unreadable.or_told(|| format!("news {no} of run {run}"), told(conn, row))?.flatten();
            found.extend(what.map(|what| NewsRow { no, run: run.clone(), what }));
        }
    }
    found.sort_unstable_by_key(|news: &NewsRow| news.no);
    found.dedup_by_key(|news| news.no);
    found.truncate(limit);
    Ok(found)
}

/// The present state of a job or sub-run; None if it was deleted.
fn told(conn: &Connection, row: &Row<'_>) -> Result<Option<RunNews>, StatementError> {
    if let Some(seq) = row.get::<_, Option<i64>>(1)? {
        return job_told(conn, JobSeq(seq));
    }
    let child = RunId::from(row.get_ref(2)?.as_str()?);
    Ok(head_of(conn, &child)?.map(|(_, head)| RunNews::Run(Box::new(head))))
}

fn job_told(conn: &Connection, seq: JobSeq) -> Result<Option<RunNews>, StatementError> {
    let told = collect(conn, include_str!("../../queries/told.sql"), [seq.0], |row| {
        let job = Box::new(row::job(row, Json::null())?);
        let result = row.get::<_, Option<String>>(6)?.map(Json::trusted).filter(|_| job.result_is_out());
        Ok(RunNews::Job { job, result })
    })?;
    Ok(told.into_iter().next())
}

/// The stored result of equal work, if it is still valid.
pub(crate) fn memo(
    conn: &Connection,
    unreadable: &Unreadable,
    key: &MemoKey,
    now: Timestamp,
) -> Result<Option<Earlier>, StatementError> {
    let sql = "SELECT seq FROM memos WHERE tenant = ?1 AND key = ?2 AND until > ?3";
    let params = params![key.tenant.as_str(), &*key.key, now.as_millis()];
    let Some(seq) = collect(conn, sql, params, |row| Ok(row.get(0)?))?.pop() else { return Ok(None) };
    let told = unreadable.or_told(|| name_of(conn, seq), job_told(conn, JobSeq(seq)))?.flatten();
    Ok(match told {
        Some(RunNews::Job { job, result: Some(result) }) if job.state() == JobState::Succeeded => {
            Some(Earlier { job, result })
        }
        _ => None,
    })
}

pub(crate) fn unheard(conn: &Connection, until: Timestamp, limit: usize) -> Result<Vec<RunId>, StatementError> {
    let mut statement = conn.prepare_cached(include_str!("../../queries/unheard.sql"))?;
    let mut rows = statement.query([until.as_millis()])?;
    let (mut runs, mut seen, mut looked_at) = (Vec::new(), BTreeSet::new(), 0);
    while runs.len() < limit
        && looked_at < ROWS_MAX
        && let Some(row) = rows.next()?
    {
        let run = RunId::from(row.get_ref(0)?.as_str()?);
        if seen.insert(run.clone()) {
            runs.push(run);
        }
        looked_at += 1;
    }
    Ok(runs)
}

pub(crate) fn waking(conn: &Connection, now: Timestamp, limit: usize) -> Result<Vec<RunId>, StatementError> {
    let params = [now.as_millis(), bounded(limit)];
    collect(conn, include_str!("../../queries/waking.sql"), params, |row| Ok(RunId::new(text(row, 0)?)))
}

pub(super) const LIVE: &str = "SELECT run_id FROM runs WHERE state < 4 AND run_id > ?1 ORDER BY run_id LIMIT ?2";

pub(crate) fn live_runs(conn: &Connection, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StatementError> {
    let params = params![after.map_or("", RunId::as_str), bounded(limit)];
    collect(conn, LIVE, params, |row| Ok(RunId::new(text(row, 0)?)))
}
