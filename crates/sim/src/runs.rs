//! Runs on the Store as one process sees it.

use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::dag::{Run, RunHead};
use lockgate_core::ids::{JobSeq, RunId, TenantId};
use lockgate_core::job::Earlier;
use lockgate_core::request::RequestHash;
use lockgate_ports::{DagRow, Listing, MemoKey, NewDag, NewsRow, RunChange, RunQuery, RunRefusal, RunStore, StoreError};

use crate::store::FaultyStore;

#[async_trait]
impl RunStore for FaultyStore {
    async fn put_dag(&self, dag: NewDag) -> Result<DagRow, StoreError> {
        self.before().await?;
        let row = self.disk.put_dag(dag).await;
        self.after().await?;
        row
    }

    async fn dag(&self, tenant: &TenantId, name: &str, version: Option<u32>) -> Result<Option<DagRow>, StoreError> {
        self.before().await?;
        self.disk.dag(tenant, name, version).await
    }

    async fn dags(&self, tenant: &TenantId, after: Option<&str>, limit: usize) -> Result<Vec<DagRow>, StoreError> {
        self.before().await?;
        self.disk.dags(tenant, after, limit).await
    }

    async fn advance(&self, changes: Vec<RunChange>) -> Result<Vec<Result<Vec<JobSeq>, RunRefusal>>, StoreError> {
        self.before().await?;
        let outcome = self.witness.advance(self.planted.steps(changes)).await;
        self.after().await?;
        outcome
    }

    async fn load_runs(&self, ids: &[RunId]) -> Result<Vec<Option<Run>>, StoreError> {
        self.before().await?;
        let runs = self.disk.load_runs(ids).await;
        self.arrive_late().await;
        runs
    }

    async fn run_since(&self, id: &RunId, version: i64) -> Result<Option<Run>, StoreError> {
        self.before().await?;
        self.disk.run_since(id, version).await
    }

    async fn run_of_key(&self, tenant: &TenantId, key: &str) -> Result<Option<(RunId, RequestHash)>, StoreError> {
        self.before().await?;
        self.disk.run_of_key(tenant, key).await
    }

    async fn list_runs(&self, query: RunQuery) -> Result<Listing<RunHead>, StoreError> {
        self.before().await?;
        self.disk.list_runs(query).await
    }

    async fn news(&self, runs: &[RunId], limit: usize) -> Result<Vec<NewsRow>, StoreError> {
        self.before().await?;
        let news = self.disk.news(runs, limit).await;
        self.arrive_late().await;
        news.map(|news| self.planted.news(news))
    }

    async fn unheard(&self, age: Duration, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.before().await?;
        self.disk.unheard(age, limit).await
    }

    async fn waking(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.before().await?;
        self.disk.waking(limit).await
    }

    async fn memos(&self, keys: &[MemoKey]) -> Result<Vec<Option<Earlier>>, StoreError> {
        self.before().await?;
        self.disk.memos(keys).await
    }

    async fn live_runs(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.before().await?;
        self.disk.live_runs(after, limit).await
    }
}
