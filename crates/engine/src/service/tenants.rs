//! Tenants: what they have, and forgetting one.

use std::sync::Arc;

use lockgate_core::audit::AuditAction;
use lockgate_core::dag::RunState;
use lockgate_core::ids::TenantId;
use lockgate_core::job::JobState;
use lockgate_core::quotas::Quota;
use lockgate_core::request::Caller;
use lockgate_ports::{Erased, JobQuery, RunQuery, Usage};

use super::read::check_limit;
use super::{RunOrder, to_the_end};
use crate::Engine;
use crate::error::ApiError;

/// One tenant.
#[derive(Clone, Debug)]
pub struct TenantView {
    pub name: TenantId,
    pub usage: Usage,
    pub quota: Quota,
}

/// One step of forgetting a tenant.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErasedPart {
    /// Jobs, runs and schedules that had not ended.
    pub ended: u64,
    pub erased: Erased,
}

/// Most of each kind that one step ends or deletes: it must end within a client's patience.
const STEP: usize = 500;
const FORGOTTEN: &str = "the tenant is erased";

impl Engine {
    /// Tenants by name; only their own for those who see no others.
    pub async fn tenants(
        &self,
        caller: &Caller,
        after: Option<&TenantId>,
        limit: usize,
    ) -> Result<Vec<TenantView>, ApiError> {
        check_limit(limit)?;
        let store = &self.inner.ports.store;
        let known = if caller.sees_everyone {
            store.tenants(after, limit).await?
        } else if after.is_some_and(|after| *after >= caller.tenant) {
            Vec::new()
        } else {
            let usage = store.usage(std::slice::from_ref(&caller.tenant)).await?;
            vec![(caller.tenant.clone(), usage.first().copied().unwrap_or_default())]
        };
        let quotas = self.inner.config.quotas();
        let view = |(name, usage)| TenantView { quota: *quotas.of(&name), name, usage };
        Ok(known.into_iter().map(view).collect())
    }

    /// Ends a part of what a tenant has under way and deletes a part of what has ended. Repeated until it is done; whoever
    /// submits for the tenant meanwhile makes it longer.
    pub async fn erase_tenant(&self, caller: &Caller, tenant: &TenantId, confirm: &str) -> Result<ErasedPart, ApiError> {
        if confirm != tenant.as_str() {
            return Err(ApiError::invalid("confirm", "must be the name of the tenant: nothing of it comes back"));
        }
        let actor = Caller { tenant: tenant.clone(), ..caller.clone() };
        let ended = self.end_schedules(&actor).await? + self.end_runs(&actor).await? + self.end_jobs(&actor).await?;
        let audit = self.inner.entry(caller, AuditAction::TenantErased, &Arc::from(tenant.as_str()), &serde_json::json!({}));
        let (inner, tenant) = (self.inner.clone(), tenant.clone());
        let erased = to_the_end(async move { inner.ports.store.erase(&tenant, STEP, &audit).await }).await??;
        Ok(ErasedPart { ended, erased })
    }

    async fn end_schedules(&self, actor: &Caller) -> Result<u64, ApiError> {
        let mut ended = 0;
        for view in self.schedules(actor, None, STEP).await? {
            self.remove_schedule(actor, &view.schedule.name).await?;
            ended += 1;
        }
        Ok(ended)
    }

    /// Nothing is undone: what would undo it is forgotten too.
    async fn end_runs(&self, actor: &Caller) -> Result<u64, ApiError> {
        let mut ended = 0;
        for state in RunState::ALL.into_iter().filter(|state| !state.is_over()) {
            let query =
                RunQuery { tenant: Some(actor.tenant.clone()), state: Some(state), limit: STEP, ..RunQuery::default() };
            for head in self.inner.ports.store.list_runs(query).await?.items {
                let order = RunOrder::Cancel { compensate: false, note: Some(FORGOTTEN.into()) };
                ended += u64::from(self.order_run(actor, &head.id, order).await.is_ok());
            }
        }
        Ok(ended)
    }

    async fn end_jobs(&self, actor: &Caller) -> Result<u64, ApiError> {
        let mut ended = 0;
        for state in JobState::ALL.into_iter().filter(|state| !state.is_terminal()) {
            let query =
                JobQuery { tenant: Some(actor.tenant.clone()), state: Some(state), limit: STEP, ..JobQuery::default() };
            for job in self.inner.ports.store.list(query).await?.items {
                // One that ended by itself meanwhile is as good.
                ended += u64::from(self.cancel(actor, &job.request.job_id, Some(FORGOTTEN.into())).await.is_ok());
            }
        }
        Ok(ended)
    }
}
