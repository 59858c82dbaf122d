//! Test helpers that compare a published schema with its loader: both must know the same keys and words.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Section;

pub(crate) fn words<'a>(list: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    list.into_iter().map(str::to_owned).collect()
}

pub(crate) fn strings(value: &Value) -> BTreeSet<String> {
    words(value.as_array().into_iter().flatten().filter_map(Value::as_str))
}

/// Checks that every map of the schema is closed and has exactly the keys of its section.
pub(crate) fn same_keys(schema: &str, sections: &[(&str, &Section)]) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    for (pointer, section) in sections {
        let object = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in the schema"));
        let properties = object["properties"].as_object().unwrap();
        assert_eq!(words(properties.keys().map(String::as_str)), words(section.keys.iter().copied()), "{pointer}");
        assert_eq!(object["additionalProperties"], false, "{pointer} is closed");
    }
    let closed = schema["$defs"].as_object().unwrap().values().filter(|def| def.get("properties").is_some()).count();
    assert_eq!(closed + 1, sections.len(), "every map of the schema is compared");
}
