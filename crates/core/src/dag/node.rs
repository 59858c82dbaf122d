//! One node, or one item of a `for_each` node, in one run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::NodeIx;
use crate::ids::{ActorId, JobId, RunId, SessionId};
use crate::job::{Failure, Leaving};
use crate::request::Json;
use crate::time::Timestamp;

/// Which node; which of its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeKey {
    pub node: NodeIx,
    pub item: Option<u32>,
}

impl NodeKey {
    pub const fn of(node: NodeIx) -> Self {
        Self { node, item: None }
    }

    pub const fn item(node: NodeIx, item: u32) -> Self {
        Self { node, item: Some(item) }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NodeState {
    /// Waits for its parents.
    #[default]
    Pending,
    /// May start; waits for room within the run, or for a paused run to go on.
    Ready,
    /// Its job, its wait or its sub-DAG is under way.
    Running,
    Succeeded,
    Failed,
    Canceled,
    Skipped,
}

impl NodeState {
    pub const ALL: [Self; 7] =
        [Self::Pending, Self::Ready, Self::Running, Self::Succeeded, Self::Failed, Self::Canceled, Self::Skipped];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Ready => "READY",
            Self::Running => "RUNNING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Canceled => "CANCELED",
            Self::Skipped => "SKIPPED",
        }
    }

    pub const fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Canceled | Self::Skipped)
    }
}

/// What is stored of a node that left PENDING.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRun {
    pub state: NodeState,
    /// 0, and one more with each rerun of this node.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
    /// Its job, if it got one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The job that did the same work before: its result stands for this node's, which did nothing itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo_of: Option<JobId>,
    /// The run it waits for, if it is a sub-DAG.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// When a delay is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakes_at: Option<Timestamp>,
    /// Kept if some expression reads it. Not to be shown as it is: see [`NodeRun::shown_output`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Items>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<NodeUndo>,
    /// What undoes it, of a plain job that was done: an [`Entry`](super::saga::Entry). Text, because one that cannot be read
    /// must not hide the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Json>,
    /// Of the entries of its saga the how manyth: the last one is undone first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub entry_no: u32,
    /// Its work was done, then its output was quarantined after children had started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
    /// Its work was done by an attempt that no longer counted, or after it was given up: how it ended stays as it is, and it is
    /// undone like what succeeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// Workers that attempts of its job were taken from and that may still be at work on them. Nothing of the run is undone
    /// before they are through: one that was done all the same is to be undone in its turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<Leaving>,
}

impl NodeRun {
    /// G-4: the output, unless it was quarantined. The undo of the node's own work may still need that one.
    pub fn shown_output(&self) -> Option<&Json> {
        self.output.as_ref().filter(|_| self.state == NodeState::Succeeded && !self.tainted)
    }

    /// When all attempts that were taken from their workers count as over, whatever is heard of them. None if they are.
    pub fn left_by(&self) -> Option<Timestamp> {
        self.leaving.iter().map(|leaving| leaving.until).max()
    }

    /// Sessions of the workers that may still be at work on attempts of its job.
    pub fn sessions_leaving(&self) -> impl Iterator<Item = &SessionId> {
        self.leaving.iter().filter(|leaving| !leaving.scan).map(|leaving| &leaving.session)
    }

    /// Its job's worker reported a success, and the scan holds the result.
    pub fn awaits_scan(&self) -> bool {
        self.leaving.iter().any(|leaving| leaving.scan)
    }

    /// An operator does not wait for the scan any longer.
    pub fn forget_scan(&mut self) {
        self.leaving.retain(|leaving| !leaving.scan);
    }

    /// Nothing is under way in closed sessions. A scan goes on without the session that its result came from.
    pub fn note_closed(&mut self, closed: &BTreeSet<SessionId>) {
        self.leaving.retain(|leaving| leaving.scan || !closed.contains(&leaving.session));
    }
}

/// The list of a `for_each` node, evaluated once. How far it got is read off the items' own rows, so that this one is written
/// once however many there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Items {
    /// A JSON list.
    pub list: Json,
    pub count: u32,
}

/// Where the undoing of a node's work stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeUndo {
    pub state: UndoState,
    pub job: JobId,
    /// 0, and one more with each time somebody had it tried again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Who said that it is as good as done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<ActorId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UndoState {
    Running,
    Done,
    /// It failed or was refused: somebody must resolve it.
    Stuck,
    /// Somebody said that it is as good as done.
    Resolved,
}

impl UndoState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Done => "DONE",
            Self::Stuck => "STUCK",
            Self::Resolved => "RESOLVED",
        }
    }

    /// Nothing stands in the way of undoing what came before.
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Done | Self::Resolved)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(super) const fn is_zero(number: &u32) -> bool {
    *number == 0
}
