//! The context that travels: W3C `traceparent`, <https://www.w3.org/TR/trace-context/>.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{SpanId, TraceId};

/// What the caller was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: TraceId,
    /// None inside of Lockgate only: the trace begins here, and whether it is written was decided.
    pub span: Option<SpanId>,
    /// Whether the trace is recorded.
    pub sampled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must look like 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]
pub struct BadParent;

impl TraceParent {
    fn read(text: &str, span: impl FnOnce(&str) -> Option<Option<SpanId>>) -> Option<Self> {
        let mut parts = text.split('-');
        let version: [u8; 1] = crate::hex::read(parts.next()?)?;
        let trace = TraceId::parse(parts.next()?)?;
        let span = span(parts.next()?)?;
        let flags: [u8; 1] = crate::hex::read(parts.next()?)?;
        // Later versions may say more; what the first one says stays where it is.
        let whole = if version == [0] { parts.next().is_none() } else { version != [0xff] };
        whole.then_some(Self { trace, span, sampled: flags[0] & 1 == 1 })
    }
}

impl FromStr for TraceParent {
    type Err = BadParent;

    fn from_str(text: &str) -> Result<Self, BadParent> {
        Self::read(text, |span| SpanId::parse(span).map(Some)).ok_or(BadParent)
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = self.span.map_or_else(|| "0".repeat(16), |span| span.to_string());
        write!(f, "00-{}-{span}-{:02x}", self.trace, u8::from(self.sampled))
    }
}

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::read(&text, |span| Some(SpanId::parse(span))).ok_or_else(|| serde::de::Error::custom(BadParent))
    }
}
