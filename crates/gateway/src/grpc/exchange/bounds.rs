//! What no worker has reason to say: refused before it is looked up, kept or answered.

use lockgate_core::ids::ID_BYTES_MAX;
use lockgate_core::limits::INVENTORY_MAX;
use lockgate_core::request::FieldError;
use lockgate_proto::v1;

/// The first field of a message that is out of bounds.
pub(super) fn message(wire: &v1::WorkerMessage) -> Result<(), FieldError> {
    if let Some(beat) = &wire.beat {
        inventory("beat.inventory", &beat.inventory)?;
    }
    ids("starts.job_id", wire.starts.iter().map(|start| &start.job_id))?;
    ids("starts.token", wire.starts.iter().map(|start| &start.token))?;
    ids("results.job_id", wire.results.iter().map(|result| &result.job_id))?;
    ids("results.token", wire.results.iter().map(|result| &result.token))?;
    ids("progress.token", wire.progress.iter().map(|report| &report.token))?;
    ids("logs.token", wire.logs.iter().map(|report| &report.token))?;
    ids("let_go", wire.let_go.iter())
}

/// What a worker says it holds.
pub(super) fn inventory(field: &str, held: &[v1::Held]) -> Result<(), FieldError> {
    let count = held.len();
    if count > INVENTORY_MAX {
        let text = format!("must have at most {INVENTORY_MAX} entries, not {count}; give the worker fewer slots");
        return Err(FieldError::new(field, text));
    }
    ids(field, held.iter().flat_map(|held| [&held.job_id, &held.token]))
}

/// Ids of jobs and tokens of attempts are said back as they were told, so only their length can be wrong.
fn ids<'w>(field: &str, mut ids: impl Iterator<Item = &'w String>) -> Result<(), FieldError> {
    let Some(bytes) = ids.find(|id| id.len() > ID_BYTES_MAX).map(String::len) else { return Ok(()) };
    let text = format!("must be at most {ID_BYTES_MAX} bytes long, not {bytes}; say it back as it was told");
    Err(FieldError::new(field, text))
}
