//! Pages of decodable rows: reading continues behind undecodable ones, so that these do not take the place of others.

use tokio_postgres::Row;

use crate::error::StatementError;
use crate::row::bounded;

pub(super) struct PageSequence<T> {
    found: Vec<T>,
    limit: usize,
    ended: bool,
}

impl<T> PageSequence<T> {
    pub(super) fn of(limit: usize) -> Self {
        Self { found: Vec::new(), limit, ended: false }
    }

    fn missing(&self) -> usize {
        self.limit.saturating_sub(self.found.len())
    }

    /// How many rows to read next, if more are wanted and there may be more.
    pub(super) fn wanted(&self) -> Option<i64> {
        (!self.ended && self.missing() > 0).then(|| bounded(self.missing()))
    }

    /// Takes the rows. `read` decodes a row, or returns None if it cannot.
    pub(super) fn take(
        &mut self,
        rows: &[Row],
        mut read: impl FnMut(&Row) -> Result<Option<T>, StatementError>,
    ) -> Result<(), StatementError> {
        self.ended = rows.len() < self.missing();
        for row in rows {
            self.found.extend(read(row)?);
        }
        Ok(())
    }

    pub(super) fn done(self) -> Vec<T> {
        self.found
    }
}
