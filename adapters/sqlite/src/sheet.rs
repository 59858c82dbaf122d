//! A change as the columns it will be written to.
//!
//! Filled by the caller, on its own thread: the one writing thread is everybody's bottleneck and should not format
//! JSON.

use lockgate_core::audit::AuditEntry;
use lockgate_core::job::{Duty, JobEvent};
use lockgate_ports::Change;
use serde::Serialize;

use crate::error::Fault;
use crate::packed::{PackedEvent, PackedLife};

pub(crate) struct Sheet {
    pub(crate) change: Change,
    pub(crate) life: String,
    /// One JSON text per line, to be appended to the job's column.
    pub(crate) events: String,
    /// Empty unless the job is new: the request is written once.
    pub(crate) request: String,
    /// Duties that begin (true) or end (false). Most changes have none.
    pub(crate) duties: Vec<(Duty, bool)>,
    pub(crate) audit: Vec<AuditEntry>,
}

impl Sheet {
    pub(crate) fn fill(change: Change) -> Result<Self, Fault> {
        let job = &change.transition.job;
        let life = json(&PackedLife::pack(&job.life), LIFE_BYTES)?;
        let events = events_text(&change.transition.events)?;
        let request = if job.version == 1 { json(&*job.request, REQUEST_BYTES)? } else { String::new() };
        let (duties, audit) = (change.transition.duties().collect(), change.transition.audit());
        Ok(Self { change, life, events, request, duties, audit })
    }

    pub(crate) fn result(&self) -> Option<&str> {
        self.change.transition.result.as_ref().map(|result| result.as_str())
    }
}

/// Usual lengths, so that texts are seldom moved while they grow.
const LIFE_BYTES: usize = 384;
const REQUEST_BYTES: usize = 256;
const EVENT_BYTES: usize = 128;

fn json(value: &impl Serialize, usual_bytes: usize) -> Result<String, Fault> {
    let mut text = Vec::with_capacity(usual_bytes);
    serde_json::to_writer(&mut text, value)?;
    utf8(text)
}

fn events_text(events: &[JobEvent]) -> Result<String, Fault> {
    let mut text = Vec::with_capacity(events.len() * EVENT_BYTES);
    for event in events {
        serde_json::to_writer(&mut text, &PackedEvent::from(event))?;
        text.push(b'\n');
    }
    utf8(text)
}

fn utf8(text: Vec<u8>) -> Result<String, Fault> {
    String::from_utf8(text).map_err(|error| Fault::Row(error.to_string()))
}
