//! The messages of OTLP that spans need, from `opentelemetry.proto.collector.trace.v1`. The field numbers are the contract.

use lockgate_core::trace::{Span as CoreSpan, SpanKind, SpanValue};

/// The gRPC path of the collector's span service.
pub const GRPC_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// The flag of a sampled trace.
const SAMPLED: u32 = 1;
const STATUS_OK: i32 = 0;
const STATUS_ERROR: i32 = 2;

#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportTraceServiceResponse {
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<ExportTracePartialSuccess>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportTracePartialSuccess {
    #[prost(int64, tag = "1")]
    pub rejected_spans: i64,
    #[prost(string, tag = "2")]
    pub error_message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<WireScope>,
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<WireSpan>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct WireScope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct WireSpan {
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub name: String,
    #[prost(int32, tag = "6")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    pub flags: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(int32, tag = "3")]
    pub code: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyValue {
    #[prost(oneof = "any_value::WireValue", tags = "1, 2, 3")]
    pub value: Option<any_value::WireValue>,
}

pub mod any_value {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum WireValue {
        #[prost(string, tag = "1")]
        String(String),
        #[prost(bool, tag = "2")]
        Bool(bool),
        #[prost(int64, tag = "3")]
        Int(i64),
    }
}

impl KeyValue {
    pub fn text(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(key, any_value::WireValue::String(value.into()))
    }

    fn new(key: impl Into<String>, value: any_value::WireValue) -> Self {
        Self { key: key.into(), value: Some(AnyValue { value: Some(value) }) }
    }
}

impl From<CoreSpan> for WireSpan {
    fn from(span: CoreSpan) -> Self {
        let status = match &span.failure {
            Some(failure) => Status { message: failure.to_string(), code: STATUS_ERROR },
            None => Status { message: String::new(), code: STATUS_OK },
        };
        Self {
            trace_id: span.trace.bytes().to_vec(),
            span_id: span.id.bytes().to_vec(),
            parent_span_id: span.parent.map(|parent| parent.bytes().to_vec()).unwrap_or_default(),
            name: span.name.into_owned(),
            kind: match span.kind {
                SpanKind::Internal => 1,
                SpanKind::Server => 2,
                SpanKind::Consumer => 5,
            },
            start_time_unix_nano: span.began,
            end_time_unix_nano: span.ended,
            attributes: span.attributes.into_iter().map(|(key, value)| KeyValue::new(key, value.into())).collect(),
            status: Some(status),
            flags: SAMPLED,
        }
    }
}

impl From<SpanValue> for any_value::WireValue {
    fn from(value: SpanValue) -> Self {
        match value {
            SpanValue::Text(text) => Self::String(text.to_string()),
            SpanValue::Int(n) => Self::Int(n),
            SpanValue::Bool(yes) => Self::Bool(yes),
        }
    }
}
