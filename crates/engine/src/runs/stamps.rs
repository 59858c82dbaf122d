//! Runs that a clock stamped which was ahead.

use lockgate_core::ids::RunId;
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;

use super::Planned;
use super::advance::StepOutcome;
use crate::Inner;

/// Runs in memory at once.
const PAGE: usize = 64;

impl Inner {
    /// One page of live runs. What became of those that were ahead, and where the next page begins; None at the end.
    pub(crate) async fn bring_back_runs(
        &self,
        after: Option<&RunId>,
        right: Timestamp,
    ) -> Result<(Vec<StepOutcome>, Option<RunId>), StoreError> {
        let ids = self.ports.store.live_runs(after, PAGE).await?;
        let mut planned = Vec::new();
        for mut live in self.readable_runs(&ids).await?.lives {
            let before = live.run().head.state;
            planned.extend(live.bring_back(right).map(|next| Planned::step(live, before, next, Vec::new())));
        }
        let answers = self.advance(planned).await?;
        Ok((answers, ids.last().filter(|_| ids.len() == PAGE).cloned()))
    }
}
