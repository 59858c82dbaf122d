//! Templates: JSON with holes.

use super::*;

/// What the payload of a node, written as YAML, becomes.
fn filled(payload: &str) -> Result<Value, String> {
    let text = format!(
        "version: 1\ndag: d\nparams: {{n: number, rate: number, name: text, list: list, map: map, nothing: any}}\n\
         nodes:\n  a: {{topic: t}}\n  x:\n    needs: a\n    topic: t\n    payload: {payload}\n"
    );
    let dag = load(&text);
    let NodeWork::Job(job) = &named(&dag, "x").work else { panic!("a job") };
    job.payload.fill(&World::new().scope())
}

#[test]
fn a_text_that_is_one_hole_keeps_the_type_and_others_become_text() {
    for (payload, expected) in [
        ("'${params.n}'", json!(3)),
        ("'${ params.list }'", json!([10, 20, 30])),
        ("'${params.nothing}'", json!(null)),
        ("'${params.n} '", json!("3 ")),
        ("'n=${params.n}, ${params.name}'", json!("n=3, ann")),
        ("'${params.n}${params.n}'", json!("33")),
        ("'${params.list} ${params.nothing} ${params.rate}'", json!("[10,20,30] null 0.5")),
        ("'${params.n == 3}!'", json!("true!")),
        ("{a: ['${params.n}', 1, '1'], b: {c: '${params.name}'}}", json!({"a": [3, 1, "1"], "b": {"c": "ann"}})),
        ("{'${params.n}': 1}", json!({"${params.n}": 1})),
        ("{a: [1, 2.5, true, ~, x]}", json!({"a": [1, 2.5, true, null, "x"]})),
        ("${params.name}", json!("ann")),
    ] {
        assert_eq!(filled(payload), Ok(expected), "{payload}");
    }
}

#[test]
fn dollars_that_are_no_holes_stay() {
    for (payload, expected) in [
        ("'$'", "$"),
        ("'$5 and $$6'", "$5 and $$6"),
        ("'$${params.n}'", "${params.n}"),
        ("'$$${params.n}'", "$${params.n}"),
        ("'$${a} ${params.n} $'", "${a} 3 $"),
        ("'{params.n}'", "{params.n}"),
        ("'5$${'", "5${"),
    ] {
        assert_eq!(filled(payload), Ok(json!(expected)), "{payload}");
    }
}

#[test]
fn a_hole_ends_at_its_own_bracket() {
    for (payload, expected) in [
        (r#"'${ {"a": params.n}.a }'"#, json!(3)),
        (r#"'${ "}" + params.name }'"#, json!("}ann")),
        (r#"'${ "\"}" }'"#, json!("\"}")),
        (r#"'${ r"\" + "}" }'"#, json!("\\}")),
        (r#"'${ {"a": {"b": 1}} }}'"#, json!("{\"a\":{\"b\":1}}}")),
    ] {
        assert_eq!(filled(payload), Ok(expected), "{payload}");
    }
}

#[test]
fn a_hole_that_cannot_be_filled_is_an_error() {
    let error = "params.map.x is absent; ask with has() first";
    for payload in ["'${params.map.x}'", "'a ${params.map.x}'", "['${params.map.x}']", "{a: '${params.map.x}'}"] {
        assert_eq!(filled(payload), Err(error.to_owned()), "{payload}");
    }
}

#[test]
fn a_constant_is_itself() {
    let value = json!({"a": ["${params.n}", 1]});
    assert_eq!(Template::constant(value.clone()).fill(&World::new().scope()), Ok(value));
}
