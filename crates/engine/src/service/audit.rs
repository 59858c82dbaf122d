//! The audit trail: reading it, and proving that nobody touched it.

use lockgate_core::audit::{AuditAction, AuditRow, Block, Broken};
use lockgate_core::request::Caller;
use lockgate_ports::{AuditStore, StoreError};

use crate::Engine;
use crate::error::ApiError;

/// What a check of the whole trail found.
#[derive(Clone, Debug)]
pub struct Verified {
    pub blocks: u64,
    pub rows: u64,
    /// Rows written after the last block; nothing vouches for them yet.
    pub unsealed: u64,
    pub broken: Option<Broken>,
    /// What was missing, each time an operator accepted a loss. The rows that are left may be proven while others were lost.
    pub losses: Vec<String>,
}

const PAGE_MAX: usize = 1_000;
const BLOCKS: usize = 64;

impl Engine {
    /// Rows of the caller's tenant after a number, oldest first. A page may be short, even empty, while `next` is set.
    pub async fn audit(&self, caller: &Caller, after: i64, limit: usize) -> Result<(Vec<AuditRow>, Option<i64>), ApiError> {
        if !(1..=PAGE_MAX).contains(&limit) {
            return Err(ApiError::invalid("limit", format_args!("must be between 1 and {PAGE_MAX}")));
        }
        let mut rows = self.inner.ports.store.audit(after, limit).await?;
        let next = rows.last().map(|row| row.id).filter(|_| rows.len() == limit);
        rows.retain(|row| row.entry.tenant == caller.tenant);
        Ok((rows, next))
    }

    /// Walks the whole chain, block by block, up to the first broken place.
    pub async fn verify_audit(&self) -> Result<Verified, ApiError> {
        Ok(verify_trail(&*self.inner.ports.store).await?)
    }
}

/// The same on a Store that no engine runs on.
pub async fn verify_trail<S: AuditStore + ?Sized>(store: &S) -> Result<Verified, StoreError> {
    let mut verified = Verified { blocks: 0, rows: 0, unsealed: 0, broken: None, losses: Vec::new() };
    let mut before: Option<Block> = None;
    loop {
        let blocks = store.blocks(before.as_ref().map_or(0, |block| block.no), BLOCKS).await?;
        if blocks.is_empty() {
            break;
        }
        for block in blocks {
            let from = before.as_ref().map_or(0, |before| before.last);
            let rows = rows_of(store, from, &block).await?;
            if let Err(broken) = block.verify(before.as_ref(), &rows) {
                verified.broken = Some(broken);
                return Ok(verified);
            }
            verified.losses.extend(losses(&rows));
            verified.blocks += 1;
            verified.rows += block.rows;
            before = Some(block);
        }
    }
    let mut after = before.as_ref().map_or(0, |block| block.last);
    loop {
        let rows = store.audit(after, PAGE_MAX).await?;
        let Some(last) = rows.last() else { return Ok(verified) };
        after = last.id;
        verified.unsealed += rows.len() as u64;
        verified.losses.extend(losses(&rows));
    }
}

fn losses(rows: &[AuditRow]) -> impl Iterator<Item = String> {
    rows.iter().filter(|row| row.entry.action == AuditAction::LossAccepted).map(|row| row.entry.subject.to_string())
}

/// Everything stored between the block before and the end of this one: a row slipped in is as wrong as one taken out.
async fn rows_of<S: AuditStore + ?Sized>(store: &S, from: i64, block: &Block) -> Result<Vec<AuditRow>, StoreError> {
    let expected = usize::try_from(block.rows).unwrap_or(usize::MAX);
    let mut rows = store.audit(from, expected.saturating_add(1)).await?;
    rows.retain(|row| row.id <= block.last);
    Ok(rows)
}
