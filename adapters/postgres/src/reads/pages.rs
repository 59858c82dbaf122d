//! The first rows that can be read: reading goes on behind those that cannot, so that these do not take the place of others.

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

    /// How many rows to ask for, if more are wanted and there may be more.
    pub(super) fn wanted(&self) -> Option<i64> {
        (!self.ended && self.missing() > 0).then(|| bounded(self.missing()))
    }

    /// Takes what came of that. `read` says what is in a row, if it can be read.
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
