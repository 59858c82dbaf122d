//! Retention, the outbox, log lines, and the proof that writing works.

use std::time::Duration;

use lockgate_ports::LogLine;
use lockgate_ports::store::{CLOSED_LIFE, LOG_LINES_MAX};

use super::{millis, transact};
use crate::conn::{Call, Conn};
use crate::error::Fault;
use crate::row::{bounded, get};

/// The row of `totals` that pruning and erasing count in.
pub(super) const SHARD: i64 = 0;

/// Deletes one batch of ended jobs with all that belongs to them; how many went.
pub(crate) async fn prune(
    conn: &mut Conn,
    now: Option<i64>,
    begin: &str,
    keep: Duration,
    limit: usize,
) -> Result<u64, Fault> {
    // The row is locked first, as every transaction with changes does.
    let begin = format!("{begin}; SELECT 1 FROM totals WHERE shard = {SHARD} FOR UPDATE");
    let params: Vec<crate::conn::Param<'_>> =
        vec![Box::new(now), Box::new(millis(keep)), Box::new(bounded(limit)), Box::new(SHARD)];
    let sql = concat!(
        include_str!("../../queries/prune_jobs.sql"),
        include_str!("../../queries/forget_jobs.sql"),
        include_str!("../../queries/tally.sql"),
        "SELECT count(*) FROM gone"
    );
    let call = Call { sql, params };
    let rows = transact(conn, &begin, &[call]).await?;
    let gone = rows.first().and_then(|rows| rows.first()).map_or(Ok(0), |row| get::<i64>(row, 0))?;
    Ok(gone.unsigned_abs())
}

/// Forgets what is past its life and belongs to no job.
pub(crate) async fn forget(conn: &mut Conn, now: Option<i64>) -> Result<(), Fault> {
    let life = millis(CLOSED_LIFE);
    conn.rows(include_str!("../../queries/forget_keys.sql"), &[&now]).await?;
    conn.rows(include_str!("../../queries/forget_sessions.sql"), &[&now, &life]).await?;
    conn.rows(include_str!("../../queries/forget_edges.sql"), &[&now, &life]).await?;
    Ok(())
}

pub(crate) async fn outbox_done(conn: &mut Conn, ids: &[i64]) -> Result<(), Fault> {
    conn.rows("DELETE FROM outbox WHERE outbox_id = ANY($1::bigint[])", &[&ids]).await?;
    Ok(())
}

pub(crate) async fn append_logs(conn: &mut Conn, begin: &str, lines: &[LogLine]) -> Result<(), Fault> {
    let ids: Vec<&str> = lines.iter().map(|line| line.job_id.as_str()).collect();
    let mut jobs = ids.clone();
    jobs.sort_unstable();
    jobs.dedup();
    let append = Call {
        sql: include_str!("../../queries/append_logs.sql"),
        params: vec![
            Box::new(ids),
            Box::new(lines.iter().map(|line| i64::from(line.attempt)).collect::<Vec<_>>()),
            Box::new(lines.iter().map(|line| line.at.as_millis()).collect::<Vec<_>>()),
            Box::new(lines.iter().map(|line| &*line.line).collect::<Vec<_>>()),
        ],
    };
    let kept = bounded(LOG_LINES_MAX);
    let trim = Call { sql: include_str!("../../queries/trim_logs.sql"), params: vec![Box::new(jobs), Box::new(kept)] };
    transact(conn, begin, &[append, trim]).await?;
    Ok(())
}

/// Writes a row as it nearly is, so that a commit goes all the way to the disk.
pub(crate) async fn beat(conn: &mut Conn) -> Result<(), Fault> {
    conn.rows("UPDATE pulse SET beats = beats + 1 RETURNING beats", &[]).await?;
    Ok(())
}
