//! Times on the clocks of zones, with the days on which they are set.

use proptest::prelude::*;

use super::*;

fn table(cron: &str, zone: &str) -> Timetable {
    Timetable::new(&Rhythm::Cron(cron.into()), zone).unwrap_or_else(|error| panic!("{error}"))
}

/// The next times after a moment, on the zone's clock.
fn times(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let table = table(cron, zone);
    table.upcoming(at(after), count).into_iter().map(|time| table.write(time)).collect()
}

#[test]
fn a_time_that_the_clock_leaps_over_is_kept_once_right_after_the_leap() {
    let berlin = times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3);
    assert_eq!(berlin, ["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]);
    let new_york = times("15,45 2 * * *", "America/New_York", "2026-03-08T00:00:00Z", 3);
    assert_eq!(new_york, ["2026-03-08T03:00:00-04:00", "2026-03-09T02:15:00-04:00", "2026-03-09T02:45:00-04:00"]);
    let lord_howe = times("15 2 * * *", "Australia/Lord_Howe", "2026-10-02T15:00:00Z", 3);
    assert_eq!(lord_howe, ["2026-10-03T02:15:00+10:30", "2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"]);
}

#[test]
fn a_time_that_the_clock_shows_twice_is_kept_the_first_time() {
    let berlin = times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
    assert_eq!(berlin, ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]);
    let second_half = times("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1);
    assert_eq!(second_half, ["2026-10-26T02:30:00+01:00"], "02:10 for the second time");
    let new_york = times("*/30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", 3);
    assert_eq!(new_york, ["2026-11-01T01:00:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-02T01:00:00-05:00"]);
    let lord_howe = times("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", 2);
    assert_eq!(lord_howe, ["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"]);
}

#[test]
fn what_means_every_hour_goes_on_through_both() {
    let leap = times("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:29:00Z", 3);
    assert_eq!(leap, ["2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"]);
    let back = times("30 * * * *", "Europe/Berlin", "2026-10-24T23:59:00Z", 3);
    assert_eq!(back, ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"]);
    let lord_howe = times("*/15 * * * *", "Australia/Lord_Howe", "2026-04-04T14:40:00Z", 4);
    let quarters =
        ["2026-04-05T01:45:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T01:45:00+10:30", "2026-04-05T02:00:00+10:30"];
    assert_eq!(lord_howe, quarters);
}

#[test]
fn a_zone_that_never_sets_its_clock_has_even_days() {
    let kolkata = times("0 9 * * MON-FRI", "Asia/Kolkata", "2026-03-27T12:00:00Z", 3);
    assert_eq!(kolkata, ["2026-03-30T09:00:00+05:30", "2026-03-31T09:00:00+05:30", "2026-04-01T09:00:00+05:30"]);
    assert_eq!(times("@daily", "UTC", "2026-03-28T00:00:00Z", 1), ["2026-03-29T00:00:00+00:00"]);
    assert_eq!(times("@midnight", "UTC", "2026-03-28T00:00:00Z", 1), ["2026-03-29T00:00:00+00:00"]);
    for last_sunday in ["0 3 * * 7L", "0 3 * * 0L", "0 3 * * sunL"] {
        let expected = ["2026-03-29T03:00:00+00:00", "2026-04-26T03:00:00+00:00"];
        assert_eq!(times(last_sunday, "UTC", "2026-03-01T00:00:00Z", 2), expected, "{last_sunday}");
    }
    assert_eq!(times("0 3 * * 7#2", "UTC", "2026-03-01T00:00:00Z", 1), ["2026-03-08T03:00:00+00:00"]);
    assert_eq!(
        times("0 3 * * 1L,7L", "UTC", "2026-03-01T00:00:00Z", 2),
        ["2026-03-29T03:00:00+00:00", "2026-03-30T03:00:00+00:00"]
    );
    assert_eq!(times("*/20 59 23 31 12 *", "UTC", "2026-03-28T00:00:00Z", 2)[1], "2026-12-31T23:59:20+00:00");
}

#[test]
fn rare_days_are_found_and_impossible_ones_are_refused() {
    assert_eq!(times("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1), ["2104-02-29T00:00:00+00:00"]);
    for never in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *"] {
        let error = Timetable::new(&Rhythm::Cron(never.into()), "UTC").unwrap_err();
        assert_eq!(error, format!("{never:?} never comes: no month has such a day"));
    }
}

#[test]
fn the_latest_time_and_the_number_of_times_of_a_span() {
    let daily = table("0 2 * * *", "Europe/Berlin");
    let (from, to) = (at("2026-03-20T00:00:00Z"), at("2026-04-01T12:00:00Z"));
    assert_eq!(daily.latest(from, to), Some(at("2026-04-01T00:00:00Z")));
    assert_eq!(daily.count(from, to), Count::Exactly(13));
    assert_eq!(daily.latest(to, from), None);
    let leap_days = table("0 0 29 2 *", "UTC");
    assert_eq!(leap_days.latest(Timestamp::ZERO, to), Some(at("2024-02-29T00:00:00Z")));
    let seconds = table("* * * * * *", "UTC");
    assert_eq!(seconds.count(from, to), Count::MoreThan(10_000));
    let every = Timetable::new(&Rhythm::EveryMs(1_000), "UTC").unwrap();
    assert_eq!(every.count(from, to), Count::Exactly(12 * 86_400 + 43_200), "counted without looking at each");
}

const ZONES: [&str; 4] = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"];

/// The clock of a zone at a moment, in minutes since 1970-01-01T00:00 of that clock.
fn clock(table: &Timetable, moment: i64) -> i64 {
    let written = table.write(ms(moment));
    at(&format!("{}Z", &written[..19])).as_millis() / MINUTE
}

/// Looks at every minute of a span. A time of the day is kept at the first minute at which the clock shows it or has leapt
/// over it, if the clock did not show it before.
fn by_looking(table: &Timetable, minute: i64, hours: &[i64], from: i64, to: i64) -> Vec<i64> {
    let matches = |shown: i64| shown.rem_euclid(60) == minute && hours.contains(&(shown.div_euclid(60).rem_euclid(24)));
    let mut kept = Vec::new();
    let mut furthest = clock(table, from - MINUTE);
    for moment in (from..=to).step_by(MINUTE as usize) {
        let shown = clock(table, moment);
        let due = if hours.len() == 24 { matches(shown) } else { (furthest + 1..=shown).any(matches) };
        furthest = furthest.max(shown);
        kept.extend(due.then_some(moment));
    }
    kept
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn times_are_those_that_looking_at_every_minute_finds(
        zone in 0..ZONES.len(),
        minute in 0_i64..60,
        hours in prop_oneof![Just((0..24).collect::<Vec<i64>>()), prop::collection::btree_set(0_i64..5, 1..4).prop_map(|set| set.into_iter().collect())],
        change in prop_oneof![Just("2026-03-08"), Just("2026-03-29"), Just("2026-04-04"), Just("2026-10-03"), Just("2026-10-25"), Just("2026-11-01")],
    ) {
        let (from, to) = (at(&format!("{change}T00:00:00Z")).as_millis() - DAY / 2, at(&format!("{change}T00:00:00Z")).as_millis() + 2 * DAY);
        let field = if hours.len() == 24 { "*".to_owned() } else { hours.iter().map(ToString::to_string).collect::<Vec<_>>().join(",") };
        let table = table(&format!("{minute} {field} * * *"), ZONES[zone]);
        let mut found = Vec::new();
        let mut after = ms(from - 1);
        while let Some(time) = table.next(after).filter(|time| time.as_millis() <= to) {
            found.push(time.as_millis());
            after = time;
        }
        prop_assert_eq!(found, by_looking(&table, minute, &hours, from, to));
    }
}
