//! Runs and their nodes as clients see them.

use lockgate_core::dag::{Dag, Node, NodeKey, NodeRun, NodeState, NodeWork, Run, RunHead, RunState, UndoState};
use lockgate_core::request::FieldError;

use crate::ToWire;
use lockgate_proto::v1;

use crate::json_bytes;

/// A state on the wire, which may be none.
pub trait KnownState {
    type State;

    /// None for unspecified.
    fn known(self) -> Option<Self::State>;
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

        impl KnownState for v1::$core {
            type State = $core;

            fn known(self) -> Option<$core> {
                match self {
                    Self::Unspecified => None,
                    $(Self::$name => Some($core::$name),)+
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
    Ok(state.known())
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
pub fn run_whole(run: &Run, dag: &Dag) -> v1::DagRun {
    let waiting = NodeRun::default();
    let rows = run.in_order(dag.nodes.len()).into_iter();
    let nodes = rows.map(|(key, node)| run_node(&run.head, key, node.unwrap_or(&waiting), dag)).collect();
    v1::DagRun { nodes, ..run_head(&run.head) }
}

/// A run with the nodes that are in it.
pub fn run_changes(run: &Run, dag: &Dag) -> v1::DagRun {
    let nodes = run.nodes.iter().map(|(key, node)| run_node(&run.head, *key, node, dag)).collect();
    v1::DagRun { nodes, ..run_head(&run.head) }
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
    }
}

fn work(node: &Node) -> (&'static str, String) {
    match &node.work {
        NodeWork::Job(job) => ("job", job.topic.to_string()),
        NodeWork::Approval(_) => ("approval", String::new()),
        NodeWork::Delay(_) => ("delay", String::new()),
        NodeWork::Dag(sub) => ("dag", sub.dag.to_string()),
    }
}

/// How much of a run is over, in percent.
pub fn percent(head: &RunHead) -> u32 {
    let (done, total) = (u64::from(head.done), u64::from(head.total));
    done.saturating_mul(100).checked_div(total).map_or(0, |percent| u32::try_from(percent).unwrap_or(100))
}
