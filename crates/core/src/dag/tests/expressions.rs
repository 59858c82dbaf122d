//! Expressions: what they see and what they refuse.

use super::*;

fn evaluate(text: &str) -> Result<Value, String> {
    Expression::compile(text).unwrap_or_else(|error| panic!("{text}: {error}")).evaluate(&World::new().scope())
}

#[test]
fn expressions_see_params_nodes_and_the_run() {
    for (text, expected) in [
        ("true", json!(true)),
        ("[1, 2]", json!([1, 2])),
        ("params.n", json!(3)),
        ("params", World::new().params),
        ("params.big", json!(18_446_744_073_709_551_615_u64)),
        ("params.n + 1", json!(4)),
        ("params.rate * 2.0", json!(1.0)),
        ("params.map.a.b + '!'", json!("deep!")),
        ("params.map['with-dash']", json!(1)),
        ("params.list[1]", json!(20)),
        ("params.list[params.n - 1]", json!(30)),
        ("params.list.map(x, x * params.n)", json!([30, 60, 90])),
        ("params.list.filter(x, x > 10 && params.yes)", json!([20, 30])),
        ("{'n': params.n, 'a': nodes.a.output}", json!({"n": 3, "a": {"url": "s3://x", "sizes": [1, 2]}})),
        ("nodes.a.state == 'SUCCEEDED'", json!(true)),
        ("nodes['b-2'].state", json!("SKIPPED")),
        ("nodes['b-2'].output == null", json!(true)),
        ("nodes.?a.?output.?missing.orValue(7)", json!(7)),
        ("size(nodes.a.output.sizes) + size(params.name)", json!(5)),
        ("has(nodes.a.output.url) && !has(nodes.a.output.other)", json!(true)),
        ("'a' in params.map", json!(true)),
        ("run.id + '/' + run.dag", json!("run-1/d")),
        ("run", json!({"id": "run-1", "dag": "d"})),
        ("params.name.matches('^a.n$')", json!(true)),
        ("type(params.n) == int ? 'int' : 'other'", json!("int")),
        ("params.missing == 1 || params.yes", json!(true)),
        ("params.nothing", json!(null)),
    ] {
        assert_eq!(evaluate(text), Ok(expected), "{text}");
    }
}

#[test]
fn expressions_of_a_for_each_see_the_item_and_its_number() {
    let world = World::new();
    let item = json!({"name": "x", "tags": ["p", "q", "r"]});
    let scope = ExpressionScope { item: Some((&item, 2)), ..world.scope() };
    for (text, expected) in [
        ("item", item.clone()),
        ("index", json!(2)),
        ("item.name + string(index)", json!("x2")),
        ("params.list[index]", json!(30)),
        ("item.tags[index]", json!("r")),
        ("item.tags.exists(t, t == 'q')", json!(true)),
    ] {
        assert_eq!(Expression::compile(text).unwrap().evaluate(&scope), Ok(expected), "{text}");
    }
    assert_eq!(evaluate("item"), Err("there is an item only in a for_each".to_owned()));
    assert_eq!(evaluate("index + 1"), Err("there is an item only in a for_each".to_owned()));
}

#[test]
fn what_is_not_there_is_named_in_full() {
    for (text, error) in [
        ("params.missing", "params.missing is absent; ask with has() first"),
        ("params.missing + 1", "params.missing is absent; ask with has() first"),
        ("nodes.a.output.sizes[5]", "nodes.a.output.sizes[5] is absent: the list has 2 entries"),
        ("nodes['b-2'].output.url", "nodes[\"b-2\"].output is null, so that there is no nodes[\"b-2\"].output.url"),
        ("params.list.x == 1", "params.list is a list, so that there is no params.list.x"),
        ("params.list.map(x, x.y)", "found no matching overload for '_[_]' applied to '(int, string)'"),
        ("has(params.name.x)", "params.name is text, not a map"),
        ("has(params.missing.x)", "params.missing is absent; ask with has() first"),
        ("params.map[params.name]", "\"ann\" is absent; ask with has() or in first"),
        ("params.n / 0", "it divides by zero"),
        ("b'abc'", "it gave bytes, which JSON cannot hold"),
        ("optional.of(1)", "it gave optional_type, which JSON cannot hold"),
        ("1.0 / 0.0", "it gave a number that is not finite"),
    ] {
        assert_eq!(evaluate(text), Err(error.to_owned()), "{text}");
    }
}

#[test]
fn a_condition_must_be_true_or_false() {
    let world = World::new();
    let holds = |text: &str| Expression::compile(text).unwrap().holds(&world.scope());
    assert_eq!(holds("params.n == 3"), Ok(true));
    assert_eq!(holds("!params.yes"), Ok(false));
    assert_eq!(holds("params.n"), Err("it gave a number, not true or false".to_owned()));
    assert_eq!(holds("params.list"), Err("it gave a list, not true or false".to_owned()));
}

#[test]
fn what_would_fail_every_time_does_not_compile() {
    for (text, message) in [
        ("1 +", "the expression is not valid CEL at its line 1, column "),
        ("payload.x", "unknown name \"payload\" in the expression; it knows params, nodes, run, item, index"),
        ("nodes", "nodes in the expression must be followed by a name, as in nodes.NAME.output"),
        ("nodes[params.name]", "nodes in the expression must be followed by a name"),
        ("nodes.a.ouput", "unknown field \"ouput\" of node \"a\" in the expression; it has output, state"),
        ("has(nodes.a.result)", "unknown field \"result\" of node \"a\""),
        ("run.name", "unknown field \"name\" of run in the expression; it has id, dag"),
        ("length(params.list)", "unknown function \"length\" in the expression"),
        ("params.list.all(item, item > 1)", "the expression uses \"item\" for what a loop goes over; choose another name"),
        ("params.name.matches(params.name)", "matches in the expression needs a pattern written out as text"),
        ("params.name.matches('[')", "bad regex \"[\" in the expression: unclosed character class"),
        ("[1].map(a, [1].map(b, [1].map(c, 1)))", "the expression has more than 2 loops inside of each other"),
    ] {
        let found = Expression::compile(text).unwrap_err();
        assert!(found.starts_with(message), "{text}: {found}");
    }
    let long = format!("'{}'", "x".repeat(4096));
    assert_eq!(Expression::compile(&long).unwrap_err(), "the expression is longer than 4096 bytes; shorten it");
}

#[test]
fn the_largest_expressions_accepted_fit_a_small_stack() {
    // Threads of the engine have two mebibytes; half of that leaves room for what calls us.
    let chains = [
        ("(", "params.n", ")", 48),
        ("!", "params.yes", "", 318),
        ("1 + ", "params.n", "", 318),
        ("true ? params.n : ", "1", "", 100),
        ("", "params", ".a", 319),
        ("", "params", "[0]", 48),
        ("has(", "params.n", ".x)", 48),
        ("params.list.all(x, ", "true", ")", 2),
    ];
    let run = move || {
        for (before, middle, after, count) in chains {
            let text = format!("{}{middle}{}", before.repeat(count), after.repeat(count));
            if let Ok(expression) = Expression::compile(&text) {
                let _ = expression.evaluate(&World::new().scope());
            }
        }
    };
    std::thread::Builder::new().stack_size(1024 * 1024).spawn(run).unwrap().join().unwrap();
}
