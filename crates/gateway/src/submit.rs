//! Submits, the same for both doors.

use std::borrow::Cow;

use lockgate_core::ids::{AttemptToken, JobId, check_name};
use lockgate_core::limits::BATCH_JOBS_MAX;
use lockgate_core::request::{Caller, FieldError, NewJob};
use lockgate_engine::{ApiError, Engine, NewChild, Submitted};

/// A job as far as its door could read it.
pub(crate) type ParsedJob = Result<NewJob, Vec<FieldError>>;

pub(crate) async fn one(engine: &Engine, caller: &Caller, job: ParsedJob) -> Result<Submitted, ApiError> {
    let job = job.map_err(ApiError::Invalid)?;
    let caller = on_behalf(caller, &job).map_err(|error| ApiError::Invalid(vec![error]))?;
    engine.submit(&caller, vec![job]).await?.pop().unwrap_or_else(unanswered)
}

/// Where a job names its tenant in its environment, as clients of other schedulers do.
const TENANT_VARIABLE: &str = "tenant_id";

/// The caller, on behalf of the tenant that the job names where the call names none. What the call or its credential says cannot be
/// changed by a job.
fn on_behalf<'a>(caller: &'a Caller, job: &NewJob) -> Result<Cow<'a, Caller>, FieldError> {
    let refused = |why: &dyn std::fmt::Display| FieldError::new(format!("env.{TENANT_VARIABLE}"), why);
    let Some(named) = job.env.get(TENANT_VARIABLE).filter(|named| *named != caller.tenant.as_str()) else {
        return Ok(Cow::Borrowed(caller));
    };
    if caller.tenant_named {
        return Err(refused(&format_args!("names another tenant than the call, which is for {:?}", caller.tenant.as_str())));
    }
    check_name(named).map_err(|error| refused(&error))?;
    Ok(Cow::Owned(Caller { tenant: named.as_str().into(), tenant_named: true, ..caller.clone() }))
}

/// Jobs that cannot be read are refused alone, like those that cannot be accepted; answers in the order sent.
/// An empty or too long batch is refused whole.
pub(crate) async fn many(
    engine: &Engine,
    caller: &Caller,
    jobs: impl ExactSizeIterator<Item = ParsedJob>,
) -> Result<Vec<Result<Submitted, ApiError>>, ApiError> {
    match jobs.len() {
        0 => return Err(ApiError::invalid("jobs", "must not be empty")),
        1..=BATCH_JOBS_MAX => {}
        sent => {
            return Err(ApiError::invalid("jobs", format_args!("must have at most {BATCH_JOBS_MAX} entries; has {sent}")));
        }
    }
    let mut readable = Vec::with_capacity(jobs.len());
    let mut batch = TenantOfBatch { caller, chosen: None };
    let mut for_whom = |job: NewJob| batch.admit(&job).map(|()| job).map_err(|error| vec![error]);
    let refusals: Vec<Option<ApiError>> = jobs.map(|job| keep(job.and_then(&mut for_whom), &mut readable)).collect();
    let caller = batch.chosen.unwrap_or(Cow::Borrowed(caller));
    let answers = if readable.is_empty() { Vec::new() } else { engine.submit(&caller, readable).await? };
    Ok(merged(refusals, answers))
}

/// A batch is one commit for one tenant: the one that its first good job is for.
struct TenantOfBatch<'a> {
    caller: &'a Caller,
    chosen: Option<Cow<'a, Caller>>,
}

impl TenantOfBatch<'_> {
    fn admit(&mut self, job: &NewJob) -> Result<(), FieldError> {
        let caller = on_behalf(self.caller, job)?;
        match &self.chosen {
            Some(chosen) if chosen.tenant != caller.tenant => Err(FieldError::new(
                format!("env.{TENANT_VARIABLE}"),
                "the job is for another tenant than those before it; send a batch for each tenant",
            )),
            Some(_) => Ok(()),
            None => {
                self.chosen = Some(caller);
                Ok(())
            }
        }
    }
}

/// Like `many`, for children of a job, under the token of its attempt.
pub(crate) async fn children(
    engine: &Engine,
    caller: &Caller,
    parent: (&JobId, AttemptToken),
    children: impl ExactSizeIterator<Item = (String, ParsedJob)>,
) -> Result<Vec<Result<Submitted, ApiError>>, ApiError> {
    let (job_id, token) = parent;
    let mut readable = Vec::with_capacity(children.len());
    let refusals: Vec<Option<ApiError>> =
        children.map(|(key, job)| keep(job.map(|job| NewChild { key, job }), &mut readable)).collect();
    let unreadable = readable.is_empty() && !refusals.is_empty();
    let answers = if unreadable { Vec::new() } else { engine.submit_children(caller, job_id, token, readable).await? };
    Ok(merged(refusals, answers))
}

fn merged(refusals: Vec<Option<ApiError>>, answers: Vec<Result<Submitted, ApiError>>) -> Vec<Result<Submitted, ApiError>> {
    let mut answers = answers.into_iter();
    let merge = |refused: Option<ApiError>| refused.map_or_else(|| answers.next().unwrap_or_else(unanswered), Err);
    refusals.into_iter().map(merge).collect()
}

/// Puts a readable job aside; gives back why it is not readable otherwise.
fn keep<T>(job: Result<T, Vec<FieldError>>, readable: &mut Vec<T>) -> Option<ApiError> {
    match job {
        Ok(job) => {
            readable.push(job);
            None
        }
        Err(errors) => Some(ApiError::Invalid(errors)),
    }
}

fn unanswered() -> Result<Submitted, ApiError> {
    Err(ApiError::Internal("a submit was not answered".into()))
}
