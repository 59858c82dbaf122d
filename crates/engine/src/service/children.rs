//! Children: what a running attempt submits, and how it finds out what became of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::ids::{AttemptToken, JobId, JobSeq};
use lockgate_core::job::{Evidence, Illegal, Input, Job};
use lockgate_core::limits::{BATCH_JOBS_MAX, CHILDREN_MAX};
use lockgate_core::request::{Caller, JobRequest, NewJob, RequestHash};
use lockgate_ports::{ChangeError, ChildJob, ChildQuery, Listing};

use super::submit::{CheckedJob, Submitted, same_or_conflict};
use super::to_the_end;
use crate::admission::{AdmissionTicket, Admitted};
use crate::commit::Undriven;
use crate::error::ApiError;
use crate::traces::{SubmitTimes, TraceStart};
use crate::{Engine, Inner};

/// How often children are inserted again because their parent's row moved under them. Each time means that it did.
const TRIES_MAX: usize = 8;
/// Children of one page, and how many bytes of results and error texts it may have: one call must not carry a gigabyte, and
/// clients of gRPC take no message of more than four mebibytes.
const PAGE_MAX: usize = 1_000;
const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// A child to be submitted.
#[derive(Clone, Debug)]
pub struct NewChild {
    /// Unique among the children of the parent's life.
    pub key: String,
    pub job: NewJob,
}

/// Some of a life's children, in the order in which they were submitted.
#[derive(Clone, Debug)]
pub struct ChildPage {
    pub children: Vec<ChildJob>,
    /// Where the list goes on; None at its end.
    pub next: Option<JobSeq>,
}

type Good = (Arc<JobRequest>, RequestHash);
type ChildAnswers = BTreeMap<usize, Result<Submitted, ApiError>>;

impl Engine {
    /// Submits children of a job under the token of the attempt that runs it. Each is accepted or refused alone; answers in
    /// the order sent. One whose key was used before in this life is the same child.
    pub async fn submit_children(
        &self,
        caller: &Caller,
        parent: &JobId,
        token: AttemptToken,
        children: Vec<NewChild>,
    ) -> Result<Vec<Result<Submitted, ApiError>>, ApiError> {
        if children.is_empty() {
            return Err(ApiError::invalid("children", "must not be empty"));
        }
        if children.len() > BATCH_JOBS_MAX {
            return Err(ApiError::invalid("children", format_args!("must have at most {BATCH_JOBS_MAX} entries")));
        }
        let inner = &self.inner;
        let began = inner.traces.begin();
        let job = inner.held_by(caller, parent, &token).await?;
        let trace = inner.traces.context(&job);
        let check = |child: NewChild| -> CheckedJob {
            let request = JobRequest::child(&job, &child.key, child.job, trace).map_err(ApiError::Invalid)?;
            let hash = request.hash();
            Ok((Arc::new(request), hash))
        };
        let mut checked: Vec<CheckedJob> = children.into_iter().map(check).collect();
        let mut answers = inner.submitted_before(&mut checked).await?;
        // Whatever is refused because of its workflow is an error of its own.
        inner.refuse_closed(&mut checked).await?;
        inner.room_for(&job, checked.iter().flatten().count()).await?;
        // They are their parent's doing: its tenant and its actor are asked for room.
        let of = &job.request;
        let payer = of.caller();
        let Admitted { ticket, .. } = inner.admit(&payer, &mut checked, |(request, _)| request).await?;
        let mut fresh = Vec::new();
        for (place, child) in checked.into_iter().enumerate() {
            match child {
                Ok(good) => fresh.push((place, good)),
                Err(error) => {
                    if let ApiError::Limited(limited) = &error {
                        inner.metrics.admission.refused(limited.by);
                    }
                    answers.entry(place).or_insert(Err(error));
                }
            }
        }
        if !fresh.is_empty() {
            let owned = inner.clone();
            let inserted = to_the_end(async move { owned.insert_children(job, token, fresh, ticket, began).await });
            answers.extend(inserted.await??);
        }
        Ok(answers.into_values().collect())
    }

    /// What became of the children of a job, for the attempt that runs it.
    pub async fn children(
        &self,
        caller: &Caller,
        parent: &JobId,
        token: &AttemptToken,
        after: JobSeq,
    ) -> Result<ChildPage, ApiError> {
        let job = self.inner.held_by(caller, parent, token).await?;
        let query = ChildQuery { parent: parent.clone(), life: job.life.no, after, limit: PAGE_MAX, bytes: PAGE_BYTES };
        let Listing { items, next } = self.inner.ports.store.children(query).await?;
        Ok(ChildPage { children: items, next: next.map(|next| JobSeq(next.0)) })
    }
}

