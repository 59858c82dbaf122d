//! Decodes the answers of scripts: a word, then numbers, texts and lists of them.

use redis::Value;

use crate::error::LaneRefusal;

/// An answer, read from the front.
pub(crate) struct ScriptAnswer(std::vec::IntoIter<Value>);

impl ScriptAnswer {
    pub(crate) fn read(value: Value) -> Option<(String, Self)> {
        let mut answer = Self::list_of(value)?;
        Some((answer.text()?, answer))
    }

    fn list_of(value: Value) -> Option<Self> {
        match value {
            Value::Array(values) => Some(Self(values.into_iter())),
            _ => None,
        }
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        match self.0.next()? {
            Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
            Value::SimpleString(text) => Some(text),
            Value::Int(number) => Some(number.to_string()),
            Value::Okay => Some("OK".to_owned()),
            _ => None,
        }
    }

    pub(crate) fn number(&mut self) -> Option<i64> {
        match self.0.next()? {
            Value::Int(number) => Some(number),
            Value::BulkString(bytes) => std::str::from_utf8(&bytes).ok()?.parse().ok(),
            _ => None,
        }
    }

    pub(crate) fn list(&mut self) -> Option<Self> {
        Self::list_of(self.0.next()?)
    }

    pub(crate) fn texts(&mut self) -> Option<Vec<String>> {
        let mut list = self.list()?;
        let mut texts = Vec::with_capacity(list.0.len());
        while !list.is_empty() {
            texts.push(list.text()?);
        }
        Some(texts)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// Reads a list of records, each by `read`.
    pub(crate) fn records<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut list = self.list()?;
        let mut records = Vec::new();
        while !list.is_empty() {
            records.push(read(&mut list)?);
        }
        Some(records)
    }
}

/// An answer that cannot be decoded counts as no answer.
pub(crate) fn sense<T>(read: Option<T>) -> Result<T, LaneRefusal> {
    read.ok_or_else(|| {
        tracing::error!("unexpected reply from a Redis script; check that no other program writes to these keys");
        LaneRefusal::Away
    })
}
