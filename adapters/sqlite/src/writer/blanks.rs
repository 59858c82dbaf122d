//! Overwrites unused pages.
//!
//! Ordinary deletes overwrite data only where that writes no additional page, so free pages still contain it. When a tenant
//! is erased they are allocated, filled with zeros and freed again. Rejected: a rewrite of the whole database, because it
//! would block every writer meanwhile.

use super::WriteTx;
use crate::error::StatementError;

/// Pages overwritten by one transaction, which bounds how long others wait for it.
const PAGES: i64 = 2_048;
/// The bytes of an overflow page that hold no data: the number of the next page.
const LINK_BYTES: i64 = 4;
/// So much of a row is stored beside its key that its overflow pages are filled to the last byte.
const BESIDE_BYTES: i64 = 600;

impl WriteTx<'_> {
    pub(crate) fn free_pages(&self) -> Result<i64, StatementError> {
        Ok(self.conn.pragma_query_value(None, "freelist_count", |row| row.get(0))?)
    }

    /// Returns how many pages were overwritten, including those `before`, and whether more are left.
    pub(crate) fn blank_free_pages(&mut self, before: i64) -> Result<(i64, bool), StatementError> {
        let pages = self.free_pages()?.min(PAGES);
        let page_bytes: i64 = self.conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let bytes = pages * (page_bytes - LINK_BYTES) + BESIDE_BYTES;
        self.conn.prepare_cached("INSERT INTO blanks (zeros) VALUES (zeroblob(?1))")?.execute([bytes])?;
        Ok((before + pages, pages == PAGES))
    }

    /// Frees the pages again. The log, which holds their former contents, is truncated after the commit.
    pub(crate) fn give_blanks_back(&mut self) -> Result<(), StatementError> {
        self.conn.prepare_cached("DELETE FROM blanks")?.execute([])?;
        self.erased = true;
        Ok(())
    }
}
