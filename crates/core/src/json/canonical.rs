//! Checks whether a text is in canonical form, in one pass over its bytes and without building a value.

use std::borrow::Cow;

use super::{DEPTH_MAX, number, read};

/// Canonical form: keys sorted and unique, no spaces, no unnecessary escapes, numbers as this crate writes them. False does
/// not say what differs.
pub(super) fn is_canonical(text: &str) -> bool {
    let mut look = CanonicalReader { text, bytes: text.as_bytes(), at: 0 };
    look.value(0).is_some() && look.at == text.len()
}

struct CanonicalReader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> CanonicalReader<'a> {
    fn value(&mut self, depth: usize) -> Option<()> {
        match self.bytes.get(self.at)? {
            b'{' if depth < DEPTH_MAX => self.object(depth + 1),
            b'[' if depth < DEPTH_MAX => self.list(depth + 1),
            b'"' => self.string().map(|_| ()),
            b'n' => self.word("null"),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.bytes[self.at..].starts_with(word.as_bytes()).then(|| self.at += word.len())
    }

    /// Takes the next byte if it is this one.
    fn take(&mut self, byte: u8) -> bool {
        let next = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(next);
        next
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        if self.take(b'}') {
            return Some(());
        }
        let mut before: Option<Cow<'a, str>> = None;
        loop {
            if self.bytes.get(self.at) != Some(&b'"') {
                return None;
            }
            let name = self.name()?;
            if before.is_some_and(|before| before >= name) || !self.take(b':') {
                return None;
            }
            before = Some(name);
            self.value(depth)?;
            if !self.take(b',') {
                return self.take(b'}').then_some(());
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        if self.take(b']') {
            return Some(());
        }
        loop {
            self.value(depth)?;
            if !self.take(b',') {
                return self.take(b']').then_some(());
            }
        }
    }

    fn name(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at + 1;
        let escaped = self.string()?;
        let inside = &self.text[start..self.at - 1];
        if escaped { read::unescaped(inside).map(Cow::Owned) } else { Some(Cow::Borrowed(inside)) }
    }

    /// Skips a string and returns whether it has escapes.
    fn string(&mut self) -> Option<bool> {
        self.at += 1;
        let mut escaped = false;
        loop {
            let rest = &self.bytes[self.at..];
            self.at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20))?;
            match self.bytes[self.at] {
                b'"' => {
                    self.at += 1;
                    return Some(escaped);
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
            escaped = true;
        }
    }

    /// Accepts only necessary escapes, in their shortest form.
    fn escape(&mut self) -> Option<()> {
        let length = match self.bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => {
                let digits = self.bytes.get(self.at + 2..self.at + 6)?;
                let control = digits.starts_with(b"00") && matches!(digits[2], b'0' | b'1');
                let lower = digits[3].is_ascii_digit() || matches!(digits[3], b'a'..=b'f');
                let shorter = matches!(digits, b"0008" | b"0009" | b"000a" | b"000c" | b"000d");
                (control && lower && !shorter).then_some(6)?
            }
            _ => return None,
        };
        self.at += length;
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let literal = read::number_literal(&self.text[self.at..])?;
        self.at += literal.len();
        number::is_canonical(literal).then_some(())
    }
}
