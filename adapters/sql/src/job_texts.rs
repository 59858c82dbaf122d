//! The texts that a change of a job writes.

use lockgate_ports::JobChange;

use crate::packed;

/// The usual length, so that the text is seldom reallocated while it grows.
const REQUEST_BYTES: usize = 256;

pub struct JobTexts {
    pub life: String,
    /// One JSON text per line, appended to the job's column.
    pub events: String,
    /// Empty unless the job is new, because a request is written only once.
    pub request: String,
}

impl JobTexts {
    pub fn of(change: &JobChange) -> Result<Self, serde_json::Error> {
        let job = &change.transition.job;
        let life = packed::life_text(&job.life)?;
        let events = packed::events_text(&change.transition.events)?;
        let request = match job.version {
            1 => packed::text(REQUEST_BYTES, |text| serde_json::to_writer(text, &*job.request))?,
            _ => String::new(),
        };
        Ok(Self { life, events, request })
    }
}
