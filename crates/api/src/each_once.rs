//! Maps that two readers cannot read differently.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

/// A map in which each name stands once: of two values under one name, another reader of the same body may take the other.
pub(crate) fn each_once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct EntriesVisitor;

    impl<'de> Visitor<'de> for EntriesVisitor {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = BTreeMap::new();
            while let Some(name) = map.next_key::<String>()? {
                let next = UniqueValue { is_taken: entries.contains_key(&name) };
                entries.insert(name, map.next_value_seed(next)?);
            }
            Ok(entries)
        }
    }

    /// Refused where it stands, so that the error has its path.
    struct UniqueValue {
        is_taken: bool,
    }

    impl<'de> DeserializeSeed<'de> for UniqueValue {
        type Value = String;

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
            let value = String::deserialize(deserializer)?;
            if self.is_taken {
                Err(D::Error::custom("is given twice; a name may stand once in an object"))
            } else {
                Ok(value)
            }
        }
    }

    deserializer.deserialize_map(EntriesVisitor)
}
