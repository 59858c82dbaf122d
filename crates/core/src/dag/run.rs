//! One execution of one version of a DAG.

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

/// The head and every node that left PENDING.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub head: RunHead,
    pub nodes: BTreeMap<NodeKey, NodeRun>,
}

impl Run {
    /// Every node of a DAG of so many, each followed by its items; None for those that wait for their parents.
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
    /// Takes away what only those may see who are trusted with payloads.
    pub fn hide(&mut self) {
        self.head.hide();
        for node in self.nodes.values_mut() {
            node.output = None;
        }
    }
}

/// What is said of the whole run. Its version is the compare-and-set of every step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHead {
    pub id: RunId,
    #[serde(skip)]
    pub version: i64,
    pub dag: DagRef,
    pub tenant: TenantId,
    pub actor: ActorId,
    /// What kind of actor; its jobs say so too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_type: Option<Arc<str>>,
    /// A credential said who the actor is; its jobs say so too.
    #[serde(rename = "verified", default, skip_serializing_if = "std::ops::Not::not")]
    pub actor_verified: bool,
    /// A JSON map, defaults filled in.
    pub params: Json,
    #[serde(skip)]
    pub state: RunState,
    pub began_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// How long it may take, of a run whose DAG does not say: what held when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// When the run must be looked at next although nothing happened: a delay, a timeout.
    #[serde(skip)]
    pub wakes_at: Option<Timestamp>,
    /// Nothing new starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Why it does not go on: the first failure that counted, or who cancelled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Set once the run is to end badly: nothing new starts, what runs is stopped, then it ends or is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<Closing>,
    /// A result that others had used already was quarantined later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The run and node that wait for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunParent>,
    /// Where the run stands in traces; none if nobody cares.
    #[serde(rename = "traceparent", default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
    /// Nothing that was done before stands for what its nodes are to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// How often it was run again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reruns: u32,
    /// Nodes over, of all; for people who watch.
    #[serde(default)]
    pub done: u32,
    #[serde(default)]
    pub total: u32,
}

impl RunHead {
    /// Takes away what only those may see who are trusted with payloads.
    pub fn hide(&mut self) {
        (self.params, self.output) = (Json::null(), None);
    }

    /// Whose everything is that it starts.
    pub fn caller(&self) -> Caller {
        let caller = Caller::of_kind(self.tenant.clone(), self.actor.clone(), self.actor_type.clone());
        Caller { verified: self.actor_verified, trace: self.context(), ..caller }
    }

    /// Neither over nor about to be: nodes may still become ready.
    pub const fn is_open(&self) -> bool {
        self.closing.is_none() && !self.state.is_over()
    }

    /// workers that attempts were taken from are waited for by a run that undoes its work, and by one inside another run: as
    /// soon as that is over, the run around it may undo what it used.
    pub fn awaits_workers(&self) -> bool {
        self.closing.is_some_and(|closing| closing.undoes() || self.parent.is_some())
    }

    /// until when at the latest this run waits, before it undoes anything, for workers that a node's job was taken from. None
    /// while it waits for a scan: that has no time.
    pub fn waits_for_workers_of(&self, node: &NodeRun) -> Option<Timestamp> {
        let waits = self.awaits_workers() && !self.state.is_over();
        node.left_by().filter(|_| waits && !node.awaits_scan())
    }

    /// G-4: what the run answers, unless it may hold what was quarantined later.
    pub fn shown_output(&self) -> Option<&Json> {
        self.output.as_ref().filter(|_| !self.tainted)
    }
}

/// How a run that does not go on will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    Fail,
    Compensate,
    Cancel,
    CancelAndCompensate,
}

impl Closing {
    /// What was done is undone before the run is over.
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
    /// How many runs are around this one.
    pub depth: u32,
}

/// A version of a DAG.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DagRef {
    pub name: Arc<str>,
    /// 1, 2, 3 … per tenant and name.
    pub version: u32,
}

/// The identity of what a client asked for, so that a key can be told from its reuse.
pub fn asked(dag: &str, version: Option<u32>, params: &serde_json::Value, fresh: bool) -> RequestHash {
    let mut asked = serde_json::json!({ "dag": dag, "version": version, "params": params });
    if fresh {
        // Absent otherwise: hashes that are stored stay true.
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
    /// What was done is being undone.
    Compensating,
    /// An undo failed; somebody must resolve it.
    CompensationStuck,
    Succeeded,
    /// Every node is over and some that failed were allowed to.
    SucceededWithFailures,
    Failed,
    Canceled,
    /// It failed or was cancelled, and everything was undone.
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
