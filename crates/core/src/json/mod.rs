//! JSON that every reader understands alike: the one rule for everything that comes in (docs/json.md, ADR 19,
//! invariant G-7).
//!
//! A name stands once in an object, and a number keeps its value in IEEE 754 doubles (I-JSON, RFC 7493). What is let in is
//! written in one canonical form, and these bytes are what is hashed, judged, stored and given to workers: no two parsers can
//! disagree about what was judged.

mod canonical;
mod error;
mod number;
mod read;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use error::JsonError;
pub(crate) use number::fault as number_fault;

/// Deepest nesting of objects and lists. Parsers have limits of their own (serde_json: 127), and what wraps a value in another
/// one, such as the list of a `for_each`, must stay below them.
pub const DEPTH_MAX: usize = 100;

/// JSON text that was checked once and is carried unparsed from then on. Inside of other JSON it is a text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Arc<str>);

impl Json {
    /// Takes text from outside: one JSON value by the rule of this module, kept in canonical form.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        if canonical::is_canonical(text) {
            return Ok(Self(text.into()));
        }
        read::value(text).map(|value| Self(value.to_string().into()))
    }

    /// Takes text that was let in before and comes from another process to be judged. An earlier version let in what breaks the
    /// rule by now; to refuse a verdict on it would leave its job waiting.
    pub fn admitted(text: &str) -> Result<Self, JsonError> {
        Self::parse(text).or_else(|error| if error.is_syntax() { Err(error) } else { Ok(Self(text.into())) })
    }

    /// The value of text from outside, by the same rule.
    pub fn read(text: &str) -> Result<Value, JsonError> {
        read::value(text)
    }

    /// Takes a value that was computed, such as what an expression gave.
    pub fn of(value: &Value) -> Result<Self, JsonError> {
        let text = value.to_string();
        if canonical::is_canonical(&text) {
            return Ok(Self(text.into()));
        }
        read::value(&text).map(|value| Self(value.to_string().into()))
    }

    /// Takes text that was checked before it was stored, or that the platform wrote itself.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn null() -> Self {
        Self("null".into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value that the text says. What an earlier version took under weaker rules is read as it was then.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        read::value(&self.0).or_else(|_| serde_json::from_str(&self.0))
    }

    /// The value in canonical form: sorted names, no spaces. Texts that came in by [`Json::parse`] have it already; those of
    /// an earlier version may not.
    pub(crate) fn canonical(&self) -> Cow<'_, str> {
        if canonical::is_canonical(&self.0) {
            return Cow::Borrowed(&self.0);
        }
        self.value().map_or(Cow::Borrowed(&*self.0), |value| Cow::Owned(value.to_string()))
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Default for Json {
    fn default() -> Self {
        Self::null()
    }
}

#[cfg(test)]
mod tests;
