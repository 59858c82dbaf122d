//! Workflows and their runs, as the REST contract has them.

use lockgate_api::KnownState;
use lockgate_proto::v1;
use serde::Serialize;

use super::convert::{document, present, time};
use super::{Json, Time};

#[derive(Debug, Serialize)]
pub(crate) struct StoredDag {
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) snapshot: String,
    pub(crate) uncompensated: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Dag {
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) snapshot: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) nodes: u32,
    pub(crate) actor: String,
    pub(crate) stored_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct StartedRun {
    pub(crate) run_id: String,
    pub(crate) dag: String,
    pub(crate) version: u32,
    pub(crate) existing: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Runs {
    pub(crate) runs: Vec<Run>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) run_id: String,
    pub(crate) dag: String,
    pub(crate) dag_version: u32,
    pub(crate) state: &'static str,
    pub(crate) actor: String,
    pub(crate) params: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<RunError>,
    pub(crate) began_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline_at: Option<Time>,
    pub(crate) tainted: bool,
    pub(crate) done: u32,
    pub(crate) total: u32,
    pub(crate) version: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nodes: Option<Vec<Node>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RunError {
    pub(crate) reason: String,
    pub(crate) message: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Node {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) item: Option<u32>,
    pub(crate) state: &'static str,
    pub(crate) needs: Vec<String>,
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) child_run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) began_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wakes_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<RunError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) items: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undo: Option<Undo>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tainted: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) done_late: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memo_job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits_for_worker_until: Option<Time>,
    pub(crate) round: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct Undo {
    pub(crate) state: &'static str,
    pub(crate) job_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl From<v1::PutDagResponse> for StoredDag {
    fn from(wire: v1::PutDagResponse) -> Self {
        let v1::PutDagResponse { name, version, snapshot, uncompensated } = wire;
        Self { name, version, snapshot, uncompensated }
    }
}

impl From<v1::Dag> for Dag {
    fn from(wire: v1::Dag) -> Self {
        Self {
            name: wire.name,
            version: wire.version,
            snapshot: wire.snapshot,
            description: present(wire.description),
            nodes: wire.nodes,
            actor: wire.actor,
            stored_at: time(wire.stored_at_ms).unwrap_or_default(),
            text: present(wire.text),
        }
    }
}

impl From<v1::StartDagResponse> for StartedRun {
    fn from(wire: v1::StartDagResponse) -> Self {
        let v1::StartDagResponse { run_id, dag, version, existing } = wire;
        Self { run_id, dag, version, existing }
    }
}

impl From<v1::ListDagRunsResponse> for Runs {
    fn from(wire: v1::ListDagRunsResponse) -> Self {
        let brief = |run| Run { nodes: None, ..Run::from(run) };
        Self { runs: wire.runs.into_iter().map(brief).collect(), next_cursor: present(wire.next_cursor) }
    }
}

impl From<v1::DagRun> for Run {
    fn from(wire: v1::DagRun) -> Self {
        Self {
            state: wire.state().known().map_or("UNKNOWN", lockgate_core::dag::RunState::as_str),
            run_id: wire.run_id,
            dag: wire.dag,
            dag_version: wire.dag_version,
            actor: wire.actor,
            params: document(&wire.params_json),
            output: document(&wire.output_json),
            error: failure(wire.reason, wire.message),
            began_at: time(wire.began_at_ms).unwrap_or_default(),
            ended_at: wire.ended_at_ms.and_then(time),
            deadline_at: wire.deadline_at_ms.and_then(time),
            tainted: wire.tainted,
            done: wire.done,
            total: wire.total,
            version: wire.version,
            parent_run_id: present(wire.parent_run_id),
            trace_id: present(wire.trace_id),
            nodes: Some(wire.nodes.into_iter().map(Node::from).collect()),
        }
    }
}

impl From<v1::DagNode> for Node {
    fn from(wire: v1::DagNode) -> Self {
        let undo = wire.undo().known().map(|state| Undo {
            state: state.as_str(),
            job_id: wire.undo_job_id.clone(),
            message: present(wire.undo_message.clone()),
        });
        Self {
            state: wire.state().known().map_or("UNKNOWN", lockgate_core::dag::NodeState::as_str),
            name: wire.name,
            item: wire.item,
            needs: wire.needs,
            kind: wire.kind,
            topic: present(wire.topic),
            job_id: present(wire.job_id),
            child_run_id: present(wire.child_run_id),
            began_at: wire.began_at_ms.and_then(time),
            ended_at: wire.ended_at_ms.and_then(time),
            wakes_at: wire.wakes_at_ms.and_then(time),
            error: failure(wire.reason, wire.message),
            output: document(&wire.output_json),
            items: wire.items,
            undo,
            tainted: wire.tainted,
            done_late: wire.done_late,
            memo_job_id: present(wire.memo_job_id),
            waits_for_worker_until: wire.waits_for_worker_until_ms.and_then(time),
            round: wire.round,
        }
    }
}

fn failure(reason: String, message: String) -> Option<RunError> {
    present(reason).map(|reason| RunError { reason, message })
}
