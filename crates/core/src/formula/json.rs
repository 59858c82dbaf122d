//! Converts JSON to values of CEL and back.

use std::collections::HashMap;

use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt};
use cel::common::value::Val;
use serde_json::{Map, Value};

/// Whole numbers become `int` where they fit, so that they compare with integer literals of an expression.
pub(crate) fn from_json(json: Value) -> Box<dyn Val> {
    match json {
        Value::Null => Box::new(CelNull),
        Value::Bool(truth) => Box::new(CelBool::from(truth)),
        Value::String(text) => Box::new(CelString::from(text)),
        Value::Array(items) => Box::new(CelList::from(items.into_iter().map(from_json).collect::<Vec<_>>())),
        Value::Object(entries) => {
            let key = |name: String| CelMapKey::String(CelString::from(name));
            let entries: HashMap<_, _> = entries.into_iter().map(|(name, inner)| (key(name), from_json(inner))).collect();
            Box::new(CelMap::from(entries))
        }
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Box::new(CelInt::from(int)),
            (None, Some(uint)) => Box::new(CelUInt::from(uint)),
            (None, None) => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
        },
    }
}

/// A value that JSON can express; otherwise an error text.
pub(crate) fn to_json(value: &dyn Val) -> Result<Value, String> {
    if let Some(text) = value.downcast_ref::<CelString>() {
        return Ok(text.inner().into());
    }
    if let Some(truth) = value.downcast_ref::<CelBool>() {
        return Ok((*truth.inner()).into());
    }
    if let Some(int) = value.downcast_ref::<CelInt>() {
        return Ok((*int.inner()).into());
    }
    if let Some(uint) = value.downcast_ref::<CelUInt>() {
        return Ok((*uint.inner()).into());
    }
    if let Some(double) = value.downcast_ref::<CelDouble>() {
        let number = serde_json::Number::from_f64(*double.inner());
        return number.map(Value::Number).ok_or_else(|| "it gave a number that is not finite".to_owned());
    }
    if let Some(list) = value.downcast_ref::<CelList>() {
        return list.inner().iter().map(|item| to_json(&**item)).collect();
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        let entries = map.inner().iter().map(|(key, inner)| Ok((name(key), to_json(&**inner)?)));
        return entries.collect::<Result<Map<_, _>, String>>().map(Value::Object);
    }
    if value.downcast_ref::<CelNull>().is_some() {
        return Ok(Value::Null);
    }
    Err(format!("it gave {}, which JSON cannot hold", value.get_type().name()))
}

fn name(key: &CelMapKey<'_>) -> String {
    match key {
        CelMapKey::String(text) => text.inner().to_owned(),
        CelMapKey::Int(int) => int.inner().to_string(),
        CelMapKey::UInt(uint) => uint.inner().to_string(),
        CelMapKey::Bool(truth) => truth.inner().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            prop::num::f64::NORMAL.prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{0,3}", inner, 0..5)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn json_comes_back_as_it_went_in(json in any_json()) {
            prop_assert_eq!(to_json(&*from_json(json.clone())), Ok(json));
        }
    }

    #[test]
    fn keys_of_all_kinds_become_text_and_what_json_lacks_is_refused() {
        let keys =
            [CelMapKey::Int(CelInt::from(-1)), CelMapKey::UInt(CelUInt::from(2)), CelMapKey::Bool(CelBool::from(true))];
        let entries = keys.into_iter().map(|key| (key, from_json(json!(0)))).collect::<HashMap<_, _>>();
        assert_eq!(to_json(&CelMap::from(entries)), Ok(json!({"-1": 0, "2": 0, "true": 0})));
        assert_eq!(to_json(&CelDouble::from(f64::INFINITY)), Err("it gave a number that is not finite".to_owned()));
    }
}
