//! Numbers without a keyword: cards, bank accounts, social security numbers.
//!
//! Each is a run of at least `shortest` bytes of a small alphabet. Probing one byte in every `shortest` finds all such runs
//! and skips nearly everything else.

use std::ops::Range;

use super::super::checks;
use super::iban;

/// A rule that searches runs of bytes.
pub(in super::super) struct Numbers {
    pub(in super::super) rule: &'static str,
    /// The bytes that a run consists of.
    alphabet: &'static Alphabet,
    /// The length of the shortest match, which is the stride: a longer stride would step over it.
    shortest: usize,
    /// The next match that starts at or after a position of the run.
    next: fn(&[u8], Range<usize>) -> Option<Range<usize>>,
}

type Alphabet = [bool; 256];

static GROUPED_DIGITS: Alphabet = alphabet(b"0123456789 -");
static IBAN_PARTS: Alphabet = alphabet(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ");

const fn alphabet(bytes: &[u8]) -> Alphabet {
    let mut table = [false; 256];
    let mut i = 0;
    while i < bytes.len() {
        table[bytes[i] as usize] = true;
        i += 1;
    }
    table
}

pub(in super::super) static NUMBERS: [Numbers; 3] = [
    Numbers { rule: "credit_card", alphabet: &GROUPED_DIGITS, shortest: 14, next: card },
    Numbers { rule: "iban", alphabet: &IBAN_PARTS, shortest: 15, next: iban::next },
    Numbers { rule: "us_ssn", alphabet: &GROUPED_DIGITS, shortest: 11, next: ssn },
];

/// All matches, in order.
pub(in super::super) fn spans(numbers: &'static Numbers, text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut run: Range<usize> = 0..0;
    std::iter::from_fn(move || {
        loop {
            if let Some(found) = (numbers.next)(bytes, run.clone()) {
                run.start = found.end;
                return Some(found);
            }
            let from = at.max(run.end);
            run = next_run(numbers, bytes, from)?;
            at = run.end;
        }
    })
}

/// The next run of the alphabet that is long enough, from a position outside of any run.
fn next_run(numbers: &Numbers, bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let outside = |b: &u8| !numbers.alphabet[usize::from(*b)];
    let mut floor = from;
    let mut at = from + numbers.shortest - 1;
    while at < bytes.len() {
        if outside(&bytes[at]) {
            floor = at + 1;
            at += numbers.shortest;
            continue;
        }
        let start = bytes[floor..at].iter().rposition(outside).map_or(floor, |i| floor + i + 1);
        let end = bytes[at..].iter().position(outside).map_or(bytes.len(), |i| at + i);
        if end - start >= numbers.shortest {
            return Some(start..end);
        }
        floor = end;
        at = end + numbers.shortest;
    }
    None
}

/// Groups of digits in one stretch of a run, at most five, all separated by the same single byte.
fn groups(bytes: &[u8], start: usize, end: usize) -> (Vec<Range<usize>>, Option<u8>) {
    const GROUPS_MAX: usize = 5;
    let mut groups = Vec::new();
    let mut parting = None;
    let mut at = start;
    loop {
        let len = bytes[at..end].iter().take_while(|b| b.is_ascii_digit()).count();
        if len == 0 {
            break;
        }
        groups.push(at..at + len);
        let next = bytes.get(at + len).copied().filter(|b| matches!(b, b' ' | b'-'));
        if groups.len() == GROUPS_MAX || next.is_none() || parting.is_some() && parting != next {
            break;
        }
        parting = next;
        at += len + 1;
        if at >= end {
            break;
        }
    }
    (groups, parting)
}

/// The starts of digit groups in a run.
fn starts<'a>(bytes: &'a [u8], run: &Range<usize>) -> impl Iterator<Item = usize> + 'a {
    let digit = |at: usize| bytes[at].is_ascii_digit();
    run.clone().filter(move |&at| digit(at) && (at == 0 || !digit(at - 1)))
}

fn card(bytes: &[u8], run: Range<usize>) -> Option<Range<usize>> {
    starts(bytes, &run).find_map(|start| card_at(bytes, start, run.end))
}

fn card_at(bytes: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    let (groups, parting) = groups(bytes, start, end);
    let lengths: Vec<usize> = groups.iter().map(Range::len).collect();
    let used = match lengths.as_slice() {
        [14..=16, ..] => 1,
        [4, 4, 4, 4, 3] => 5,
        [4, 4, 4, 4, ..] => 4,
        [4, 6, 5 | 4, ..] => 3,
        _ => return None,
    };
    let span = start..groups[used - 1].end;
    let digits: Vec<u8> = bytes[span.clone()].iter().copied().filter(u8::is_ascii_digit).collect();
    let alone = stands_alone(bytes, &span, if used == 1 { Some(b'-') } else { parting.filter(|b| *b == b'-') });
    (alone && is_issued(&digits) && checks::luhn(&digits)).then_some(span)
}

/// Whether no word, decimal point or further group touches the span. Otherwise it is part of something longer, such as an id
/// or a fraction.
fn stands_alone(bytes: &[u8], span: &Range<usize>, parting: Option<u8>) -> bool {
    let carries_on = |b: Option<&u8>| checks::is_word(b) || b.is_some_and(|b| Some(*b) == parting);
    let previous = span.start.checked_sub(1).map(|at| &bytes[at]);
    let fraction = bytes.get(span.end) == Some(&b'.') && bytes.get(span.end + 1).is_some_and(u8::is_ascii_digit);
    !(carries_on(previous) || previous == Some(&b'.') || carries_on(bytes.get(span.end)) || fraction)
}

/// Whether an issuer uses numbers with this beginning and length. The rare 19 digits count only in groups: as plain digits
/// they are far more often ids.
fn is_issued(digits: &[u8]) -> bool {
    let head = digits[..4].iter().fold(0_u32, |n, d| n * 10 + u32::from(d - b'0'));
    let long = matches!(head, 4000..=4999 | 6011 | 6440..=6599 | 6200..=6299);
    match digits.len() {
        14 => matches!(head, 3000..=3059 | 3600..=3699 | 3800..=3999),
        15 => matches!(head, 3400..=3499 | 3700..=3799),
        16 => long || matches!(head, 5100..=5599 | 2200..=2204 | 2221..=2720 | 3528..=3589),
        19 => long,
        _ => false,
    }
}

fn ssn(bytes: &[u8], run: Range<usize>) -> Option<Range<usize>> {
    starts(bytes, &run).find_map(|start| ssn_at(bytes, start))
}

fn ssn_at(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let span = start..start + 11;
    let text = bytes.get(span.clone())?;
    let shaped = text.iter().enumerate().all(|(i, b)| if matches!(i, 3 | 6) { *b == b'-' } else { b.is_ascii_digit() });
    let issued =
        &text[..3] != b"000" && &text[..3] != b"666" && text[0] != b'9' && &text[4..6] != b"00" && &text[7..] != b"0000";
    (shaped && issued && stands_alone(bytes, &span, Some(b'-'))).then_some(span)
}
