//! Workflows: definitions, and runs of them.

use lockgate_api::run_head;
use lockgate_core::dag::RunHead;
use lockgate_engine::{DagView, StartedRun};
use lockgate_ports::Listing;
use lockgate_proto::v1;

use super::next;

pub(crate) fn stored_dag(view: &DagView) -> v1::PutDagResponse {
    v1::PutDagResponse {
        name: view.row.name.to_string(),
        version: view.row.version,
        snapshot: view.row.snapshot.to_string(),
        uncompensated: view.dag.uncompensated().into_iter().map(str::to_owned).collect(),
    }
}

/// Without their texts.
pub(crate) fn dags(views: &[DagView]) -> v1::ListDaGsResponse {
    let brief = |view| v1::Dag { text: String::new(), ..dag(view) };
    v1::ListDaGsResponse { dags: views.iter().map(brief).collect() }
}

pub(crate) fn dag(view: &DagView) -> v1::Dag {
    let row = &view.row;
    v1::Dag {
        name: row.name.to_string(),
        version: row.version,
        snapshot: row.snapshot.to_string(),
        description: view.dag.description.as_deref().unwrap_or_default().to_owned(),
        text: row.text.to_string(),
        actor: row.actor.to_string(),
        stored_at_ms: row.at.as_millis(),
        nodes: u32::try_from(view.dag.nodes.len()).unwrap_or(u32::MAX),
    }
}

pub(crate) fn started(started: StartedRun) -> v1::StartDagResponse {
    let StartedRun { run, dag, existing } = started;
    v1::StartDagResponse { run_id: run.to_string(), dag: dag.name.to_string(), version: dag.version, existing }
}

pub(crate) fn runs(listing: &Listing<RunHead>) -> v1::ListDagRunsResponse {
    v1::ListDagRunsResponse { runs: listing.items.iter().map(run_head).collect(), next_cursor: next(listing.next) }
}
