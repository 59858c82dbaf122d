//! Values that are secret by the name that they are assigned to: `api_key = "…"`, `"password": "…"`, `--token=…`.

use std::ops::Range;

use super::super::checks;

/// How many bytes of a name may follow or precede its keyword.
const NAME_BYTES_MAX: usize = 24;
const PASSWORD_BYTES_MAX: usize = 256;
const TOKEN_BYTES_MAX: usize = 4096;

/// Names that contain a keyword and are public: a pagination token is opaque, not secret.
const PUBLIC_BEFORE: [&[u8]; 8] = [b"page", b"next", b"continu", b"cursor", b"public", b"sync", b"max_", b"num_"];
const PUBLIC_AFTER: [&[u8]; 16] = [
    b"_id",
    b"id",
    b"_name",
    b"name",
    b"_type",
    b"type",
    b"_url",
    b"url",
    b"_uri",
    b"_arn",
    b"_hash",
    b"hash",
    b"_sha256",
    b"_count",
    b"_path",
    b"_version",
];

/// A password. Passwords are short, so the value must look like one.
pub(super) fn password(text: &str, at: usize) -> Option<Range<usize>> {
    let span = value_span(text, at, PASSWORD_BYTES_MAX, is_password_byte)?;
    let value = &text[span.clone()];
    let classes: [fn(&u8) -> bool; 4] =
        [u8::is_ascii_lowercase, u8::is_ascii_uppercase, u8::is_ascii_digit, u8::is_ascii_punctuation];
    let used = classes.iter().filter(|class| value.as_bytes().iter().any(class)).count();
    (value.len() >= 8 && used >= 3 && is_opaque(value) && !has_public_name(text.as_bytes(), at)).then_some(span)
}

/// Any other secret: long and random.
pub(super) fn secret(text: &str, at: usize) -> Option<Range<usize>> {
    let span = value_span(text, at, TOKEN_BYTES_MAX, is_token_byte)?;
    let value = &text[span.clone()];
    (value.len() >= 16 && checks::random(value) && is_opaque(value) && !has_public_name(text.as_bytes(), at)).then_some(span)
}

/// Whether the value is no placeholder, id, path or code.
fn is_opaque(value: &str) -> bool {
    !(checks::is_placeholder(value) || checks::is_uuid(value) || value.contains("://") || value.starts_with('/'))
}

fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+' | b'/' | b'.' | b'~' | b'%')
}

fn is_password_byte(b: u8) -> bool {
    b.is_ascii_graphic()
        && !matches!(b, b'"' | b'\'' | b'`' | b'\\' | b',' | b';' | b'<' | b'>' | b'(' | b')' | b'[' | b']' | b'{' | b'}')
}

/// The value assigned to the name whose keyword is at `at`.
fn value_span(text: &str, at: usize, max: usize, of_value: fn(u8) -> bool) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let start = value_start(bytes, name_end(bytes, at))?;
    let len = bytes[start..].iter().take(max).take_while(|b| of_value(**b)).count();
    let padding = bytes[start + len..].iter().take(2).take_while(|b| **b == b'=').count();
    let end = start + len + padding;
    (len > 0 && ends_value(bytes.get(end))).then_some(start..end)
}

/// Whether a value may end here. A value followed by other characters is code or prose: `token = getToken()`.
fn ends_value(next: Option<&u8>) -> bool {
    let mark = |b: &u8| {
        b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'\\' | b',' | b';' | b'&' | b'}' | b']' | b'<')
    };
    next.is_none_or(mark)
}

fn is_name_byte(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

fn name_end(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take(2 * NAME_BYTES_MAX).take_while(|b| is_name_byte(b)).count()
}

fn has_public_name(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].iter().rev().take(NAME_BYTES_MAX).take_while(|b| is_name_byte(b)).count();
    let name = bytes[at - before..name_end(bytes, at)].to_ascii_lowercase();
    let head = &name[..before];
    PUBLIC_BEFORE.iter().any(|word| head.windows(word.len()).any(|w| w == *word))
        || PUBLIC_AFTER.iter().any(|word| name.ends_with(word))
}

/// Skips the quote, the assignment sign and the next quote.
fn value_start(bytes: &[u8], name: usize) -> Option<usize> {
    let quote = |at: usize| at + usize::from(matches!(bytes.get(at), Some(b'"' | b'\'' | b'`')));
    let blank = |at: usize| at + bytes[at..].iter().take(4).take_while(|b| matches!(b, b' ' | b'\t')).count();
    let sign = blank(quote(name));
    let len = match bytes.get(sign..)? {
        [b':' | b'=', b'=' | b'>', ..] => 2,
        [b':' | b'=', ..] => 1,
        _ => return None,
    };
    Some(quote(blank(sign + len)))
}
