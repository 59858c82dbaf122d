//! Secrets that are recognised by form or name, by whatever service they were issued.

use std::ops::Range;

use super::super::checks;
use super::super::finding::FindingKind;
use super::{Probe, assignment, leads};

pub(super) static PROBES: [Probe; 6] = [
    Probe::code("private_key", FindingKind::Secrets, &["-----begin "], private_key),
    Probe::token("jwt", &["eyj"], r"eyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{16,1400}").open(),
    Probe::token("url_password", &["://"], r#"://[^\s/?#:@"'<>\\]{0,64}:([^\s/?#@"'<>\\]{1,128})@[A-Za-z0-9.\[]"#)
        .lead(before_password)
        .open()
        .check(is_password),
    Probe::token(
        "authorization_header",
        &["authorization"],
        r#"(?i)authorization["']?\s{0,4}[:=]\s{0,4}["']?(?:bearer|basic|token|apikey)\s{1,4}([a-z0-9._~+/=-]{16,2000})"#,
    )
    .lead(leads::anywhere)
    .open()
    .check(checks::varied)
    .loose(),
    Probe::code(
        "password_assignment",
        FindingKind::Secrets,
        &["password", "passwd", "passphrase", "_pwd", "_pass"],
        assignment::password,
    )
    .loose(),
    Probe::code(
        "generic_secret",
        FindingKind::Secrets,
        &[
            "secret",
            "token",
            "api_key",
            "apikey",
            "api-key",
            "access_key",
            "accesskey",
            "private_key",
            "auth_key",
            "credential",
        ],
        assignment::secret,
    )
    .loose(),
];

/// Links are common and passwords in them are not: most links are rejected here, before a regex runs.
fn before_password(text: &[u8], at: usize) -> Option<usize> {
    const AUTHORITY_BYTES_MAX: usize = 200;
    let authority = text[at + "://".len()..].iter().take(AUTHORITY_BYTES_MAX);
    let mut bytes = authority.take_while(|b| !matches!(b, b'/' | b'"' | b'?' | b'#' | b' ' | b'\n' | b'\\'));
    bytes.any(|b| *b == b'@').then_some(at)
}

fn is_password(value: &str) -> bool {
    !checks::is_placeholder(value)
}

/// A longer match is no private key.
const KEY_BYTES_MAX: usize = 16 << 10;

/// From the header to the footer, or to where the key's text ends if the footer is missing.
fn private_key(text: &str, at: usize) -> Option<Range<usize>> {
    let body = at + header_len(&text[at..])?;
    let reach = text.floor_char_boundary((body + KEY_BYTES_MAX).min(text.len()));
    let window = &text[body..reach];
    let end = footer_end(window).unwrap_or_else(|| window.bytes().take_while(|b| is_key_text(*b)).count());
    Some(at..body + end)
}

/// The length of `-----BEGIN … PRIVATE KEY … -----`.
fn header_len(text: &str) -> Option<usize> {
    const LABEL_BYTES_MAX: usize = 48;
    let rest = text.get("-----BEGIN ".len()..)?;
    let window = &rest[..rest.floor_char_boundary(LABEL_BYTES_MAX.min(rest.len()))];
    let label = &window[..window.find("-----")?];
    let known =
        label.contains("PRIVATE KEY") && label.bytes().all(|b| b.is_ascii_uppercase() || b == b' ' || b.is_ascii_digit());
    known.then(|| "-----BEGIN ".len() + label.len() + "-----".len())
}

fn footer_end(window: &str) -> Option<usize> {
    let footer = window.find("-----END ")?;
    let label = footer + "-----END ".len();
    Some(label + window[label..].find("-----")? + "-----".len())
}

/// Base64, line ends, and line ends escaped by JSON.
fn is_key_text(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\n' | b'\r' | b'\\')
}
