//! A run: one execution of one version of a DAG.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::node::is_zero;
use super::{NodeIx, NodeKey, NodeRun};
use crate::ids::{ActorId, RunId, TenantId};
use crate::job::Failure;
use crate::request::{Caller, Json, RequestHash};
use crate::time::Timestamp;
use crate::trace::TraceParent;

/// A run: its head, and the rows of every node that left PENDING.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub head: RunHead,
    pub nodes: BTreeMap<NodeKey, NodeRun>,
}

impl Run {
    /// Every node of a DAG with `nodes` nodes, each followed by its items; None for nodes that wait for their parents.
    pub fn in_order(&self, nodes: usize) -> Vec<(NodeKey, Option<&NodeRun>)> {
        let mut rows = Vec::with_capacity(nodes);
        for node in 0..NodeIx::try_from(nodes).unwrap_or(NodeIx::MAX) {
            let key = NodeKey::of(node);
            rows.push((key, self.nodes.get(&key)));
            let items = NodeKey { node, item: Some(0) }..=NodeKey { node, item: Some(u32::MAX) };
            rows.extend(self.nodes.range(items).map(|(key, item)| (*key, Some(item))));
        }
        rows
    }
}

impl Run {
    /// Removes the fields that only readers trusted with payloads may see.
    pub fn hide(&mut self) {
        self.head.hide();
        for node in self.nodes.values_mut() {
            node.output = None;
        }
    }
}

/// The state of the run as a whole. Its version is the compare-and-set of every step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHead {
    pub id: RunId,
    #[serde(skip)]
    pub version: i64,
    pub dag: DagRef,
    pub tenant: TenantId,
    pub actor: ActorId,
    /// The kind of actor; the run's jobs carry it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_type: Option<Arc<str>>,
    /// Whether a credential proved who the actor is; the run's jobs carry it too.
    #[serde(rename = "verified", default, skip_serializing_if = "std::ops::Not::not")]
    pub actor_verified: bool,
    /// A JSON map with defaults filled in.
    pub params: Json,
    #[serde(skip)]
    pub state: RunState,
    pub began_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// The timeout of a run whose DAG has none: the installation's setting when the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// When the run's next timer fires: a delay, a timeout, or the end of a wait for workers.
    #[serde(skip)]
    pub wakes_at: Option<Timestamp>,
    /// No node starts while the run is paused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Why the run ends badly: the first failure that closed it, or who cancelled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Set once the run is to end badly: no node starts any more, running ones are stopped, then the run ends or is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<Closing>,
    /// A result was quarantined after other nodes had used it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The run and node that wait for this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunParent>,
    /// The run's position in a trace, if its client sent one.
    #[serde(rename = "traceparent", default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
    /// Run every job, without taking memoised results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// How often the run was rerun.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reruns: u32,
    /// Nodes that are over, and all nodes: progress shown to people.
    #[serde(default)]
    pub done: u32,
    #[serde(default)]
    pub total: u32,
}

impl RunHead {
    /// Removes the fields that only readers trusted with payloads may see.
    pub fn hide(&mut self) {
        (self.params, self.output) = (Json::null(), None);
    }

    /// The tenant and actor of all jobs and sub-runs that the run starts.
    pub fn caller(&self) -> Caller {
        let caller = Caller::of_kind(self.tenant.clone(), self.actor.clone(), self.actor_type.clone());
        Caller { verified: self.actor_verified, trace: self.context(), ..caller }
    }

    /// Whether nodes may still become ready: the run is neither over nor closing.
    pub const fn is_open(&self) -> bool {
        self.closing.is_none() && !self.state.is_over()
    }

    /// whether the run waits for workers of revoked attempts before it ends. A run that undoes its work does, and so
    /// does a sub-run: as soon as it is over, its parent run may undo the work that it used.
    pub fn awaits_workers(&self) -> bool {
        self.closing.is_some_and(|closing| closing.undoes() || self.parent.is_some())
    }

    /// until when the run at most waits for the workers of a node's revoked attempts before it undoes anything. None
    /// while it waits for a scan, because that wait has no time limit.
    pub fn waits_for_workers_of(&self, node: &NodeRun) -> Option<Timestamp> {
        let waits = self.awaits_workers() && !self.state.is_over();
        node.left_by().filter(|_| waits && !node.awaits_scan())
    }

    /// G-4: the output of the run, unless it may contain a result that was quarantined later.
    pub fn shown_output(&self) -> Option<&Json> {
        self.output.as_ref().filter(|_| !self.tainted)
    }
}

/// How a closing run will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    Fail,
    Compensate,
    Cancel,
    CancelAndCompensate,
}

impl Closing {
    /// Whether completed work is undone before the run is over.
    pub const fn undoes(self) -> bool {
        matches!(self, Self::Compensate | Self::CancelAndCompensate)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunParent {
    pub run: RunId,
    pub node: NodeIx,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// How many runs this run is nested in.
    pub depth: u32,
}

/// One version of a DAG.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DagRef {
    pub name: Arc<str>,
    /// Numbered from 1 per tenant and name.
    pub version: u32,
}

/// A hash of what the client asked for: an idempotency key that is repeated with another hash is refused.
pub fn asked(dag: &str, version: Option<u32>, params: &serde_json::Value, fresh: bool) -> RequestHash {
    let mut asked = serde_json::json!({ "dag": dag, "version": version, "params": params });
    if fresh {
        // Added only when set, so that hashes stored before the field existed stay valid.
        asked["fresh"] = true.into();
    }
    RequestHash(Sha256::digest(asked.to_string()).into())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunState {
    #[default]
    Running,
    Paused,
    /// Completed work is being undone.
    Compensating,
    /// A compensation failed: a person must retry or resolve it.
    CompensationStuck,
    Succeeded,
    /// Every node is over, and some failed with `on_fail: continue`.
    SucceededWithFailures,
    Failed,
    Canceled,
    /// The run failed or was cancelled, and all its work was undone.
    Compensated,
}

impl RunState {
    pub const ALL: [Self; 9] = [
        Self::Running,
        Self::Paused,
        Self::Compensating,
        Self::CompensationStuck,
        Self::Succeeded,
        Self::SucceededWithFailures,
        Self::Failed,
        Self::Canceled,
        Self::Compensated,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Compensating => "COMPENSATING",
            Self::CompensationStuck => "COMPENSATION_STUCK",
            Self::Succeeded => "SUCCEEDED",
            Self::SucceededWithFailures => "SUCCEEDED_WITH_FAILURES",
            Self::Failed => "FAILED",
            Self::Canceled => "CANCELED",
            Self::Compensated => "COMPENSATED",
        }
    }

    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Running | Self::Paused | Self::Compensating | Self::CompensationStuck)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a state of a run; there are {all}", all = RunState::ALL.map(RunState::as_str).join(", "))]
pub struct UnknownRunState(String);

impl FromStr for RunState {
    type Err = UnknownRunState;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| UnknownRunState(text.to_owned()))
    }
}
