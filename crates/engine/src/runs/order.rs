//! What people ask of a run.

use lockgate_core::audit::AuditEntry;
use lockgate_core::dag::plan::RunCommand;
use lockgate_core::dag::{AnyRun, RunHead, Unmoved};
use lockgate_core::ids::RunId;
use lockgate_ports::RunRefusal;

use super::Planned;
use super::advance::why_stopped;
use super::cache::Defined;
use crate::Inner;
use crate::error::ApiError;

/// Each conflict means that the run made progress.
const CONFLICTS_MAX: usize = 16;

impl Inner {
    /// Decides on the run as it is, commits, and decides again if a step came between.
    pub(crate) async fn order(&self, id: &RunId, order: RunCommand, audit: Vec<AuditEntry>) -> Result<RunHead, ApiError> {
        for _ in 0..CONFLICTS_MAX {
            let mut live = self.run_to_order(id).await?;
            let before = live.run().head.state;
            let next = live.order(order.clone(), self.ports.clock.now()).map_err(ApiError::RunState)?;
            let Some(next) = next else { return Ok(live.run().head.clone()) };
            let head = next.head.clone();
            if matches!(order, RunCommand::Resolve { .. } | RunCommand::Retry { .. }) {
                // Whoever is asked about the undo that was stuck must not agree to it any more, or its work is done twice. After
                // a crash in between it is stuck because it was cancelled, and the order can be given again.
                self.surely_stop(next.stop_jobs.iter().map(|id| (id.clone(), why_stopped(&head))).collect()).await?;
            }
            let planned = Planned { audit: audit.clone(), ..Planned::step(live, before, next, Vec::new()) };
            match self.advance(vec![planned]).await?.pop() {
                Some(Ok(())) | None => {
                    // Wherever the steps are taken: something may be to be done at once.
                    self.run_queue.wake([id.clone()]);
                    return Ok(head);
                }
                Some(Err(RunRefusal::Refused(why))) => return Err(ApiError::refused(format_args!("run {id}"), &why)),
                Some(Err(RunRefusal::Conflict | RunRefusal::Taken { .. })) => {}
            }
        }
        Err(ApiError::Unavailable("the run keeps changing; try again".into()))
    }

    async fn run_to_order(&self, id: &RunId) -> Result<AnyRun, ApiError> {
        let read = self.ports.store.load_runs(std::slice::from_ref(id)).await;
        let run = read.map_err(|error| self.unread(|| format!("run {id}"), error))?.pop().flatten();
        let run = run.ok_or_else(|| ApiError::no_run(id))?;
        let dag = run.head.dag.clone();
        match self.defined(run).await? {
            Defined::Flow(live) => Ok(live),
            Defined::Planless(_, why) => {
                let what = if why == Unmoved::NoPlan { "it is gone" } else { "its text is refused" };
                Err(ApiError::Damaged {
                    row: format!("version {} of DAG {:?}, which run {id} follows,", dag.version, dag.name),
                    why: format!("{what}; the run ends by itself, as orphaned, once none of its jobs is under way"),
                })
            }
        }
    }
}
