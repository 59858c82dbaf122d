//! International bank account numbers.

use std::ops::Range;

use super::super::checks;

/// Length by country, as registered.
const LENGTHS: [(&[u8; 2], usize); 79] = [
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"LY", 25),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NL", 18),
    (b"NO", 15),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"SA", 24),
    (b"SC", 31),
    (b"SD", 18),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"SO", 23),
    (b"ST", 25),
    (b"SV", 28),
    (b"TL", 23),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VG", 24),
    (b"XK", 20),
];

pub(super) fn next(bytes: &[u8], run: Range<usize>) -> Option<Range<usize>> {
    run.clone().find_map(|start| at(bytes, start, run.end))
}

fn at(bytes: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    let [a, b, c, d] = *bytes.get(start..start + 4)?.first_chunk()?;
    let shaped = a.is_ascii_uppercase() && b.is_ascii_uppercase() && c.is_ascii_digit() && d.is_ascii_digit();
    if !shaped || start > 0 && checks::is_word(bytes.get(start - 1)) {
        return None;
    }
    let (_, length) = LENGTHS.iter().find(|(country, _)| **country == [a, b])?;
    let (account, span) = take(&bytes[..end], start, *length)?;
    (!checks::is_word(bytes.get(span.end)) && checks::mod_97(&account)).then_some(span)
}

/// `length` letters and digits, with at most single spaces between groups of four.
fn take(bytes: &[u8], start: usize, length: usize) -> Option<(Vec<u8>, Range<usize>)> {
    let mut account = Vec::with_capacity(length);
    for (i, &b) in bytes[start..].iter().enumerate() {
        match b {
            b' ' if account.len() % 4 != 0 || bytes[start + i - 1] == b' ' => return None,
            b' ' => {}
            _ => account.push(b),
        }
        if account.len() == length {
            return Some((account, start..start + i + 1));
        }
    }
    None
}
