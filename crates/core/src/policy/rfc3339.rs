//! Parses RFC 3339 times such as `2030-01-31T12:00:00Z` or `2030-01-31T13:00:00.5+01:00`.

use crate::time::Timestamp;

const DAY_MS: i64 = 24 * 3600 * 1000;

/// None if the text is no time of the calendar. Leap seconds are refused, because Unix time cannot express them.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let (date, time) = (text.get(..10)?, text.get(11..)?);
    if !matches!(text.as_bytes()[10], b'T' | b't') {
        return None;
    }
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at(zone);
    let millis = days(date)? * DAY_MS + clock_ms(clock)? - offset_ms(zone)?;
    Some(Timestamp::from_millis(millis))
}

/// Days since 1970-01-01.
fn days(date: &str) -> Option<i64> {
    let [year, month, day] = fields(date, '-', [4, 2, 2])?;
    let leap = |year: i64| i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
    let lengths = [31, 28 + leap(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = lengths.get(..usize::try_from(month - 1).ok()?)?;
    let length = lengths.get(before.len())?;
    if !(1..=*length).contains(&day) {
        return None;
    }
    // Leap days before 1 January of the year, counted from the year 0, which was a leap year.
    let leap_days = |year: i64| if year == 0 { 0 } else { (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400 + 1 };
    Some((year - 1970) * 365 + leap_days(year) - leap_days(1970) + before.iter().sum::<i64>() + day - 1)
}

fn clock_ms(clock: &str) -> Option<i64> {
    let (whole, fraction) = clock.split_once('.').map_or((clock, None), |(whole, fraction)| (whole, Some(fraction)));
    let [hour, minute, second] = fields(whole, ':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(((hour * 60 + minute) * 60 + second) * 1000 + fraction.map_or(Some(0), fraction_ms)?)
}

/// The first three digits; the others are finer than a timestamp.
fn fraction_ms(digits: &str) -> Option<i64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    format!("{digits:0<3}").get(..3)?.parse().ok()
}

fn offset_ms(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first()? {
        b'Z' | b'z' => return (zone.len() == 1).then_some(0),
        b'+' => 1,
        _ => -1,
    };
    let [hours, minutes] = fields(&zone[1..], ':', [2, 2])?;
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes) * 60_000)
}

/// Numbers with exactly these many digits.
fn fields<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(separator);
    for (number, width) in numbers.iter_mut().zip(widths) {
        let digits = parts.next().filter(|part| part.len() == width && part.bytes().all(|b| b.is_ascii_digit()))?;
        *number = digits.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_counted_from_the_epoch() {
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-03-01T00:00:00Z", 951_868_800_000),
            ("2024-02-29T12:30:45.678Z", 1_709_209_845_678),
            ("2030-01-31T12:00:00+01:00", 1_896_087_600_000),
            ("2030-01-31t12:00:00.5-00:30", 1_896_093_000_500),
            ("1969-12-31T23:59:59.9999Z", -1),
            ("0000-01-01T00:00:00Z", -62_167_219_200_000),
            ("9999-12-31T23:59:59Z", 253_402_300_799_000),
        ] {
            assert_eq!(parse(text), Some(Timestamp::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "2030-01-31",
            "2030-01-31 12:00:00Z",
            "2030-01-31T12:00:00",
            "2030-01-31T12:00Z",
            "2030-02-29T12:00:00Z",
            "1900-02-29T12:00:00Z",
            "2030-13-01T12:00:00Z",
            "2030-00-01T12:00:00Z",
            "2030-01-00T12:00:00Z",
            "2030-01-31T24:00:00Z",
            "2030-01-31T12:00:60Z",
            "2030-01-31T12:00:00.Z",
            "2030-01-31T12:00:00+1:00",
            "2030-01-31T12:00:00Zx",
            "2030-01-31T12:00:00Zé",
            "é030-01-31T12:00:00Z",
            "+030-01-31T12:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
