//! Leads: from the position of a keyword back to where the match would start.

use super::super::checks::is_word;

/// The keyword starts the match and is not the tail of a longer word.
pub(super) fn word(text: &[u8], at: usize) -> Option<usize> {
    (!is_word(before(text, at))).then_some(at)
}

/// The keyword starts the match, whatever precedes it.
pub(super) fn anywhere(_: &[u8], at: usize) -> Option<usize> {
    Some(at)
}

/// `N` bytes of the token precede the keyword.
pub(super) fn back<const N: usize>(text: &[u8], at: usize) -> Option<usize> {
    word(text, at.checked_sub(N)?)
}

/// Digits precede the keyword.
pub(super) fn after_digits(text: &[u8], at: usize) -> Option<usize> {
    const DIGITS_MAX: usize = 12;
    let digits = text[..at].iter().rev().take(DIGITS_MAX).take_while(|b| b.is_ascii_digit()).count();
    (digits > 0).then(|| at - digits).and_then(|start| word(text, start))
}

/// A quote was closed before the keyword, perhaps followed by brackets and a semicolon: text that left its string.
pub(super) fn after_quote(text: &[u8], at: usize) -> Option<usize> {
    const REACH: usize = 8;
    let skipped = |b: &&u8| matches!(b, b' ' | b'\t' | b';' | b')');
    let last = text[..at].iter().rev().take(REACH).find(|b| !skipped(b))?;
    matches!(last, b'\'').then_some(at)
}

/// Like [`after_quote`], or after a number.
pub(super) fn after_value(text: &[u8], at: usize) -> Option<usize> {
    let last = text[..at].iter().rev().take(4).find(|b| !matches!(b, b' ' | b')'))?;
    (word(text, at).is_some() && (matches!(last, b'\'' | b'"') || last.is_ascii_digit())).then_some(at)
}

pub(super) fn before(text: &[u8], at: usize) -> Option<&u8> {
    text.get(at.checked_sub(1)?)
}
