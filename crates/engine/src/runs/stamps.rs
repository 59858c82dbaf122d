//! Runs that a clock stamped which was ahead.

use lockgate_core::ids::RunId;
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;

use super::Planned;
use crate::Inner;

/// Runs in memory at once.
const PAGE: usize = 64;

impl Inner {
    /// One page of live runs. How many were brought back, and where the next page begins; None at the end.
    pub(crate) async fn bring_back_runs(
        &self,
        after: Option<&RunId>,
        right: Timestamp,
    ) -> Result<(u64, Option<RunId>), StoreError> {
        let ids = self.ports.store.live_runs(after, PAGE).await?;
        let mut planned = Vec::new();
        for mut live in self.readable_runs(&ids).await?.lives {
            let before = live.run().head.state;
            planned.extend(live.bring_back(right).map(|next| Planned::step(live, before, next, Vec::new())));
        }
        // One that moved meanwhile is left to the next look, as after every conflict of the sweep.
        let moved = self.advance(planned).await?.iter().filter(|answer| answer.is_ok()).count();
        Ok((moved as u64, ids.last().filter(|_| ids.len() == PAGE).cloned()))
    }
}
