//! Definitions: checked, kept under the next version of their name, looked at.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::audit::AuditAction;
use lockgate_core::dag::{Dag, NodeWork};
use lockgate_core::request::{Caller, FieldError};
use lockgate_ports::{DagRow, NewDag};

use super::to_the_end;
use crate::Engine;
use crate::error::ApiError;
use crate::runs::DagKey;

/// A stored version and what it says.
#[derive(Clone, Debug)]
pub struct DagView {
    pub row: Arc<DagRow>,
    pub dag: Arc<Dag>,
}

const DAGS_MAX: usize = 1_000;

impl Engine {
    /// Checks a definition and keeps it. The text of the latest version again is that version.
    pub async fn put_dag(&self, caller: &Caller, file: &str, text: &str) -> Result<DagView, ApiError> {
        let dag = Dag::load(file, text)
            .map_err(|errors| ApiError::Invalid(errors.into_iter().map(|error| FieldError::new("dag", error)).collect()))?;
        let pins = self.pins(caller, &dag).await?;
        let audit =
            self.inner.entry(caller, AuditAction::DagStored, &dag.name, &serde_json::json!({ "snapshot": dag.snapshot }));
        let new = NewDag {
            tenant: caller.tenant.clone(),
            name: dag.name.clone(),
            snapshot: dag.snapshot.clone(),
            text: text.into(),
            actor: caller.actor.clone(),
            pins,
            audit,
        };
        let store = self.inner.ports.store.clone();
        let row = to_the_end(async move { store.put_dag(new).await }).await??;
        self.known(row)
    }

    /// The versions of the DAGs that its nodes start. They are there before it is, so no DAG can come to start itself.
    async fn pins(&self, caller: &Caller, dag: &Dag) -> Result<BTreeMap<Arc<str>, u32>, ApiError> {
        let mut pins = BTreeMap::new();
        for node in &dag.nodes {
            let NodeWork::Dag(sub) = &node.work else { continue };
            if pins.contains_key(&sub.dag) {
                continue;
            }
            let Some(row) = self.inner.ports.store.dag(&caller.tenant, &sub.dag, None).await? else {
                let text =
                    format!("node {:?} starts DAG {:?}, which is not there; apply that one first", node.name, sub.dag);
                return Err(ApiError::invalid("dag", text));
            };
            pins.insert(sub.dag.clone(), row.version);
        }
        Ok(pins)
    }

    /// One version, the latest if none is named.
    pub async fn dag(&self, caller: &Caller, name: &str, version: Option<u32>) -> Result<DagView, ApiError> {
        let row = match version {
            Some(version) => {
                let key = DagKey { tenant: caller.tenant.clone(), name: name.into(), version };
                let known = self.inner.definition(&key).await?;
                return known
                    .map(|known| DagView { row: known.row, dag: known.dag })
                    .ok_or_else(|| ApiError::no_such("version of the DAG", &format_args!("{name}@{version}")));
            }
            None => self.inner.ports.store.dag(&caller.tenant, name, None).await?,
        };
        self.known(row.ok_or_else(|| ApiError::no_such("DAG", name))?)
    }

    /// The latest version of each, by name.
    pub async fn dags(&self, caller: &Caller) -> Result<Vec<DagView>, ApiError> {
        let rows = self.inner.ports.store.dags(&caller.tenant, None, DAGS_MAX).await?;
        rows.into_iter().map(|row| self.known(row)).collect()
    }

    fn known(&self, row: DagRow) -> Result<DagView, ApiError> {
        let known = self.inner.learn(row)?;
        Ok(DagView { row: known.row, dag: known.dag })
    }
}
