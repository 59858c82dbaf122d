//! Reads jobs, singly and as queues.

use std::collections::BTreeMap;

use lockgate_core::ids::{JobId, JobSeq, SessionId};
use lockgate_core::job::{Duty, Job};
use lockgate_core::lane::{LaneKey, ReadyKey};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_ports::{
    ChildJob, ChildQuery, Cursor, EventPage, JobDetail, KeptLine, Kin, Listing, LogLine, Misread as _, Unreadable,
};
use lockgate_sql::codes;
use lockgate_sql::packed;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::pages::PageSequence;
use crate::conn::Conn;
use crate::error::StatementError;
use crate::options::Now;
use crate::row::{self, bounded, get, lane_number, whole_job};

/// Jobs ordered by a time and their sequence number: seven columns of a whole job, its id, and then the time.
struct JobsByTime {
    sql: &'static str,
    now: Now,
    lane: Option<i64>,
}

impl JobsByTime {
    async fn rows(&self, conn: &mut Conn, (time, seq): (i64, i64), limit: i64) -> Result<Vec<Row>, StatementError> {
        match &self.lane {
            Some(lane) => {
                let params: [&(dyn ToSql + Sync); 5] = [&self.now, lane, &time, &seq, &limit];
                conn.rows(self.sql, &params).await
            }
            None => {
                let params: [&(dyn ToSql + Sync); 4] = [&self.now, &time, &seq, &limit];
                conn.rows(self.sql, &params).await
            }
        }
    }

    /// The first jobs that can be decoded.
    async fn read(
        &self,
        conn: &mut Conn,
        unreadable: &Unreadable,
        mut after: (i64, i64),
        limit: usize,
    ) -> Result<Vec<Job>, StatementError> {
        let mut pages = PageSequence::of(limit);
        while let Some(wanted) = pages.wanted() {
            let rows = self.rows(conn, after, wanted).await?;
            pages.take(&rows, |row| {
                after = (get(row, 8)?, get(row, 0)?);
                job_or_told(unreadable, row)
            })?;
        }
        Ok(pages.done())
    }
}

fn key(after: ReadyKey) -> (i64, i64) {
    (after.due_at.as_millis(), after.seq.0)
}

/// The job of a row; a row that cannot be decoded is reported and skipped.
fn job_or_told(unreadable: &Unreadable, row: &Row) -> Result<Option<Job>, StatementError> {
    let id = get::<&str>(row, 7)?;
    unreadable.or_told(|| format!("job {id}"), whole_job(row))
}

pub(crate) async fn load(conn: &mut Conn, ids: &[JobId]) -> Result<Vec<Option<Job>>, StatementError> {
    let names: Vec<&str> = ids.iter().map(JobId::as_str).collect();
    let mut found = BTreeMap::new();
    for row in conn.rows(include_str!("../../queries/load.sql"), &[&names]).await? {
        found.insert(JobId::from(get::<&str>(&row, 7)?), whole_job(&row)?);
    }
    Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
}

