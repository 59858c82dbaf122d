//! Jobs: submit, look, stop.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use lockgate_api::ToWire;
use lockgate_api::body::{BatchBody, CancelBody, JobBody, RetryNowBody};
use lockgate_api::view::{Changed, FieldProblem, ItemError, Job, Jobs, Logs, Submitted, SubmittedItem, SubmittedJobs, Why};
use lockgate_engine::{ApiError, Submitted as Acknowledged};

use super::body::{Maybe, Sent};
use super::idempotency::IdempotencyKey;
use super::query::{JobParams, Params};
use super::request;
use super::{CallerExtractor, JobPath, RouteResult, with_status};
use crate::{ServiceContext, errors, submit, wire};

/// Submit a job.
#[utoipa::path(post, path = "/v1/jobs", operation_id = "submit_job", request_body = JobBody, params(
    ("Idempotency-Key" = Option<String>, Header, description = "The same as `idempotency_key`"),
), responses(
    (status = 201, description = "Accepted", body = Submitted),
    (status = 200, description = "The id or key already has this very job", body = Submitted),
))]
pub(super) async fn submit(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    key: IdempotencyKey,
    Sent(mut job): Sent<JobBody>,
) -> RouteResult<Response> {
    key.put_into(&mut job.idempotency_key)?;
    let submitted = submit::one(&shared.engine, &caller, job.read()).await?;
    let status = if submitted.existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok(with_status(status, Submitted::from(wire::accepted(&submitted, shared.settings.ack))))
}

/// Submit many jobs at once.
#[utoipa::path(post, path = "/v1/jobs:batch", operation_id = "submit_jobs", request_body = BatchBody, responses(
    (status = 200, description = "One answer per job, in the order sent", body = SubmittedJobs),
))]
pub(super) async fn submit_batch(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Sent(batch): Sent<BatchBody>,
) -> RouteResult<Json<SubmittedJobs>> {
    let answers = submit::many(&shared.engine, &caller, request::batch(&batch)).await?;
    let jobs = answers.into_iter().map(|answer| item(answer, shared.settings.ack)).collect();
    Ok(Json(SubmittedJobs { jobs }))
}

/// What became of one job of a batch. A refusal names its fields, which the message of gRPC has no room for.
fn item(answer: Result<Acknowledged, ApiError>, ack: &str) -> SubmittedItem {
    match answer {
        Ok(submitted) => SubmittedItem::Accepted(wire::accepted(&submitted, ack).into()),
        Err(error) => {
            let (code, message, retry_after_ms) =
                (error.code().to_owned(), error.to_string(), errors::retry_after_ms(&error));
            let fields = if let ApiError::Invalid(fields) = error { fields } else { Vec::new() };
            let errors = fields.into_iter().map(FieldProblem::from).collect();
            SubmittedItem::Refused { error: ItemError { code, message, errors, retry_after_ms } }
        }
    }
}

/// List jobs, newest first.
#[utoipa::path(get, path = "/v1/jobs", operation_id = "list_jobs", params(JobParams),
    responses((status = 200, description = "One page of jobs", body = Jobs)))]
pub(super) async fn list(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Params(params): Params<JobParams>,
) -> RouteResult<Json<Jobs>> {
    let listing = shared.engine.jobs(&caller, params.query(&caller)?).await?;
    Ok(Json(Jobs::from(wire::jobs(&listing, &shared.engine.defaults()))))
}

/// Return one job with its attempts, result and last error.
#[utoipa::path(get, path = "/v1/jobs/{id}", operation_id = "get_job", params(("id" = String, Path)),
    responses((status = 200, description = "The job", body = Job)))]
pub(super) async fn get(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
) -> RouteResult<Json<Job>> {
    let view = shared.engine.job(&caller, &id).await?;
    Ok(Json(Job::full(wire::job_view(&view, &shared.engine.defaults()))))
}

/// Cancel a job. A worker that runs it is told to stop.
#[utoipa::path(post, path = "/v1/jobs/{id}/cancel", operation_id = "cancel_job", params(("id" = String, Path)),
    request_body = Option<CancelBody>,
    responses((status = 200, description = "The state of the job", body = Changed)))]
pub(super) async fn cancel(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
    Maybe(body): Maybe<CancelBody>,
) -> RouteResult<Json<Changed>> {
    let state = shared.engine.cancel(&caller, &id, body.reason.map(Into::into)).await?;
    Ok(Json(Changed { job_id: id.to_string(), state: state.to_wire().into() }))
}

/// Make a job due now that waits for the time of its next attempt. Any other job is refused with its state.
#[utoipa::path(post, path = "/v1/jobs/{id}/retry", operation_id = "retry_job", params(("id" = String, Path)),
    request_body = Option<RetryNowBody>,
    responses((status = 200, description = "The state of the job", body = Changed)))]
pub(super) async fn retry(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
    Maybe(body): Maybe<RetryNowBody>,
) -> RouteResult<Json<Changed>> {
    let note = body.reason.filter(|reason| !reason.is_empty());
    let state = shared.engine.force_retry(&caller, &id, note.map(Into::into)).await?;
    Ok(Json(Changed { job_id: id.to_string(), state: state.to_wire().into() }))
}

/// Explain what a job waits for, and what would start it.
#[utoipa::path(get, path = "/v1/jobs/{id}/why", operation_id = "explain_job", params(("id" = String, Path)),
    responses((status = 200, description = "Why the job is in its state", body = Why)))]
pub(super) async fn why(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
) -> RouteResult<Json<Why>> {
    let why = shared.engine.why(&caller, &id).await?;
    Ok(Json(Why::new(id.to_string(), wire::why(why))))
}

/// Return the last log lines of a job's attempts.
#[utoipa::path(get, path = "/v1/jobs/{id}/logs", operation_id = "get_job_logs", params(("id" = String, Path)),
    responses((status = 200, description = "Up to 1,000 lines", body = Logs)))]
pub(super) async fn logs(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
) -> RouteResult<Json<Logs>> {
    Ok(Json(Logs::from(wire::logs(&shared.engine.logs(&caller, &id, 0).await?))))
}
