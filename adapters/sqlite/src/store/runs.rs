//! Implements the Store's calls on runs.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::dag::{Run, RunHead};
use lockgate_core::ids::{JobSeq, RunId, TenantId};
use lockgate_core::job::Earlier;
use lockgate_core::request::RequestHash;
use lockgate_ports::store::{DagRow, MemoKey, NewDag, NewsRow, RunChange, RunQuery, RunRefusal, RunStore};
use lockgate_ports::{Listing, StoreError, in_parts};

use super::SqliteStore;
use crate::encoded_change::EncodedChange;
use crate::encoded_run_step::{self, EncodedRunStep};
use crate::error::StatementError;
use crate::reads;

#[async_trait]
impl RunStore for SqliteStore {
    async fn put_dag(&self, dag: NewDag) -> Result<DagRow, StoreError> {
        self.writer.run(1, move |tx| tx.put_dag(&dag)).await
    }

    async fn dag(&self, tenant: &TenantId, name: &str, version: Option<u32>) -> Result<Option<DagRow>, StoreError> {
        let (tenant, name) = (tenant.clone(), name.to_owned());
        self.readers.run(move |conn| reads::dag(conn, &tenant, &name, version)).await
    }

    async fn dags(&self, tenant: &TenantId, after: Option<&str>, limit: usize) -> Result<Vec<DagRow>, StoreError> {
        let (tenant, after) = (tenant.clone(), after.map(str::to_owned));
        self.readers.run(move |conn| reads::dags(conn, &tenant, after.as_deref(), limit)).await
    }

    async fn advance(&self, changes: Vec<RunChange>) -> Result<Vec<Result<Vec<JobSeq>, RunRefusal>>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let sheets = changes
            .into_iter()
            .map(|change| EncodedRunStep::fill(change, EncodedChange::fill))
            .collect::<Result<Vec<EncodedRunStep>, StatementError>>();
        let sheets = Arc::new(sheets.map_err(|fault| fault.before_commit())?);
        self.admit(sheets.iter().any(|sheet| sheet.head.version == 1))?;
        let advance = |part: Range<usize>| {
            // The caller keeps a reference, so that it and not the writing thread frees the memory.
            let shared = Arc::clone(&sheets);
            let weight = sheets[part.clone()].iter().map(encoded_run_step::weight).sum();
            self.writer.run(weight, move |tx| tx.advance(&shared[part.clone()]))
        };
        in_parts(sheets.len(), advance, |_, why| Err(RunRefusal::Refused(why))).await
    }

    async fn load_runs(&self, ids: &[RunId]) -> Result<Vec<Option<Run>>, StoreError> {
        let ids = ids.to_vec();
        self.readers.run(move |conn| reads::load_runs(conn, &ids)).await
    }

    async fn run_since(&self, id: &RunId, version: i64) -> Result<Option<Run>, StoreError> {
        let id = id.clone();
        self.readers.run(move |conn| reads::run_since(conn, &id, version)).await
    }

    async fn run_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<(RunId, RequestHash)>, StoreError> {
        let (tenant, key, now) = (tenant.clone(), key.to_owned(), self.clock.now());
        self.readers.run(move |conn| reads::run_of_key(conn, &tenant, &key, now)).await
    }

    async fn list_runs(&self, query: RunQuery) -> Result<Listing<RunHead>, StoreError> {
        self.walk(move |conn, unreadable| reads::list_runs(conn, unreadable, &query)).await
    }

    async fn news(&self, runs: &[RunId], limit: usize) -> Result<Vec<NewsRow>, StoreError> {
        let runs = runs.to_vec();
        self.walk(move |conn, unreadable| reads::news(conn, unreadable, &runs, limit)).await
    }

    async fn unheard(&self, age: Duration, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let until = self.clock.now() - age;
        self.readers.run(move |conn| reads::unheard(conn, until, limit)).await
    }

    async fn waking(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let now = self.clock.now();
        self.readers.run(move |conn| reads::waking(conn, now, limit)).await
    }

    async fn memos(&self, keys: &[MemoKey]) -> Result<Vec<Option<Earlier>>, StoreError> {
        let (keys, now) = (keys.to_vec(), self.clock.now());
        self.walk(move |conn, unreadable| keys.iter().map(|key| reads::memo(conn, unreadable, key, now)).collect()).await
    }

    async fn live_runs(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let after = after.cloned();
        self.readers.run(move |conn| reads::live_runs(conn, after.as_ref(), limit)).await
    }
}
