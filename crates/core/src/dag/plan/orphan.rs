//! A run that waits for nothing and that nothing follows from.

use super::super::{NodeKey, NodeState};
use super::step::RunStep;
use super::{RunPlanner, RunTransition};
use crate::job::Failure;
use crate::time::Timestamp;

impl RunPlanner {
    /// It is closed as if its time were over, and what looks as if it were under way failed. None while something is.
    pub fn orphaned(&mut self, failure: &Failure, now: Timestamp) -> Option<RunTransition> {
        if !self.waits().is_empty() {
            return None;
        }
        let mut step = RunStep::of(self, now);
        if step.live.run.head.closing.is_none() {
            let closing = step.live.closing_at_deadline();
            step.close(closing, failure.clone());
        }
        // Items first: their node ends with the last of them.
        let idle: Vec<NodeKey> = step.live.run.nodes.keys().rev().copied().collect();
        for key in idle {
            if step.row(key).is_some_and(|row| row.state == NodeState::Running) {
                step.end(key, NodeState::Failed, None, Some(failure.clone()));
            }
        }
        step.go_on()
    }
}
