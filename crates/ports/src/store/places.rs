//! The position of a slot in the list of its schedule.
//!
//! Several series may have a slot at one nominal time, and a page may end between two of them, so the time alone is no
//! cursor. A slot gets a position when it is first written and keeps it: its nominal time and its rank among the slots of
//! that time, in one number. A page can continue below a position even if its slot was deleted.

use lockgate_core::time::Timestamp;

/// Positions per millisecond. A series has at most one slot in it, so this many series fit; further ones would share the
/// last position, and a page that ends there would skip them.
const PLACES: i64 = 1 << 16;
/// Times beyond the year 6429, and as far before the epoch, share the positions of the last possible time.
const MILLIS_MAX: i64 = i64::MAX / PLACES - 1;

/// The first and the last position of a nominal time.
pub fn places(nominal: Timestamp) -> (i64, i64) {
    let first = nominal.as_millis().clamp(-MILLIS_MAX, MILLIS_MAX) * PLACES;
    (first, first + (PLACES - 1))
}

/// The position of a new slot; `latest` is the highest position taken at its nominal time.
pub fn next_place(nominal: Timestamp, latest: Option<i64>) -> i64 {
    let (first, last) = places(nominal);
    latest.map_or(first, |latest| (latest + 1).min(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_time_and_then_the_order_of_arrival() {
        let at = |millis| places(Timestamp::from_millis(millis));
        assert!(at(-1).1 < at(0).0 && at(0).1 < at(1).0);
        assert_eq!(at(0), (0, 65_535));
        let now = Timestamp::from_millis(1_800_000_000_000);
        let (first, last) = places(now);
        assert_eq!(
            (next_place(now, None), next_place(now, Some(first)), next_place(now, Some(last))),
            (first, first + 1, last)
        );
    }

    #[test]
    fn no_time_is_too_far_away() {
        let (first, last) = places(Timestamp::from_millis(i64::MAX));
        assert!(first > 0 && last > first && last < i64::MAX - 1);
        let (first, last) = places(Timestamp::from_millis(i64::MIN));
        assert!(first < 0 && last > first);
    }
}
