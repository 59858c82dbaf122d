//! Lists and replays: filters off the wire, pages onto it.

use lockgate_api::{known_priority, known_state};
use lockgate_core::ids::JobId;
use lockgate_core::request::{Caller, FieldError};
use lockgate_engine::{ApiError, Engine, ReplayRequest};
use lockgate_ports::{Cursor, DeadLetterQuery, JobQuery};
use lockgate_proto::v1;
use prost::Message;

use crate::queries::{self, PAGE_DEFAULT};
use crate::wire;

/// A page ends early rather than be larger. Clients take messages of 4 MiB unless they are told otherwise, and the largest job has
/// about half a MiB of labels and environment.
const PAGE_BYTES_MAX: usize = 3 << 20;

pub(super) async fn jobs(
    engine: &Engine,
    caller: Caller,
    request: v1::ListJobsRequest,
) -> Result<v1::ListJobsResponse, ApiError> {
    let query = JobQuery {
        tenant: Some(caller.tenant.clone()),
        topic: present(request.topic).map(Into::into),
        state: known_state(request.state).map_err(invalid)?,
        labels: request.labels.into_iter().collect(),
        parent: present(request.parent_job_id).map(Into::into),
        trace_id: present(request.trace_id).map(Into::into),
        discarded: false,
        cursor: queries::cursor(&request.cursor).map_err(invalid)?,
        limit: page(request.limit),
    };
    let listing = engine.jobs(&caller, query).await?;
    let mut page = wire::jobs(&listing, &engine.defaults());
    let mut bytes = 0;
    let fits = page.jobs.iter().take_while(|job| {
        bytes += job.encoded_len();
        bytes <= PAGE_BYTES_MAX
    });
    // One job that is larger alone is a page of its own.
    let fits = fits.count().max(1);
    if let Some(last) = listing.items[..fits.min(listing.items.len())].last().filter(|_| fits < page.jobs.len()) {
        page.jobs.truncate(fits);
        page.next_cursor = queries::cursor_text(Cursor(last.seq.0));
    }
    Ok(page)
}

pub(super) async fn dead_letters(
    engine: &Engine,
    caller: Caller,
    request: v1::ListDeadLettersRequest,
) -> Result<v1::ListDeadLettersResponse, ApiError> {
    let wanted = request.filter.unwrap_or_default();
    let discarded = wanted.discarded;
    let filter = filter(caller.clone(), wanted)?;
    let cursor = queries::cursor(&request.cursor).map_err(invalid)?;
    let query = DeadLetterQuery { cursor, limit: page(request.limit), ..filter };
    let listing = queries::dead_letters(engine, &caller, query, discarded).await?;
    Ok(wire::dead_letters(&listing))
}

pub(super) async fn replay(
    engine: &Engine,
    caller: Caller,
    request: v1::ReplayDeadLettersRequest,
) -> Result<v1::ReplayDeadLettersResponse, ApiError> {
    match (present(request.job_id), request.filter) {
        (Some(_), Some(_)) => Err(ApiError::invalid("filter", "must not be set beside job_id")),
        (None, None) => Err(ApiError::invalid("job_id", "must be set, or a filter; an empty filter means all")),
        (Some(_), None) if request.rate > 0 || request.limit > 0 => {
            Err(ApiError::invalid("rate", "and limit apply to a filter, not to one job"))
        }
        (None, Some(wanted)) if wanted.discarded => {
            Err(ApiError::invalid("filter.discarded", "must be false: discarded dead letters are not replayed"))
        }
        (Some(id), None) => replay_one(engine, &caller, id.into(), request.dry_run).await,
        (None, Some(wanted)) => {
            let filter = filter(caller.clone(), wanted)?;
            let limit = (request.limit > 0).then_some(request.limit as usize);
            let rate = (request.rate > 0).then_some(request.rate);
            let replayed = engine.replay(&caller, ReplayRequest { filter, dry_run: request.dry_run, rate, limit }).await?;
            Ok(wire::replayed(&replayed))
        }
    }
}

async fn replay_one(
    engine: &Engine,
    caller: &Caller,
    id: JobId,
    dry_run: bool,
) -> Result<v1::ReplayDeadLettersResponse, ApiError> {
    if dry_run {
        engine.job(caller, &id).await?.job.replayable().map_err(ApiError::State)?;
    } else {
        engine.replay_one(caller, &id).await?;
    }
    let replayed = u64::from(!dry_run);
    Ok(v1::ReplayDeadLettersResponse { matched: 1, replayed, no_room: 0, left_out: 0, job_ids: vec![id.to_string()] })
}

fn filter(caller: Caller, wire: v1::DeadLetterFilter) -> Result<DeadLetterQuery, ApiError> {
    Ok(DeadLetterQuery {
        tenant: Some(caller.tenant),
        priority: known_priority(wire.priority).map_err(invalid)?,
        reason: present(wire.reason).map(|text| queries::reason(&text)).transpose().map_err(invalid)?,
        topic: present(wire.topic).map(Into::into),
        labels: wire.labels.into_iter().collect(),
        cursor: None,
        limit: 0,
    })
}

/// proto3 has no absent number; zero means the default.
pub(super) fn page(limit: u32) -> usize {
    if limit == 0 { PAGE_DEFAULT as usize } else { limit as usize }
}

pub(super) fn present(text: String) -> Option<String> {
    if text.is_empty() { None } else { Some(text) }
}

pub(super) fn invalid(error: FieldError) -> ApiError {
    ApiError::Invalid(vec![error])
}
