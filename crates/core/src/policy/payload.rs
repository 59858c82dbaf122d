//! The payload of a job in conditions: parsed once, and texts without escapes borrowed from the request.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt};
use cel::common::value::Val;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

#[derive(Debug)]
pub(super) enum Payload<'a> {
    Null,
    Bool(bool),
    /// Integers wherever they fit, so that they compare with integer literals of an expression.
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Map(Entries<'a>),
}

/// The entries of an object, sorted by name, each name once.
#[derive(Debug, Default)]
pub(super) struct Entries<'a>(Vec<(Cow<'a, str>, Payload<'a>)>);

impl<'a> Entries<'a> {
    /// None if a name occurs twice. New payloads with such names are refused; an earlier version accepted them, and which of
    /// the values a worker reads is unknown, so no rule can judge them.
    fn new(mut entries: Vec<(Cow<'a, str>, Payload<'a>)>) -> Option<Self> {
        if !entries.is_sorted_by(|(a, _), (b, _)| a < b) {
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        let distinct = entries.is_sorted_by(|(a, _), (b, _)| a < b);
        distinct.then_some(Self(entries))
    }

    pub(super) fn get(&self, name: &str) -> Option<&Payload<'a>> {
        let place = self.0.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
        Some(&self.0[place].1)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'a> Payload<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The payload as a value of the CEL interpreter.
    pub(super) fn to_val(&self) -> Box<dyn Val + 'a> {
        match self {
            Self::Null => Box::new(CelNull),
            Self::Bool(truth) => Box::new(CelBool::from(*truth)),
            Self::Int(int) => Box::new(CelInt::from(*int)),
            Self::UInt(uint) => Box::new(CelUInt::from(*uint)),
            Self::Double(double) => Box::new(CelDouble::from(*double)),
            Self::Text(text) => Box::new(CelString::from(text.clone())),
            Self::List(items) => Box::new(CelList::from(items.iter().map(Self::to_val).collect::<Vec<_>>())),
            Self::Map(Entries(entries)) => {
                let entry = |(name, inner): &(Cow<'a, str>, Self)| {
                    (CelMapKey::String(CelString::from(name.clone())), inner.to_val())
                };
                Box::new(CelMap::from(entries.iter().map(entry).collect::<HashMap<_, _>>()))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Payload<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PayloadVisitor)
    }
}

struct PayloadVisitor;

impl<'de> Visitor<'de> for PayloadVisitor {
    type Value = Payload<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Payload::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Self::Value, E> {
        Ok(Payload::Bool(truth))
    }

    fn visit_i64<E>(self, int: i64) -> Result<Self::Value, E> {
        Ok(Payload::Int(int))
    }

    fn visit_u64<E>(self, uint: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(uint).map_or(Payload::UInt(uint), Payload::Int))
    }

    fn visit_f64<E>(self, double: f64) -> Result<Self::Value, E> {
        Ok(Payload::Double(double))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Payload::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Payload::Text(Cow::Borrowed(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Payload::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((name, inner)) = map.next_entry::<Payload<'de>, Payload<'de>>()? {
            let Payload::Text(name) = name else { return Err(de::Error::custom("a name must be a text")) };
            entries.push((name, inner));
        }
        let entries = Entries::new(entries).ok_or_else(|| de::Error::custom("a name stands twice in an object"))?;
        Ok(Payload::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::formula::to_json;

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            any::<u64>().prop_map(serde_json::Value::from),
            prop::num::f64::NORMAL.prop_map(serde_json::Value::from),
            ".{0,8}".prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(3, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
                prop::collection::vec(("[a-z\"]{0,3}", inner), 0..5)
                    .prop_map(|entries| serde_json::Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_payload_says_what_its_text_says(json in any_json()) {
            let text = json.to_string();
            let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(to_json(&*Payload::parse(&text).unwrap().to_val()), Ok(parsed));
        }
    }

    #[test]
    fn a_payload_of_an_earlier_version_with_a_name_given_twice_cannot_be_judged() {
        let error = Payload::parse(r#"{"a":[{"b":1,"a":2,"b":3}]}"#).unwrap_err();
        assert!(error.to_string().contains("a name stands twice in an object"), "{error}");
        let payload = Payload::parse(r#"{"b":1,"c":5,"a":6}"#).unwrap();
        assert_eq!(to_json(&*payload.to_val()), Ok(json!({"a": 6, "b": 1, "c": 5})));
    }

    #[test]
    fn a_name_that_a_parser_gives_a_meaning_of_its_own_is_only_a_name() {
        let payload = Payload::parse(r#"{"$serde_json::private::RawValue":"{\"amount\":1}"}"#).unwrap();
        let Payload::Map(entries) = payload else { panic!("an object is a map") };
        assert!(entries.get("amount").is_none());
        assert!(entries.get("$serde_json::private::RawValue").is_some());
    }

    #[test]
    fn what_is_no_json_says_the_same_as_ever() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in ["", "{", "[1,]", r#"{"a":1e999}"#, r#""\ud800""#, "{} {}", deep.as_str()] {
            let ours = Payload::parse(text).map(|_| ()).map_err(|error| error.to_string());
            let theirs = serde_json::from_str::<serde_json::Value>(text).map(|_| ()).map_err(|error| error.to_string());
            assert_eq!(ours, theirs, "{text}");
            assert!(ours.is_err(), "{text}");
        }
    }
}
