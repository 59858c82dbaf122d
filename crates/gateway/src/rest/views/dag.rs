//! Workflows as JSON: definitions, runs, nodes.

use lockgate_core::dag as core;
use lockgate_core::job::Failure;
use lockgate_engine::{DagView, StartedRun};
use lockgate_ports::Cursor;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::names::{NodeStateName, RunStateName, UndoStateName};
use super::{Name, Time, document};
use crate::queries::cursor_text;

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct StoredDag {
    name: String,
    version: u32,
    snapshot: String,
    /// Nodes that do work and name no compensation.
    uncompensated: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = DagList)]
pub(in crate::rest) struct Dags {
    dags: Vec<Dag>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Dag {
    name: String,
    version: u32,
    snapshot: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    nodes: usize,
    actor: String,
    stored_at: Time,
    /// Only of one DAG, not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Started {
    run_id: String,
    dag: String,
    version: u32,
    /// The idempotency key already had this very run.
    existing: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RunList)]
pub(in crate::rest) struct Runs {
    runs: Vec<Run>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Run {
    run_id: String,
    dag: String,
    dag_version: u32,
    state: RunStateName,
    actor: String,
    #[schema(value_type = serde_json::Value)]
    params: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    output: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
    began_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_at: Option<Time>,
    /// A result that other nodes had used already was quarantined later.
    tainted: bool,
    /// Nodes that are over, of all.
    done: u32,
    total: u32,
    percent: u32,
    /// Grows with every step; what watchers resume from.
    version: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_run_id: Option<String>,
    /// The trace that all its jobs are in; absent if nobody follows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    /// In topological order, each followed by its items. Not in lists; in events only those that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<Node>>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Error {
    reason: &'static str,
    message: String,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Node {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<u32>,
    state: NodeStateName,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    child_run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    began_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wakes_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
    /// Kept if something reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    output: Option<Box<RawValue>>,
    /// How many items a for_each node has.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undo: Option<Undo>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tainted: bool,
    /// It ended some other way, and its work was done all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    done_late: bool,
    /// The job that did the same work before: its result stands for this node's.
    #[serde(skip_serializing_if = "Option::is_none")]
    memo_job_id: Option<String>,
    /// The job was taken from a worker that has not said yet how it went. The run undoes nothing before it has, or before this
    /// time.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for_worker_until: Option<Time>,
    /// How often it was run again.
    round: u32,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Undo {
    state: UndoStateName,
    job_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
}

impl From<&DagView> for StoredDag {
    fn from(view: &DagView) -> Self {
        Self {
            name: view.row.name.to_string(),
            version: view.row.version,
            snapshot: view.row.snapshot.to_string(),
            uncompensated: view.dag.uncompensated().into_iter().map(str::to_owned).collect(),
        }
    }
}

impl Dags {
    pub(in crate::rest) fn new(known: &[DagView]) -> Self {
        Self { dags: known.iter().map(|view| Dag { text: None, ..Dag::from(view) }).collect() }
    }
}

impl From<&DagView> for Dag {
    fn from(view: &DagView) -> Self {
        Self {
            name: view.row.name.to_string(),
            version: view.row.version,
            snapshot: view.row.snapshot.to_string(),
            description: view.dag.description.as_ref().map(ToString::to_string),
            nodes: view.dag.nodes.len(),
            actor: view.row.actor.to_string(),
            stored_at: Time(view.row.at),
            text: Some(view.row.text.to_string()),
        }
    }
}

impl From<StartedRun> for Started {
    fn from(started: StartedRun) -> Self {
        let StartedRun { run, dag, existing } = started;
        Self { run_id: run.to_string(), dag: dag.name.to_string(), version: dag.version, existing }
    }
}

impl Runs {
    pub(in crate::rest) fn new(heads: &[core::RunHead], next: Option<Cursor>) -> Self {
        Self { runs: heads.iter().map(Run::from).collect(), next_cursor: next.map(cursor_text) }
    }
}

impl From<&core::RunHead> for Run {
    fn from(head: &core::RunHead) -> Self {
        Self {
            run_id: head.id.to_string(),
            dag: head.dag.name.to_string(),
            dag_version: head.dag.version,
            state: Name(head.state),
            actor: head.actor.to_string(),
            params: document(&head.params),
            output: head.shown_output().and_then(document),
            error: head.failure.as_ref().map(Error::from),
            began_at: Time(head.began_at),
            ended_at: head.ended_at.map(Time),
            deadline_at: head.deadline_at.map(Time),
            tainted: head.tainted,
            done: head.done,
            total: head.total,
            percent: lockgate_api::percent(head),
            version: head.version,
            parent_run_id: head.parent.as_ref().map(|parent| parent.run.to_string()),
            trace_id: head.trace.map(|trace| trace.trace.to_string()),
            nodes: None,
        }
    }
}

impl Run {
    /// Every node, also those that wait for their parents.
    pub(in crate::rest) fn whole(run: &core::Run, dag: &core::Dag) -> Self {
        let waiting = core::NodeRun::default();
        let rows = run.in_order(dag.nodes.len()).into_iter();
        let nodes = rows.map(|(key, node)| Node::new(&run.head, key, node.unwrap_or(&waiting), dag)).collect();
        Self { nodes: Some(nodes), ..Self::from(&run.head) }
    }

    /// The nodes that are in it.
    pub(in crate::rest) fn changes(run: &core::Run, dag: &core::Dag) -> Self {
        let nodes = run.nodes.iter().map(|(key, node)| Node::new(&run.head, *key, node, dag)).collect();
        Self { nodes: Some(nodes), ..Self::from(&run.head) }
    }
}

impl Node {
    fn new(head: &core::RunHead, key: core::NodeKey, node: &core::NodeRun, dag: &core::Dag) -> Self {
        Self {
            name: dag.node(key.node).name.to_string(),
            item: key.item,
            state: Name(node.state),
            job_id: node.job.as_ref().map(ToString::to_string),
            child_run_id: node.child.as_ref().map(ToString::to_string),
            began_at: node.began_at.map(Time),
            ended_at: node.ended_at.map(Time),
            wakes_at: node.wakes_at.map(Time),
            error: node.failure.as_ref().map(Error::from),
            output: node.shown_output().and_then(document),
            items: node.items.as_ref().map(|items| items.count),
            undo: node.undo.as_ref().map(Undo::from),
            tainted: node.tainted,
            done_late: node.late,
            memo_job_id: node.memo_of.as_ref().map(ToString::to_string),
            waits_for_worker_until: head.waits_for_workers_of(node).map(Time),
            round: node.round,
        }
    }
}

impl From<&core::NodeUndo> for Undo {
    fn from(undo: &core::NodeUndo) -> Self {
        Self { state: Name(undo.state), job_id: undo.job.to_string(), error: undo.failure.as_ref().map(Error::from) }
    }
}

impl From<&Failure> for Error {
    fn from(failure: &Failure) -> Self {
        Self { reason: failure.reason.as_str(), message: failure.message.to_string() }
    }
}
