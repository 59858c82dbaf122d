//! Parses JSON text. Unlike usual parsers it refuses text that two of them could understand differently, and says where.

use serde_json::{Map, Value};

use super::error::{Flaw, JsonError};
use super::{DEPTH_MAX, number};

/// The value of a text, or why it is refused.
pub(super) fn value(text: &str) -> Result<Value, JsonError> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0 };
    let read = reader.value(0).and_then(|value| reader.end().map(|()| value));
    read.map_err(|error| if error.is_syntax() { in_usual_words(text) } else { error })
}

/// The syntax error in the words of serde_json: line, column and what was expected.
fn in_usual_words(text: &str) -> JsonError {
    let told = serde_json::from_str::<Value>(text).err().map(|error| error.to_string());
    Flaw::Syntax(told.unwrap_or_else(|| "it is not valid JSON".to_owned())).into()
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

type Read<T> = Result<T, JsonError>;

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Read<Value> {
        match self.next() {
            Some(b'{' | b'[') if depth == DEPTH_MAX => Err(Flaw::Depth.into()),
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.list(depth + 1),
            Some(b'"') => self.string().map(Value::String),
            Some(b'n') => self.word("null", Value::Null),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            _ => self.number(),
        }
    }

    /// The next byte that is no white space.
    fn next(&mut self) -> Option<u8> {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Read<()> {
        if self.next() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(syntax())
    }

    fn end(&mut self) -> Read<()> {
        if self.next().is_none() { Ok(()) } else { Err(syntax()) }
    }

    fn word(&mut self, word: &str, value: Value) -> Read<Value> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(syntax());
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Read<Value> {
        self.at += 1;
        let mut entries = Map::new();
        if self.next() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(entries));
        }
        loop {
            if self.next() != Some(b'"') {
                return Err(syntax());
            }
            let name = self.string()?;
            self.take(b':')?;
            let value = self.value(depth).map_err(|error| error.within_name(&name))?;
            if entries.contains_key(&name) {
                return Err(JsonError::from(Flaw::Twice).within_name(&name));
            }
            entries.insert(name, value);
            if self.next() != Some(b',') {
                self.take(b'}')?;
                return Ok(Value::Object(entries));
            }
            self.at += 1;
        }
    }

    fn list(&mut self, depth: usize) -> Read<Value> {
        self.at += 1;
        let mut items = Vec::new();
        if self.next() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth).map_err(|error| error.within_list(items.len()))?);
            if self.next() != Some(b',') {
                self.take(b']')?;
                return Ok(Value::Array(items));
            }
            self.at += 1;
        }
    }

    fn string(&mut self) -> Read<String> {
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            match self.bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    at += 2;
                }
                Some(0x20..) => at += 1,
                Some(_) | None => return Err(syntax()),
            }
        }
        self.at = at + 1;
        let inside = &self.text[start..at];
        if escaped { unescape(inside) } else { Ok(inside.to_owned()) }
    }

    fn number(&mut self) -> Read<Value> {
        let literal: &'a str = number_literal(&self.text[self.at..]).ok_or_else(syntax)?;
        self.at += literal.len();
        number::value(literal).map_err(|fault| Flaw::Number(fault).into())
    }
}

/// The error's words are computed later: most texts have no error, and few errors are of this kind.
fn syntax() -> JsonError {
    Flaw::Syntax(String::new()).into()
}

/// The number that a text begins with, by the grammar of JSON.
pub(super) fn number_literal(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && bytes[at] == b'0') {
        return None;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        at += (fraction > 0).then_some(fraction + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        at += (exponent > 0).then_some(1 + sign + exponent)?;
    }
    Some(&text[..at])
}

/// The content of a string with its escapes decoded, if all are valid.
pub(super) fn unescaped(inside: &str) -> Option<String> {
    unescape(inside).ok()
}

fn unescape(inside: &str) -> Read<String> {
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(found) = rest.find('\\') {
        text.push_str(&rest[..found]);
        let escape = rest.as_bytes().get(found + 1).ok_or_else(syntax)?;
        let (character, length) = match escape {
            b'"' | b'\\' | b'/' => (char::from(*escape), 2),
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'n' => ('\n', 2),
            b'r' => ('\r', 2),
            b't' => ('\t', 2),
            b'u' => unicode(&rest[found..])?,
            _ => return Err(syntax()),
        };
        text.push(character);
        rest = &rest[found + length..];
    }
    text.push_str(rest);
    Ok(text)
}

/// The character of `\uXXXX` or of a surrogate pair of two, and the length of the escape.
fn unicode(text: &str) -> Read<(char, usize)> {
    let first = unit(text).ok_or_else(syntax)?;
    if let Some(character) = char::from_u32(first) {
        return Ok((character, 6));
    }
    let second = text.get(6..).filter(|_| first < 0xdc00).and_then(unit).filter(|unit| (0xdc00..0xe000).contains(unit));
    let pair = second.and_then(|second| char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)));
    pair.map(|character| (character, 12)).ok_or_else(|| Flaw::Surrogate.into())
}

fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}
