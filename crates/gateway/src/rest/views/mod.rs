//! Answers that are not made from messages yet.

mod dag;
mod names;
mod schedule;

use lockgate_core::request::Json;
use serde_json::value::RawValue;

pub(super) use dag::{Dag, Dags, Run, Runs, Started, StoredDag};
use names::{Name, Time};
pub(super) use schedule::{AppliedSchedules, BegunBackfill, Schedule, Schedules, Slot, Slots};

fn document(json: &Json) -> Option<Box<RawValue>> {
    RawValue::from_string(json.as_str().to_owned()).ok()
}
