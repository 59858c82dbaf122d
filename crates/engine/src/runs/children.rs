//! Runs inside of runs. A child begins after the commit of its parent's step, under an id that the step determined: whoever
//! tries twice finds it there.

use lockgate_core::dag::plan::{RunCommand, Start, SubRun, begin};
use lockgate_core::dag::{DagRef, NodeKey, RunHead, RunState};
use lockgate_core::ids::RunId;
use lockgate_core::job::{Failure, Reason};
use lockgate_ports::StoreError;

use super::{DagKey, Planned};
use crate::Inner;
use crate::error::ApiError;

impl Inner {
    /// All of them in one commit. What cannot begin now is begun by the sweep.
    pub(super) async fn begin_children(&self, children: Vec<(RunHead, SubRun)>) {
        let mut planned = Vec::with_capacity(children.len());
        for (parent, child) in children {
            match Box::pin(self.child(&parent, child)).await {
                Ok(Some(begun)) => planned.push(begun),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(run_id = %parent.id, %error, "an inner run could not begin; trying again with the next sweep");
                }
            }
        }
        let ids: Vec<RunId> = planned.iter().map(|planned| planned.live.run().head.id.clone()).collect();
        // A conflict means that it has begun already.
        match Box::pin(self.advance(planned)).await {
            Ok(_) => self.run_queue.wake(ids),
            Err(error) => tracing::warn!(%error, "inner runs could not begin; trying again with the next sweep"),
        }
    }

    /// A run ready to begin; None if its parent was told that there can be none.
    async fn child(&self, parent: &RunHead, child: SubRun) -> Result<Option<Planned>, StoreError> {
        let around = self.definition(&DagKey::of(&parent.tenant, &parent.dag)).await?;
        let pinned = around.and_then(|around| around.row.pins.get(&child.dag).copied());
        let of = DagRef { name: child.dag.clone(), version: pinned.unwrap_or_default() };
        let key = NodeKey { node: child.parent.node, item: child.parent.item };
        let Some(known) = self.definition(&DagKey::of(&parent.tenant, &of)).await? else {
            let text = format!("there is no version {} of DAG {:?}", of.version, of.name);
            return self.refuse(&parent.id, key, text).await.map(|()| None);
        };
        let params = match known.dag.check_params(&child.params) {
            Ok(params) => params,
            Err(errors) => {
                let text = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                let text = format!("DAG {:?} refused its parameters: {text}", of.name);
                return self.refuse(&parent.id, key, text).await.map(|()| None);
            }
        };
        let caller = parent.caller();
        let timeout = self.config.timeouts().of_workflow(&of.name);
        let start = Start { id: child.id, of, params, parent: Some(child.parent), fresh: parent.fresh, timeout };
        let (live, next) = begin(&known.dag, start, &caller, self.ports.clock.now());
        Ok(Some(Planned::step(live, RunState::Running, next, Vec::new())))
    }

    /// The node fails that wanted it. If the run moves meanwhile, the sweep comes here again.
    async fn refuse(&self, parent: &RunId, key: NodeKey, message: String) -> Result<(), StoreError> {
        for mut live in self.read_runs(std::slice::from_ref(parent)).await? {
            let before = live.run().head.state;
            let next = live.refused(key, Failure::new(Reason::Fatal, message.as_str()), self.ports.clock.now());
            if let Some(next) = next {
                self.advance(vec![Planned::step(live, before, next, Vec::new())]).await?;
            }
        }
        Ok(())
    }

    /// Stops runs, and has their work undone where that of the run around them is.
    pub(super) async fn stop_runs(&self, runs: Vec<(RunId, bool)>) {
        for (id, compensate) in runs {
            let note = Some("the run around it does not go on".into());
            let order = RunCommand::Cancel { actor: Self::platform(), note, compensate };
            match Box::pin(self.order(&id, order, Vec::new())).await {
                // Over already, or never begun.
                Ok(_) | Err(ApiError::NoSuch { .. } | ApiError::RunState(_)) => {}
                Err(error) => {
                    tracing::warn!(run_id = %id, %error, "inner run could not be cancelled; trying again with the next sweep");
                }
            }
        }
    }
}
