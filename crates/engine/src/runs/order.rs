//! What people ask of a run.

use lockgate_core::audit::AuditEntry;
use lockgate_core::dag::RunHead;
use lockgate_core::dag::plan::Order;
use lockgate_core::ids::RunId;
use lockgate_ports::RunRefusal;

use super::Planned;
use super::advance::why_stopped;
use crate::Inner;
use crate::error::ApiError;

/// Each conflict means that the run made progress.
const CONFLICTS_MAX: usize = 16;

impl Inner {
    /// Decides on the run as it is, commits, and decides again if a step came between.
    pub(crate) async fn order(&self, id: &RunId, order: Order, audit: Vec<AuditEntry>) -> Result<RunHead, ApiError> {
        for _ in 0..CONFLICTS_MAX {
            let Some(mut live) = self.read_runs(std::slice::from_ref(id)).await?.pop() else {
                return Err(ApiError::no_run(id));
            };
            let before = live.run().head.state;
            let next = live.order(order.clone(), self.ports.clock.now()).map_err(ApiError::RunState)?;
            let Some(next) = next else { return Ok(live.run().head.clone()) };
            let head = next.head.clone();
            if matches!(order, Order::Resolve { .. } | Order::Retry { .. }) {
                // Whoever is asked about the undo that was stuck must not agree to it any more, or its work is done twice. After
                // a crash in between it is stuck because it was cancelled, and the order can be given again.
                self.surely_stop(next.stop_jobs.iter().map(|id| (id.clone(), why_stopped(&head))).collect()).await?;
            }
            let planned = Planned { audit: audit.clone(), ..Planned::step(live, before, next, Vec::new()) };
            match self.advance(vec![planned]).await?.pop() {
                Some(Ok(())) | None => {
                    // Wherever the steps are taken: something may be to be done at once.
                    self.orchestra.call([id.clone()]);
                    return Ok(head);
                }
                Some(Err(RunRefusal::Refused(why))) => return Err(ApiError::refused(format_args!("run {id}"), &why)),
                Some(Err(RunRefusal::Conflict | RunRefusal::Taken { .. })) => {}
            }
        }
        Err(ApiError::Unavailable("the run keeps changing; try again".into()))
    }
}
