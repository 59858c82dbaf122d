//! Times and names of closed sets, with their schemas: what the API document says about them is what is written.

use std::borrow::Cow;

use lockgate_core::dag::{NodeState, RunState, UndoState};
use lockgate_core::schedule::{Misfire, Overlap, SlotOutcome};
use lockgate_core::time::Timestamp;
use serde::{Serialize, Serializer};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// RFC 3339 in UTC with milliseconds.
pub(in crate::rest) struct Time(pub(super) Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let at = jiff::Timestamp::from_millisecond(self.0.as_millis()).unwrap_or_default();
        serializer.collect_str(&format_args!("{at:.3}"))
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

/// A set of names that grows only with the version of the API.
pub(in crate::rest) trait Named: Copy + 'static {
    /// What the API document calls the set.
    const SET: &'static str;
    /// Every member.
    fn all() -> Vec<Self>;
    fn name(self) -> &'static str;
}

/// A member of such a set, written as its name.
#[derive(Clone, Copy)]
pub(in crate::rest) struct Name<T>(pub(in crate::rest) T);

impl<T: Named> Serialize for Name<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<T: Named> PartialSchema for Name<T> {
    fn schema() -> RefOr<Schema> {
        let names = T::all().into_iter().map(T::name);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).into()
    }
}

impl<T: Named> ToSchema for Name<T> {
    fn name() -> Cow<'static, str> {
        T::SET.into()
    }
}

/// Of types that list and name their members themselves. A field is of the alias: the derived schema of a struct takes the
/// argument of a generic type for a schema too.
macro_rules! listed {
    ($($alias:ident = $set:ident),+ $(,)?) => {$(
        pub(in crate::rest) type $alias = Name<$set>;

        impl Named for $set {
            const SET: &'static str = stringify!($set);
            fn all() -> Vec<Self> {
                Vec::from(Self::ALL)
            }
            fn name(self) -> &'static str {
                self.as_str()
            }
        }
    )+};
}

/// Of types that do not. The match fails to compile when a member is missing.
macro_rules! spelled {
    ($alias:ident = $set:ident as $title:literal { $($member:ident = $name:expr),+ $(,)? }) => {
        pub(in crate::rest) type $alias = Name<$set>;

        impl Named for $set {
            const SET: &'static str = $title;
            fn all() -> Vec<Self> {
                vec![$(Self::$member),+]
            }
            fn name(self) -> &'static str {
                match self {
                    $(Self::$member => $name),+
                }
            }
        }
    };
}

listed!(MisfireName = Misfire, NodeStateName = NodeState, OverlapName = Overlap, RunStateName = RunState,);

spelled!(SlotOutcomeName = SlotOutcome as "SlotOutcome" {
    Due = Self::Due.as_str(),
    Started = Self::Started.as_str(),
    Queued = Self::Queued.as_str(),
    Skipped = Self::Skipped.as_str(),
    Missed = Self::Missed.as_str(),
    Refused = Self::Refused.as_str(),
});
spelled!(UndoStateName = UndoState as "UndoState" {
    Running = Self::Running.as_str(),
    Done = Self::Done.as_str(),
    Stuck = Self::Stuck.as_str(),
    Resolved = Self::Resolved.as_str(),
});