impl Inner {
    /// The job, if this token is the fence of the attempt that is held now.
    async fn held_by(&self, caller: &Caller, id: &JobId, token: &AttemptToken) -> Result<Arc<Job>, ApiError> {
        let job = self.find(caller, id).await?;
        if job.holder().is_none() || job.life.attempt.token != *token {
            return Err(ApiError::State(Illegal::Superseded));
        }
        Ok(job)
    }

    /// Children that an earlier call submitted need neither room nor a commit. They leave the batch; by place.
    async fn submitted_before(&self, checked: &mut [CheckedJob]) -> Result<ChildAnswers, ApiError> {
        let requests: Vec<Arc<JobRequest>> = checked.iter().flatten().map(|(request, _)| request.clone()).collect();
        if requests.is_empty() {
            return Ok(ChildAnswers::new());
        }
        let mut taken = self.ports.store.find_duplicates(&requests).await?.into_iter();
        let mut answers = ChildAnswers::new();
        for (place, child) in checked.iter_mut().enumerate() {
            let Ok((request, hash)) = child else { continue };
            if let Some(owner) = taken.next().flatten() {
                answers.insert(place, same_or_conflict(request, *hash, &owner));
                *child = Err(ApiError::Internal("answered already".into()));
            }
        }
        Ok(answers)
    }

    async fn room_for(&self, parent: &Job, more: usize) -> Result<(), ApiError> {
        if more == 0 {
            return Ok(());
        }
        let kin = self.ports.store.family(&[(parent.request.job_id.clone(), parent.life.no)]).await?;
        let has = kin.first().map_or(0, |kin| kin.total);
        if has + more as u64 > CHILDREN_MAX {
            let text = format_args!("would be too many: a job may have {CHILDREN_MAX}, has {has}, and asks for {more} more");
            return Err(ApiError::invalid("children", text));
        }
        Ok(())
    }

    /// F-1: the parent's version is moved first, then they are inserted against it. So whoever inserts at the same time under the
    /// same token, and whoever takes the attempt away, is seen by one of the two; and counting after the move is exact.
    async fn insert_children(
        &self,
        mut parent: Arc<Job>,
        token: AttemptToken,
        mut fresh: Vec<(usize, Good)>,
        ticket: AdmissionTicket,
        began: TraceStart,
    ) -> Result<ChildAnswers, ApiError> {
        let _until_answered = ticket;
        let mut answers = ChildAnswers::new();
        for _ in 0..TRIES_MAX {
            parent = self.spawn(parent, &token, fresh.len()).await?;
            self.room_for(&parent, fresh.len()).await?;
            let checked: Vec<CheckedJob> = fresh.iter().map(|(_, good)| Ok(good.clone())).collect();
            let (mut births, verdict) = self.births(&checked).await;
            let evidence = Evidence::Unchanged { job: parent.request.job_id.clone(), version: parent.version };
            births.iter_mut().for_each(|birth| birth.evidence = evidence.clone());
            let committed = self.commit_new(births, SubmitTimes { began, verdict }).await?;
            let mut again = Vec::new();
            for ((place, (request, hash)), outcome) in fresh.into_iter().zip(committed) {
                match outcome {
                    Ok(job) => {
                        self.metrics.families.submitted();
                        let job_id = request.job_id.clone();
                        answers.insert(place, Ok(Submitted { job_id, state: job.state(), existing: false }));
                    }
                    Err(ChangeError::Taken(taken)) => {
                        answers.insert(place, same_or_conflict(&request, hash, &taken));
                    }
                    Err(ChangeError::Conflict) => again.push((place, (request, hash))),
                    Err(ChangeError::Refused(why)) => {
                        answers.insert(place, Err(ApiError::refused(format_args!("job {}", request.job_id), &why)));
                    }
                }
            }
            if again.is_empty() {
                return Ok(answers);
            }
            fresh = again;
            let id = parent.request.job_id.clone();
            let found = self.ports.store.load(std::slice::from_ref(&id)).await?.pop().flatten();
            parent = found.map(Arc::new).ok_or(ApiError::NotFound(id))?;
        }
        let busy = |(place, _)| (place, Err(ApiError::Unavailable("the job keeps changing; send them again".into())));
        answers.extend(fresh.into_iter().map(busy));
        Ok(answers)
    }

    async fn spawn(&self, parent: Arc<Job>, token: &AttemptToken, children: usize) -> Result<Arc<Job>, ApiError> {
        let children = u32::try_from(children).unwrap_or(u32::MAX);
        let input = Input::Spawned { token: token.clone(), children };
        let driven = self.drive(vec![(parent, input)]).await?.pop();
        Ok(driven.unwrap_or(Err(Undriven::Contended))?)
    }
}
