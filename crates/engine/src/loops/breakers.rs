//! Tells of circuit breakers that moved: as numbers, and on the record.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::request::Json;
use lockgate_ports::{BreakerMove, StoreError};
use tokio::sync::watch;

use super::{Lead, tick};
use crate::Inner;

const EVERY: Duration = Duration::from_secs(1);
/// Moves kept while they cannot be put on record: hours of a breaker that opens again and again.
const UNTOLD_MAX: usize = 1_000;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut untold = Vec::new();
    while tick(&mut stop, EVERY).await {
        if let Err(error) = inner.breakers_once(&mut untold).await {
            inner.health.store_failed(&error);
            tracing::warn!(%error, "circuit breaker transitions could not be written to the audit trail");
        }
    }
}

impl Inner {
    /// Every process counts what it noticed; a breaker that all share is put on record by one scheduler.
    /// What could not be put on record stays untold, for the next time.
    async fn breakers_once(&self, untold: &mut Vec<BreakerMove>) -> Result<(), StoreError> {
        let moves = self.ports.kernel.breaker_moves();
        moves.iter().for_each(|moved| self.metrics.governance.breaker_moved(moved));
        untold.extend(moves);
        untold.drain(..untold.len().saturating_sub(UNTOLD_MAX));
        if untold.is_empty() {
            return Ok(());
        }
        let is_ours =
            self.settings.roles.scheduler && self.leadership.leads(Lead::Ledger, self.settings.expire_every).await?;
        if is_ours {
            self.ports.store.append_audit(untold.iter().cloned().map(entry).collect()).await?;
        }
        untold.clear();
        Ok(())
    }
}

fn entry(moved: BreakerMove) -> AuditEntry {
    let BreakerMove { at, breaker, from, to, error } = moved;
    let detail = serde_json::json!({ "from": from.as_str(), "to": to.as_str(), "error": error.as_deref() });
    AuditEntry {
        at,
        tenant: "default".into(),
        actor: "safety-kernel".into(),
        action: AuditAction::BreakerMoved,
        subject: breaker.into(),
        detail: Json::trusted(detail.to_string()),
    }
}
