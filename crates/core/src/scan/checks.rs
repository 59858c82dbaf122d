//! Checks of matched values: entropy, check digits, placeholders.

/// Whether a byte would continue a token.
pub(super) fn is_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

pub(super) fn any(_: &str) -> bool {
    true
}

/// False for values such as `xxxxxxxx` or `0000-0000`: placeholders in documents repeat few characters, tokens do not.
pub(super) fn varied(value: &str) -> bool {
    let tail = &counts(&value.as_bytes()[value.len() / 2..]);
    let commonest = counts(value.as_bytes()).into_iter().max().unwrap_or_default();
    tail.iter().filter(|count| **count > 0).count() >= 4 && commonest * 2 < value.len()
}

/// Whether the value looks like random letters and digits.
pub(super) fn random(value: &str) -> bool {
    let letters = value.bytes().any(|b| b.is_ascii_alphabetic());
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    letters && digits >= 2 && bits_per_byte(value.as_bytes()) >= if value.len() >= 24 { 3.2 } else { 3.0 }
}

fn counts(bytes: &[u8]) -> [usize; 256] {
    let mut counts = [0; 256];
    for &b in bytes {
        counts[usize::from(b)] += 1;
    }
    counts
}

/// Shannon entropy.
fn bits_per_byte(bytes: &[u8]) -> f64 {
    let total = bytes.len() as f64;
    let shares = counts(bytes).into_iter().filter(|count| *count > 0).map(|count| count as f64 / total);
    shares.map(|share| -share * share.log2()).sum()
}

/// The Luhn check digit of payment cards.
pub(super) fn luhn(digits: &[u8]) -> bool {
    let doubled = |d: u8| if d > 4 { d * 2 - 9 } else { d * 2 };
    let values = digits.iter().rev().map(|b| b - b'0').enumerate();
    values.map(|(i, d)| u32::from(if i % 2 == 1 { doubled(d) } else { d })).sum::<u32>() % 10 == 0
}

/// The mod 97 check of bank account numbers, over upper-case letters and digits without spaces.
pub(super) fn mod_97(iban: &[u8]) -> bool {
    let (head, tail) = iban.split_at(iban.len().min(4));
    let remainder = tail.iter().chain(head).fold(0_u32, |rest, &b| match b {
        b'0'..=b'9' => (rest * 10 + u32::from(b - b'0')) % 97,
        _ => (rest * 100 + u32::from(b - b'A') + 10) % 97,
    });
    remainder == 1
}

/// Whether the value is `8-4-4-4-12` hex digits.
pub(super) fn is_uuid(value: &str) -> bool {
    value.len() == 36
        && value.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// A placeholder for a value that is kept elsewhere: `${VAR}`, `<password>`, `{{ secret }}`, `***`, `$VAR`, or a redaction.
pub(super) fn is_placeholder(value: &str) -> bool {
    let wrapped = [("${", "}"), ("<", ">"), ("{", "}"), ("[", "]"), ("%", "%"), ("$(", ")")];
    wrapped.iter().any(|(open, close)| value.starts_with(open) && value.ends_with(close))
        || value.starts_with('$') && value[1..].bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
        || value.bytes().all(|b| b == value.as_bytes()[0])
}
