//! Looking at jobs.

use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::{AttemptSummary, DeadLetter, Job, attempts};
use lockgate_core::request::{Caller, Json};
use lockgate_ports::{DeadLetterQuery, JobQuery, Listing, LogLine};

use crate::edge::Progress;
use crate::error::ApiError;
use crate::{Engine, Inner};

/// Everything about one job.
#[derive(Clone, Debug)]
pub struct JobView {
    pub job: Job,
    pub attempts: Vec<AttemptSummary>,
    pub result: Option<Json>,
    pub progress: Option<Progress>,
}

/// Most entries of one page.
const PAGE_MAX: usize = 1_000;
/// Most log lines of one answer.
const LOGS_MAX: usize = 1_000;

impl Engine {
    pub async fn job(&self, caller: &Caller, id: &JobId) -> Result<JobView, ApiError> {
        let detail = self.inner.ports.store.detail(id).await?.filter(|d| d.job.request.tenant == caller.tenant);
        let detail = detail.ok_or_else(|| ApiError::NotFound(id.clone()))?;
        Ok(JobView {
            attempts: attempts(&detail.events),
            progress: self.inner.edge.progress(&detail.job),
            result: detail.result.filter(|_| detail.job.result_is_out()),
            job: detail.job,
        })
    }

    pub async fn jobs(&self, query: JobQuery) -> Result<Listing<Job>, ApiError> {
        check_limit(query.limit)?;
        Ok(self.inner.ports.store.list(query).await?)
    }

    pub async fn dead_letters(&self, query: DeadLetterQuery) -> Result<Listing<DeadLetter>, ApiError> {
        check_limit(query.limit)?;
        Ok(self.inner.ports.store.dead_letters(query).await?)
    }

    pub async fn logs(&self, caller: &Caller, id: &JobId) -> Result<Vec<LogLine>, ApiError> {
        self.inner.find(caller, id).await?;
        Ok(self.inner.ports.store.logs(id, LOGS_MAX).await?)
    }
}

pub(super) fn check_limit(limit: usize) -> Result<(), ApiError> {
    if (1..=PAGE_MAX).contains(&limit) {
        return Ok(());
    }
    Err(ApiError::invalid("limit", format_args!("must be between 1 and {PAGE_MAX}")))
}

impl Inner {
    /// The caller's own job; another tenant's does not exist for it.
    pub(super) async fn find(&self, caller: &Caller, id: &JobId) -> Result<Arc<Job>, ApiError> {
        let found = self.ports.store.load(std::slice::from_ref(id)).await?.pop().flatten();
        let found = found.filter(|job| job.request.tenant == caller.tenant);
        found.map(Arc::new).ok_or_else(|| ApiError::NotFound(id.clone()))
    }
}
