//! Whatever is written into a file, loading ends in a DAG or in errors; whatever is loaded keeps its promises.

use proptest::prelude::*;

use super::*;

/// Fragments that get far into the loader when they are put together.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "version: 1\n", "dag: d\n", "params:\n", "nodes:\n", "output: '${nodes.a.output}'\n", "  a: {topic: t}\n", "  b:\n",
    "    needs: [a, b]\n", "    needs: c\n", "    topic: t\n", "    delay: 1s\n", "    dag: other\n", "    for_each: params.x\n",
    "    when: nodes.a.output > 1\n", "    payload: '${item}'\n", "    payload: ${\n", "    join: one_failed\n",
    "    compensation: {topic: t}\n", "    approval: {reason: x}\n", "    on_fail: compensate\n", "  x: list\n", "    ", "  ",
    "\n", ": ", "- ", "&a ", "*a", "!!str ", "|\n", "{", "}", "[", "]", ", ", "\"", "'", "${", "}'", "~", "---\n", "\t", "é",
];

fn check_loading(text: &str) {
    match Dag::load("dag.yaml", text) {
        Ok(dag) => check_promises(&dag),
        Err(errors) => {
            assert!(!errors.is_empty());
            let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() + 1;
            assert!(errors.iter().all(|error| (1..=lines).contains(&error.line)), "{errors:?}");
        }
    }
}

fn check_promises(dag: &Dag) {
    for (at, node) in (0..).zip(&dag.nodes) {
        assert!(node.needs.iter().chain(&node.reads).all(|parent| *parent < at), "parents come first");
        assert!(node.needs.iter().all(|parent| dag.node(*parent).children.contains(&at)));
        assert!(node.children.iter().all(|child| dag.node(*child).needs.contains(&at)));
        assert!(node.reads.iter().all(|parent| dag.node(*parent).read));
        let undo = node.compensation.iter().flat_map(|undo| &undo.reads);
        assert!(undo.into_iter().all(|parent| *parent <= at && dag.node(*parent).read));
        assert_eq!(dag.index(&node.name), Some(at));
    }
}

/// Nodes in any order of the file, each needing some that are earlier in a hidden order and reading some of those.
fn generated() -> impl Strategy<Value = String> {
    (2_usize..40).prop_flat_map(|count| {
        let edges = prop::collection::vec((0..count, 0..count, any::<bool>()), 0..count * 2);
        let lines = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
        (edges, lines).prop_map(move |(edges, lines)| {
            let line = |node: &usize| {
                let of = |(a, b, read): &(usize, usize, bool)| {
                    (a != b && a.max(b) == node).then(|| (format!("n{}", a.min(b)), *read))
                };
                let mut parents: Vec<(String, bool)> = edges.iter().filter_map(of).collect();
                parents.sort();
                parents.dedup_by(|a, b| a.0 == b.0);
                let reads = parents.iter().filter(|(_, read)| *read).map(|(name, _)| format!("${{nodes.{name}.output}}"));
                let reads: String = reads.collect();
                let needs: Vec<String> = parents.iter().map(|(name, _)| name.clone()).collect();
                let needs = if needs.is_empty() { String::new() } else { format!("needs: [{}], ", needs.join(", ")) };
                format!("n{node}: {{{needs}topic: t, payload: 'x{reads}'}}\n")
            };
            lines.iter().map(line).collect()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_loads_or_is_refused(text in "\\PC{0,200}|[ -~\\n\\r\\t]{0,200}") {
        check_loading(&text);
    }

    #[test]
    fn anything_like_a_dag_loads_or_is_refused(parts in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        let text = parts.concat();
        check_loading(&text);
        check_loading(&format!("version: 1\ndag: d\nparams: {{x: list}}\nnodes:\n  a: {{topic: t}}\n{text}"));
    }

    #[test]
    fn any_payload_text_is_a_template_or_is_refused(payload in "[$a{}'\"\\\\r .n]{0,24}") {
        let payload = serde_json::Value::from(payload);
        check_loading(&format!("version: 1\ndag: d\nnodes:\n  a: {{topic: t, payload: {payload}}}\n"));
    }

    #[test]
    fn nodes_come_in_an_order_in_which_all_promises_hold(nodes in generated()) {
        let dag = with_nodes(&nodes);
        prop_assert_eq!(dag.nodes.len(), nodes.lines().count());
        check_promises(&dag);
    }
}
