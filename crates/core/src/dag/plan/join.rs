//! Joins: whether a node may start, by how its parents ended.
//!
//! | join | runs | is skipped |
//! |---|---|---|
//! | `all_success` | all succeeded | as soon as one failed or was cancelled; when all are over and one was skipped |
//! | `any_success` | as soon as one succeeded | all are over and none succeeded |
//! | `all_done` | all are over | never |
//! | `one_failed` | as soon as one failed | all are over and none failed |
//! | `none_failed` | all are over, none failed or was cancelled | as soon as one failed or was cancelled |
//!
//! A node without parents runs. A decision is made as soon as it is certain, with one exception: a skipped parent never
//! skips a node before all parents are over, so that a branch not taken cannot overtake the one that was taken.

use super::super::{Join, NodeState};

/// How many parents of a node ended in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ParentEnds {
    pub(super) succeeded: u32,
    pub(super) failed: u32,
    pub(super) canceled: u32,
    pub(super) skipped: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decided {
    Wait,
    Run,
    Skip,
}

impl ParentEnds {
    pub(super) fn count(&mut self, state: NodeState, by: i32) {
        let count = match state {
            NodeState::Succeeded => &mut self.succeeded,
            NodeState::Failed => &mut self.failed,
            NodeState::Canceled => &mut self.canceled,
            NodeState::Skipped => &mut self.skipped,
            NodeState::Pending | NodeState::Ready | NodeState::Running => return,
        };
        *count = count.saturating_add_signed(by);
    }

    pub(super) fn decide(self, join: Join, parents: usize) -> Decided {
        let bad = self.failed + self.canceled > 0;
        let all_over = (self.succeeded + self.failed + self.canceled + self.skipped) as usize == parents;
        let (runs, skipped) = match join {
            Join::AllSuccess => (self.succeeded as usize == parents, bad || all_over),
            Join::AnySuccess => (parents == 0 || self.succeeded > 0, all_over),
            Join::AllDone => (all_over, false),
            Join::OneFailed => (parents == 0 || self.failed > 0, all_over),
            Join::NoneFailed => (all_over && !bad, bad),
        };
        match (runs, skipped) {
            (true, _) => Decided::Run,
            (false, true) => Decided::Skip,
            (false, false) => Decided::Wait,
        }
    }
}
