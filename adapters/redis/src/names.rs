//! Encodes names and positions in keys.

use lockgate_core::ids::{JobId, JobSeq};
use lockgate_core::lane::ReadyKey;
use lockgate_core::time::Timestamp;
use sha2::{Digest, Sha256};

/// Digits in the order of their bytes, so that encoded numbers compare as text.
const DIGITS: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
/// Digits of each half of a position, and of an id; the scripts repeat them.
const HALF: usize = 8;
const ID: usize = 14;
/// The largest value of a half: times until the year 10889, and 280,000 billion jobs.
const HALF_MAX: i64 = (1 << (6 * HALF)) - 1;

/// A name of any length as fourteen digits, equal in every process. Among ten million names two share an id with a chance of
/// one in 370 billion.
pub(crate) fn id(name: &str) -> String {
    let hash = Sha256::digest(name.as_bytes());
    let bits = hash.iter().take(16).fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
    (0..ID).map(|at| digit((bits >> (6 * at)) as u64)).collect()
}

/// A job's position in its lane: text that sorts like the key.
pub(crate) fn place(key: ReadyKey) -> String {
    let mut place = String::with_capacity(2 * HALF);
    for half in [key.due_at.as_millis(), key.seq.0] {
        let bits = half.clamp(0, HALF_MAX).cast_unsigned();
        place.extend((0..HALF).rev().map(|at| digit(bits >> (6 * at))));
    }
    place
}

/// The member of a lane's sorted set that stands for a job.
pub(crate) fn member(key: ReadyKey, job: &JobId) -> String {
    let mut member = place(key);
    member.push_str(job.as_str());
    member
}

pub(crate) fn read_place(text: &str) -> Option<ReadyKey> {
    let (due_at, seq) = (number(text.get(..HALF)?)?, number(text.get(HALF..2 * HALF)?)?);
    Some(ReadyKey { due_at: Timestamp::from_millis(due_at), seq: JobSeq(seq) })
}

pub(crate) fn read_member(text: &str) -> Option<(ReadyKey, JobId)> {
    Some((read_place(text)?, JobId::from(text.get(2 * HALF..)?)))
}

fn digit(bits: u64) -> char {
    char::from(DIGITS[(bits & 63) as usize])
}

fn number(digits: &str) -> Option<i64> {
    digits.bytes().try_fold(0, |number, digit| Some(number << 6 | i64::try_from(DIGITS.binary_search(&digit).ok()?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(due_at: i64, seq: i64) -> ReadyKey {
        ReadyKey { due_at: Timestamp::from_millis(due_at), seq: JobSeq(seq) }
    }

    #[test]
    fn places_sort_as_keys_do_and_can_be_read_back() {
        let keys = [key(0, 0), key(0, 1), key(1_000, 9), key(1_000, 10), key(1_700_000_000_000, 3), key(HALF_MAX, HALF_MAX)];
        let places: Vec<_> = keys.map(place).into();
        assert!(places.is_sorted_by(|a, b| a.as_bytes() < b.as_bytes()), "{places:?}");
        for (key, place) in keys.iter().zip(&places) {
            assert_eq!(read_place(place), Some(*key));
        }
        assert_eq!(read_member(&member(keys[3], &"job-é".into())), Some((keys[3], "job-é".into())));
        assert_eq!(read_member("too short"), None);
    }

    #[test]
    fn times_and_numbers_that_cannot_be_are_the_nearest_that_can() {
        assert_eq!(place(key(-5, -1)), place(key(0, 0)));
        assert_eq!(place(key(i64::MAX, 7)), place(key(HALF_MAX, 7)));
    }

    #[test]
    fn ids_have_fourteen_digits_and_differ() {
        assert_eq!(id("a").len(), ID);
        assert_ne!(id("a"), id("b"));
    }
}
