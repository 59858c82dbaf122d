//! What a run is given.

use super::*;
use crate::request::FieldError;

const DAG: &str = "version: 1
dag: d
params:
  source: text
  count: {type: number, default: 2}
  fast: {type: truth, default: false}
  parts: {type: list, description: Parts, default: [a, 1]}
  more: {type: map, default: {}}
  what: {type: any, default: ~}
nodes: {a: {topic: t}}
";

fn check(given: &Value) -> Result<Value, Vec<String>> {
    load(DAG).check_params(given).map_err(|errors| errors.iter().map(FieldError::to_string).collect())
}

#[test]
fn defaults_fill_in_what_is_not_given() {
    assert_eq!(
        check(&json!({"source": "x", "count": 2.5})),
        Ok(json!({"source": "x", "count": 2.5, "fast": false, "parts": ["a", 1], "more": {}, "what": null}))
    );
}

#[test]
fn every_error_is_told_with_the_name_of_its_parameter() {
    let given = json!({
        "sorce": "x", "count": "2", "fast": 1, "parts": {}, "more": [], "what": 1, "zzz": 1, "null": null,
    });
    assert_eq!(
        check(&given).unwrap_err(),
        [
            "params.null: is no parameter of DAG \"d\"; it has source, count, fast, parts, more, what",
            "params.sorce: is no parameter of DAG \"d\"; did you mean \"source\"?",
            "params.zzz: is no parameter of DAG \"d\"; it has source, count, fast, parts, more, what",
            "params.source: must be given: text",
            "params.count: must be a number, not text",
            "params.fast: must be true or false, not a number",
            "params.parts: must be a list, not a map",
            "params.more: must be a map, not a list",
        ]
    );
    assert_eq!(check(&json!(3)).unwrap_err(), ["params: must be a map, not a number"]);
}

#[test]
fn null_and_an_empty_map_give_nothing() {
    let none = with_nodes("a: {topic: t}");
    for given in [json!(null), json!({})] {
        assert_eq!(none.check_params(&given), Ok(json!({})));
        assert_eq!(check(&given).unwrap_err(), ["params.source: must be given: text"]);
    }
    let error = none.check_params(&json!({"x": 1})).unwrap_err();
    assert_eq!(error[0].to_string(), "params.x: is no parameter of DAG \"d\"; it has none");
}
