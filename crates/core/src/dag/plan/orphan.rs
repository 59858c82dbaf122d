//! Ends an orphaned run: it waits for nothing, and no decision moves it on.

use super::super::{NodeKey, NodeState};
use super::step::RunStep;
use super::{RunPlanner, RunTransition};
use crate::job::Failure;
use crate::time::Timestamp;

impl RunPlanner {
    /// Closes the run as at its timeout; rows that look under way fail. None while any work is under way.
    pub fn orphaned(&mut self, failure: &Failure, now: Timestamp) -> Option<RunTransition> {
        if !self.waits().is_empty() {
            return None;
        }
        let mut step = RunStep::of(self, now);
        if step.live.run.head.closing.is_none() {
            let closing = step.live.closing_at_deadline();
            step.close(closing, failure.clone());
        }
        // Fail items before nodes: ending the last item ends its node.
        let idle: Vec<NodeKey> = step.live.run.nodes.keys().rev().copied().collect();
        for key in idle {
            if step.row(key).is_some_and(|row| row.state == NodeState::Running) {
                step.end(key, NodeState::Failed, None, Some(failure.clone()));
            }
        }
        step.go_on()
    }
}
