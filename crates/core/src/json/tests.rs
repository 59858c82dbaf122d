//! What is let in and in which form, held against serde_json and against what senders write.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn told(text: &str) -> String {
    Json::parse(text).map_or_else(|error| error.in_field("payload").to_string(), |json| format!("taken as {json:?}"))
}

#[test]
fn a_name_stands_once_in_an_object_at_any_depth() {
    for (text, path) in [
        (r#"{"to":"evil","to":"ok"}"#, "payload.to"),
        (r#"{"to":"evil","\u0074o":"ok"}"#, "payload.to"),
        (r#"[{"a":[0,{"b":{"c":1,"d":2,"c":1}}]}]"#, "payload[0].a[1].b.c"),
        (r#"{"a b":{"":1,"":2}}"#, r#"payload["a b"][""]"#),
        (r#"{"z":1,"a":2,"m":3,"a":2}"#, "payload.a"),
    ] {
        assert_eq!(told(text), format!("{path}: is given twice; a name may stand once in an object"));
    }
    assert_eq!(told(r#"{"b":{"a":1},"a":{"a":1}}"#), r#"taken as {"a":{"a":1},"b":{"a":1}}"#);
}

#[test]
fn a_number_keeps_its_value_or_is_refused_with_its_path() {
    for (number, why) in [
        ("9007199254740992", "whole number beyond"),
        ("-9007199254740992", "whole number beyond"),
        ("9223372036854775808", "whole number beyond"),
        ("123456789012345678901234567890", "whole number beyond"),
        ("3.14159265358979323846", "more than 17 significant digits"),
        ("9007199254740993000.5", "more than 17 significant digits"),
        ("1e309", "too large"),
        ("-1e400", "too large"),
        ("1e-400", "would become 0"),
    ] {
        let told = told(&format!(r#"{{"a":[1,{number}]}}"#));
        assert!(told.starts_with("payload.a[1]: ") && told.contains(why) && told.ends_with("send it as text"), "{told}");
    }
    for (number, kept) in [
        ("9007199254740991", "9007199254740991"),
        ("-9007199254740991", "-9007199254740991"),
        ("0", "0"),
        ("-0", "-0.0"),
        ("-0.0", "-0.0"),
        ("0e9", "0.0"),
        ("1E2", "100.0"),
        ("1.50", "1.5"),
        ("0.10000000000000001", "0.1"),
        ("0.9009004917506227", "0.9009004917506227"),
        ("5e-324", "5e-324"),
        ("4.9E-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("100000000000000000000.0", "1e+20"),
        ("1e22", "1e+22"),
    ] {
        assert_eq!(told(number), format!("taken as {kept}"), "{number}");
    }
}

#[test]
fn texts_are_written_with_no_escape_that_they_do_not_need() {
    let text = r#" "\u00e9\/\ud83d\ude00\u0009\u001F\u007f\"\\" "#;
    assert_eq!(Json::parse(text).unwrap().as_str(), "\"é/😀\\t\\u001f\u{7f}\\\"\\\\\"");
    for half in [r#"["\ud800"]"#, r#"["\udc00\ud800"]"#, r#"["\ud800x"]"#, r#"["\ud800\u0041"]"#] {
        assert_eq!(told(half), "payload[0]: has half of a surrogate pair, which is no character");
    }
}

#[test]
fn what_is_no_json_is_told_in_the_usual_words() {
    for text in ["", " ", "{", "[1,]", "{\"a\":}", "1 2", "nul", "01", "1.", "+1", "\"\t\"", "\"\\x\"", "{a:1}", "\"\\é\""]
    {
        let usual = serde_json::from_str::<Value>(text).unwrap_err().to_string();
        let told = told(text);
        // The usual parser may stop a byte earlier or later when it looks at what a string says.
        let (usual, _) = usual.split_once(" at ").unwrap();
        assert!(told.starts_with("payload: must be JSON: ") && told.contains(usual), "{text:?}: {told}, not {usual}");
    }
}

#[test]
fn nesting_has_a_limit_that_leaves_room_for_what_wraps_it() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(Json::parse(&deep(DEPTH_MAX)).is_ok());
    assert!(told(&deep(DEPTH_MAX + 1)).ends_with("is nested deeper than 100 levels"));
    assert!(told(&format!(" {}", deep(100_000))).ends_with("is nested deeper than 100 levels"));
}

#[test]
fn a_name_that_a_parser_gives_a_meaning_of_its_own_is_only_a_name() {
    let text = r#"{"$serde_json::private::RawValue":"{\"to\":\"evil\"}"}"#;
    assert_eq!(Json::parse(text).unwrap().as_str(), text);
    let value = Json::read(text).unwrap();
    assert!(value.get("to").is_none(), "{value}");
}

#[test]
fn what_an_earlier_version_took_can_still_be_read_and_keeps_its_hash() {
    let old = Json::trusted(r#"{ "b":1,"a":18446744073709551615,"b":2 }"#);
    assert_eq!(old.value().unwrap(), json!({"a": 18_446_744_073_709_551_615_u64, "b": 2}));
    assert_eq!(old.canonical(), r#"{"a":18446744073709551615,"b":2}"#);
    assert_eq!(Json::admitted(old.as_str()).unwrap(), old, "it can be judged");
    assert_eq!(Json::admitted("[ 1 ]").unwrap().as_str(), "[1]");
    assert!(Json::admitted("[1").is_err());
}

#[test]
fn a_computed_value_is_held_to_the_same_rule() {
    assert_eq!(Json::of(&json!({"b": [1, 0.5], "a": "é"})).unwrap().as_str(), r#"{"a":"é","b":[1,0.5]}"#);
    let error = Json::of(&json!({"ids": [1_u64 << 60]})).unwrap_err();
    assert!(error.in_field("payload").to_string().starts_with("payload.ids[0]: is a whole number beyond"), "{error}");
}

fn whole() -> impl Strategy<Value = i64> {
    prop_oneof![-100..100_i64, -9_007_199_254_740_991..=9_007_199_254_740_991_i64]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        whole().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |double| double.is_finite()).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        "[\\x00-\\x20\"\\\\/é😀]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-c\"\\\\é\\n]{0,3}", inner, 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// A text as some other writer would write it: names the other way round, spaces, escapes.
fn written_otherwise(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[ {} ]", items.iter().map(written_otherwise).collect::<Vec<_>>().join("\t, ")),
        Value::Object(entries) => {
            let entry = |(name, value): (&String, &Value)| format!("{} :\n{}", escaped(name), written_otherwise(value));
            format!("{{\r\n{} }}", entries.iter().rev().map(entry).collect::<Vec<_>>().join(" ,"))
        }
        Value::String(text) => escaped(text),
        Value::Number(number) if number.is_f64() => format!("{:.16e}", number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

fn escaped(text: &str) -> String {
    let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
    format!("\"{units}\"")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_canonical_form_is_what_serde_json_writes_and_is_taken_as_it_is(value in any_value()) {
        let text = value.to_string();
        prop_assert!(canonical::is_canonical(&text), "{}", text);
        let taken = Json::parse(&text).unwrap();
        prop_assert_eq!(taken.as_str(), text.as_str());
        prop_assert_eq!(&read::value(&text).unwrap(), &value);
        prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &value);
    }

    #[test]
    fn however_a_value_is_written_it_is_kept_in_one_form(value in any_value()) {
        let taken = Json::parse(&written_otherwise(&value)).unwrap();
        prop_assert_eq!(taken.as_str(), value.to_string());
    }

    /// One byte of a good text changed, inserted or left out: what serde_json cannot read is not taken, and what is taken
    /// says the same to both.
    #[test]
    fn nothing_is_taken_that_the_usual_parser_reads_otherwise(
        value in any_value(), otherwise in any::<bool>(), at in any::<prop::sample::Index>(), byte in prop::sample::select(b"{}[]\",:\\0159-+.eEu \ntx".to_vec()), how in 0..3,
    ) {
        let mut bytes = if otherwise { written_otherwise(&value) } else { value.to_string() }.into_bytes();
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ => drop(bytes.remove(at)),
        }
        if let Ok(text) = String::from_utf8(bytes) {
            let usual = serde_json::from_str::<Value>(&text);
            match Json::parse(&text) {
                Ok(taken) => prop_assert_eq!(taken.as_str(), usual.unwrap().to_string()),
                Err(error) => prop_assert!(!error.is_syntax() || usual.is_err(), "{}: {}", text, error),
            }
            prop_assert_eq!(canonical::is_canonical(&text), Json::parse(&text).is_ok_and(|taken| taken.as_str() == text));
        }
    }

    #[test]
    fn every_double_survives_all_the_ways_that_senders_write_it(bits in any::<u64>()) {
        let double = f64::from_bits(bits);
        prop_assume!(double.is_finite());
        for text in [format!("{double:?}"), format!("{double:e}"), format!("{double:.16e}"), format!("{double:E}")] {
            let kept = Json::parse(&text).unwrap().value().unwrap();
            prop_assert_eq!(kept.as_f64().unwrap().to_bits(), double.to_bits(), "{}", text);
        }
    }
}
