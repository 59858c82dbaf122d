//! A job's events and log lines as they happen: server-sent events, resumable without a gap.

use std::convert::Infallible;

use axum::extract::State;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, future};
use http::{HeaderMap, StatusCode};
use lockgate_api::ToWire;
use lockgate_api::view::{Event, LogLine, Progress};
use lockgate_core::request::FieldError;
use lockgate_engine::{ApiError, WatchItem};
use lockgate_ports::KeptLine;

use super::query::{EventParams, Params};
use super::{CallerExtractor, JobPath, RouteResult};
use crate::ServiceContext;
use crate::follow::follow;
use crate::wire;

const LAST_EVENT_ID: &str = "last-event-id";

/// How far a client had come.
pub(super) struct ResumePoint<T> {
    pub(super) after: T,
    /// It comes back by itself, as browsers do.
    pub(super) resumed: bool,
}

impl<T: TryFrom<i64> + Copy + Default> ResumePoint<T> {
    /// The header wins over the parameter; neither means from the beginning.
    pub(super) fn of(headers: &HeaderMap, params: &EventParams) -> RouteResult<Self> {
        // Both are read, so that a bad one is told although the other counts.
        let asked = params.after.as_deref().map(|text| position("after", text)).transpose();
        let header = headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or_default());
        let header = header.map(|text| position(LAST_EVENT_ID, text)).transpose();
        match (header, asked) {
            (Ok(header), Ok(asked)) => {
                let after = header.or(asked).unwrap_or_default();
                Ok(Self { after, resumed: header.is_some() })
            }
            (header, asked) => Err(header.err().into_iter().chain(asked.err()).collect::<Vec<_>>().into()),
        }
    }
}

/// The number of an event, a line or a version.
fn position<T: TryFrom<i64>>(field: &str, text: &str) -> Result<T, FieldError> {
    let number = text.parse().ok().filter(|number: &i64| *number >= 0).and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| FieldError::new(field, format_args!("must be a whole number from 0 to {}", i64::MAX)))
}

/// Follow a job: first the events after the last one seen, then live ones, until the job has ended.
///
/// `id:` is the event's number. Progress comes as `event: progress`, without a number: it is not kept.
#[utoipa::path(get, path = "/v1/jobs/{id}/events", operation_id = "watch_job",
    params(("id" = String, Path), ("Last-Event-ID" = Option<u64>, Header), EventParams),
    responses(
        (status = 200, description = "Frames; the data is an `Event`, under `event: progress` a `Progress`", body = String,
            content_type = "text/event-stream"),
        (status = 204, description = "The job has ended and everything was seen: do not come back"),
    ))]
pub(super) async fn events(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
    Params(params): Params<EventParams>,
    headers: HeaderMap,
) -> RouteResult<Response> {
    let ResumePoint { after, resumed } = ResumePoint::of(&headers, &params)?;
    // Browsers come back for ever after a stream has ended; 204 is how they are told not to.
    if resumed {
        let job = shared.engine.job(&caller, &id).await?.job;
        if job.state().is_terminal() && job.life.events <= after {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    }
    let watch = shared.engine.watch(&caller, &id, after).await?;
    Ok(sent(follow(watch, shared.closing), |item| event(&item)))
}

/// As server-sent events, for as long as items come.
pub(super) fn sent<T: 'static>(
    items: impl Stream<Item = Result<T, ApiError>> + Send + 'static,
    event: impl Fn(T) -> Option<SseEvent> + Send + 'static,
) -> Response {
    let events = items
        .map(move |item| item.ok().and_then(&event))
        .take_while(|event| future::ready(event.is_some()))
        .filter_map(future::ready);
    Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(KeepAlive::default()).into_response()
}

fn event(item: &WatchItem) -> Option<SseEvent> {
    match item {
        WatchItem::Event(event) => SseEvent::default().id(event.n.to_string()).json_data(Event::from(event.to_wire())).ok(),
        WatchItem::Progress(seen) => {
            SseEvent::default().event("progress").json_data(Progress::from(wire::progress(seen))).ok()
        }
    }
}

/// Follow the log of a job: first the lines after the last one seen, then live ones, until the job has ended.
///
/// `id:` is the line's number.
#[utoipa::path(get, path = "/v1/jobs/{id}/logs/stream", operation_id = "watch_job_logs",
    params(("id" = String, Path), ("Last-Event-ID" = Option<u64>, Header), EventParams),
    responses(
        (status = 200, description = "Frames; the data is a `LogLine`", body = String, content_type = "text/event-stream"),
        (status = 204, description = "The job has ended and everything was seen: do not come back"),
    ))]
pub(super) async fn logs(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
    Params(params): Params<EventParams>,
    headers: HeaderMap,
) -> RouteResult<Response> {
    let ResumePoint { after, resumed } = ResumePoint::of(&headers, &params)?;
    // As above: what has ended and was seen is not followed again.
    if resumed {
        let over = shared.engine.job(&caller, &id).await?.job.state().is_terminal();
        if over && shared.engine.logs(&caller, &id, after).await?.is_empty() {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    }
    let watch = shared.engine.watch_logs(&caller, &id, after).await?;
    let line =
        |kept: KeptLine| SseEvent::default().id(kept.no.to_string()).json_data(LogLine::from(wire::log_line(&kept))).ok();
    Ok(sent(follow(watch, shared.closing), line))
}
