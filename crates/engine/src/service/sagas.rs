//! Workflows of plain jobs, where jobs come in: closed is closed.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::dag::RunHead;
use lockgate_core::dag::saga::JOBS_MAX;
use lockgate_core::ids::RunId;
use lockgate_core::job::{Illegal, Job};
use lockgate_core::request::JobRequest;
use lockgate_ports::StoreError;

use super::submit::{CheckedJob, RefusedJob};
use crate::Inner;
use crate::error::ApiError;

/// Each round in which a saga is not done hearing, somebody else took a step of it.
const ROUNDS_MAX: usize = 16;

impl Inner {
    /// Has a saga hear all there is to hear, here and now: whoever decides something by its rows must not miss what its jobs
    /// have done already.
    pub(super) async fn hear_all(&self, id: &RunId) -> Result<(), ApiError> {
        for _ in 0..ROUNDS_MAX {
            let before = self.ports.store.unreadable().rows;
            if self.ports.store.news(std::slice::from_ref(id), 1).await?.is_empty() {
                if self.ports.store.unreadable().rows == before {
                    return Ok(());
                }
                // What it did would be forgotten.
                return Err(ApiError::Unavailable(
                    "a job of the workflow cannot be read by this version of Lockgate".into(),
                ));
            }
            self.steps_once(vec![id.clone()]).await?;
        }
        Err(ApiError::Unavailable("the workflow keeps changing; try again".into()))
    }

    /// Refuses new jobs of workflows that are closed or full, and returns them by their places. One that gets past because it
    /// is closed right now is cancelled by the saga, or undone. Without a workflow nothing is asked.
    pub(super) async fn refuse_closed(&self, checked: &mut [CheckedJob]) -> Result<Vec<RefusedJob>, ApiError> {
        let sagas: BTreeSet<RunId> = checked.iter().flatten().filter_map(|(request, _)| saga_of(request)).collect();
        let mut refused = Vec::new();
        if sagas.is_empty() {
            return Ok(refused);
        }
        let heads = self.saga_heads(sagas).await?;
        for (place, job) in checked.iter_mut().enumerate() {
            let Ok((request, _)) = job else { continue };
            let Some(head) = saga_of(request).and_then(|saga| heads.get(&saga)) else { continue };
            let error = if head.closing.is_some() {
                ApiError::State(Illegal::ClosedSaga(head.dag.name.clone()))
            } else if head.total >= JOBS_MAX {
                ApiError::invalid("workflow_id", format_args!("has {JOBS_MAX} jobs already, which is the most"))
            } else {
                continue;
            };
            if let Ok(request) = std::mem::replace(job, Err(error)) {
                refused.push((place, request));
            }
        }
        Ok(refused)
    }

    /// Of these jobs, those whose workflow takes them back to life. Before that their sagas hear how they ended: a new life
    /// must not make anybody forget what the one before did.
    pub(super) async fn revivable(&self, jobs: Vec<Job>) -> Result<Vec<Result<Job, Illegal>>, ApiError> {
        let sagas: BTreeSet<RunId> = jobs.iter().filter_map(|job| saga_of(&job.request)).collect();
        for saga in &sagas {
            self.hear_all(saga).await?;
        }
        self.in_open_sagas(jobs).await
    }

    /// The same by what their sagas have heard so far, for who only asks.
    pub(super) async fn in_open_sagas(&self, jobs: Vec<Job>) -> Result<Vec<Result<Job, Illegal>>, ApiError> {
        let sagas: BTreeSet<RunId> = jobs.iter().filter_map(|job| saga_of(&job.request)).collect();
        let heads = self.saga_heads(sagas).await?;
        let open = |job: Job| match saga_of(&job.request).and_then(|saga| heads.get(&saga)) {
            Some(head) if head.closing.is_some() => Err(Illegal::ClosedSaga(head.dag.name.clone())),
            _ => Ok(job),
        };
        Ok(jobs.into_iter().map(open).collect())
    }

    async fn saga_heads(&self, sagas: BTreeSet<RunId>) -> Result<BTreeMap<RunId, RunHead>, StoreError> {
        let mut heads = BTreeMap::new();
        for saga in sagas {
            if let Some(run) = self.ports.store.run_since(&saga, i64::MAX).await? {
                heads.insert(saga, run.head);
            }
        }
        Ok(heads)
    }

    /// The saga of a plain job, if it is closed.
    pub(super) async fn closed_saga(&self, job: &Job) -> Option<RunHead> {
        let saga = saga_of(&job.request)?;
        // Whoever asks why still gets the rest of the answer.
        let run = self.ports.store.run_since(&saga, i64::MAX).await.ok().flatten()?;
        Some(run.head).filter(|head| head.closing.is_some())
    }
}

/// The saga that a plain job is part of.
fn saga_of(request: &JobRequest) -> Option<RunId> {
    let part = request.run.as_ref().filter(|part| !part.undo && part.run.is_saga())?;
    Some(part.run.clone())
}
