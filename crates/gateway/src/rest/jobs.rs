//! Jobs: submit, look, stop.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::body::{Maybe, Sent};
use super::idempotency::IdempotencyKey;
use super::query::{JobParams, Params};
use super::request::{BatchBody, CancelBody, JobBody};
use super::views::{Changed, Job, Jobs, Logs, Submitted, SubmittedItem, SubmittedJobs, Why};
use super::{Answer, By, JobPath, with_status};
use crate::{Shared, submit};

/// Submit a job.
#[utoipa::path(post, path = "/v1/jobs", request_body = JobBody, params(
    ("Idempotency-Key" = Option<String>, Header, description = "The same as `idempotency_key`"),
), responses(
    (status = 201, description = "Accepted", body = Submitted),
    (status = 200, description = "The id or key already has this very job", body = Submitted),
))]
pub(super) async fn submit(
    State(shared): State<Shared>,
    By(caller): By,
    key: IdempotencyKey,
    Sent(mut job): Sent<JobBody>,
) -> Answer<Response> {
    key.put_into(&mut job.idempotency_key)?;
    let submitted = submit::one(&shared.engine, &caller, job.read()).await?;
    let status = if submitted.existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok(with_status(status, Submitted::new(&submitted, shared.settings.ack)))
}

/// Submit many jobs at once.
#[utoipa::path(post, path = "/v1/jobs:batch", request_body = BatchBody, responses(
    (status = 200, description = "One answer per job, in the order sent", body = SubmittedJobs),
))]
pub(super) async fn submit_batch(
    State(shared): State<Shared>,
    By(caller): By,
    Sent(batch): Sent<BatchBody>,
) -> Answer<Json<SubmittedJobs>> {
    let answers = submit::many(&shared.engine, &caller, batch.read()).await?;
    let item = |answer| SubmittedItem::new(answer, shared.settings.ack);
    Ok(Json(SubmittedJobs { jobs: answers.into_iter().map(item).collect() }))
}

/// List jobs, newest first.
#[utoipa::path(get, path = "/v1/jobs", params(JobParams), responses((status = 200, body = Jobs)))]
pub(super) async fn list(
    State(shared): State<Shared>,
    By(caller): By,
    Params(params): Params<JobParams>,
) -> Answer<Json<Jobs>> {
    let listing = shared.engine.jobs(&caller, params.query(&caller)?).await?;
    Ok(Json(Jobs::new(&listing, &shared.engine.defaults())))
}

/// One job with its attempts, result and last error.
#[utoipa::path(get, path = "/v1/jobs/{id}", params(("id" = String, Path)), responses((status = 200, body = Job)))]
pub(super) async fn get(State(shared): State<Shared>, By(caller): By, JobPath(id): JobPath) -> Answer<Json<Job>> {
    let view = shared.engine.job(&caller, &id).await?;
    Ok(Json(Job::full(&view, &shared.engine.defaults())))
}

/// End a job now. A worker that runs it is told to stop.
#[utoipa::path(post, path = "/v1/jobs/{id}/cancel", params(("id" = String, Path)), request_body = Option<CancelBody>,
    responses((status = 200, body = Changed)))]
pub(super) async fn cancel(
    State(shared): State<Shared>,
    By(caller): By,
    JobPath(id): JobPath,
    Maybe(body): Maybe<CancelBody>,
) -> Answer<Json<Changed>> {
    let state = shared.engine.cancel(&caller, &id, body.reason.map(Into::into)).await?;
    Ok(Json(Changed { job_id: id.to_string(), state: state.as_str() }))
}

/// What a job waits for, and what would start it.
#[utoipa::path(get, path = "/v1/jobs/{id}/why", params(("id" = String, Path)), responses((status = 200, body = Why)))]
pub(super) async fn why(State(shared): State<Shared>, By(caller): By, JobPath(id): JobPath) -> Answer<Json<Why>> {
    let why = shared.engine.why(&caller, &id).await?;
    Ok(Json(Why::new(&id, why)))
}

/// The last log lines of a job's attempts.
#[utoipa::path(get, path = "/v1/jobs/{id}/logs", params(("id" = String, Path)), responses((status = 200, body = Logs)))]
pub(super) async fn logs(State(shared): State<Shared>, By(caller): By, JobPath(id): JobPath) -> Answer<Json<Logs>> {
    Ok(Json(Logs::from(shared.engine.logs(&caller, &id, 0).await?)))
}
