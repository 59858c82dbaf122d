//! Schedules: what starts by itself.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use lockgate_core::time::Timestamp;
use lockgate_engine::BackfillSpan;
use serde::Deserialize;
use utoipa::ToSchema;

use super::body::{Maybe, NoBody, Sent, Written};
use super::query::{NameParams, PageParams, Params};
use super::views::{AppliedSchedules, BegunBackfill, Schedule, Schedules, Slot, Slots};
use super::{Answer, By, with_status};
use crate::Shared;
use crate::schedules::FILE;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SchedulesBody {
    text: String,
    /// Named in errors.
    file: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BackfillBody {
    /// RFC 3339. Both ends are included.
    #[schema(value_type = String, format = DateTime)]
    from: jiff::Timestamp,
    /// RFC 3339.
    #[schema(value_type = String, format = DateTime)]
    to: jiff::Timestamp,
    /// How many of its jobs or runs may be at work at once.
    #[serde(default = "one")]
    concurrency: u32,
}

const fn one() -> u32 {
    1
}

/// Check a file of schedules and keep those that are new or changed; others are left as they are.
///
/// Either the file itself, or a JSON object with its text. A file with faults is refused with all of them.
#[utoipa::path(post, path = "/v1/schedules", operation_id = "put_schedules",
    request_body(content((String = "application/yaml"), (String = "text/yaml"), (SchedulesBody = "application/json"))),
    responses((status = 200, body = AppliedSchedules)))]
pub(super) async fn put(
    State(shared): State<Shared>,
    By(caller): By,
    sent: Written<SchedulesBody>,
) -> Answer<Json<AppliedSchedules>> {
    let (file, text) = match sent {
        Written::Yaml(text) => (None, text),
        Written::Json(body) => (body.file, body.text),
    };
    let applied = shared.engine.put_schedules(&caller, file.as_deref().unwrap_or(FILE), &text).await?;
    Ok(Json(AppliedSchedules::from(applied)))
}

/// List schedules by name.
#[utoipa::path(get, path = "/v1/schedules", operation_id = "list_schedules", params(NameParams),
    responses((status = 200, body = Schedules)))]
pub(super) async fn list(
    State(shared): State<Shared>,
    By(caller): By,
    Params(params): Params<NameParams>,
) -> Answer<Json<Schedules>> {
    let (after, limit) = params.page()?;
    let views = shared.engine.schedules(&caller, after.as_deref(), limit).await?;
    Ok(Json(Schedules::new(&views, limit)))
}

/// One schedule with its next times and what it is about.
#[utoipa::path(get, path = "/v1/schedules/{name}", operation_id = "get_schedule", params(("name" = String, Path)),
    responses((status = 200, body = Schedule)))]
pub(super) async fn get(State(shared): State<Shared>, By(caller): By, Path(name): Path<String>) -> Answer<Json<Schedule>> {
    Ok(Json(Schedule::from(&shared.engine.schedule(&caller, &name).await?)))
}

/// What became of a schedule's times, the latest first.
#[utoipa::path(get, path = "/v1/schedules/{name}/slots", operation_id = "list_slots",
    params(("name" = String, Path), PageParams), responses((status = 200, body = Slots)))]
pub(super) async fn slots(
    State(shared): State<Shared>,
    By(caller): By,
    Path(name): Path<String>,
    Params(params): Params<PageParams>,
) -> Answer<Json<Slots>> {
    let (cursor, limit) = params.page()?;
    Ok(Json(Slots::from(shared.engine.slots(&caller, &name, cursor, limit).await?)))
}

/// Start nothing by itself until the schedule is resumed. What runs goes on.
#[utoipa::path(post, path = "/v1/schedules/{name}/pause", operation_id = "pause_schedule", params(("name" = String, Path)),
    responses((status = 200, body = Schedule)))]
pub(super) async fn pause(
    State(shared): State<Shared>,
    By(caller): By,
    Path(name): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> Answer<Json<Schedule>> {
    Ok(Json(Schedule::from(&shared.engine.pause_schedule(&caller, &name).await?)))
}

/// Let a paused schedule go on. Times that fell into the pause are not made up for.
#[utoipa::path(post, path = "/v1/schedules/{name}/resume", operation_id = "resume_schedule",
    params(("name" = String, Path)), responses((status = 200, body = Schedule)))]
pub(super) async fn resume(
    State(shared): State<Shared>,
    By(caller): By,
    Path(name): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> Answer<Json<Schedule>> {
    Ok(Json(Schedule::from(&shared.engine.resume_schedule(&caller, &name).await?)))
}

/// Start once, now, whatever the times say.
#[utoipa::path(post, path = "/v1/schedules/{name}/trigger", operation_id = "trigger_schedule",
    params(("name" = String, Path)), responses((status = 200, body = Slot)))]
pub(super) async fn trigger(
    State(shared): State<Shared>,
    By(caller): By,
    Path(name): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> Answer<Json<Slot>> {
    Ok(Json(Slot::from(&shared.engine.trigger_schedule(&caller, &name).await?)))
}

/// Remove a schedule. What runs goes on; what became of its times is kept as long as ended jobs are.
#[utoipa::path(post, path = "/v1/schedules/{name}/remove", operation_id = "remove_schedule",
    params(("name" = String, Path)), responses((status = 204)))]
pub(super) async fn remove(
    State(shared): State<Shared>,
    By(caller): By,
    Path(name): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> Answer<StatusCode> {
    shared.engine.remove_schedule(&caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Make up for the times of a span that has passed.
#[utoipa::path(post, path = "/v1/schedules/{name}/backfills", operation_id = "backfill_schedule",
    params(("name" = String, Path)), request_body = BackfillBody, responses((status = 201, body = BegunBackfill)))]
pub(super) async fn backfill(
    State(shared): State<Shared>,
    By(caller): By,
    Path(name): Path<String>,
    Sent(body): Sent<BackfillBody>,
) -> Answer<Response> {
    let time = |at: jiff::Timestamp| Timestamp::from_millis(at.as_millisecond());
    let span = BackfillSpan { from: time(body.from), to: time(body.to), concurrency: body.concurrency };
    let id = shared.engine.backfill_schedule(&caller, &name, span).await?;
    Ok(with_status(StatusCode::CREATED, BegunBackfill { id: id.to_string() }))
}

/// Start no more of a backfill. What it started goes on.
#[utoipa::path(post, path = "/v1/schedules/{name}/backfills/{id}/cancel", operation_id = "cancel_backfill",
    params(("name" = String, Path), ("id" = String, Path)), responses((status = 204)))]
pub(super) async fn cancel_backfill(
    State(shared): State<Shared>,
    By(caller): By,
    Path((name, id)): Path<(String, String)>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> Answer<StatusCode> {
    shared.engine.cancel_backfill(&caller, &name, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
