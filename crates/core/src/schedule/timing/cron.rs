//! Cron expressions on the clock of a time zone.
//!
//! A library parses expressions and knows the calendar; this module decides what happens at clock changes:
//! - An expression with certain hours means times of the day, each once. A time that a clock change skips comes at the first
//!   moment after the gap, once for all skipped times; a time that occurs twice comes at its first occurrence.
//! - An expression with every hour follows the clock: it comes whenever the clock shows a matching time, also for the second
//!   time, and not at skipped times.

use std::borrow::Cow;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

/// A span at the end of the library's calendar in which every day of the year falls on every day of the week.
const LAST_YEARS: DateTime = DateTime::constant(4956, 1, 1, 0, 0, 0, 0);
/// Clocks change twice a year, and the rarest calendar day comes within 40 years.
const CHANGES_MAX: usize = 200;
const NICKNAMES: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

#[derive(Debug)]
pub(super) struct CronTimes {
    cron: Cron,
    zone: TimeZone,
    every_hour: bool,
}

/// The parser lacks `@midnight`, and accepts Sunday as 7 only alone: not in `7L`, the last one of a month, nor in `7#2`.
fn known_to_the_parser(text: &str) -> Cow<'_, str> {
    if text.trim().eq_ignore_ascii_case("@midnight") {
        return Cow::Borrowed("@daily");
    }
    let Some((others, weekdays)) = text.trim_end().rsplit_once(char::is_whitespace) else { return Cow::Borrowed(text) };
    let sunday =
        |day: &str| day.strip_prefix('7').filter(|rest| rest.starts_with(['L', 'l', '#'])).map(|rest| format!("0{rest}"));
    if !weekdays.split(',').any(|day| sunday(day).is_some()) {
        return Cow::Borrowed(text);
    }
    let weekdays: Vec<String> = weekdays.split(',').map(|day| sunday(day).unwrap_or_else(|| day.to_owned())).collect();
    Cow::Owned(format!("{others} {}", weekdays.join(",")))
}

impl CronTimes {
    pub(super) fn parse(text: &str, zone: TimeZone) -> Result<Self, String> {
        let nickname = text.trim().starts_with('@');
        if nickname && !NICKNAMES.iter().any(|known| known.eq_ignore_ascii_case(text.trim())) {
            return Err(format!("{text:?} is no cron expression; the names are {}", NICKNAMES.join(", ")));
        }
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let cron = parser.parse(&known_to_the_parser(text)).map_err(|error| {
            format!("{text:?} is no cron expression; it has minute, hour, day, month and weekday, and may have seconds before them: {error}")
        })?;
        let every_hour = cron.pattern.hours.values().len() == 24;
        let times = Self { cron, zone, every_hour };
        match times.shown_from(LAST_YEARS, true) {
            Some(_) => Ok(times),
            None => Err(format!("{text:?} never comes: no month has such a day")),
        }
    }

    /// The first time after a moment.
    pub(super) fn next(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        if self.every_hour { self.next_shown(after) } else { self.next_of_day(after) }
    }

    /// The first matching time on a clock without changes.
    fn shown_from(&self, from: DateTime, inclusive: bool) -> Option<DateTime> {
        self.cron.find_next_occurrence(&from, inclusive).ok()
    }

    /// A later time of the day never comes before an earlier one, so the first that comes after the moment is the next.
    fn next_of_day(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let mut shown = self.shown_from(self.zone.to_datetime(after), true)?;
        loop {
            let kept = self.kept_at(shown)?;
            if kept > after {
                return Some(kept);
            }
            shown = self.shown_from(shown, false)?;
        }
    }

    /// The moment at which a time of the day comes.
    fn kept_at(&self, shown: DateTime) -> Option<jiff::Timestamp> {
        let at = |offset: Offset| offset.to_timestamp(shown).ok();
        match self.zone.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => at(offset),
            AmbiguousOffset::Fold { before, .. } => at(before),
            // By the offset after the gap, the skipped time lies before the gap's end.
            AmbiguousOffset::Gap { after, .. } => self.zone.following(at(after)?).next().map(|leap| leap.timestamp()),
        }
    }

    /// Searches from one clock change to the next.
    fn next_shown(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let (mut from, mut inclusive) = (after, false);
        for _ in 0..CHANGES_MAX {
            let offset = self.zone.to_offset(from);
            let change = self.zone.following(from).next().map(|change| change.timestamp());
            let found = self.shown_from(offset.to_datetime(from), inclusive)?;
            let found = offset.to_timestamp(found).ok()?;
            match change.filter(|change| *change <= found) {
                None => return Some(found),
                Some(change) => (from, inclusive) = (change, true),
            }
        }
        None
    }
}
