//! The definition of a workflow: its nodes, their order, and what follows a failure.

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
    /// Hash of the definition's text.
    pub snapshot: Arc<str>,
    pub source: Arc<str>,
    pub description: Option<Arc<str>>,
    pub params: Vec<Param>,
    /// The largest number of node jobs and sub-runs under way at once.
    pub max_parallelism: Option<u32>,
    /// The time within which the whole run must end.
    pub timeout_ms: Option<u64>,
    /// The output of a run; a sub-DAG node hands it to its parent run.
    pub output: Option<Template>,
    /// In topological order; edges are positions in this list.
    pub nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: Arc<str>,
    pub kind: ParamKind,
    pub description: Option<Arc<str>>,
    /// A parameter without a default must be given.
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
    /// If false, the node is skipped.
    pub when: Option<Expression>,
    pub for_each: Option<ForEach>,
    pub compensation: Option<Compensation>,
    /// Ancestors whose outputs the node's expressions read.
    pub reads: Vec<NodeIx>,
    /// Whether some expression reads the node's output; otherwise the output is not stored with the run.
    pub read: bool,
}

#[derive(Clone, Debug)]
pub enum NodeWork {
    Job(Box<JobTemplate>),
    /// An approval by people alone; no worker is needed.
    Approval(ApprovalGate),
    Delay(Delay),
    Dag(SubDag),
}

/// The request of a node's job, with expressions in place of values.
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
    /// People must approve before the job runs.
    pub gate: Option<ApprovalGate>,
    /// How long the result is memoised, that is, taken for equal work instead of running it again.
    pub memoise_ms: Option<u64>,
}

#[derive(Clone, Debug)]
pub enum Delay {
    /// Measured from the time when the node became ready.
    For { millis: u64 },
    /// A time in RFC 3339 or milliseconds since the Unix epoch. A time in the past ends the delay at once.
    Until(Template),
}

impl Delay {
    /// The time that a value names, in one of the forms that `Until` takes.
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
    /// Evaluated when the parent node starts. The sub-run uses the version that was the latest when the parent was stored;
    /// the Store pins it in the parent's row.
    pub params: BTreeMap<String, Template>,
}

#[derive(Clone, Debug)]
pub struct ForEach {
    pub items: Expression,
    /// The largest number of items under way at once.
    pub concurrency: Option<u32>,
    /// How many items must succeed for the node to succeed; all by default.
    pub min_success: Option<MinSuccess>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinSuccess {
    Count(u32),
    /// A share of all items, rounded up.
    Percent(u32),
}

/// The rule by which the ends of its parents decide whether a node starts.
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
    /// The run fails: no node starts any more, and running ones are cancelled.
    #[default]
    Stop,
    /// The other nodes continue.
    Continue,
    /// The run fails, and its completed work is compensated.
    Compensate,
}

/// The job that undoes a node's work. Its expressions may read the node's own output too.
#[derive(Clone, Debug)]
pub struct Compensation {
    pub topic: Topic,
    pub payload: Template,
    pub env: BTreeMap<String, Template>,
    pub labels: BTreeMap<String, Template>,
    pub max_attempts: Option<u32>,
    pub timeout_ms: Option<u64>,
    /// Compensate the node also if it failed, since it may have done part of its work.
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
