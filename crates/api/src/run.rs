//! Runs and their nodes: from core to protobuf, and from there to JSON.

use lockgate_core::dag::{self as core, Dag, NodeKey, NodeRun, NodeState, NodeWork, RunHead, RunState, UndoState};
use lockgate_core::job::Failure;
use lockgate_core::request::FieldError;
use lockgate_proto::v1;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::name_set::{NodeStateName, RunStateName, UndoStateName};
use crate::time::Time;
use crate::{ToWire, document, json_bytes, present};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Started)]
pub struct StartedRun {
    pub run_id: String,
    pub dag: String,
    pub version: u32,
    /// The idempotency key already had this very run.
    pub existing: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunList)]
pub struct Runs {
    pub runs: Vec<Run>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Run {
    pub run_id: String,
    pub dag: String,
    pub dag_version: u32,
    pub state: RunStateName,
    pub actor: String,
    #[schema(value_type = serde_json::Value)]
    pub params: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub output: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    pub began_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Time>,
    /// A result that other nodes had used already was quarantined later.
    pub tainted: bool,
    /// Nodes that are over, of all.
    pub done: u32,
    pub total: u32,
    pub percent: u32,
    /// Grows with every step; what watchers resume from.
    pub version: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<String>,
    /// The trace that all its jobs are in; absent if no trace context was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// In topological order, each followed by its items. Not in lists; in events only those that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<Node>>,
}

/// What changed in a run since the event before.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunEvent {
    #[serde(flatten)]
    pub run: Run,
    /// The node that the event is about: its name, followed by `[index]` if it is an item. Of several that changed in one step the
    /// last in topological order; `nodes` has all. Absent if only the run itself changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// The state of that node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeStateName>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub struct RunError {
    /// A stable reason code.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = true)]
    pub reason: String,
    pub message: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Node {
    pub name: String,
    /// Names of the nodes before it, for drawings: to readers of the JSON the definition tells them.
    #[serde(skip)]
    pub needs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    pub state: NodeStateName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakes_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Kept if something reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub output: Option<Box<RawValue>>,
    /// How many items a for_each node has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
    /// It ended some other way, and its work was done all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub done_late: bool,
    /// The job that did the same work before: its result stands for this node's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memo_job_id: Option<String>,
    /// The job was taken from a worker that has not said yet how it went. The run undoes nothing before it has, or before this
    /// time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for_worker_until: Option<Time>,
    /// Attempts of its job that were sent to a worker, as the run last heard; absent until its job has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Attempts of its job that workers, servers and networks lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<u32>,
    /// How often it was run again.
    pub round: u32,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Undo {
    pub state: UndoStateName,
    pub job_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartBody {
    pub dag: String,
    /// The latest, if absent. The run stays with it.
    pub version: Option<u32>,
    /// A map; by the rule for payloads each name stands once, and numbers keep their value.
    #[schema(value_type = Option<Object>)]
    pub params: Option<Box<RawValue>>,
    /// A second start with this key and the same request answers with the first run.
    pub idempotency_key: Option<String>,
    /// Every node does its work, also where what came of the same work before could stand for it.
    #[serde(default)]
    pub fresh: bool,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CancelRunBody {
    pub reason: Option<String>,
    /// Undo what was done.
    pub compensate: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RerunBody {
    /// Nodes to run again, with all that come after them.
    pub from: Vec<String>,
    /// Parameters to change: a map, by the rule for payloads.
    #[schema(value_type = Option<Object>)]
    pub params: Option<Box<RawValue>>,
    /// Every node does its work, also where what came of the same work before could stand for it.
    #[serde(default)]
    pub fresh: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveBody {
    pub node: String,
    pub item: Option<u32>,
    /// Try the undo once more instead of calling it done.
    #[serde(default)]
    pub retry: bool,
}

macro_rules! states {
    ($core:ident: $($name:ident),+) => {
        impl ToWire for $core {
            type Wire = v1::$core;

            fn to_wire(&self) -> v1::$core {
                match self {
                    $($core::$name => v1::$core::$name,)+
                }
            }
        }
    };
}

states!(RunState: Running, Paused, Compensating, CompensationStuck, Succeeded, SucceededWithFailures, Failed, Canceled, Compensated);
states!(NodeState: Pending, Ready, Running, Succeeded, Failed, Canceled, Skipped);
states!(UndoState: Running, Done, Stuck, Resolved);

/// The state a list asks for, if it does.
pub fn known_run_state(wire: i32) -> Result<Option<RunState>, FieldError> {
    let state = v1::RunState::try_from(wire).map_err(|_| FieldError::new("state", format_args!("{wire} is not a state")))?;
    Ok(RunState::ALL.into_iter().find(|known| known.to_wire() == state))
}

/// A run without its nodes.
pub fn run_head(head: &RunHead) -> v1::DagRun {
    let failure = head.failure.as_ref();
    v1::DagRun {
        run_id: head.id.to_string(),
        dag: head.dag.name.to_string(),
        dag_version: head.dag.version,
        tenant: head.tenant.to_string(),
        actor: head.actor.to_string(),
        state: head.state.to_wire().into(),
        params_json: json_bytes(&head.params),
        output_json: head.shown_output().map(json_bytes).unwrap_or_default(),
        reason: failure.map(|failure| failure.reason.as_str().to_owned()).unwrap_or_default(),
        message: failure.map(|failure| failure.message.to_string()).unwrap_or_default(),
        began_at_ms: head.began_at.as_millis(),
        ended_at_ms: head.ended_at.map(|at| at.as_millis()),
        deadline_at_ms: head.deadline_at.map(|at| at.as_millis()),
        tainted: head.tainted,
        done: head.done,
        total: head.total,
        version: head.version,
        parent_run_id: head.parent.as_ref().map(|parent| parent.run.to_string()).unwrap_or_default(),
        nodes: Vec::new(),
        trace_id: head.trace.map(|trace| trace.trace.to_string()).unwrap_or_default(),
    }
}

/// A run with every node, also those that wait for their parents, each followed by its items.
pub fn run_whole(run: &core::Run, dag: &Dag) -> v1::DagRun {
    let waiting = NodeRun::default();
    let rows = run.in_order(dag.nodes.len()).into_iter();
    let nodes = rows.map(|(key, node)| run_node(&run.head, key, node.unwrap_or(&waiting), dag)).collect();
    v1::DagRun { nodes, ..run_head(&run.head) }
}

/// A run with the nodes that are in it.
pub fn run_changes(run: &core::Run, dag: &Dag) -> v1::DagRun {
    let nodes = run.nodes.iter().map(|(key, node)| run_node(&run.head, *key, node, dag)).collect();
    v1::DagRun { nodes, ..run_head(&run.head) }
}

/// What changed in a run, and the node that it is about.
pub fn run_event(run: &core::Run, dag: &Dag) -> v1::DagEvent {
    let (node_id, status) = last_changed(run, dag);
    v1::DagEvent {
        percent: percent(run.head.done, run.head.total),
        node_id,
        status: status.map_or(v1::NodeState::Unspecified, |state| state.to_wire()).into(),
        run: Some(run_changes(run, dag)),
    }
}

/// Of several nodes the last one in topological order. An empty name if only the run itself changed.
fn last_changed(run: &core::Run, dag: &Dag) -> (String, Option<NodeState>) {
    let Some((key, node)) = run.nodes.last_key_value() else { return (String::new(), None) };
    let item = key.item.map(|item| format!("[{item}]")).unwrap_or_default();
    (format!("{}{item}", dag.node(key.node).name), Some(node.state))
}

fn run_node(head: &RunHead, key: NodeKey, node: &NodeRun, dag: &Dag) -> v1::DagNode {
    let of = dag.node(key.node);
    let (failure, undo) = (node.failure.as_ref(), node.undo.as_ref());
    let (kind, topic) = work(of);
    v1::DagNode {
        name: of.name.to_string(),
        item: key.item,
        state: node.state.to_wire().into(),
        needs: of.needs.iter().map(|parent| dag.node(*parent).name.to_string()).collect(),
        kind: kind.to_owned(),
        topic,
        job_id: node.job.as_ref().map(ToString::to_string).unwrap_or_default(),
        child_run_id: node.child.as_ref().map(ToString::to_string).unwrap_or_default(),
        began_at_ms: node.began_at.map(|at| at.as_millis()),
        ended_at_ms: node.ended_at.map(|at| at.as_millis()),
        wakes_at_ms: node.wakes_at.map(|at| at.as_millis()),
        reason: failure.map(|failure| failure.reason.as_str().to_owned()).unwrap_or_default(),
        message: failure.map(|failure| failure.message.to_string()).unwrap_or_default(),
        output_json: node.shown_output().map(json_bytes).unwrap_or_default(),
        items: node.items.as_ref().map(|items| items.count),
        undo: undo.map_or(v1::UndoState::Unspecified, |undo| undo.state.to_wire()).into(),
        undo_job_id: undo.map(|undo| undo.job.to_string()).unwrap_or_default(),
        undo_message: undo.and_then(|undo| undo.failure.as_ref()).map(|f| f.message.to_string()).unwrap_or_default(),
        tainted: node.tainted,
        round: node.round,
        done_late: node.late,
        memo_job_id: node.memo_of.as_ref().map(ToString::to_string).unwrap_or_default(),
        waits_for_worker_until_ms: head.waits_for_workers_of(node).map(|at| at.as_millis()),
        attempts: node.tries.map(|tries| tries.attempts),
        losses: node.tries.map(|tries| tries.losses),
    }
}

fn work(node: &core::Node) -> (&'static str, String) {
    match &node.work {
        NodeWork::Job(job) => ("job", job.topic.to_string()),
        NodeWork::Approval(_) => ("approval", String::new()),
        NodeWork::Delay(_) => ("delay", String::new()),
        NodeWork::Dag(sub) => ("dag", sub.dag.to_string()),
    }
}

/// How much of a run is over, in percent.
pub fn percent(done: u32, total: u32) -> u32 {
    let (done, total) = (u64::from(done), u64::from(total));
    done.saturating_mul(100).checked_div(total).map_or(0, |percent| u32::try_from(percent).unwrap_or(100))
}

impl From<v1::StartDagResponse> for StartedRun {
    fn from(wire: v1::StartDagResponse) -> Self {
        let v1::StartDagResponse { run_id, dag, version, existing } = wire;
        Self { run_id, dag, version, existing }
    }
}

impl From<v1::ListDagRunsResponse> for Runs {
    fn from(wire: v1::ListDagRunsResponse) -> Self {
        Self { runs: wire.runs.into_iter().map(Run::head).collect(), next_cursor: present(wire.next_cursor) }
    }
}

impl Run {
    /// A run without its nodes, as lists show it.
    pub fn head(wire: v1::DagRun) -> Self {
        Self {
            state: wire.state().into(),
            run_id: wire.run_id,
            dag: wire.dag,
            dag_version: wire.dag_version,
            actor: wire.actor,
            params: document(&wire.params_json),
            output: document(&wire.output_json),
            error: present(wire.reason).map(|reason| RunError { reason, message: wire.message }),
            began_at: Time::from_millis(wire.began_at_ms),
            ended_at: wire.ended_at_ms.map(Time::from_millis),
            deadline_at: wire.deadline_at_ms.map(Time::from_millis),
            tainted: wire.tainted,
            done: wire.done,
            total: wire.total,
            percent: percent(wire.done, wire.total),
            version: wire.version,
            parent_run_id: present(wire.parent_run_id),
            trace_id: present(wire.trace_id),
            nodes: None,
        }
    }

    /// A run with every node, also those that wait for their parents. The message has no room for why an undo failed, so
    /// that is added.
    pub fn whole(run: &core::Run, dag: &Dag) -> Self {
        let rows = run.in_order(dag.nodes.len()).into_iter();
        Self::from(run_whole(run, dag)).with_undo_errors(rows.map(|(_, node)| node))
    }

    /// A run with the nodes that are in it.
    pub fn changes(run: &core::Run, dag: &Dag) -> Self {
        Self::from(run_changes(run, dag)).with_undo_errors(run.nodes.values().map(Some))
    }

    fn with_undo_errors<'a>(mut self, rows: impl Iterator<Item = Option<&'a NodeRun>>) -> Self {
        for (node, row) in self.nodes.iter_mut().flatten().zip(rows) {
            let failure = row.and_then(|row| row.undo.as_ref()?.failure.as_ref());
            if let Some(undo) = &mut node.undo {
                undo.error = failure.map(RunError::from);
            }
        }
        self
    }
}

impl RunEvent {
    pub fn of(run: &core::Run, dag: &Dag) -> Self {
        let (node_id, status) = last_changed(run, dag);
        Self { run: Run::changes(run, dag), node_id: present(node_id), status: status.map(|state| state.to_wire().into()) }
    }
}

impl From<v1::DagRun> for Run {
    fn from(mut wire: v1::DagRun) -> Self {
        let nodes = std::mem::take(&mut wire.nodes);
        Self { nodes: Some(nodes.into_iter().map(Node::from).collect()), ..Self::head(wire) }
    }
}

impl From<v1::DagNode> for Node {
    fn from(wire: v1::DagNode) -> Self {
        let undo = (wire.undo() != v1::UndoState::Unspecified).then(|| Undo {
            state: wire.undo().into(),
            job_id: wire.undo_job_id.clone(),
            error: present(wire.undo_message.clone()).map(|message| RunError { reason: String::new(), message }),
        });
        Self {
            state: wire.state().into(),
            name: wire.name,
            needs: wire.needs,
            item: wire.item,
            job_id: present(wire.job_id),
            child_run_id: present(wire.child_run_id),
            began_at: wire.began_at_ms.map(Time::from_millis),
            ended_at: wire.ended_at_ms.map(Time::from_millis),
            wakes_at: wire.wakes_at_ms.map(Time::from_millis),
            error: present(wire.reason).map(|reason| RunError { reason, message: wire.message }),
            output: document(&wire.output_json),
            items: wire.items,
            undo,
            tainted: wire.tainted,
            done_late: wire.done_late,
            memo_job_id: present(wire.memo_job_id),
            waits_for_worker_until: wire.waits_for_worker_until_ms.map(Time::from_millis),
            attempts: wire.attempts,
            losses: wire.losses,
            round: wire.round,
        }
    }
}

impl From<&Failure> for RunError {
    fn from(failure: &Failure) -> Self {
        Self { reason: failure.reason.as_str().to_owned(), message: failure.message.to_string() }
    }
}
