//! Reads jobs, singly and as queues.

use lockgate_core::ids::{JobId, JobSeq, SessionId};
use lockgate_core::job::{Duty, Job, JobState};
use lockgate_core::lane::{LaneKey, ReadyKey};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_ports::{ChildJob, ChildQuery, Cursor, EventPage, JobDetail, KeptLine, Kin, Listing, LogLine, Unreadable};
use lockgate_sql::codes;
use lockgate_sql::packed;
use rusqlite::{Connection, OptionalExtension, params};

use super::damage::{EVERY_ROW, name_of, readable};
use super::{bounded, collect};
use crate::error::StatementError;
use crate::row;

pub(crate) fn load(conn: &Connection, ids: &[JobId]) -> Result<Vec<Option<Job>>, StatementError> {
    ids.iter().map(|id| seq_of(conn, id)?.map_or(Ok(None), |seq| load_one(conn, seq))).collect()
}

pub(super) fn seq_of(conn: &Connection, id: &JobId) -> Result<Option<i64>, StatementError> {
    let mut query = conn.prepare_cached("SELECT seq FROM jobs WHERE job_id = ?1")?;
    Ok(query.query_row([id.as_str()], |row| row.get(0)).optional()?)
}

fn load_one(conn: &Connection, seq: i64) -> Result<Option<Job>, StatementError> {
    let live = collect(conn, include_str!("../../queries/load_hot.sql"), [seq], row::whole_job)?.pop();
    if live.is_some() {
        return Ok(live);
    }
    Ok(collect(conn, include_str!("../../queries/load_done.sql"), [seq], row::whole_job)?.pop())
}

/// State, packed events and result.
type StoredHistory = (JobState, String, Option<String>);

fn history(conn: &Connection, seq: i64) -> Result<Option<StoredHistory>, StatementError> {
    let sql = include_str!("../../queries/history.sql");
    Ok(collect(conn, sql, [seq], |row| Ok((codes::state(row.get(0)?)?, row.get(1)?, row.get(2)?)))?.pop())
}

pub(crate) fn detail(conn: &Connection, id: &JobId) -> Result<Option<JobDetail>, StatementError> {
    let Some(seq) = seq_of(conn, id)? else { return Ok(None) };
    let (Some(job), Some((_, events, result))) = (load_one(conn, seq)?, history(conn, seq)?) else { return Ok(None) };
    Ok(Some(JobDetail { job, events: packed::read_events(&events)?, result: result.map(Json::trusted) }))
}

pub(crate) fn events(conn: &Connection, id: &JobId, after: u64) -> Result<Option<EventPage>, StatementError> {
    let Some(seq) = seq_of(conn, id)? else { return Ok(None) };
    let Some((state, events, _)) = history(conn, seq)? else { return Ok(None) };
    let mut events = packed::read_events(&events)?;
    events.retain(|event| event.n > after);
    Ok(Some(EventPage { events, state }))
}

