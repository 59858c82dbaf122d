//! JSON that every reader understands alike: the one rule for all JSON from outside (docs/json.md, ADR 19, invariant G-7).
//!
//! Keys are unique within an object, and numbers keep their value in IEEE 754 doubles (I-JSON, RFC 7493). Accepted text is
//! written in one canonical form, and these bytes are hashed, judged, stored and given to workers, so that no two parsers
//! can disagree about what was judged.

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

/// The deepest nesting of objects and lists. Parsers have limits of their own (serde_json: 127), and a value wrapped in
/// another one, such as the list of a `for_each`, must stay below them.
pub const DEPTH_MAX: usize = 100;

/// JSON text that was checked once and is not parsed again when it is passed on. As a part of other JSON it is a string.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Arc<str>);

impl Json {
    /// Checks text from outside and keeps it in canonical form.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        if canonical::is_canonical(text) {
            return Ok(Self(text.into()));
        }
        read::value(text).map(|value| Self(value.to_string().into()))
    }

    /// Takes text from another process that accepted it before. An earlier version accepted text that breaks today's rule;
    /// refusing a verdict on it would leave its job waiting.
    pub fn admitted(text: &str) -> Result<Self, JsonError> {
        Self::parse(text).or_else(|error| if error.is_syntax() { Err(error) } else { Ok(Self(text.into())) })
    }

    /// The value of text from outside, by the same rule as [`Json::parse`].
    pub fn read(text: &str) -> Result<Value, JsonError> {
        read::value(text)
    }

    /// Takes a computed value, such as the result of an expression.
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

    /// The parsed value. Text that an earlier version accepted under weaker rules is parsed as it was then.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        read::value(&self.0).or_else(|_| serde_json::from_str(&self.0))
    }

    /// The text in canonical form: sorted keys, no spaces. Text from [`Json::parse`] has it already; text of an earlier
    /// version may not.
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
