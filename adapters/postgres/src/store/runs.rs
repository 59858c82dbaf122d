//! Implements the Store's calls on runs.

use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::dag::{Run, RunHead};
use lockgate_core::ids::{JobSeq, RunId, TenantId};
use lockgate_core::job::Earlier;
use lockgate_core::request::RequestHash;
use lockgate_ports::store::{DagRow, MemoKey, NewDag, NewsRow, RunChange, RunQuery, RunRefusal, RunStore};
use lockgate_ports::{Listing, StoreError};

use super::PostgresStore;
use crate::encoded_change::EncodedChange;
use crate::encoded_run_step::EncodedRunStep;
use crate::error::StatementError;
use crate::pool::AccessMode;
use crate::writes::millis;
use crate::{reads, writes};

#[async_trait]
impl RunStore for PostgresStore {
    async fn put_dag(&self, dag: NewDag) -> Result<DagRow, StoreError> {
        ask!(self, Writes, conn => writes::put_dag(conn, self.now(), self.begin(), &dag))
    }

    async fn dag(&self, tenant: &TenantId, name: &str, version: Option<u32>) -> Result<Option<DagRow>, StoreError> {
        ask!(self, Reads, conn => reads::dag(conn, tenant, name, version))
    }

    async fn dags(&self, tenant: &TenantId, after: Option<&str>, limit: usize) -> Result<Vec<DagRow>, StoreError> {
        ask!(self, Reads, conn => reads::dags(conn, tenant, after, limit))
    }

    async fn advance(&self, changes: Vec<RunChange>) -> Result<Vec<Result<Vec<JobSeq>, RunRefusal>>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let sheets = changes
            .into_iter()
            .map(|change| EncodedRunStep::fill(change, EncodedChange::fill))
            .collect::<Result<Vec<EncodedRunStep>, StatementError>>();
        self.writer.advance(sheets.map_err(|fault| fault.before_commit())?).await
    }

    async fn load_runs(&self, ids: &[RunId]) -> Result<Vec<Option<Run>>, StoreError> {
        self.fenced().await?;
        ask!(self, Reads, conn => reads::load_runs(conn, ids, 0))
    }

    async fn run_since(&self, id: &RunId, version: i64) -> Result<Option<Run>, StoreError> {
        self.fenced().await?;
        let found = ask!(self, Reads, conn => reads::load_runs(conn, std::slice::from_ref(id), version))?;
        Ok(found.into_iter().next().flatten())
    }

    async fn run_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<(RunId, RequestHash)>, StoreError> {
        ask!(self, Reads, conn => reads::run_of_key(conn, self.now(), tenant, key))
    }

    async fn list_runs(&self, query: RunQuery) -> Result<Listing<RunHead>, StoreError> {
        ask!(self, Reads, conn => reads::list_runs(conn, &self.unreadable, &query))
    }

    async fn news(&self, runs: &[RunId], limit: usize) -> Result<Vec<NewsRow>, StoreError> {
        ask!(self, Reads, conn => reads::news(conn, &self.unreadable, runs, limit))
    }

    async fn unheard(&self, age: Duration, limit: usize) -> Result<Vec<RunId>, StoreError> {
        ask!(self, Reads, conn => reads::unheard(conn, self.now(), millis(age), limit))
    }

    async fn waking(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        ask!(self, Reads, conn => reads::waking(conn, self.now(), limit))
    }

    async fn memos(&self, keys: &[MemoKey]) -> Result<Vec<Option<Earlier>>, StoreError> {
        ask!(self, Reads, conn => reads::memos(conn, &self.unreadable, self.now(), keys))
    }

    async fn live_runs(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
        ask!(self, Reads, conn => reads::live_runs(conn, after, limit))
    }
}
