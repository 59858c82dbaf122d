//! What has ended of what schedules started, and what has to.

use std::sync::Arc;

use lockgate_core::audit::AuditAction;
use lockgate_core::dag::plan::RunCommand;
use lockgate_core::ids::{JobId, RunId};
use lockgate_core::job::{Input, Job};
use lockgate_core::request::Caller;
use lockgate_core::schedule::{Schedule, ScheduleNews, Target};
use lockgate_ports::StoreError;

use crate::Inner;
use crate::damage::ReadRow;
use crate::error::ApiError;

const REPLACED: &str = "the next time of its schedule replaces it";
/// Runs read at once: each comes with its nodes.
const RUNS_MAX: usize = 64;

impl Inner {
    /// In batches, for all of them together. What was there and is gone has ended.
    pub(super) async fn look_for_ends(&self, schedules: &[Schedule], news: &mut ScheduleNews) -> Result<(), StoreError> {
        let (jobs, runs) = by_kind(schedules.iter().flat_map(Schedule::at_work));
        for some in jobs.chunks(self.settings.batch_max) {
            let found = self.load_each(some).await?;
            let ended = some.iter().zip(found).filter(|(_, job)| has_ended(job, |job| job.state().is_terminal()));
            news.ended.extend(ended.map(|(id, _)| Target::Job(id.clone())));
        }
        for some in runs.chunks(RUNS_MAX) {
            let found = self.load_each_run(some).await?;
            let ended = some.iter().zip(found).filter(|(_, run)| has_ended(run, |run| run.head.state.is_over()));
            news.ended.extend(ended.map(|(id, _)| Target::Run(id.clone())));
        }
        Ok(())
    }

    /// As if whoever applied the schedule had cancelled them. What cannot be stopped now is told again by the next turn.
    pub(super) async fn stop_targets(&self, stop: Vec<(Caller, Vec<Target>)>) {
        let mut jobs = Vec::new();
        for (caller, targets) in stop {
            for target in targets {
                match target {
                    Target::Job(id) => jobs.push(id),
                    Target::Run(id) => self.stop_run(&caller, &id).await,
                }
            }
        }
        if let Err(error) = self.cancel_jobs(jobs).await {
            tracing::warn!(%error, "cancelling replaced jobs of a schedule failed; trying again with its next turn");
        }
    }

    async fn cancel_jobs(&self, ids: Vec<JobId>) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let found = self.load_each(&ids).await?.into_iter().filter_map(ReadRow::there);
        let cancel = |job: Job| {
            let actor = job.request.actor.clone();
            (Arc::new(job), Input::Cancel { actor, note: Some(REPLACED.into()) })
        };
        self.drive(found.filter(|job| !job.state().is_terminal()).map(cancel).collect()).await?;
        Ok(())
    }

    async fn stop_run(&self, caller: &Caller, id: &RunId) {
        let detail = serde_json::json!({ "compensate": false, "note": REPLACED });
        let audit = vec![self.entry(caller, AuditAction::RunCancelled, &id.as_str().into(), &detail)];
        let order = RunCommand::Cancel { actor: caller.actor.clone(), note: Some(REPLACED.into()), compensate: false };
        match self.order(id, order, audit).await {
            // Over already, or on its way there.
            Ok(_) | Err(ApiError::NoSuch { .. } | ApiError::RunState(_)) => {}
            Err(error) => tracing::warn!(run_id = %id, %error, "cancelling a replaced run of a schedule failed"),
        }
    }
}

/// What cannot be read may still be at work.
fn has_ended<T>(found: &ReadRow<T>, is_over: impl FnOnce(&T) -> bool) -> bool {
    match found {
        ReadRow::There(found) => is_over(found),
        ReadRow::Gone => true,
        ReadRow::Unreadable => false,
    }
}

fn by_kind<'a>(targets: impl Iterator<Item = &'a Target>) -> (Vec<JobId>, Vec<RunId>) {
    let (mut jobs, mut runs) = (Vec::new(), Vec::new());
    for target in targets {
        match target {
            Target::Job(id) => jobs.push(id.clone()),
            Target::Run(id) => runs.push(id.clone()),
        }
    }
    (jobs, runs)
}
