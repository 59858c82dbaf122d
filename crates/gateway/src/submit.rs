//! Submits, the same for both doors.

use lockgate_core::ids::{AttemptToken, JobId};
use lockgate_core::limits::BATCH_JOBS_MAX;
use lockgate_core::request::{Caller, FieldError, NewJob};
use lockgate_engine::{ApiError, Engine, NewChild, Submitted};

/// A job as far as its door could read it.
pub(crate) type ParsedJob = Result<NewJob, Vec<FieldError>>;

pub(crate) async fn one(engine: &Engine, caller: &Caller, job: ParsedJob) -> Result<Submitted, ApiError> {
    let job = job.map_err(ApiError::Invalid)?;
    engine.submit(caller, vec![job]).await?.pop().unwrap_or_else(unanswered)
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
    let refusals: Vec<Option<ApiError>> = jobs.map(|job| keep(job, &mut readable)).collect();
    let answers = if readable.is_empty() { Vec::new() } else { engine.submit(caller, readable).await? };
    Ok(merged(refusals, answers))
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
