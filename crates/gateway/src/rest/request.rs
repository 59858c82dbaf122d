//! What clients send, read into what the engine is asked.

use lockgate_api::body::{BatchBody, JobBody, ReplayBody};
use lockgate_core::request::{Caller, FieldError};
use lockgate_engine::ReplayRequest;
use lockgate_ports::DeadLetterQuery;

use super::body::part;
use crate::queries;
use crate::submit::ParsedJob;

/// The jobs of a batch, each read alone.
pub(super) fn batch(body: &BatchBody) -> impl ExactSizeIterator<Item = ParsedJob> {
    body.jobs.iter().map(|job| part::<JobBody>(job).map_err(|error| vec![error])?.read())
}

pub(super) fn replay(body: ReplayBody, caller: &Caller) -> Result<ReplayRequest, Vec<FieldError>> {
    let mut errors = Vec::new();
    let reason = body.reason.map(|text| queries::reason(&text)).transpose().unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    for (field, number) in [("rate", body.rate), ("limit", body.limit)] {
        if number == Some(0) {
            errors.push(FieldError::new(field, "must be at least 1"));
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let filter = DeadLetterQuery {
        // Looking at other tenants is one thing, acting on their jobs another.
        tenant: Some(caller.tenant.clone()),
        topic: body.topic.map(Into::into),
        priority: body.priority.map(Into::into),
        reason,
        labels: body.labels,
        cursor: None,
        limit: 0,
    };
    let limit = body.limit.map(|limit| limit as usize);
    Ok(ReplayRequest { filter, dry_run: body.dry_run, rate: body.rate, limit })
}
