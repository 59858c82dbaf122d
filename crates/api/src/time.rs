//! Moments as clients read them.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// RFC 3339 in UTC with milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time(pub jiff::Timestamp);

impl Time {
    pub fn from_millis(ms: i64) -> Self {
        Self(jiff::Timestamp::from_millisecond(ms).unwrap_or_default())
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:.3}", self.0))
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        let example = ["2026-11-18T19:48:00.000Z"];
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).examples(example).into()
    }
}

impl ToSchema for Time {
    fn name() -> Cow<'static, str> {
        "Time".into()
    }
}
