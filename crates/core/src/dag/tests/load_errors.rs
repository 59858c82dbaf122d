//! Everything a load refuses, with the line to change.

use super::super::load::TEXT_BYTES_MAX;
use super::*;

/// A file of which line 5 belongs to the job node `b`, which needs the node `a`.
fn with_line(line: &str) -> String {
    format!("version: 1\ndag: d\nnodes:\n  a: {{topic: t}}\n  b: {{needs: a, topic: t, {line}}}\n")
}

/// A file of which line 4 is all there is of the node `b`, beside a node `a` in line 5.
fn with_node(node: &str) -> String {
    format!("version: 1\ndag: d\nnodes:\n  b: {node}\n  a: {{topic: t, on_fail: continue, compensation: {{topic: u}}}}\n")
}

#[test]
fn files_that_are_no_dag_are_refused() {
    assert_refused("- a\n", &["1: the DAG must be a map of keys and values"]);
    assert_refused(
        "description: x\n",
        &[
            "1: the DAG has no \"version\"; add it",
            "1: the DAG has no \"dag\"; add it",
            "1: the DAG has no \"nodes\"; add it",
        ],
    );
    assert_refused("version: 2\ndag: d\nnodes: {a: {topic: t}}\n", &["1: version must be 1"]);
    assert_refused("version: 1\ndag: d\nnodes: {}\n", &["3: nodes is empty; remove it or name at least one"]);
    assert_refused(
        "version: 1\ndag: d\nnodes: {a: {topic: t}}\nnode: {}\n",
        &["4: unknown key \"node\" in the DAG; did you mean \"nodes\"?"],
    );
    assert_refused("version: 1\ndag: d\nnodes: {a: {topic: t}, a: {topic: t}}\n", &["3: key \"a\" is given twice"]);
    for (line, message) in [
        ("dag: a b", "dag \"a b\" must not contain ' '; allowed are letters, digits and . _ - :"),
        ("dag: 3", "dag must be text; put it in quotes: \"3\""),
        ("dag: d\ntimeout: 3", "timeout must be a time such as 500ms, 30s, 5m, 2h or 7d"),
        ("dag: d\nmax_parallelism: 0", "max_parallelism must be a whole number between 1 and 1000000"),
        ("dag: d\ndescription: []", "description must be text"),
    ] {
        let at = 1 + line.lines().count();
        assert_refused(&format!("version: 1\n{line}\nnodes: {{a: {{topic: t}}}}\n"), &[&format!("{at}: {message}")]);
    }
}

#[test]
fn files_that_are_too_large_are_refused() {
    let large = "#".repeat(TEXT_BYTES_MAX + 1);
    assert_refused(&large, &["1: the file is larger than 4 MiB; split it or shorten its lists"]);
    let many: String = (0..=NODES_MAX).map(|n| format!("n{n}: {{topic: t}}\n")).collect();
    let at = NODES_MAX + 4;
    let message = format!("{at}: a DAG has at most {NODES_MAX} nodes; make a DAG of its own of some of them");
    assert_refused(&file(&many), &[&message]);
}

#[test]
fn params_are_refused_at_their_line() {
    for (param, message) in [
        ("x: string", "unknown type of \"x\" \"string\"; it must be one of text, number, truth, list, map, any"),
        (
            "x: {type: txt}",
            "unknown type \"txt\"; it must be one of text, number, truth, list, map, any; did you mean \"text\"?",
        ),
        ("x: {default: 1}", "the parameter has no \"type\"; add it"),
        ("x: {type: text, default: 3}", "the default of \"x\" must be text, not a number"),
        ("x: {type: number, default: '3'}", "the default of \"x\" must be a number, not text"),
        ("x: {type: list, defualt: []}", "unknown key \"defualt\" in the parameter; did you mean \"default\"?"),
        ("x: []", "the parameter must be a map of keys and values"),
        ("a b: text", "parameter \"a b\" must not contain ' '; allowed are letters, digits and . _ - :"),
    ] {
        let text = format!("version: 1\ndag: d\nnodes: {{a: {{topic: t}}}}\nparams:\n  {param}\n");
        assert_refused(&text, &[&format!("5: {message}")]);
    }
}

