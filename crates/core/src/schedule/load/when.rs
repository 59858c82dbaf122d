//! Reads when a schedule comes due.

use std::sync::Arc;

use super::super::timing::UTC;
use super::super::{Rhythm, Timetable};
use crate::config::ConfigReport;
use crate::config::read::{self, Fields};
use crate::limits::SPAN_MS_MAX;
use crate::policy::rfc3339;
use crate::time::Timestamp;

/// The shortest interval: more frequent work is a stream, not a schedule.
pub(in crate::schedule) const EVERY_MS_MIN: u64 = 1_000;

pub(super) struct ScheduleTiming {
    pub(super) rhythm: Rhythm,
    pub(super) zone: Arc<str>,
    pub(super) start_at: Option<Timestamp>,
    pub(super) end_at: Option<Timestamp>,
}

pub(super) fn read(fields: Fields<'_>, report: &mut ConfigReport) -> Option<ScheduleTiming> {
    let zone = read_zone(fields, report);
    let rhythm = read_rhythm(fields, zone.as_deref().unwrap_or(UTC), report);
    let moment = |key: &str, report: &mut ConfigReport| match fields.get(key) {
        None => Some(None),
        Some(node) => {
            let moment = read::text(node, key, report).and_then(rfc3339::parse);
            if moment.is_none() {
                report.refuse(node.at, format!("{key} must be a moment such as 2030-01-31T12:00:00Z"));
            }
            moment.map(Some)
        }
    };
    let (start_at, end_at) = (moment("start_at", report), moment("end_at", report));
    Some(ScheduleTiming { rhythm: rhythm?, zone: zone?, start_at: start_at?, end_at: end_at? })
}

fn read_zone(fields: Fields<'_>, report: &mut ConfigReport) -> Option<Arc<str>> {
    let Some(node) = fields.get("time_zone") else { return Some(UTC.into()) };
    let zone = read::text(node, "time_zone", report)?;
    match Timetable::new(&Rhythm::EveryMs(EVERY_MS_MIN), zone) {
        Ok(_) => Some(zone.into()),
        Err(error) => {
            report.refuse(node.at, format!("time_zone {error}"));
            None
        }
    }
}

fn read_rhythm(fields: Fields<'_>, zone: &str, report: &mut ConfigReport) -> Option<Rhythm> {
    match (fields.get("cron"), fields.get("every")) {
        (Some(node), None) => {
            let rhythm = Rhythm::Cron(read::text(node, "cron", report)?.into());
            match Timetable::new(&rhythm, zone) {
                Ok(_) => Some(rhythm),
                Err(error) => {
                    report.refuse(node.at, format!("cron {error}"));
                    None
                }
            }
        }
        (None, Some(node)) => read::span(node, "every", EVERY_MS_MIN..=SPAN_MS_MAX, report).map(Rhythm::EveryMs),
        (Some(_), Some(_)) => {
            let at = fields.place("every").unwrap_or(fields.at);
            report.refuse(at, "cron and every both say when; remove one");
            None
        }
        (None, None) => {
            report.refuse(fields.at, "the schedule does not say when; add cron or every");
            None
        }
    }
}
