//! Retention, the outbox, log lines, and the health check that writing works.

use std::time::Duration;

use lockgate_ports::LogLine;
use lockgate_ports::store::{CLOSED_LIFE, LOG_LINES_MAX};

use super::{millis, transact};
use crate::conn::{Conn, SqlCall};
use crate::error::StatementError;
use crate::row::{bounded, get};

/// The row of `totals` that pruning and erasing update.
pub(super) const SHARD: i64 = 0;

/// Deletes one batch of ended jobs with all their rows. Returns how many.
pub(crate) async fn prune(
    conn: &mut Conn,
    now: Option<i64>,
    begin: &str,
    keep: Duration,
    limit: usize,
) -> Result<u64, StatementError> {
    // The row is locked first, as in every transaction with changes, so that the lock order is the same.
    let begin = format!("{begin}; SELECT 1 FROM totals WHERE shard = {SHARD} FOR UPDATE");
    let params: Vec<crate::conn::SqlParam<'_>> =
        vec![Box::new(now), Box::new(millis(keep)), Box::new(bounded(limit)), Box::new(SHARD)];
    let sql = concat!(
        include_str!("../../queries/prune_jobs.sql"),
        include_str!("../../queries/forget_jobs.sql"),
        include_str!("../../queries/tally.sql"),
        "SELECT count(*) FROM gone"
    );
    let call = SqlCall { sql, params };
    let rows = transact(conn, &begin, &[call]).await?;
    let gone = rows.first().and_then(|rows| rows.first()).map_or(Ok(0), |row| get::<i64>(row, 0))?;
    Ok(gone.unsigned_abs())
}

/// Deletes expired rows that belong to no job.
pub(crate) async fn forget(conn: &mut Conn, now: Option<i64>) -> Result<(), StatementError> {
    let life = millis(CLOSED_LIFE);
    conn.rows(include_str!("../../queries/forget_keys.sql"), &[&now]).await?;
    conn.rows(include_str!("../../queries/forget_sessions.sql"), &[&now, &life]).await?;
    conn.rows(include_str!("../../queries/forget_edges.sql"), &[&now, &life]).await?;
    Ok(())
}

pub(crate) async fn outbox_done(conn: &mut Conn, ids: &[i64]) -> Result<(), StatementError> {
    conn.rows("DELETE FROM outbox WHERE outbox_id = ANY($1::bigint[])", &[&ids]).await?;
    Ok(())
}

pub(crate) async fn append_logs(conn: &mut Conn, begin: &str, lines: &[LogLine]) -> Result<(), StatementError> {
    let ids: Vec<&str> = lines.iter().map(|line| line.job_id.as_str()).collect();
    let mut jobs = ids.clone();
    jobs.sort_unstable();
    jobs.dedup();
    let append = SqlCall {
        sql: include_str!("../../queries/append_logs.sql"),
        params: vec![
            Box::new(ids),
            Box::new(lines.iter().map(|line| i64::from(line.attempt)).collect::<Vec<_>>()),
            Box::new(lines.iter().map(|line| line.at.as_millis()).collect::<Vec<_>>()),
            Box::new(lines.iter().map(|line| &*line.line).collect::<Vec<_>>()),
        ],
    };
    let kept = bounded(LOG_LINES_MAX);
    let trim = SqlCall { sql: include_str!("../../queries/trim_logs.sql"), params: vec![Box::new(jobs), Box::new(kept)] };
    transact(conn, begin, &[append, trim]).await?;
    Ok(())
}

/// Updates a row, so that a commit goes all the way to the disk.
pub(crate) async fn beat(conn: &mut Conn) -> Result<(), StatementError> {
    conn.rows("UPDATE pulse SET beats = beats + 1 RETURNING beats", &[]).await?;
    Ok(())
}

/// How long a rehearsal waits for a lock. Clients wait as long as their deadline allows and then fail.
const LOCK_WITHIN_MS: u32 = 1_000;

/// The life of a rehearsed job: created, claimed, ended, deleted. It is rolled back, so no other session sees it.
const REHEARSED: [&str; 4] = [
    "INSERT INTO jobs_hot (job_id, seq, version, state, priority, lane, due_at, delayed, deadline_at, tenant, topic, hash, request, \
     life, events, payload) VALUES ('~rehearsal ' || pg_backend_pid()::text, 0, 1, 2, 0, 0, 0, true, 0, '', '', '', '', '', '', '')",
    "UPDATE jobs_hot SET version = 2, state = 3, delayed = false, session = job_id \
     WHERE job_id = '~rehearsal ' || pg_backend_pid()::text",
    "INSERT INTO jobs_done (job_id, seq, version, state, priority, ended_at, tenant, topic, hash, request, life, events, payload) \
     VALUES ('~rehearsal ' || pg_backend_pid()::text, 0, 3, 5, 0, 0, '', '', '', '', '', '', '')",
    "DELETE FROM jobs_hot WHERE job_id = '~rehearsal ' || pg_backend_pid()::text",
];

/// Executes what a submit, a claim and a result write, in a transaction that is rolled back. If a lock blocks it, the error
/// names the session.
pub(crate) async fn rehearse(conn: &mut Conn) -> Result<(), StatementError> {
    let rehearsed = rehearse_life(conn).await;
    if rehearsed.as_ref().is_err_and(StatementError::is_locked_out) {
        conn.say("ROLLBACK").await?;
        return Err(StatementError::Locked(who_locks(conn).await?));
    }
    rehearsed
}

async fn rehearse_life(conn: &mut Conn) -> Result<(), StatementError> {
    // Before the statements are prepared, because preparing waits for the table's lock as well.
    conn.say(&format!("BEGIN; SET LOCAL lock_timeout = {LOCK_WITHIN_MS}")).await?;
    let calls: Vec<SqlCall<'_>> = REHEARSED.iter().map(|sql| SqlCall { sql, params: Vec::new() }).collect();
    conn.together(None, &calls, Some("ROLLBACK")).await?.split()?.1
}

/// Names the session whose lock on the job tables blocks all writes.
async fn who_locks(conn: &mut Conn) -> Result<String, StatementError> {
    let rows = conn.rows(include_str!("../../queries/who_locks.sql"), &[]).await?;
    let holders = rows.iter().map(|row| get::<String>(row, 0)).collect::<Result<Vec<_>, _>>()?;
    let holders = if holders.is_empty() { "its holder has ended meanwhile".to_owned() } else { holders.join("; ") };
    Ok(format!("a lock keeps jobs from being written: {holders}"))
}