#[test]
fn a_node_does_one_thing() {
    for (node, message) in [
        ("{}", "node \"b\" does nothing; give it a topic, a dag, a delay or an approval"),
        ("{needs: a}", "node \"b\" does nothing; give it a topic, a dag, a delay or an approval"),
        ("3", "the node must be a map of keys and values"),
        ("{topic: t, dag: other}", "node \"b\" has topic and dag; make two nodes of it"),
        ("{delay: 1s, delay_sec: 1}", "node \"b\" has delay and delay_sec; make two nodes of it"),
        ("{delay: 1s, approval: {reason: x}}", "node \"b\" has delay and approval; make two nodes of it"),
        ("{topic: t, approval: {reason: x}, dag: o}", "node \"b\" has topic and dag; make two nodes of it"),
        ("{topic: t, tpoic: t}", "unknown key \"tpoic\" in the node; did you mean \"topic\"?"),
        ("{delay: 1s, max_attempts: 3}", "max_attempts does not fit a node with delay; remove it"),
        ("{delay: 1s, for_each: '[1]'}", "for_each does not fit a node with delay; remove it"),
        ("{delay_sec: 1, compensation: {topic: t}}", "compensation does not fit a node with delay_sec; remove it"),
        ("{approval: {reason: x}, compensation: {topic: t}}", "compensation does not fit a node with approval; remove it"),
        ("{approval: {reason: x}, payload: 1}", "payload does not fit a node with approval; remove it"),
        ("{dag: o, payload: 1}", "payload does not fit a node with dag; remove it"),
        ("{topic: t, params: {a: 1}}", "params does not fit a node with topic; remove it"),
        ("{dag: d}", "a DAG cannot be a node of itself; name another"),
        ("{dag: o o}", "dag \"o o\" must not contain ' '; allowed are letters, digits and . _ - :"),
        ("{dag: o, params: {}}", "params is empty; remove it or name at least one"),
        ("{approval: {}}", "approval has no \"reason\"; add it"),
        ("{approval: {reason: x, approvers: 0}}", "approvers must be a whole number between 1 and 100"),
        ("{approval: {reason: x, expires: 1}}", "expires must be a time such as 500ms, 30s, 5m, 2h or 7d"),
        ("{delay: 0s}", "delay must be between 1ms and 366d"),
        ("{delay_sec: 1.5}", "delay_sec must be a whole number between 1 and 31622400"),
        ("{delay_until: 5}", "delay_until must be text; put it in quotes: \"5\""),
        (
            "{delay_until: garbage}",
            "delay_until of node \"b\" fails in every run: \"garbage\" is not a time; write it like 2030-01-31T12:00:00Z",
        ),
    ] {
        assert_refused(&with_node(node), &[&format!("4: {message}")]);
    }
    let name = file("'a b': {topic: t}");
    assert_refused(&name, &["4: node \"a b\" must not contain ' '; allowed are letters, digits and . _ - :"]);
}

#[test]
fn what_every_job_must_keep_to_is_checked_at_load() {
    for (line, message) in [
        ("priority: urgent", "unknown priority \"urgent\"; it must be one of critical, high, default, low"),
        ("max_attempts: 0", "max_attempts must be a whole number between 1 and 1000"),
        ("timeout: 30", "timeout must be a time such as 500ms, 30s, 5m, 2h or 7d"),
        ("timeout_ms: 0", "timeout_ms must be a whole number between 1 and 31622400000"),
        ("timeout: 1s, timeout_ms: 1000", "timeout and timeout_ms say the same; remove one"),
        ("labels: {n: 1}", "labels entry \"n\" must be text; put it in quotes: \"1\""),
        ("labels: {_x: a}", "labels: \"_x\" is refused: a leading _ is reserved for the platform"),
        ("labels: {_x: '${run.id}'}", "labels: \"_x\" is refused: a leading _ is reserved for the platform"),
        ("env: {}", "env is empty; remove it or name at least one"),
        ("requires: [a b]", "requires: must not contain ' '; allowed are letters, digits and . _ - :"),
        ("requires: [a, a]", "\"a\" stands twice in requires; remove one"),
        ("capability: a b", "capability \"a b\" must not contain ' '; allowed are letters, digits and . _ - :"),
        ("concurrency_key: a b", "concurrency_key: must not contain ' '; allowed are letters, digits and . _ - :"),
        ("compensation: {payload: 1}", "compensation has no \"topic\"; add it"),
        ("compensation: {topic: t, priority: low}", "unknown key \"priority\" in compensation"),
        ("compensation: {topic: t, labels: {_x: a}}", "labels: \"_x\" is refused: a leading _ is reserved for the platform"),
        ("compensation: {topic: t, undo_on_failure: maybe}", "undo_on_failure must be true or false"),
    ] {
        assert_refused(&with_line(line), &[&format!("5: {message}")]);
    }
    let topic = file("a: {topic: a b}");
    assert_refused(&topic, &["4: topic \"a b\" must not contain ' '; allowed are letters, digits and . _ - :"]);
    let large = file(&format!("a: {{topic: t, payload: {}}}", "x".repeat(1 << 20)));
    assert_refused(&large, &["4: payload: must be at most 1048576 bytes of JSON"]);
}

