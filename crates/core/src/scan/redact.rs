//! Removes findings from a text without breaking it.

use std::ops::Range;
use std::sync::Arc;

use serde::de::IgnoredAny;

use super::decode;
use super::finding::{Finding, FindingKind};

/// The text with `[REDACTED:<rule>]` in place of each finding. JSON stays JSON: only the insides of strings and whole
/// numbers are replaced, never quotes, brackets or half an escape. None if that fails, or if a finding lies outside the
/// text.
pub fn redact(text: &str, findings: &[Finding]) -> Option<String> {
    let spans = joined(text, findings)?;
    if !is_json(text) {
        return Some(replace(text, &spans));
    }
    let parts = json_parts(text, &spans);
    let clean = replace(text, &parts);
    is_json(&clean).then_some(clean)
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// A span to remove, and the rule to name there.
#[derive(Clone, Debug)]
struct Cut {
    span: Range<usize>,
    kind: FindingKind,
    rule: Arc<str>,
    /// Stands for a bare JSON value, which must become a string.
    quoted: bool,
}

/// Findings by offset; overlapping ones are joined under the most important kind.
fn joined(text: &str, findings: &[Finding]) -> Option<Vec<Cut>> {
    let mut cuts = Vec::with_capacity(findings.len());
    for finding in findings {
        let span = finding.offset..finding.offset.checked_add(finding.length)?;
        text.get(span.clone())?;
        cuts.push(Cut { span, kind: finding.kind, rule: Arc::clone(&finding.rule), quoted: false });
    }
    cuts.sort_by_key(|cut| (cut.span.start, cut.kind));
    Some(join(cuts))
}

fn join(cuts: Vec<Cut>) -> Vec<Cut> {
    let mut joined: Vec<Cut> = Vec::with_capacity(cuts.len());
    for next in cuts {
        match joined.last_mut().filter(|last| next.span.start < last.span.end) {
            None => joined.push(next),
            Some(last) => {
                let span = last.span.start..last.span.end.max(next.span.end);
                if next.kind < last.kind {
                    *last = next;
                }
                last.span = span;
            }
        }
    }
    joined
}

fn replace(text: &str, cuts: &[Cut]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for cut in cuts {
        out.push_str(&text[from..cut.span.start]);
        let quote = if cut.quoted { "\"" } else { "" };
        out.push_str(&format!("{quote}[REDACTED:{}]{quote}", cut.rule));
        from = cut.span.end;
    }
    out.push_str(&text[from..]);
    out
}

/// The cuts limited to scalars: the inside of each string, and the whole of each number or word that they touch.
fn json_parts(text: &str, cuts: &[Cut]) -> Vec<Cut> {
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let mut pending = cuts;
    for scalar in scalars(bytes) {
        pending = &pending[pending.partition_point(|cut| cut.span.end <= scalar.start)..];
        let touching = &pending[..pending.partition_point(|cut| cut.span.start < scalar.end)];
        if bytes[scalar.start] == b'"' {
            in_string(bytes, &(scalar.start + 1..scalar.end - 1), touching, &mut parts);
        } else {
            parts.extend(touching.first().map(|cut| Cut { span: scalar, quoted: true, ..cut.clone() }));
        }
    }
    parts
}

/// The parts of the cuts inside one string, widened so that none splits an escape.
fn in_string(bytes: &[u8], inside: &Range<usize>, cuts: &[Cut], parts: &mut Vec<Cut>) {
    let step = |at: usize| if bytes[at] == b'\\' { escape_len(&bytes[at..]) } else { 1 };
    let mut at = inside.start;
    for cut in cuts {
        let (from, to) = (cut.span.start.max(inside.start), cut.span.end.min(inside.end));
        while at < to && at + step(at) <= from {
            at += step(at);
        }
        let start = at;
        while at < to {
            at += step(at);
        }
        if start < at {
            parts.push(Cut { span: start..at, ..cut.clone() });
        }
    }
}

fn escape_len(bytes: &[u8]) -> usize {
    // A lone surrogate decodes to no character and still has six bytes.
    decode::escape(bytes).map_or_else(|| if bytes.get(1) == Some(&b'u') { 6 } else { 2 }, |(_, len)| len)
}

/// Strings with their quotes, numbers and words of a valid JSON text, in order.
fn scalars(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while matches!(bytes.get(at)?, b'{' | b'}' | b'[' | b']' | b':' | b',' | b' ' | b'\n' | b'\r' | b'\t') {
            at += 1;
        }
        let start = at;
        at = if bytes[at] == b'"' { string_end(bytes, at) } else { word_end(bytes, at) };
        Some(start..at)
    })
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn word_end(bytes: &[u8], start: usize) -> usize {
    let ends = |b: &u8| matches!(b, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
    bytes[start..].iter().position(ends).map_or(bytes.len(), |len| start + len)
}
