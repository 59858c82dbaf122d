//! Looking at jobs.

use std::sync::Arc;

use lockgate_core::ids::{JobId, TenantId};
use lockgate_core::job::{AttemptSummary, DeadLetter, Job, attempts};
use lockgate_core::request::{Caller, Json};
use lockgate_ports::store::LOG_LINES_MAX;
use lockgate_ports::{DeadLetterQuery, JobQuery, KeptLine, Kin, Listing, StoreError};

use crate::error::ApiError;
use crate::{Engine, Inner};
use lockgate_core::edge::AttemptProgress;

/// Everything about one job.
#[derive(Clone, Debug)]
pub struct JobView {
    pub job: Job,
    pub attempts: Vec<AttemptSummary>,
    pub result: Option<Json>,
    pub progress: Option<AttemptProgress>,
    /// Children of this life, if it submitted any.
    pub kin: Option<Kin>,
    /// Payload, environment and result are not for this caller.
    pub hidden: bool,
}

/// Most entries of one page.
const PAGE_MAX: usize = 1_000;

impl Engine {
    pub async fn job(&self, caller: &Caller, id: &JobId) -> Result<JobView, ApiError> {
        let detail = self.inner.ports.store.detail(id).await;
        let detail = detail.map_err(|error| self.inner.unread(|| format!("job {id}"), error))?;
        let detail = detail.filter(|detail| detail.job.request.tenant == caller.tenant);
        let mut detail = detail.ok_or_else(|| ApiError::NotFound(id.clone()))?;
        let kin = self.inner.kin(&detail.job).await?;
        let hidden = !caller.sees_payloads;
        if hidden {
            detail.job.hide();
        }
        Ok(JobView {
            attempts: attempts(&detail.events),
            progress: self.inner.edge.look(|edge| edge.progress(&detail.job)),
            result: detail.result.filter(|_| detail.job.result_is_out() && !hidden),
            job: detail.job,
            kin,
            hidden,
        })
    }

    pub async fn jobs(&self, caller: &Caller, query: JobQuery) -> Result<Listing<Job>, ApiError> {
        check_limit(query.limit)?;
        check_reach(caller, query.tenant.as_ref())?;
        let mut listing = self.inner.ports.store.list(query).await?;
        if !caller.sees_payloads {
            listing.items.iter_mut().for_each(Job::hide);
        }
        Ok(listing)
    }

    pub async fn dead_letters(&self, caller: &Caller, query: DeadLetterQuery) -> Result<Listing<DeadLetter>, ApiError> {
        check_limit(query.limit)?;
        check_reach(caller, query.tenant.as_ref())?;
        Ok(self.inner.ports.store.dead_letters(query).await?)
    }

    /// The last log lines of a job, of those after a number.
    pub async fn logs(&self, caller: &Caller, id: &JobId, after: u64) -> Result<Vec<KeptLine>, ApiError> {
        self.inner.find(caller, id).await?;
        Ok(self.inner.ports.store.logs(id, after, LOG_LINES_MAX).await?)
    }
}

pub(super) fn check_limit(limit: usize) -> Result<(), ApiError> {
    if (1..=PAGE_MAX).contains(&limit) {
        return Ok(());
    }
    Err(ApiError::invalid("limit", format_args!("must be between 1 and {PAGE_MAX}")))
}

/// None is every tenant.
pub(super) fn check_reach(caller: &Caller, tenant: Option<&TenantId>) -> Result<(), ApiError> {
    if caller.sees_everyone || tenant == Some(&caller.tenant) {
        return Ok(());
    }
    Err(ApiError::Forbidden("the credential is for one tenant, and other ones were asked for".into()))
}

impl Inner {
    /// How many children a job has, and how many of them are under way. None if it never submitted any.
    pub(super) async fn kin(&self, job: &Job) -> Result<Option<Kin>, StoreError> {
        if job.life.family.is_none() {
            return Ok(None);
        }
        let lives = [(job.request.job_id.clone(), job.life.no)];
        Ok(self.ports.store.family(&lives).await?.pop())
    }

    /// The caller's own job; another tenant's does not exist for it.
    pub(super) async fn find(&self, caller: &Caller, id: &JobId) -> Result<Arc<Job>, ApiError> {
        let found = self.ports.store.load(std::slice::from_ref(id)).await;
        let found = found.map_err(|error| self.unread(|| format!("job {id}"), error))?.pop().flatten();
        let found = found.filter(|job| job.request.tenant == caller.tenant);
        found.map(Arc::new).ok_or_else(|| ApiError::NotFound(id.clone()))
    }
}
