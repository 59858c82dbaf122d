//! Definitions of workflows.

use lockgate_proto::v1;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::present;
use crate::time::Time;

#[derive(Debug, Serialize, ToSchema)]
pub struct StoredDag {
    pub name: String,
    pub version: u32,
    pub snapshot: String,
    /// Nodes that do work and name no compensation.
    pub uncompensated: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DagList)]
pub struct Dags {
    pub dags: Vec<Dag>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Dag {
    pub name: String,
    pub version: u32,
    pub snapshot: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub nodes: u32,
    pub actor: String,
    pub stored_at: Time,
    /// Only of one DAG, not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DagBody {
    pub text: String,
    /// Named in errors.
    pub file: Option<String>,
}

impl From<v1::PutDagResponse> for StoredDag {
    fn from(wire: v1::PutDagResponse) -> Self {
        let v1::PutDagResponse { name, version, snapshot, uncompensated } = wire;
        Self { name, version, snapshot, uncompensated }
    }
}

impl From<v1::ListDaGsResponse> for Dags {
    fn from(wire: v1::ListDaGsResponse) -> Self {
        Self { dags: wire.dags.into_iter().map(Dag::from).collect() }
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
            stored_at: Time::from_millis(wire.stored_at_ms),
            text: present(wire.text),
        }
    }
}
