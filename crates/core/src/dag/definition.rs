//! What is to be done, in which order, and what follows a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Expression, Template};
use crate::ids::Topic;
use crate::lane::Priority;
use crate::policy::rfc3339;
use crate::request::ApprovalGate;
use crate::retry::RetrySettings;
use crate::time::Timestamp;

/// Position of a node in its DAG. Parents come before their children.
pub type NodeIx = u32;

/// A definition that was read and checked as a whole.
#[derive(Clone, Debug)]
pub struct Dag {
    pub name: Arc<str>,
    /// Hash of the text.
    pub snapshot: Arc<str>,
    pub source: Arc<str>,
    pub description: Option<Arc<str>>,
    pub params: Vec<Param>,
    /// Node jobs at work at once.
    pub max_parallelism: Option<u32>,
    /// The whole run must end within this.
    pub timeout_ms: Option<u64>,
    /// What a run answers; what a sub-DAG gives to its parent.
    pub output: Option<Template>,
    /// In topological order; edges are positions.
    pub nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: Arc<str>,
    pub kind: ParamKind,
    pub description: Option<Arc<str>>,
    /// A parameter without one must be given.
    pub default: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    Text,
    Number,
    Truth,
    List,
    Map,
    Any,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub name: Arc<str>,
    pub needs: Vec<NodeIx>,
    pub children: Vec<NodeIx>,
    pub work: NodeWork,
    pub join: Join,
    pub on_fail: OnFail,
    /// False skips the node.
    pub when: Option<Expression>,
    pub for_each: Option<ForEach>,
    pub compensation: Option<Compensation>,
    /// Ancestors whose outputs its expressions read.
    pub reads: Vec<NodeIx>,
    /// Some expression reads its output.
    pub read: bool,
}

#[derive(Clone, Debug)]
pub enum NodeWork {
    Job(Box<JobTemplate>),
    /// Only people's agreement; no worker is needed.
    Approval(ApprovalGate),
    Delay(Delay),
    Dag(SubDag),
}

/// The request of a node's job, with holes.
#[derive(Clone, Debug)]
pub struct JobTemplate {
    pub topic: Topic,
    pub payload: Template,
    pub priority: Option<Priority>,
    pub max_attempts: Option<u32>,
    pub retry: RetrySettings,
    pub timeout_ms: Option<u64>,
    pub labels: BTreeMap<String, Template>,
    pub env: BTreeMap<String, Template>,
    pub requires: BTreeSet<String>,
    pub capability: Option<String>,
    pub risk_tags: BTreeSet<String>,
    pub concurrency_key: Option<Template>,
    /// People must agree before it runs.
    pub gate: Option<ApprovalGate>,
    /// For so long a result stands for the same work asked for again.
    pub memoise_ms: Option<u64>,
}

#[derive(Clone, Debug)]
pub enum Delay {
    /// Counted from when the node became ready.
    For { millis: u64 },
    /// A time in RFC 3339 or milliseconds since the Unix epoch. One in the past is over at once.
    Until(Template),
}

impl Delay {
    /// The time that a value names, as `Until` takes it.
    pub(super) fn moment(value: &Value) -> Option<Timestamp> {
        match value {
            Value::Number(millis) => millis.as_i64().map(Timestamp::from_millis),
            Value::String(text) => rfc3339::parse(text),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct SubDag {
    pub dag: Arc<str>,
    /// The version that was the latest when the parent was stored; pinned by the Store's row of the parent.
    pub params: BTreeMap<String, Template>,
}

#[derive(Clone, Debug)]
pub struct ForEach {
    pub items: Expression,
    /// Items at work at once.
    pub concurrency: Option<u32>,
    /// How many must succeed for the node to succeed; all unless said otherwise.
    pub min_success: Option<MinSuccess>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinSuccess {
    Count(u32),
    /// Of a hundred items, rounded up.
    Percent(u32),
}

/// When a node may start, by how its parents ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Join {
    #[default]
    AllSuccess,
    AnySuccess,
    AllDone,
    OneFailed,
    NoneFailed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFail {
    /// The run fails: nothing more starts, what runs is cancelled.
    #[default]
    Stop,
    /// The rest goes on.
    Continue,
    /// The run fails, and what was done is undone.
    Compensate,
}

/// How what a node did is undone. Expressions see the node's own output too.
#[derive(Clone, Debug)]
pub struct Compensation {
    pub topic: Topic,
    pub payload: Template,
    pub env: BTreeMap<String, Template>,
    pub labels: BTreeMap<String, Template>,
    pub max_attempts: Option<u32>,
    pub timeout_ms: Option<u64>,
    /// Undo the node also if it failed: it may have done half of its work.
    pub undo_on_failure: bool,
    pub reads: Vec<NodeIx>,
}

impl Join {
    pub const ALL: [Self; 5] = [Self::AllSuccess, Self::AnySuccess, Self::AllDone, Self::OneFailed, Self::NoneFailed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllSuccess => "all_success",
            Self::AnySuccess => "any_success",
            Self::AllDone => "all_done",
            Self::OneFailed => "one_failed",
            Self::NoneFailed => "none_failed",
        }
    }
}

impl OnFail {
    pub const ALL: [Self; 3] = [Self::Stop, Self::Continue, Self::Compensate];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Continue => "continue",
            Self::Compensate => "compensate",
        }
    }
}

impl Dag {
    pub fn node(&self, at: NodeIx) -> &Node {
        &self.nodes[at as usize]
    }

    pub fn index(&self, name: &str) -> Option<NodeIx> {
        self.nodes.iter().position(|node| &*node.name == name).and_then(|at| NodeIx::try_from(at).ok())
    }
}
