//! Personal data that contains a characteristic sign.

use std::ops::Range;

use super::super::finding::FindingKind;
use super::{Probe, leads};

pub(super) static PROBES: [Probe; 2] =
    [Probe::code("email", FindingKind::Pii, &["@"], email), Probe::code("phone", FindingKind::Pii, &["+"], phone)];

const LOCAL_BYTES_MAX: usize = 64;
const DOMAIN_BYTES_MAX: usize = 253;

fn email(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let local = bytes[..at].iter().rev().take(LOCAL_BYTES_MAX + 1).take_while(|b| is_local(**b)).count();
    let start = at - local + bytes[at - local..at].iter().take_while(|b| **b == b'.').count();
    let dotted = leads::before(bytes, at) == Some(&b'.');
    // `git@host:path` is an address of code.
    let mailbox = start < at && local <= LOCAL_BYTES_MAX && !dotted && &bytes[start..at] != b"git";
    if !mailbox || in_url(bytes, start) {
        return None;
    }
    Some(start..domain_end(bytes, at + 1)?)
}

fn is_local(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'%' | b'+' | b'-')
}

/// Between `://` and `@` is a user and a password; a path or a package (`/scope@1.2`) is no mailbox either.
fn in_url(bytes: &[u8], start: usize) -> bool {
    const USER_BYTES_MAX: usize = 64;
    match leads::before(bytes, start) {
        Some(b'/' | b'@') => true,
        Some(b':') => {
            let user = bytes[..start - 1].iter().rev().take(USER_BYTES_MAX).take_while(|b| is_local(**b)).count();
            bytes[..start - 1 - user].ends_with(b"://")
        }
        _ => false,
    }
}

/// The end of a domain: labels joined by dots, the last one of letters.
fn domain_end(bytes: &[u8], from: usize) -> Option<usize> {
    let in_domain = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-');
    let len = bytes[from..].iter().take(DOMAIN_BYTES_MAX).take_while(in_domain).count();
    let domain = bytes[from..from + len].trim_ascii_end();
    let trimmed = domain.len() - domain.iter().rev().take_while(|b| matches!(b, b'.' | b'-')).count();
    let mut labels = domain[..trimmed].split(|b| *b == b'.').collect::<Vec<_>>();
    let top = labels.pop()?;
    let well_formed =
        |label: &[u8]| matches!(label, [a, .., z] if *a != b'-' && *z != b'-') || matches!(label, [a] if *a != b'-');
    let fine = (2..=24).contains(&top.len())
        && top.iter().all(u8::is_ascii_alphabetic)
        && !labels.is_empty()
        && labels.iter().all(|label| well_formed(label))
        && !FILE_ENDINGS.contains(&&*top.to_ascii_lowercase());
    fine.then_some(from + trimmed)
}

/// Images and modules are often called `name@2x.png`, and none of these endings is a top-level domain.
const FILE_ENDINGS: [&[u8]; 12] =
    [b"png", b"jpg", b"jpeg", b"gif", b"svg", b"webp", b"js", b"ts", b"css", b"json", b"service", b"local"];

/// A phone number in international form: `+`, country code, 8 to 15 digits in all, in groups.
fn phone(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if leads::before(bytes, at).is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'.' | b'_')) {
        return None;
    }
    if !matches!(bytes.get(at + 1), Some(b'1'..=b'9')) {
        return None;
    }
    let end = phone_end(bytes, at + 1);
    let digits = bytes[at..end].iter().filter(|b| b.is_ascii_digit()).count();
    let follows = bytes.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'_'));
    ((8..=15).contains(&digits) && !follows).then_some(at..end)
}

/// The end of the last digit that belongs to the number; up to two separators may stand between digits.
fn phone_end(bytes: &[u8], from: usize) -> usize {
    const PHONE_BYTES_MAX: usize = 28;
    let mut end = from;
    for (i, b) in bytes[from..].iter().take(PHONE_BYTES_MAX).enumerate() {
        match b {
            b'0'..=b'9' => end = from + i + 1,
            b' ' | b'-' | b'.' | b'(' | b')' if from + i < end + 2 => {}
            _ => break,
        }
    }
    end
}
