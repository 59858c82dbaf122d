//! Discard: an operator says that a dead letter is not to be replayed.

use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::{DeadLetter, Illegal, Input, Job, JobState};
use lockgate_core::request::Caller;
use lockgate_ports::{DeadLetterQuery, JobQuery, Listing};

use super::read::{check_limit, check_reach};
use crate::Engine;
use crate::error::ApiError;

impl Engine {
    pub async fn discard(&self, caller: &Caller, id: &JobId, reason: Arc<str>) -> Result<JobState, ApiError> {
        if reason.trim().is_empty() {
            return Err(ApiError::invalid("reason", "must say why; the audit trail keeps it"));
        }
        let job = self.inner.find(caller, id).await?;
        let state = job.state();
        let input = Input::Discard { actor: caller.actor.clone(), reason };
        match self.inner.clone().drive_one(caller, job, input).await {
            // A call that is repeated because its answer was lost asks for what has happened.
            Err(ApiError::State(Illegal::Discarded(by))) if by == caller.actor => Ok(state),
            driven => Ok(driven?.state()),
        }
    }

    /// Dead letters that were discarded, read off their jobs. A page can be shorter than its limit, or empty, and go on.
    pub async fn discarded_letters(&self, caller: &Caller, query: DeadLetterQuery) -> Result<Listing<DeadLetter>, ApiError> {
        check_limit(query.limit)?;
        check_reach(caller, query.tenant.as_ref())?;
        let DeadLetterQuery { tenant, topic, priority, reason, labels, cursor, limit } = query;
        let jobs = JobQuery { tenant, topic, labels, cursor, limit, discarded: true, ..JobQuery::default() };
        let jobs = self.inner.ports.store.list(jobs).await?;
        let fits = |letter: &DeadLetter| {
            priority.is_none_or(|priority| priority == letter.priority)
                && reason.is_none_or(|reason| reason == letter.reason)
        };
        let items = jobs.items.iter().filter_map(Job::dead_letter).filter(fits).collect();
        Ok(Listing { items, next: jobs.next })
    }
}
