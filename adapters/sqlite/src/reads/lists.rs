//! Lists for people: newest first, filtered, with a bounded number of rows per page.

use lockgate_core::job::{DeadLetter, Job, Reason};
use lockgate_core::request::Json;
use lockgate_ports::{Cursor, DeadLetterQuery, JobQuery, Listing, Unreadable, has_labels};
use lockgate_sql::codes::state_code;
use rusqlite::{Connection, Row, params};

use super::damage::name_of;
use crate::error::StatementError;
use crate::row::{self, priority_code};

/// The most rows read for one page, so that a filter without matches does not read all of history at once.
pub(super) const ROWS_MAX: usize = 10_000;

/// A page while it is being filled.
pub(super) struct ListPage<T> {
    pub(super) items: Vec<T>,
    limit: usize,
    rows_left: usize,
    /// The last sequence number read: the next page starts there.
    last: Option<i64>,
}

impl<T> ListPage<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self { items: Vec::new(), limit: limit.max(1), rows_left: ROWS_MAX, last: None }
    }

    pub(super) fn is_full(&self) -> bool {
        self.items.len() >= self.limit || self.rows_left == 0
    }

    pub(super) fn look_at(&mut self, number: i64) {
        self.rows_left -= 1;
        self.last = Some(number);
    }

    pub(super) fn done(self) -> Listing<T> {
        let next = self.last.filter(|_| self.is_full()).map(Cursor);
        Listing { items: self.items, next }
    }
}

/// Live jobs, and ended jobs.
const EVERYBODY: [&str; 2] = [include_str!("../../queries/list_hot.sql"), include_str!("../../queries/list_done.sql")];
pub(super) const CHILDREN: [&str; 2] =
    [include_str!("../../queries/list_hot_children.sql"), include_str!("../../queries/list_done_children.sql")];

pub(crate) fn list(conn: &Connection, unreadable: &Unreadable, query: &JobQuery) -> Result<Listing<Job>, StatementError> {
    let before = query.cursor.map_or(i64::MAX, |cursor| cursor.0);
    let wants = |terminal: bool| query.state.is_none_or(|state| state.is_terminal() == terminal);
    // The table that cannot contain the wanted state is read before its first row, which yields nothing.
    let start = |terminal| if wants(terminal) { before } else { i64::MIN };
    let [hot, done] = if query.parent.is_some() { CHILDREN } else { EVERYBODY };
    let (mut hot, mut done) = (conn.prepare_cached(hot)?, conn.prepare_cached(done)?);
    let (mut hot, mut done) = match &query.parent {
        Some(parent) => {
            (hot.query(params![start(false), parent.as_str()])?, done.query(params![start(true), parent.as_str()])?)
        }
        None => (hot.query([start(false)])?, done.query([start(true)])?),
    };
    let (mut live, mut ended) = (hot.next()?, done.next()?);
    let mut page = ListPage::new(query.limit);
    while !page.is_full() {
        let from_live = match (live, ended) {
            (None, None) => break,
            (Some(a), Some(b)) => a.get::<_, i64>(0)? > b.get(0)?,
            (a, _) => a.is_some(),
        };
        if let Some(row) = if from_live { live } else { ended } {
            let seq: i64 = row.get(0)?;
            page.look_at(seq);
            page.items.extend(unreadable.or_told(|| name_of(conn, seq), wanted(query, row))?.flatten());
        }
        if from_live {
            live = hot.next()?;
        } else {
            ended = done.next()?;
        }
    }
    Ok(page.done())
}

/// The job, if it passes the filters. Cheap columns are checked before anything is parsed.
fn wanted(query: &JobQuery, row: &Row<'_>) -> Result<Option<Job>, StatementError> {
    let state_fits = query.state.is_none_or(|state| row.get(2).is_ok_and(|code: i64| code == state_code(state)));
    let tenant_fits = is_text(row, 6, query.tenant.as_ref().map(|tenant| tenant.as_str()))?;
    let topic_fits = is_text(row, 7, query.topic.as_ref().map(|topic| topic.as_str()))?;
    if !(state_fits && tenant_fits && topic_fits) {
        return Ok(None);
    }
    let job = row::job(row, Json::null())?;
    Ok(query.fits(&job).then_some(job))
}

/// Whether a column equals the wanted text, if one is wanted.
pub(super) fn is_text(row: &Row<'_>, column: usize, wanted: Option<&str>) -> Result<bool, StatementError> {
    Ok(match wanted {
        Some(wanted) => row.get_ref(column)?.as_str()? == wanted,
        None => true,
    })
}

pub(crate) fn dead_letters(
    conn: &Connection,
    unreadable: &Unreadable,
    query: &DeadLetterQuery,
) -> Result<Listing<DeadLetter>, StatementError> {
    let before = query.cursor.map_or(i64::MAX, |cursor| cursor.0);
    let mut statement = conn.prepare_cached(include_str!("../../queries/list_letters.sql"))?;
    let mut rows = statement.query([before])?;
    let mut page = ListPage::new(query.limit);
    while !page.is_full() {
        let Some(row) = rows.next()? else { break };
        let number: i64 = row.get(0)?;
        page.look_at(number);
        let fits = is_text(row, 1, query.tenant.as_ref().map(|tenant| tenant.as_str()))?
            && is_text(row, 2, query.topic.as_ref().map(|topic| topic.as_str()))?
            && query.priority.is_none_or(|p| row.get(3).is_ok_and(|code: i64| code == priority_code(p) as i64))
            && is_text(row, 4, query.reason.as_ref().map(Reason::stored))?;
        if fits {
            let letter = serde_json::from_str::<DeadLetter>(row.get_ref(5)?.as_str()?).map_err(StatementError::from);
            let letter = unreadable.or_told(|| format!("dead letter {number}"), letter)?;
            page.items.extend(letter.filter(|letter| has_labels(&letter.labels, &query.labels)));
        }
    }
    Ok(page.done())
}