#[test]
fn needs_are_held_against_the_nodes() {
    for (needs, message) in [
        ("c", "node \"b\" needs \"c\", which is not in this DAG; did you mean \"a\"?"),
        ("[a, other]", "node \"b\" needs \"other\", which is not in this DAG"),
        ("b", "node \"b\" needs itself; remove that"),
        ("[a, a]", "\"a\" stands twice in needs; remove one"),
        ("[]", "needs is empty; remove it or name at least one"),
        ("{a: b}", "needs must be a list"),
        ("[1]", "an entry of needs must be text; put it in quotes: \"1\""),
    ] {
        assert_refused(&with_node(&format!("{{topic: t, needs: {needs}}}")), &[&format!("4: {message}")]);
    }
}

#[test]
fn loops_are_named() {
    let two = file(
        "a: {needs: b, topic: t}
         b: {needs: a, topic: t}",
    );
    assert_refused(&two, &["4: these nodes wait for each other: a → b → a; remove one of the needs"]);
    let several = file(
        "start: {topic: t}
         a: {needs: [start, c], topic: t}
         b: {needs: a, topic: t}
         c: {needs: b, topic: t}
         after: {needs: c, topic: t, payload: '${nodes.a.output}'}
         x: {needs: [after, y], topic: t}
         y: {needs: x, topic: t}",
    );
    assert_refused(
        &several,
        &[
            "5: these nodes wait for each other: a → b → c → a; remove one of the needs",
            "9: these nodes wait for each other: x → y → x; remove one of the needs",
        ],
    );
}

#[test]
fn nodes_that_can_never_run_are_refused() {
    let never = "node \"b\" can never run: a failure of what it needs ends the run; write on_fail: continue there";
    assert_refused(&with_line("join: one_failed"), &[&format!("5: {never}")]);
    with_nodes(
        "a: {topic: t, on_fail: continue}
         c: {topic: t}
         b: {needs: [a, c], topic: t, join: one_failed}",
    );
    let useless = "join has no effect without needs; remove it or name what the node needs";
    assert_refused(&with_node("{topic: t, join: one_failed}"), &[&format!("4: {useless}")]);
    assert_refused(
        &with_line("join: al_done"),
        &[
            "5: unknown join \"al_done\"; it must be one of all_success, any_success, all_done, one_failed, none_failed; did you mean \"all_done\"?",
        ],
    );
}

#[test]
fn undoing_needs_something_that_can_be_undone() {
    let nothing = "on_fail: compensate undoes nothing, for no node has a compensation; add one or write stop";
    assert_refused(&with_line("on_fail: compensate"), &[&format!("5: {nothing}")]);
    with_nodes(
        "a: {topic: t, compensation: {topic: u}}
         b: {topic: t, on_fail: compensate}",
    );
}

