//! The state of one node, or of one item of a `for_each` node, in one run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::NodeIx;
use crate::ids::{ActorId, JobId, RunId, SessionId};
use crate::job::{Failure, Job, Leaving};
use crate::request::Json;
use crate::time::Timestamp;

/// A node, and one of its items if it is a `for_each` node.
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
    /// The node waits for its parents.
    #[default]
    Pending,
    /// The node may start; it waits for room within the run, or for a paused run to resume.
    Ready,
    /// The node's job, delay or sub-run is under way.
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

/// The stored row of a node that left PENDING.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRun {
    pub state: NodeState,
    /// 0, and one more with each rerun of the node. Messages of earlier rounds are ignored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
    /// The node's job, if one was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The job whose memoised result this node's job took instead of running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo_of: Option<JobId>,
    /// What the node's job took, as the run last heard of it. None before its job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<JobTries>,
    /// The sub-run that the node waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// When the node's delay ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakes_at: Option<Timestamp>,
    /// Stored only if some expression reads it. Show it only through [`NodeRun::shown_output`], which hides quarantined
    /// outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Items>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<NodeUndo>,
    /// For a completed plain job of a saga: how to undo it, as an [`Entry`](super::saga::Entry). Kept as text, so that one
    /// unreadable entry does not make the others unreadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Json>,
    /// The entry's number in its saga: the highest is undone first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub entry_no: u32,
    /// The node's output was quarantined after nodes had used it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
    /// A revoked or given-up attempt did the work after the node had ended. The node keeps its state, and its work is undone
    /// like that of a node that succeeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// Workers that may still be working on revoked attempts of the node's job. Nothing in the run is undone before they are
    /// through: one that succeeds after all must be undone in its turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<Leaving>,
}

impl NodeRun {
    /// G-4: the output, unless it was quarantined. The compensation of the node's own work may still read a quarantined
    /// output.
    pub fn shown_output(&self) -> Option<&Json> {
        self.output.as_ref().filter(|_| self.state == NodeState::Succeeded && !self.tainted)
    }

    /// When the last of the revoked attempts counts as over, even without a report. None if no attempt is awaited.
    pub fn left_by(&self) -> Option<Timestamp> {
        self.leaving.iter().map(|leaving| leaving.until).max()
    }

    /// Sessions of the workers that may still be working on attempts of the node's job.
    pub fn sessions_leaving(&self) -> impl Iterator<Item = &SessionId> {
        self.leaving.iter().filter(|leaving| !leaving.scan).map(|leaving| &leaving.session)
    }

    /// The worker reported a success, and the scan holds the result.
    pub fn awaits_scan(&self) -> bool {
        self.leaving.iter().any(|leaving| leaving.scan)
    }

    /// Ends the wait for the scan, on an operator's command.
    pub fn forget_scan(&mut self) {
        self.leaving.retain(|leaving| !leaving.scan);
    }

    /// Ends the wait for workers whose sessions are closed. A scan does not need the session that the result came from, so
    /// that wait stays.
    pub fn note_closed(&mut self, closed: &BTreeSet<SessionId>) {
        self.leaving.retain(|leaving| leaving.scan || !closed.contains(&leaving.session));
    }
}

/// How often a job was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTries {
    /// Attempts that were sent to a worker.
    pub attempts: u32,
    /// Attempts of the latest life that workers, servers and networks lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub losses: u32,
}

impl JobTries {
    pub fn of(job: &Job) -> Self {
        Self { attempts: job.attempts_made(), losses: job.life.counters.infra_failures }
    }
}

/// The list of a `for_each` node, evaluated once. Progress is derived from the items' own rows, so that this row is written
/// once, however many items there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Items {
    /// A JSON list.
    pub list: Json,
    pub count: u32,
}

/// The state of a node's compensation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeUndo {
    pub state: UndoState,
    pub job: JobId,
    /// 0, and one more with each retry that an operator orders.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The person who declared the stuck compensation resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<ActorId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UndoState {
    Running,
    Done,
    /// The compensation failed or was refused: a person must retry or resolve it.
    Stuck,
    /// A person declared it resolved.
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

    /// Whether the compensation no longer blocks those of the nodes before it.
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Done | Self::Resolved)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(super) const fn is_zero(number: &u32) -> bool {
    *number == 0
}
