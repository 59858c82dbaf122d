//! Submit: check, admit, judge, commit, acknowledge.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::{JobState, Transition, submit};
use lockgate_core::limits::BATCH_JOBS_MAX;
use lockgate_core::request::{Caller, JobRequest, NewJob, RequestHash};
use lockgate_ports::{ChangeError, DuplicateJob, Mint};

use super::to_the_end;
use crate::admission::Admitted;
use crate::error::ApiError;
use crate::traces::{Lap, SubmitTimes};
use crate::{Engine, Inner};

/// An acknowledged job: it survives a crash from here on.
#[derive(Clone, Debug)]
pub struct Submitted {
    pub job_id: JobId,
    pub state: JobState,
    /// The id or key already had this very job.
    pub existing: bool,
}

pub(super) type CheckedJob = Result<(Arc<JobRequest>, RequestHash), ApiError>;
/// What was good but for the place it would have taken, and where it stands in its batch.
pub(super) type RefusedJob = (usize, (Arc<JobRequest>, RequestHash));

impl Engine {
    /// Each job is accepted or refused alone; answers in the order sent. The outer error refuses the whole batch.
    pub async fn submit(&self, caller: &Caller, jobs: Vec<NewJob>) -> Result<Vec<Result<Submitted, ApiError>>, ApiError> {
        if jobs.is_empty() {
            return Err(ApiError::invalid("jobs", "must not be empty"));
        }
        if jobs.len() > BATCH_JOBS_MAX {
            return Err(ApiError::invalid("jobs", format_args!("must have at most {BATCH_JOBS_MAX} entries")));
        }
        let inner = &self.inner;
        inner.refuse_if_damaged()?;
        let now = inner.ports.clock.now();
        let began = inner.traces.begin();
        let check = |job: NewJob| -> CheckedJob {
            let request = JobRequest::check(job, caller, || inner.ports.entropy.job_id(now)).map_err(ApiError::Invalid)?;
            let hash = request.hash();
            Ok((Arc::new(request), hash))
        };
        let mut checked: Vec<CheckedJob> = jobs.into_iter().map(check).collect();
        let mut refused = inner.refuse_closed(&mut checked).await?;
        let Admitted { ticket, refused: no_room } = inner.admit(caller, &mut checked, |(request, _)| request).await?;
        refused.extend(no_room);
        let (transitions, verdict) = inner.births(&checked).await;
        let entry = SubmitTimes { began, verdict };
        let owned = inner.clone();
        let committed = to_the_end(async move {
            let _until_answered = ticket;
            owned.commit_new(transitions, entry).await
        })
        .await?;
        let mut committed = committed?.into_iter();
        // After the commit: what they repeat may have come in with the same batch.
        let mut known = inner.known_already(caller, &checked, refused).await;
        Ok(checked
            .into_iter()
            .enumerate()
            .map(|(place, checked)| {
                if let Some(answer) = known.remove(&place) {
                    return answer;
                }
                let (request, hash) = checked?;
                match committed.next() {
                    Some(Ok(job)) => Ok(Submitted { job_id: request.job_id.clone(), state: job.state(), existing: false }),
                    Some(Err(ChangeError::Taken(taken))) => same_or_conflict(&request, hash, &taken),
                    Some(Err(ChangeError::Refused(why))) => {
                        Err(ApiError::refused(format_args!("job {}", request.job_id), &why))
                    }
                    // Only a commit of unknown outcome that turned out not to have happened.
                    Some(Err(ChangeError::Conflict)) | None => {
                        Err(ApiError::Unavailable("not stored; send it again".into()))
                    }
                }
            })
            .collect())
    }
}

impl Inner {
    /// Of those for which there is no room, or whose workflow is closed: whoever sends again what it sent before gets its job back. Nobody else is looked
    /// for, so what is let in pays nothing. By place in the batch; the others stay refused, and are counted.
    async fn known_already(
        &self,
        caller: &Caller,
        checked: &[CheckedJob],
        refused: Vec<RefusedJob>,
    ) -> BTreeMap<usize, Result<Submitted, ApiError>> {
        let mut requests: Vec<Arc<JobRequest>> =
            refused.iter().map(|(_, (request, _))| request).filter(|request| request.is_named()).cloned().collect();
        requests.truncate(self.repeats_looked_for(caller, requests.len()));
        // While the Store does not answer, they are told to come back as the others are.
        let taken = if requests.is_empty() { Ok(Vec::new()) } else { self.ports.store.find_duplicates(&requests).await };
        let mut taken = taken.unwrap_or_default().into_iter();
        let mut known = BTreeMap::new();
        for (place, (request, hash)) in refused {
            match request.is_named().then(|| taken.next()).flatten().flatten() {
                Some(owner) => _ = known.insert(place, same_or_conflict(&request, hash, &owner)),
                None => {
                    if let Some(Err(ApiError::Limited(limited))) = checked.get(place) {
                        self.metrics.admission.refused(limited.by);
                    }
                }
            }
        }
        known
    }

    pub(super) async fn births(&self, checked: &[CheckedJob]) -> (Vec<Transition>, Lap) {
        let good: Vec<_> = checked.iter().flatten().collect();
        let requests: Vec<_> = good.iter().map(|(request, _)| request.clone()).collect();
        let (judgements, verdict) = self.judge(&requests).await;
        let birth = |((request, hash), judgement): (&(Arc<JobRequest>, RequestHash), _)| {
            submit(request.clone(), *hash, &self.env(judgement))
        };
        (good.into_iter().zip(judgements).map(birth).collect(), verdict)
    }
}

/// The same key with the same request is the same job; with another request it is a mistake worth telling.
pub(super) fn same_or_conflict(
    request: &JobRequest,
    hash: RequestHash,
    taken: &DuplicateJob,
) -> Result<Submitted, ApiError> {
    if taken.tenant == request.tenant && taken.hash == hash {
        return Ok(Submitted { job_id: taken.job_id.clone(), state: taken.state, existing: true });
    }
    let what = if taken.by_key { "the idempotency key" } else { "the job id" };
    Err(ApiError::KeyTaken { what, first: taken.job_id.to_string() })
}
