//! Overwriting the pages that nothing uses.
//!
//! What is deleted every day is overwritten only where that costs no page more, so free pages still say what they said. When a
//! tenant is erased they are taken, filled with zeros and given back. A whole rewrite of the database would do it too, and
//! stop every writer meanwhile.

use super::WriteTx;
use crate::error::StatementError;

/// Pages overwritten by one transaction. Bounds how long others wait for it.
const PAGES: i64 = 2_048;
/// What a page that continues a row does not hold of it: the number of the next one.
const LINK_BYTES: i64 = 4;
/// So much of a row lies beside its key that the pages which continue it are filled to the last byte.
const BESIDE_BYTES: i64 = 600;

impl WriteTx<'_> {
    pub(crate) fn free_pages(&self) -> Result<i64, StatementError> {
        Ok(self.conn.pragma_query_value(None, "freelist_count", |row| row.get(0))?)
    }

    /// How many were overwritten, with those `before`, and whether there are more.
    pub(crate) fn blank_free_pages(&mut self, before: i64) -> Result<(i64, bool), StatementError> {
        let pages = self.free_pages()?.min(PAGES);
        let page_bytes: i64 = self.conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let bytes = pages * (page_bytes - LINK_BYTES) + BESIDE_BYTES;
        self.conn.prepare_cached("INSERT INTO blanks (zeros) VALUES (zeroblob(?1))")?.execute([bytes])?;
        Ok((before + pages, pages == PAGES))
    }

    /// The log, which has the pages as they were, goes with the commit.
    pub(crate) fn give_blanks_back(&mut self) -> Result<(), StatementError> {
        self.conn.prepare_cached("DELETE FROM blanks")?.execute([])?;
        self.erased = true;
        Ok(())
    }
}