#[test]
fn for_each_is_refused_at_its_line() {
    let bounds = "min_success must be 1% to 100% or a number of items from 1 to 10000";
    for (line, message) in [
        ("concurrency: 3", "concurrency has an effect only with for_each; remove it or add for_each"),
        ("min_success: 3", "min_success has an effect only with for_each; remove it or add for_each"),
        ("for_each: [a]", "for_each must be text"),
        ("for_each: '${nodes.a.output}'", "for_each is an expression as a whole; write it without ${ and }"),
        ("when: '${nodes.a.output}'", "when is an expression as a whole; write it without ${ and }"),
        ("for_each: '[1]', concurrency: 0", "concurrency must be a whole number between 1 and 1000000"),
        ("for_each: '[1]', min_success: 0%", bounds),
        ("for_each: '[1]', min_success: 101%", bounds),
        ("for_each: '[1]', min_success: +1%", bounds),
        ("for_each: '[1]', min_success: 10001", bounds),
        ("for_each: '[1]', min_success: most", bounds),
        ("for_each: '[1]', min_success: [1]", bounds),
        ("for_each: '[item]'", "item and index are not there yet: when and for_each are evaluated once for all items"),
        (
            "for_each: '[1]', when: index > 0",
            "item and index are not there yet: when and for_each are evaluated once for all items",
        ),
        ("for_each: '5'", "for_each of node \"b\" fails in every run: it gave a number, not a list"),
        ("when: '1 + 1'", "when of node \"b\" fails in every run: it gave a number, not true or false"),
        ("when: '1 / 0 == 1'", "when of node \"b\" fails in every run: it divides by zero"),
        ("payload: '${item}'", "item and index are there only in a node with for_each"),
        ("compensation: {topic: t, payload: '${index}'}", "item and index are there only in a node with for_each"),
    ] {
        assert_refused(&with_line(line), &[&format!("5: {message}")]);
    }
}

/// An earlier version took it, and runs that are under way are pinned to it.
#[test]
fn what_is_of_no_use_and_stored_is_read_all_the_same() {
    for line in ["for_each: '5'", "when: '1 + 1'"] {
        assert!(Dag::load("d.yaml", &with_line(line)).is_err());
        assert!(Dag::load_stored("d.yaml", &with_line(line)).is_ok(), "{line}");
    }
    assert!(Dag::load_stored("d.yaml", &with_line("when: '1 +'")).is_err());
}

#[test]
fn expressions_are_held_against_params_and_ancestors() {
    let text = "version: 1
dag: d
params: {source: text}
output: '${nodes.z.output} ${item}'
nodes:
  a: {topic: t, payload: '${params.sorce}'}
  b: {topic: t, payload: '${nodes.a.output}'}
  c: {needs: [a], topic: t, payload: '${nodes.c.output}'}
  d: {needs: [a], topic: t, when: nodes.aa.output == 1}
  e:
    needs: [a]
    topic: t
    payload:
      fine: '${nodes.a.output}'
      wrong: [1, '${1 +}']
      open: 'a ${nodes.a.output'
    labels: {x: '${unknown}'}
    compensation: {topic: t, payload: '${nodes.e.output} ${nodes.d.output}'}
  f: {dag: other, params: {p: '${nodes.e.output}'}}
  g: {delay_until: '${nodes.f.output}'}
";
    let expected = [
        "4: node \"z\" is not in this DAG",
        "4: item and index are there only in a node with for_each",
        "6: parameter \"sorce\" is not declared; add it under params; did you mean \"source\"?",
        "7: node \"a\" may not have ended by then; add \"a\" to needs",
        "8: node \"c\" reads its own output, which is not there before it ends",
        "9: node \"aa\" is not in this DAG; did you mean \"a\"?",
        "15: payload is not valid CEL at its line 1, column ",
        "16: a ${ in payload is not closed; add }, or write $${ where ${ is meant as text",
        "17: unknown name \"unknown\" in labels entry \"x\"; it knows params, nodes, run, item, index",
        "18: node \"d\" may not have ended by then; add \"d\" to needs",
        "19: node \"e\" may not have ended by then; add \"e\" to needs",
        "20: node \"f\" may not have ended by then; add \"f\" to needs",
    ];
    let found = errors(text);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (error, start) in found.iter().zip(expected) {
        assert!(error.starts_with(&format!("dag.yaml:{start}")), "{error}\n{start}");
    }
}

#[test]
fn every_error_is_told_at_once_in_the_order_of_the_file() {
    assert_refused(
        "version: 1
dag: d
param: {}
nodes:
  a: {needs: bb, topic: t, retries: 3}
  b: {delay: 1s, labels: {x: y}}
  c: {topic: t, payload: '${nodes.b.output}', priority: hihg}
",
        &[
            "3: unknown key \"param\" in the DAG; did you mean \"params\"?",
            "5: node \"a\" needs \"bb\", which is not in this DAG; did you mean \"b\"?",
            "5: unknown key \"retries\" in the node",
            "6: labels does not fit a node with delay; remove it",
            "7: node \"b\" may not have ended by then; add \"b\" to needs",
            "7: unknown priority \"hihg\"; it must be one of critical, high, default, low; did you mean \"high\"?",
        ],
    );
}