pub(crate) async fn detail(conn: &mut Conn, id: &JobId) -> Result<Option<JobDetail>, StatementError> {
    let rows = conn.rows(include_str!("../../queries/detail.sql"), &[&id.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (events, result) = (packed::read_events(get(row, 7)?)?, get::<Option<String>>(row, 8)?);
    Ok(Some(JobDetail { job: whole_job(row)?, events, result: result.map(Json::trusted) }))
}

pub(crate) async fn events(conn: &mut Conn, id: &JobId, after: u64) -> Result<Option<EventPage>, StatementError> {
    let rows = conn.rows(include_str!("../../queries/events.sql"), &[&id.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut events = packed::read_events(get(row, 1)?)?;
    events.retain(|event| event.n > after);
    Ok(Some(EventPage { events, state: codes::state(get(row, 0)?)? }))
}

pub(crate) async fn ready(
    conn: &mut Conn,
    unreadable: &Unreadable,
    now: Now,
    lane: &LaneKey,
    after: Option<ReadyKey>,
    limit: usize,
) -> Result<Vec<Job>, StatementError> {
    in_lane(now, lane_number(lane)?).read(conn, unreadable, after.map_or(START, key), limit).await
}

/// The position before all jobs.
const START: (i64, i64) = (i64::MIN, i64::MIN);

/// How many jobs of a lane are tried for the lane's name.
const NAMED_BY: usize = 100;

fn in_lane(now: Now, lane: i64) -> JobsByTime {
    JobsByTime { sql: include_str!("../../queries/ready.sql"), now, lane: Some(lane) }
}

pub(crate) async fn ready_lanes(
    conn: &mut Conn,
    unreadable: &Unreadable,
    now: Now,
) -> Result<Vec<(LaneKey, u64)>, StatementError> {
    let mut lanes = Vec::new();
    for row in conn.rows(include_str!("../../queries/ready_lanes.sql"), &[&now]).await? {
        let lane = match row::job(&row, Json::null()) {
            Ok(job) => Some(job.lane()),
            // The lane's name is in each of its jobs, so another job can supply it if the first cannot be decoded.
            Err(fault) if fault.is_of_one_row() => {
                let others = in_lane(now, get(&row, 7)?).read(conn, unreadable, START, NAMED_BY).await?;
                others.first().map(Job::lane)
            }
            Err(fault) => return Err(fault),
        };
        let waiting = get::<i64>(&row, 6)?.unsigned_abs();
        lanes.extend(lane.map(|lane| (lane, waiting)));
    }
    lanes.sort_unstable();
    Ok(lanes)
}

pub(crate) const DUE: &str = include_str!("../../queries/due.sql");
pub(crate) const PENDING: &str = include_str!("../../queries/pending.sql");
pub(crate) const EXPIRED: &str = include_str!("../../queries/expired.sql");

/// The jobs of one queue after a position.
pub(crate) async fn queue(
    conn: &mut Conn,
    unreadable: &Unreadable,
    sql: &'static str,
    now: Now,
    after: ReadyKey,
    limit: usize,
) -> Result<Vec<Job>, StatementError> {
    JobsByTime { sql, now, lane: None }.read(conn, unreadable, key(after), limit).await
}

pub(crate) async fn owing(
    conn: &mut Conn,
    unreadable: &Unreadable,
    duty: Duty,
    after: JobSeq,
    limit: usize,
) -> Result<Vec<Job>, StatementError> {
    let (mut after, mut pages) = (after.0, PageSequence::of(limit));
    while let Some(wanted) = pages.wanted() {
        let params: [&(dyn ToSql + Sync); 3] = [&duty.as_str(), &after, &wanted];
        let rows = conn.rows(include_str!("../../queries/owing.sql"), &params).await?;
        pages.take(&rows, |row| {
            after = get(row, 0)?;
            job_or_told(unreadable, row)
        })?;
    }
    Ok(pages.done())
}

/// The parents' ids and lives as two array parameters.
fn columns(lives: &[(JobId, u32)]) -> (Vec<&str>, Vec<i64>) {
    lives.iter().map(|(parent, life)| (parent.as_str(), i64::from(*life))).unzip()
}

pub(crate) async fn family(conn: &mut Conn, lives: &[(JobId, u32)]) -> Result<Vec<Kin>, StatementError> {
    let (parents, numbers) = columns(lives);
    let rows = conn.rows(include_str!("../../queries/family.sql"), &[&parents, &numbers]).await?;
    let kin = |row| {
        let (total, live): (i64, i64) = (get(row, 1)?, get(row, 2)?);
        let latest = get::<Option<i64>>(row, 3)?.map(JobSeq);
        Ok(Kin { total: total.unsigned_abs(), live: live.unsigned_abs(), latest })
    };
    rows.iter().map(kin).collect()
}

pub(crate) async fn under_way(conn: &mut Conn, lives: &[(JobId, u32)]) -> Result<Vec<Option<JobSeq>>, StatementError> {
    let (parents, numbers) = columns(lives);
    let rows = conn.rows(include_str!("../../queries/under_way.sql"), &[&parents, &numbers]).await?;
    rows.iter().map(|row| Ok(get::<Option<i64>>(row, 0)?.map(JobSeq))).collect()
}

pub(crate) async fn children(conn: &mut Conn, query: &ChildQuery) -> Result<Listing<ChildJob>, StatementError> {
    let (parent, life, limit) = (query.parent.as_str(), i64::from(query.life), bounded(query.limit));
    let params: [&(dyn ToSql + Sync); 5] = [&parent, &life, &query.after.0, &limit, &bounded(query.bytes)];
    let rows = conn.rows(include_str!("../../queries/children.sql"), &params).await?;
    let child = |row| {
        let job = row::job(row, Json::null())?;
        let result = get::<Option<String>>(row, 6)?.map(Json::trusted).filter(|_| job.result_is_out());
        Ok(ChildJob { job, result })
    };
    let items = rows.iter().map(child).collect::<Result<Vec<ChildJob>, StatementError>>()?;
    // The number of rows before those beyond the size limit were left out.
    let found = rows.first().map_or(Ok(0), |row| get::<i64>(row, 7))?;
    let full = found == limit || found > bounded(items.len());
    let next = items.last().filter(|_| full).map(|child| Cursor(child.job.seq.0));
    Ok(Listing { items, next })
}

pub(crate) async fn live_children(
    conn: &mut Conn,
    parent: &JobId,
    life: u32,
    after: JobSeq,
    limit: usize,
) -> Result<Vec<(JobSeq, JobId)>, StatementError> {
    let params: [&(dyn ToSql + Sync); 4] = [&parent.as_str(), &i64::from(life), &after.0, &bounded(limit)];
    let rows = conn.rows(include_str!("../../queries/live_children.sql"), &params).await?;
    rows.iter().map(|row| Ok((JobSeq(get(row, 0)?), JobId::from(get::<&str>(row, 1)?)))).collect()
}

pub(crate) async fn held(conn: &mut Conn, unreadable: &Unreadable, session: &SessionId) -> Result<Vec<Job>, StatementError> {
    let rows = conn.rows(include_str!("../../queries/held.sql"), &[&session.as_str()]).await?;
    let jobs = rows.iter().map(|row| job_or_told(unreadable, row)).collect::<Result<Vec<_>, StatementError>>()?;
    Ok(jobs.into_iter().flatten().collect())
}

pub(crate) async fn bound(conn: &mut Conn, sessions: &[SessionId]) -> Result<Vec<(SessionId, JobId)>, StatementError> {
    let names: Vec<&str> = sessions.iter().map(SessionId::as_str).collect();
    let rows = conn.rows(include_str!("../../queries/bound.sql"), &[&names]).await?;
    rows.iter().map(|row| Ok((SessionId::from(get::<&str>(row, 0)?), JobId::from(get::<&str>(row, 1)?)))).collect()
}

pub(crate) async fn logs(conn: &mut Conn, id: &JobId, after: u64, limit: usize) -> Result<Vec<KeptLine>, StatementError> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = conn.rows(include_str!("../../queries/logs.sql"), &[&id.as_str(), &bounded(limit), &after]).await?;
    let line = |row| {
        let attempt = u32::try_from(get::<i64>(row, 0)?).map_err(|error| StatementError::Row(error.to_string()))?;
        let line =
            LogLine { job_id: id.clone(), attempt, at: Timestamp::from_millis(get(row, 1)?), line: row::text(row, 2)? };
        let no = u64::try_from(get::<i64>(row, 3)?).map_err(|error| StatementError::Row(error.to_string()))?;
        Ok(KeptLine { no, line })
    };
    rows.iter().rev().map(line).collect()
}
