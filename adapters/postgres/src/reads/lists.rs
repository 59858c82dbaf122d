//! Lists for people: newest first, filtered, with a bounded number of rows per page.

use lockgate_core::job::{DeadLetter, Job, Reason};
use lockgate_core::request::Json;
use lockgate_ports::{Cursor, DeadLetterQuery, JobQuery, Listing, Unreadable, has_labels};
use lockgate_sql::codes::state_code;
use tokio_postgres::Row;

use crate::conn::Conn;
use crate::error::StatementError;
use crate::row::{self, bounded, get};

/// The most rows read for one page, so that a filter without matches does not read all of history at once.
pub(super) const ROWS_MAX: usize = 10_000;
/// The fewest rows read by one statement, because filters leave some out.
const LOOK_AT: usize = 200;

/// A page while it is being filled.
pub(super) struct ListPage<T> {
    items: Vec<T>,
    limit: usize,
    rows_left: usize,
    /// The last sequence number read: the next page starts there.
    last: Option<i64>,
    /// No rows follow.
    over: bool,
}

impl<T> ListPage<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self { items: Vec::new(), limit: limit.max(1), rows_left: ROWS_MAX, last: None, over: false }
    }

    fn is_full(&self) -> bool {
        self.items.len() >= self.limit || self.rows_left == 0
    }

    pub(super) fn wants_more(&self) -> bool {
        !self.is_full() && !self.over
    }

    /// The next rows come before this sequence number.
    pub(super) fn before(&self, cursor: Option<Cursor>) -> i64 {
        self.last.or_else(|| cursor.map(|cursor| cursor.0)).unwrap_or(i64::MAX)
    }

    /// How many rows the next statement reads.
    pub(super) fn next_look(&self) -> usize {
        self.limit.max(LOOK_AT).min(self.rows_left)
    }

    /// How many rows the next statement reads if every row is wanted.
    pub(super) fn wanted(&self) -> usize {
        (self.limit - self.items.len()).min(self.rows_left)
    }

    /// Takes rows that fit on the page and can be decoded. `wanted` turns a row into an item if it passes the filters.
    pub(super) fn take(
        &mut self,
        unreadable: &Unreadable,
        kind: &str,
        asked: usize,
        rows: &[Row],
        wanted: impl Fn(&Row) -> Result<Option<T>, StatementError>,
    ) -> Result<(), StatementError> {
        for row in rows {
            if self.is_full() {
                return Ok(());
            }
            self.rows_left -= 1;
            let number: i64 = get(row, 0)?;
            self.last = Some(number);
            self.items.extend(unreadable.or_told(|| format!("{kind} number {number}"), wanted(row))?.flatten());
        }
        self.over = rows.len() < asked;
        Ok(())
    }

    pub(super) fn done(self) -> Listing<T> {
        let next = self.last.filter(|_| self.is_full()).map(Cursor);
        Listing { items: self.items, next }
    }
}

pub(crate) async fn list(
    conn: &mut Conn,
    unreadable: &Unreadable,
    query: &JobQuery,
) -> Result<Listing<Job>, StatementError> {
    let wants = |terminal: bool| query.state.is_none_or(|state| state.is_terminal() == terminal);
    let (tenant, topic) = (query.tenant.as_ref().map(|name| name.as_str()), query.topic.as_ref().map(|name| name.as_str()));
    let state = query.state.map(state_code);
    let mut page = ListPage::new(query.limit);
    while page.wants_more() {
        let before = page.before(query.cursor);
        // The table that cannot contain the wanted state is read before its first row, which yields nothing.
        let start = |terminal| if wants(terminal) { before } else { i64::MIN };
        let asked = page.next_look();
        let rows = match query.parent.as_ref().map(|parent| parent.as_str()) {
            Some(parent) => {
                let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
                    [&parent, &before, &bounded(asked), &tenant, &topic, &state];
                conn.rows(include_str!("../../queries/list_children.sql"), &params).await?
            }
            None => {
                let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
                    [&start(false), &start(true), &bounded(asked), &tenant, &topic, &state];
                conn.rows(include_str!("../../queries/list_jobs.sql"), &params).await?
            }
        };
        page.take(unreadable, "job", asked, &rows, |row| wanted(query, row))?;
    }
    Ok(page.done())
}

/// Cheap columns are checked first; labels are in the request, which is decoded last.
fn wanted(query: &JobQuery, row: &Row) -> Result<Option<Job>, StatementError> {
    if get::<Option<&str>>(row, 5)?.is_none() {
        return Ok(None);
    }
    let job = row::job(row, Json::null())?;
    Ok(query.fits(&job).then_some(job))
}

pub(crate) async fn dead_letters(
    conn: &mut Conn,
    unreadable: &Unreadable,
    query: &DeadLetterQuery,
) -> Result<Listing<DeadLetter>, StatementError> {
    let (tenant, topic) = (query.tenant.as_ref().map(|name| name.as_str()), query.topic.as_ref().map(|name| name.as_str()));
    let (priority, reason) = (query.priority.map(|priority| priority as i64), query.reason.as_ref().map(Reason::stored));
    let mut page = ListPage::new(query.limit);
    while page.wants_more() {
        let before = page.before(query.cursor);
        let asked = page.next_look();
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
            [&before, &bounded(asked), &tenant, &topic, &priority, &reason];
        let rows = conn.rows(include_str!("../../queries/list_letters.sql"), &params).await?;
        page.take(unreadable, "dead letter", asked, &rows, |row| {
            let letter: Option<DeadLetter> = get::<Option<&str>>(row, 1)?.map(serde_json::from_str).transpose()?;
            Ok(letter.filter(|letter| has_labels(&letter.labels, &query.labels)))
        })?;
    }
    Ok(page.done())
}
