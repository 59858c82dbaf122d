//! The kernel's questions as a service: for schedulers elsewhere, for people, for running attempts.

use std::sync::Arc;

use lockgate_core::ids::{AttemptToken, JobId};
use lockgate_core::job::{Action, Illegal, Input, Job};
use lockgate_core::output::OutputVerdict;
use lockgate_core::policy::{Explanation, InputPolicy, Policy};
use lockgate_core::request::{Caller, JobRequest};
use lockgate_core::verdict::{Judgement, Verdict};
use lockgate_ports::{BreakerView, OutputContent};

use super::policy::load;
use crate::Engine;
use crate::error::ApiError;

/// Jobs in memory at once; each may have a payload of a mebibyte.
const STORED_AT_ONCE: usize = 64;

impl Engine {
    /// Verdicts in the order asked. Each asks for a real attempt: velocity counts it.
    pub async fn check(&self, requests: &[Arc<JobRequest>]) -> Result<Vec<Arc<Verdict>>, ApiError> {
        let decided = |judgement| match judgement {
            Judgement::Decided(verdict) => Ok(verdict),
            Judgement::Unavailable(why) => Err(why.map_or_else(unavailable, |why| ApiError::Unavailable((&*why).into()))),
        };
        self.inner.governed().await;
        self.inner.ports.kernel.judge(requests).await.into_iter().map(decided).collect()
    }

    /// Why a request would get the verdict it gets. Counts nothing.
    pub async fn explain_policy(&self, request: &JobRequest) -> Result<Explanation, ApiError> {
        self.inner.governed().await;
        self.inner.ports.kernel.explain(request).await.ok_or_else(unavailable)
    }

    /// What another policy would say. Counts nothing.
    pub async fn simulate_policy(
        &self,
        file: &str,
        text: &str,
        requests: &[Arc<JobRequest>],
    ) -> Result<Vec<Arc<Verdict>>, ApiError> {
        let policy: Policy = load(file, text)?;
        Ok(requests.iter().map(|request| self.inner.ports.kernel.simulate(&policy, request)).collect())
    }

    /// What another policy would say about jobs of the caller as they are stored. Those that are gone are left out.
    pub async fn simulate_stored(
        &self,
        caller: &Caller,
        file: &str,
        text: &str,
        ids: &[JobId],
    ) -> Result<Vec<(Job, Arc<Verdict>)>, ApiError> {
        let policy: Policy = load(file, text)?;
        let mut judged = Vec::with_capacity(ids.len());
        for ids in ids.chunks(STORED_AT_ONCE) {
            let jobs = self.inner.ports.store.load(ids).await?.into_iter().flatten();
            let own = jobs.filter(|job| job.request.tenant == caller.tenant);
            judged.extend(own.map(|mut job| {
                let verdict = self.inner.ports.kernel.simulate(&policy, &job.request);
                job.hide();
                (job, verdict)
            }));
        }
        Ok(judged)
    }

    /// What the output policy says about a result.
    pub async fn check_output(&self, content: &OutputContent) -> Result<OutputVerdict, ApiError> {
        self.inner.ports.kernel.scan(content).await.ok_or_else(unavailable)
    }

    /// A running attempt asks whether it may do something; the verdict is recorded with it. Without a verdict it may not.
    pub async fn check_action(
        &self,
        caller: &Caller,
        id: &JobId,
        token: AttemptToken,
        action: Action,
    ) -> Result<Arc<Verdict>, ApiError> {
        let job = self.inner.find(caller, id).await?;
        // Before anything is judged: a stranger's question must not count in a window.
        if job.holder().is_none() || job.life.attempt.token != token {
            return Err(ApiError::State(Illegal::Superseded));
        }
        let asked = Arc::new(action.request(&job.request));
        let verdict = self.check(std::slice::from_ref(&asked)).await?.pop().ok_or_else(unavailable)?;
        // What is recorded passes the output rules like any text of an attempt.
        let action = Action { value: self.inner.ports.kernel.clean(&job.request, action.value.clone()), ..action };
        let input = Input::Checked { token, action, verdict: verdict.clone() };
        self.inner.clone().drive_one(caller, job, input).await?;
        Ok(verdict)
    }

    /// What the policy in force says about jobs that nobody can judge.
    pub fn input_policy(&self) -> InputPolicy {
        self.inner.ports.kernel.input_policy()
    }

    pub fn breakers(&self) -> Vec<BreakerView> {
        self.inner.ports.kernel.breakers()
    }
}

fn unavailable() -> ApiError {
    ApiError::Unavailable("the safety kernel did not answer; ask again".into())
}
