//! A piece of work that is over.

use std::borrow::Cow;
use std::sync::Arc;

use super::{SpanId, TraceId};

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub name: Cow<'static, str>,
    pub kind: SpanKind,
    /// Nanoseconds since the Unix epoch.
    pub began: u64,
    pub ended: u64,
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// What went wrong, if something did.
    pub failure: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    /// It answers a call from outside.
    Server,
    /// It works off what was put in a queue.
    Consumer,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SpanValue {
    Text(Arc<str>),
    Int(i64),
    Bool(bool),
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<u32> for SpanValue {
    fn from(n: u32) -> Self {
        Self::Int(n.into())
    }
}

impl Span {
    pub fn with(mut self, name: &'static str, value: impl Into<SpanValue>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }
}
