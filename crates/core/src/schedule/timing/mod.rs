//! The nominal times of a schedule.

mod cron;
mod zone;

use std::fmt;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use self::cron::CronTimes;
use super::Spec;
use crate::time::Timestamp;

pub(crate) use self::zone::UTC;

/// Times are counted one by one up to this number; beyond it the count is only "more".
const COUNTED_MAX: usize = 10_000;
/// Spans to look back for the latest time, tried one after the other.
const LOOKS_BACK_MS: [i64; 6] =
    [60_000, 3_600_000, 24 * 3_600_000, 32 * 24 * 3_600_000, 400 * 24 * 3_600_000, 41 * 366 * 24 * 3_600_000];

/// When a schedule comes due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rhythm {
    Cron(Arc<str>),
    /// The interval in milliseconds, counted from `start_at` or else from the Unix epoch.
    EveryMs(u64),
}

/// The nominal times of a schedule, computed on demand.
#[derive(Debug)]
pub struct Timetable {
    times: Times,
    zone: TimeZone,
    /// The first possible time.
    start_at: Option<Timestamp>,
    /// Times at and after this are not part of the timetable.
    end_at: Option<Timestamp>,
}

#[derive(Debug)]
enum Times {
    Cron(Box<CronTimes>),
    Every { anchor: i64, period: i64 },
}

/// A moment as RFC 3339 on the clock of a zone.
pub(super) fn write_in(zone: &str, at: Timestamp) -> Result<String, String> {
    zone::find(zone).map(|zone| zone::write(&zone, at))
}

/// How many times lie in a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Exactly(u64),
    MoreThan(u64),
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(count) => write!(f, "{count}"),
            Self::MoreThan(count) => write!(f, "more than {count}"),
        }
    }
}

impl Timetable {
    /// An error text says what is wrong with the rhythm or the zone.
    pub fn new(rhythm: &Rhythm, zone: &str) -> Result<Self, String> {
        let zone = zone::find(zone)?;
        let times = match rhythm {
            Rhythm::Cron(text) => Times::Cron(Box::new(CronTimes::parse(text, zone.clone())?)),
            Rhythm::EveryMs(period) => Times::Every { anchor: 0, period: i64::try_from(*period).unwrap_or(i64::MAX).max(1) },
        };
        Ok(Self { times, zone, start_at: None, end_at: None })
    }

    /// The timetable of a spec, which was checked when it was loaded.
    pub(super) fn of(spec: &Spec) -> Result<Self, String> {
        let mut table = Self::new(&spec.rhythm, &spec.time_zone)?;
        if let (Times::Every { anchor, .. }, Some(start)) = (&mut table.times, spec.start_at) {
            *anchor = start.as_millis();
        }
        Ok(Self { start_at: spec.start_at, end_at: spec.end_at, ..table })
    }

    /// The timetable without `start_at` and `end_at`.
    pub(super) fn unbounded(mut self) -> Self {
        (self.start_at, self.end_at) = (None, None);
        self
    }

    /// The first time after a moment.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let just_before = |start: Timestamp| Timestamp::from_millis(start.as_millis() - 1);
        let after = self.start_at.map_or(after, |start| after.max(just_before(start)));
        let next = match &self.times {
            Times::Cron(cron) => {
                let after = jiff::Timestamp::from_millisecond(after.as_millis()).ok()?;
                Timestamp::from_millis(cron.next(after)?.as_millisecond())
            }
            Times::Every { anchor, period } => {
                let steps = after.as_millis().checked_sub(*anchor)?.div_euclid(*period).checked_add(1)?;
                Timestamp::from_millis(anchor.checked_add(steps.checked_mul(*period)?)?)
            }
        };
        (self.end_at.is_none_or(|end| next < end)).then_some(next)
    }

    /// The next `count` times after a moment.
    pub fn upcoming(&self, after: Timestamp, count: usize) -> Vec<Timestamp> {
        std::iter::successors(self.next(after), |time| self.next(*time)).take(count).collect()
    }

    /// The last time after `after` and up to `until`.
    pub fn latest(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let from = |back: i64| Timestamp::from_millis(until.as_millis().saturating_sub(back)).max(after);
        let near = LOOKS_BACK_MS.into_iter().map(from).find(|from| self.within(*from, until).next().is_some())?;
        self.within(near, until).last()
    }

    /// How many times lie after `after` and up to `until`.
    pub fn count(&self, after: Timestamp, until: Timestamp) -> Count {
        self.count_up_to(COUNTED_MAX, after, until)
    }

    pub(super) fn count_up_to(&self, most: usize, after: Timestamp, until: Timestamp) -> Count {
        if let (Times::Every { period, .. }, Some(last)) = (&self.times, self.latest(after, until)) {
            let first = self.next(after).unwrap_or(last);
            return Count::Exactly((last.as_millis() - first.as_millis()).unsigned_abs() / period.unsigned_abs() + 1);
        }
        match self.within(after, until).take(most + 1).count() {
            count if count > most => Count::MoreThan(most as u64),
            count => Count::Exactly(count as u64),
        }
    }

    fn within(&self, after: Timestamp, until: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.next(after), |time| self.next(*time)).take_while(move |time| *time <= until)
    }

    /// A moment as RFC 3339 on the clock of the schedule's zone.
    pub fn write(&self, at: Timestamp) -> String {
        zone::write(&self.zone, at)
    }
}
