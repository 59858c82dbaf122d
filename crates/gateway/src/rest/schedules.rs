//! Schedules: what starts by itself.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use lockgate_api::ToWire;
use lockgate_api::body::{BackfillBody, SchedulesBody};
use lockgate_api::view::{AppliedSchedules, BegunBackfill, Schedule, Schedules, Slot, Slots};
use lockgate_core::time::Timestamp;
use lockgate_engine::BackfillSpan;

use super::body::{Maybe, NoBody, Sent, YamlOrJson};
use super::query::{NameParams, PageParams, Params};
use super::{CallerExtractor, RouteResult, with_status};
use crate::schedules::FILE;
use crate::{ServiceContext, wire};

/// Check a file of schedules and store those that are new or changed.
///
/// Schedules that the file does not name stay as they are. Either the file itself, or a JSON object with its text. A file
/// with faults is refused with all of them.
#[utoipa::path(post, path = "/v1/schedules", operation_id = "put_schedules",
    request_body(content((String = "application/yaml"), (String = "text/yaml"), (SchedulesBody = "application/json"))),
    responses((status = 200, description = "What was done with each schedule", body = AppliedSchedules)))]
pub(super) async fn put(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    sent: YamlOrJson<SchedulesBody>,
) -> RouteResult<Json<AppliedSchedules>> {
    let (file, text) = match sent {
        YamlOrJson::Yaml(text) => (None, text),
        YamlOrJson::Json(body) => (body.file, body.text),
    };
    let applied = shared.engine.put_schedules(&caller, file.as_deref().unwrap_or(FILE), &text).await?;
    Ok(Json(wire::applied(applied).into()))
}

/// List schedules by name.
#[utoipa::path(get, path = "/v1/schedules", operation_id = "list_schedules", params(NameParams),
    responses((status = 200, description = "One page of schedules", body = Schedules)))]
pub(super) async fn list(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Params(params): Params<NameParams>,
) -> RouteResult<Json<Schedules>> {
    let (after, limit) = params.page()?;
    let views = shared.engine.schedules(&caller, after.as_deref(), limit).await?;
    Ok(Json(wire::schedules(&views, limit).into()))
}

/// Return one schedule with its next times and what it has under way.
#[utoipa::path(get, path = "/v1/schedules/{name}", operation_id = "get_schedule", params(("name" = String, Path)),
    responses((status = 200, description = "The schedule", body = Schedule)))]
pub(super) async fn get(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(name): Path<String>,
) -> RouteResult<Json<Schedule>> {
    Ok(Json(wire::schedule(&shared.engine.schedule(&caller, &name).await?).into()))
}

/// List the decided times of a schedule with their outcomes, the latest first.
#[utoipa::path(get, path = "/v1/schedules/{name}/slots", operation_id = "list_slots",
    params(("name" = String, Path), PageParams), responses((status = 200, description = "One page of times", body = Slots)))]
pub(super) async fn slots(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(name): Path<String>,
    Params(params): Params<PageParams>,
) -> RouteResult<Json<Slots>> {
    let (cursor, limit) = params.page()?;
    Ok(Json(wire::slots(&shared.engine.slots(&caller, &name, cursor, limit).await?).into()))
}

/// Pause a schedule: it starts nothing by itself until it is resumed. Jobs and runs under way go on.
#[utoipa::path(post, path = "/v1/schedules/{name}/pause", operation_id = "pause_schedule", params(("name" = String, Path)),
    responses((status = 200, description = "The schedule", body = Schedule)))]
pub(super) async fn pause(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(name): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<Json<Schedule>> {
    Ok(Json(wire::schedule(&shared.engine.pause_schedule(&caller, &name).await?).into()))
}

/// Resume a paused schedule. Times that fell into the pause are not caught up.
#[utoipa::path(post, path = "/v1/schedules/{name}/resume", operation_id = "resume_schedule",
    params(("name" = String, Path)), responses((status = 200, description = "The schedule", body = Schedule)))]
pub(super) async fn resume(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(name): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<Json<Schedule>> {
    Ok(Json(wire::schedule(&shared.engine.resume_schedule(&caller, &name).await?).into()))
}

/// Start the schedule's job or run once, now, even if it is paused.
#[utoipa::path(post, path = "/v1/schedules/{name}/trigger", operation_id = "trigger_schedule",
    params(("name" = String, Path)), responses((status = 200, description = "The outcome", body = Slot)))]
pub(super) async fn trigger(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(name): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<Json<Slot>> {
    Ok(Json(shared.engine.trigger_schedule(&caller, &name).await?.to_wire().into()))
}

/// Remove a schedule.
///
/// Jobs and runs under way go on; the outcomes of its times are kept as long as ended jobs are.
#[utoipa::path(post, path = "/v1/schedules/{name}/remove", operation_id = "remove_schedule",
    params(("name" = String, Path)), responses((status = 204, description = "Removed")))]
pub(super) async fn remove(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(name): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<StatusCode> {
    shared.engine.remove_schedule(&caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Start what a span of past times would have started.
#[utoipa::path(post, path = "/v1/schedules/{name}/backfills", operation_id = "backfill_schedule",
    params(("name" = String, Path)), request_body = BackfillBody,
    responses((status = 201, description = "The backfill was begun", body = BegunBackfill)))]
pub(super) async fn backfill(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(name): Path<String>,
    Sent(body): Sent<BackfillBody>,
) -> RouteResult<Response> {
    let time = |at: jiff::Timestamp| Timestamp::from_millis(at.as_millisecond());
    let span = BackfillSpan { from: time(body.from), to: time(body.to), concurrency: body.concurrency };
    let id = shared.engine.backfill_schedule(&caller, &name, span).await?;
    Ok(with_status(StatusCode::CREATED, BegunBackfill::from(wire::begun(&id))))
}

/// Stop a backfill. Jobs and runs that it started go on.
#[utoipa::path(post, path = "/v1/schedules/{name}/backfills/{id}/cancel", operation_id = "cancel_backfill",
    params(("name" = String, Path), ("id" = String, Path)), responses((status = 204, description = "Stopped")))]
pub(super) async fn cancel_backfill(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path((name, id)): Path<(String, String)>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<StatusCode> {
    shared.engine.cancel_backfill(&caller, &name, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