pub(crate) fn ready(
    conn: &Connection,
    unreadable: &Unreadable,
    lane: &LaneKey,
    after: Option<ReadyKey>,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Job>, StatementError> {
    let lane = serde_json::to_string(lane)?;
    let (due_at, seq) = after.map_or((i64::MIN, i64::MIN), |after| (after.due_at.as_millis(), after.seq.0));
    let params = params![lane, due_at, seq, now.as_millis(), EVERY_ROW];
    readable(conn, unreadable, include_str!("../../queries/ready.sql"), params, limit)
}

pub(crate) fn ready_lanes(
    conn: &Connection,
    unreadable: &Unreadable,
    now: Timestamp,
) -> Result<Vec<(LaneKey, u64)>, StatementError> {
    let found = collect(conn, include_str!("../../queries/ready_lanes.sql"), [now.as_millis()], |row| {
        let (key, waiting) = (row.get_ref(0)?.as_str()?, row.get::<_, i64>(1)?);
        let lane = serde_json::from_str::<LaneKey>(key).map_err(StatementError::from);
        let lane = unreadable.or_told(|| format!("lane {key}"), lane)?;
        Ok(lane.map(|lane| (lane, waiting.unsigned_abs())))
    })?;
    let mut lanes: Vec<_> = found.into_iter().flatten().collect();
    lanes.sort_unstable();
    Ok(lanes)
}

pub(crate) const DUE: &str = include_str!("../../queries/due.sql");
pub(crate) const PENDING: &str = include_str!("../../queries/pending.sql");
pub(crate) const EXPIRED: &str = include_str!("../../queries/expired.sql");

/// The jobs of one queue after a position.
pub(crate) fn queue(
    conn: &Connection,
    unreadable: &Unreadable,
    sql: &str,
    after: ReadyKey,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Job>, StatementError> {
    let params = [after.due_at.as_millis(), after.seq.0, now.as_millis(), EVERY_ROW];
    readable(conn, unreadable, sql, params, limit)
}

pub(super) const OWING: &str = "SELECT seq FROM duties WHERE kind = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";

/// A job that owes a scan may have ended, so both tables are searched for each job.
pub(crate) fn owing(
    conn: &Connection,
    unreadable: &Unreadable,
    duty: Duty,
    after: JobSeq,
    limit: usize,
) -> Result<Vec<Job>, StatementError> {
    let mut statement = conn.prepare_cached(OWING)?;
    let mut rows = statement.query(params![duty.as_str(), after.0, EVERY_ROW])?;
    let not_there = || StatementError::Row("it has a duty and is not there".to_owned());
    let mut jobs = Vec::new();
    while jobs.len() < limit
        && let Some(row) = rows.next()?
    {
        let seq: i64 = row.get(0)?;
        let job = load_one(conn, seq).and_then(|job| job.ok_or_else(not_there));
        jobs.extend(unreadable.or_told(|| name_of(conn, seq), job)?);
    }
    Ok(jobs)
}

pub(super) const FAMILY: &str = include_str!("../../queries/family.sql");

pub(crate) fn family(conn: &Connection, lives: &[(JobId, u32)]) -> Result<Vec<Kin>, StatementError> {
    let mut kin = Vec::with_capacity(lives.len());
    for (parent, life) in lives {
        kin.extend(collect(conn, FAMILY, params![parent.as_str(), life], |row| {
            let (total, live): (i64, i64) = (row.get(0)?, row.get(1)?);
            let latest = row.get::<_, Option<i64>>(2)?.map(JobSeq);
            Ok(Kin { total: total.unsigned_abs(), live: live.unsigned_abs(), latest })
        })?);
    }
    Ok(kin)
}

pub(super) const UNDER_WAY: &str = include_str!("../../queries/under_way.sql");

pub(crate) fn under_way(conn: &Connection, lives: &[(JobId, u32)]) -> Result<Vec<Option<JobSeq>>, StatementError> {
    let latest = |(parent, life): &(JobId, u32)| {
        Ok(collect(conn, UNDER_WAY, params![parent.as_str(), life], |row| Ok(JobSeq(row.get(0)?)))?.pop())
    };
    lives.iter().map(latest).collect()
}

pub(super) const CHILDREN: &str =
    "SELECT seq FROM children WHERE parent = ?1 AND life = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4";

/// Row by row, so that rows beyond the size limit are not read.
pub(crate) fn children(conn: &Connection, query: &ChildQuery) -> Result<Listing<ChildJob>, StatementError> {
    let params = params![query.parent.as_str(), query.life, query.after.0, bounded(query.limit)];
    let seqs: Vec<i64> = collect(conn, CHILDREN, params, |row| Ok(row.get(0)?))?;
    let (mut items, mut bytes, mut full) = (Vec::<ChildJob>::new(), 0, seqs.len() == query.limit);
    for seq in seqs {
        let Some(child) = child(conn, seq)? else { continue };
        bytes += child.bytes();
        if !items.is_empty() && bytes > query.bytes {
            full = true;
            break;
        }
        items.push(child);
    }
    let next = items.last().filter(|_| full).map(|child| Cursor(child.job.seq.0));
    Ok(Listing { items, next })
}

fn child(conn: &Connection, seq: i64) -> Result<Option<ChildJob>, StatementError> {
    let found = collect(conn, include_str!("../../queries/told.sql"), [seq], |row| {
        let job = row::job(row, Json::null())?;
        let result = row.get::<_, Option<String>>(6)?.map(Json::trusted).filter(|_| job.result_is_out());
        Ok(ChildJob { job, result })
    });
    Ok(found?.pop())
}

pub(super) const LIVE_CHILDREN: &str = include_str!("../../queries/live_children.sql");

pub(crate) fn live_children(
    conn: &Connection,
    parent: &JobId,
    life: u32,
    after: JobSeq,
    limit: usize,
) -> Result<Vec<(JobSeq, JobId)>, StatementError> {
    let params = params![parent.as_str(), life, after.0, bounded(limit)];
    collect(conn, LIVE_CHILDREN, params, |row| Ok((JobSeq(row.get(0)?), JobId::from(row.get_ref(1)?.as_str()?))))
}

pub(crate) fn held(conn: &Connection, unreadable: &Unreadable, session: &SessionId) -> Result<Vec<Job>, StatementError> {
    readable(conn, unreadable, include_str!("../../queries/held.sql"), [session.as_str()], usize::MAX)
}

pub(crate) fn bound(conn: &Connection, sessions: &[SessionId]) -> Result<Vec<(SessionId, JobId)>, StatementError> {
    let mut bound = Vec::new();
    for session in sessions {
        let ids = collect(conn, include_str!("../../queries/bound.sql"), [session.as_str()], |row| {
            Ok(JobId::from(row.get_ref(0)?.as_str()?))
        })?;
        bound.extend(ids.into_iter().map(|id| (session.clone(), id)));
    }
    Ok(bound)
}

pub(crate) fn logs(conn: &Connection, id: &JobId, after: u64, limit: usize) -> Result<Vec<KeptLine>, StatementError> {
    let Some(seq) = seq_of(conn, id)? else { return Ok(Vec::new()) };
    let sql = "SELECT attempt, at, line, n FROM job_logs WHERE seq = ?1 AND n > ?3 ORDER BY n DESC LIMIT ?2";
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut lines = collect(conn, sql, [seq, bounded(limit), after], |row| {
        let line = LogLine {
            job_id: id.clone(),
            attempt: row.get(0)?,
            at: Timestamp::from_millis(row.get(1)?),
            line: row.get_ref(2)?.as_str()?.into(),
        };
        Ok(KeptLine { no: row.get::<_, i64>(3)?.unsigned_abs(), line })
    })?;
    lines.reverse();
    Ok(lines)
}
