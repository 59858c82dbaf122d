//! Views of a text: as written, and with its JSON escapes decoded.

use std::borrow::Cow;
use std::ops::Range;

/// How many levels are decoded: secrets are searched up to JSON inside a JSON string inside a JSON string.
pub(super) const LEVELS: usize = 3;

/// One view of a text, with a mapping from its bytes to those of the raw text.
#[derive(Clone, Debug)]
pub(super) struct View<'a> {
    text: Cow<'a, str>,
    /// One list for each level of decoding, the last level last.
    levels: Vec<Vec<Escape>>,
}

/// A decoded escape.
#[derive(Clone, Copy, Debug)]
struct Escape {
    decoded: usize,
    decoded_len: usize,
    encoded: usize,
    encoded_len: usize,
}

/// The raw text first, then each decoded view that differs from the one before it.
pub(super) fn views(text: &str) -> impl Iterator<Item = View<'_>> {
    let raw = View { text: Cow::Borrowed(text), levels: Vec::new() };
    std::iter::successors(Some(raw), View::decoded)
}

impl View<'_> {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn decoded(&self) -> Option<Self> {
        if self.levels.len() == LEVELS {
            return None;
        }
        let (text, escapes) = unescape(&self.text)?;
        let levels = self.levels.iter().cloned().chain([escapes]).collect();
        Some(Self { text: Cow::Owned(text), levels })
    }

    /// The raw bytes that a span of this view stands for. An escape is included as a whole.
    pub(super) fn raw(&self, span: Range<usize>) -> Range<usize> {
        self.levels
            .iter()
            .rev()
            .fold(span, |span, escapes| encoded_start(escapes, span.start)..encoded_end(escapes, span.end))
    }
}

fn encoded_start(escapes: &[Escape], at: usize) -> usize {
    match escapes[..escapes.partition_point(|e| e.decoded <= at)].last() {
        None => at,
        Some(e) if at < e.decoded + e.decoded_len => e.encoded,
        Some(e) => e.encoded + e.encoded_len + (at - e.decoded - e.decoded_len),
    }
}

fn encoded_end(escapes: &[Escape], end: usize) -> usize {
    match escapes[..escapes.partition_point(|e| e.decoded < end)].last() {
        None => end,
        Some(e) => e.encoded + e.encoded_len + end.saturating_sub(e.decoded + e.decoded_len),
    }
}

/// The text with its escapes decoded; None if it has none.
fn unescape(text: &str) -> Option<(String, Vec<Escape>)> {
    let mut out = String::new();
    let mut escapes = Vec::new();
    let mut copied = 0;
    let mut from = 0;
    while let Some(found) = text[from..].find('\\') {
        let at = from + found;
        let Some((c, len)) = escape(&text.as_bytes()[at..]) else {
            from = at + 1;
            continue;
        };
        out.push_str(&text[copied..at]);
        escapes.push(Escape { decoded: out.len(), decoded_len: c.len_utf8(), encoded: at, encoded_len: len });
        out.push(c);
        copied = at + len;
        from = copied;
    }
    if escapes.is_empty() {
        return None;
    }
    out.push_str(&text[copied..]);
    Some((out, escapes))
}

/// The character that an escape at the start of `bytes` stands for, and the escape's length.
pub(super) fn escape(bytes: &[u8]) -> Option<(char, usize)> {
    let c = match bytes.get(1)? {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b @ (b'"' | b'\\' | b'/') => char::from(*b),
        b'u' => return unicode(bytes),
        _ => return None,
    };
    Some((c, 2))
}

fn unicode(bytes: &[u8]) -> Option<(char, usize)> {
    let first = unit(bytes)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c, 6));
    }
    let second = unit(&bytes[6..])?;
    char::decode_utf16([first as u16, second as u16]).next()?.ok().map(|c| (c, 12))
}

/// The value of `\uXXXX` at the start of `bytes`.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
}
