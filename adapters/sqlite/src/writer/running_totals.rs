//! Running totals, written once per transaction.

use lockgate_ports::Totals;
use lockgate_sql::codes::stored;
use rusqlite::{Connection, params};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunningTotals {
    pub(crate) last_seq: i64,
    pub(crate) totals: Totals,
}

impl RunningTotals {
    pub(crate) fn read(conn: &Connection) -> rusqlite::Result<Self> {
        conn.query_row(include_str!("../../queries/read_book.sql"), [], |row| {
            let four = |at: usize| -> rusqlite::Result<[u64; 4]> {
                Ok([count(row, at)?, count(row, at + 1)?, count(row, at + 2)?, count(row, at + 3)?])
            };
            let totals = Totals { live: four(1)?, dead_letters: four(5)?, ended: count(row, 9)? };
            Ok(Self { last_seq: row.get(0)?, totals })
        })
    }

    pub(super) fn write(&self, conn: &Connection) -> rusqlite::Result<()> {
        let Totals { live, dead_letters: dead, ended } = self.totals;
        conn.prepare_cached(include_str!("../../queries/write_book.sql"))?.execute(params![
            self.last_seq,
            stored(live[0]),
            stored(live[1]),
            stored(live[2]),
            stored(live[3]),
            stored(dead[0]),
            stored(dead[1]),
            stored(dead[2]),
            stored(dead[3]),
            stored(ended),
        ])?;
        Ok(())
    }

    pub(super) fn job_born(&mut self, priority: usize) {
        self.totals.live[priority] += 1;
    }

    pub(super) fn job_ended(&mut self, priority: usize) {
        self.totals.live[priority] = self.totals.live[priority].saturating_sub(1);
        self.totals.ended += 1;
    }

    pub(super) fn job_revived(&mut self, priority: usize) {
        self.totals.live[priority] += 1;
        self.totals.ended = self.totals.ended.saturating_sub(1);
    }

    pub(super) fn job_pruned(&mut self) {
        self.totals.ended = self.totals.ended.saturating_sub(1);
    }

    pub(super) fn letter_kept(&mut self, priority: usize) {
        self.totals.dead_letters[priority] += 1;
    }

    pub(super) fn letter_gone(&mut self, priority: usize) {
        self.totals.dead_letters[priority] = self.totals.dead_letters[priority].saturating_sub(1);
    }
}

fn count(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<u64> {
    let n: i64 = row.get(at)?;
    u64::try_from(n).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(at, n))
}
