//! Loads schedules from the text of a file, or reports every error in it.

mod when;
mod work;

use std::sync::Arc;

use super::{
    GRACE_MS_DEFAULT, MISFIRE_WINDOW_MS_DEFAULT, Misfire, Overlap, QUEUE_MAX, SCHEDULES_MAX, Spec, Timetable, keys,
};
use crate::config::read::{self, Fields};
use crate::config::yaml::{self, YamlEntry, YamlNode};
use crate::config::{ConfigError, ConfigReport};
use crate::limits::SPAN_MS_MAX;

/// The only version of the schedule language so far.
const VERSION: u64 = 1;
/// Room for the largest number of schedules at some hundred bytes each.
pub(super) const TEXT_BYTES_MAX: usize = 8 << 20;
/// A longer jitter is a typing error: the schedule should have another rhythm.
pub(super) const JITTER_MS_MAX: u64 = 24 * 3_600_000;

/// Reads a file of schedules. `file` is its name in error messages.
pub fn load(file: &str, text: &str) -> Result<Vec<(Arc<str>, Spec)>, Vec<ConfigError>> {
    let mut report = ConfigReport::new(file);
    let root = yaml::parse_within(TEXT_BYTES_MAX, text, &mut report);
    let schedules = root.and_then(|root| read_file(&root, &mut report));
    match schedules {
        Some(schedules) if report.is_clean() => Ok(schedules),
        _ => Err(report.into_errors()),
    }
}

fn read_file(root: &YamlNode, report: &mut ConfigReport) -> Option<Vec<(Arc<str>, Spec)>> {
    let fields = Fields::of(root, &keys::FILE, report)?;
    if let Some(node) = fields.need("version", report) {
        read::whole(node, "version", VERSION..=VERSION, report);
    }
    let entries = fields.need("schedules", report).and_then(|node| read::some_entries(node, "schedules", report))?;
    if let Some(more) = entries.get(SCHEDULES_MAX) {
        report.refuse(more.at, format!("a file has at most {SCHEDULES_MAX} schedules; put the rest into another"));
        return None;
    }
    Some(entries.iter().filter_map(|entry| read_schedule(entry, report)).collect())
}

fn read_schedule(entry: &YamlEntry, report: &mut ConfigReport) -> Option<(Arc<str>, Spec)> {
    let name = read::name(&entry.key, "schedule", entry.at, report);
    let fields = Fields::of(&entry.value, &keys::SCHEDULE, report)?;
    let description = fields.get("description").and_then(|node| read::text(node, "description", report));
    let when = when::read(fields, report);
    let mut span = |key: &str, low: u64, high: u64| fields.get(key).map(|node| read::span(node, key, low..=high, report));
    let jitter_ms = span("jitter", 0, JITTER_MS_MAX).unwrap_or(Some(0));
    let grace_ms = span("grace", 1_000, SPAN_MS_MAX).unwrap_or(Some(GRACE_MS_DEFAULT));
    let window = span("misfire_window", 1, SPAN_MS_MAX).unwrap_or(Some(MISFIRE_WINDOW_MS_DEFAULT));
    let misfire = read_misfire(fields, report);
    let (overlap, queue) = read_overlap(fields, report);
    let paused = fields.get("paused").and_then(|node| read::truth(node, "paused", report));
    let (work, found) = work::read(fields, report);
    let when = when?;
    let spec = Spec {
        description: description.map(Into::into),
        rhythm: when.rhythm,
        time_zone: when.zone,
        start_at: when.start_at,
        end_at: when.end_at,
        jitter_ms: jitter_ms?,
        grace_ms: grace_ms?,
        misfire: misfire?,
        misfire_window_ms: window?,
        overlap: overlap?,
        queue: queue?,
        paused: paused.unwrap_or(false),
        work: work?,
    };
    check_times(&spec, fields, report);
    work::check(&entry.key, &spec, found, fields, report);
    Some((name?.into(), spec))
}

fn read_misfire(fields: Fields<'_>, report: &mut ConfigReport) -> Option<Misfire> {
    let words: Vec<(&str, Misfire)> = Misfire::ALL.iter().map(|word| (word.as_str(), *word)).collect();
    let Some(node) = fields.get("misfire") else { return Some(Misfire::default()) };
    let misfire = read::choice(node, "misfire", &words, report)?;
    if let (Misfire::Skip, Some(at)) = (misfire, fields.place("misfire_window")) {
        report.refuse(at, "misfire_window does nothing with misfire: skip; remove it");
    }
    Some(misfire)
}

fn read_overlap(fields: Fields<'_>, report: &mut ConfigReport) -> (Option<Overlap>, Option<u32>) {
    let words: Vec<(&str, Overlap)> = Overlap::ALL.iter().map(|word| (word.as_str(), *word)).collect();
    let overlap = match fields.get("overlap") {
        Some(node) => read::choice(node, "overlap", &words, report),
        None => Some(Overlap::default()),
    };
    let queue = match fields.get("queue") {
        Some(node) => read::count(node, "queue", QUEUE_MAX, report),
        None => Some(1),
    };
    if let (Some(overlap), Some(at)) = (overlap.filter(|overlap| *overlap != Overlap::Queue), fields.place("queue")) {
        report
            .refuse(at, format!("queue does nothing with overlap: {}; remove it or write overlap: queue", overlap.as_str()));
    }
    (overlap, queue)
}

/// Refuses a schedule that never comes due.
fn check_times(spec: &Spec, fields: Fields<'_>, report: &mut ConfigReport) {
    let at = |key: &str| fields.place(key).unwrap_or(fields.at);
    if let (Some(start), Some(end)) = (spec.start_at, spec.end_at)
        && start >= end
    {
        return report.refuse(at("end_at"), "end_at must be after start_at");
    }
    match Timetable::of(spec) {
        // An invalid time zone or cron expression has its own error already.
        Err(_) => {}
        Ok(table) if table.next(crate::time::Timestamp::from_millis(i64::from(i32::MIN) * 1000)).is_none() => {
            report.refuse(at("end_at"), "no time of the schedule lies before end_at; move it or remove it");
        }
        Ok(_) => {}
    }
}
