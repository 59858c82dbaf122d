//! Begins a new timeline after the database was restored to an earlier state.

use lockgate_sql::codes::state;
use lockgate_sql::packed;

use crate::conn::Conn;
use crate::error::StatementError;
use crate::row::get;

/// Jobs renewed by one statement.
const PAGE: i64 = 1_000;

/// Whether some edge's lease is still running.
pub(crate) async fn is_at_work(conn: &mut Conn, now: Option<i64>) -> Result<bool, StatementError> {
    Ok(!conn.rows(include_str!("../../queries/edge_at_work.sql"), &[&now]).await?.is_empty())
}

/// Renews the tokens of one page of live jobs. Returns the last job of the page and their number; None at the end.
pub(crate) async fn renew_tokens(
    conn: &mut Conn,
    after: i64,
    salt: &[u8; 16],
) -> Result<Option<(i64, u64)>, StatementError> {
    let sql = "SELECT seq, state, life FROM jobs_hot WHERE seq > $1 ORDER BY seq LIMIT $2";
    let rows = conn.rows(sql, &[&after, &PAGE]).await?;
    let (mut seqs, mut lives) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for row in &rows {
        let mut life = packed::read_life(get(row, 2)?, state(get(row, 1)?)?)?;
        life.renew_tokens(salt);
        seqs.push(get::<i64>(row, 0)?);
        lives.push(packed::life_text(&life)?);
    }
    let Some(last) = seqs.last().copied() else { return Ok(None) };
    conn.rows(include_str!("../../queries/renew_lives.sql"), &[&seqs, &lives]).await?;
    Ok(Some((last, rows.len() as u64)))
}
