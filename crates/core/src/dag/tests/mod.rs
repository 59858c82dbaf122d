//! Definitions as their authors write them.

mod doc;
mod drawing;
mod examples;
mod expressions;
mod graph;
mod load_errors;
mod loading;
mod params;
mod properties;
mod schema;
mod templates;

use serde_json::{Value, json};

use super::*;
use crate::config::ConfigError;

fn load(text: &str) -> Dag {
    Dag::load("dag.yaml", text).unwrap_or_else(|errors| panic!("{}", shown(&errors).join("\n")))
}

/// A DAG of these nodes, each a line.
fn with_nodes(nodes: &str) -> Dag {
    load(&file(nodes))
}

fn file(nodes: &str) -> String {
    let nodes: String = nodes.lines().map(|line| format!("  {}\n", line.trim())).collect();
    format!("version: 1\ndag: d\nnodes:\n{nodes}")
}

fn shown(errors: &[ConfigError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// The errors of a text that must not load.
fn errors(text: &str) -> Vec<String> {
    shown(&Dag::load("dag.yaml", text).expect_err("a broken DAG was loaded"))
}

fn assert_refused(text: &str, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|line| format!("dag.yaml:{line}")).collect();
    assert_eq!(errors(text), expected, "{text}");
}

fn named<'a>(dag: &'a Dag, name: &str) -> &'a Node {
    dag.node(dag.index(name).unwrap())
}

fn names<'a>(dag: &'a Dag, nodes: &[NodeIx]) -> Vec<&'a str> {
    nodes.iter().map(|node| &*dag.node(*node).name).collect()
}

/// What there is in most tests of expressions.
struct World {
    params: Value,
    nodes: Value,
}

impl World {
    fn new() -> Self {
        Self {
            params: json!({
                "n": 3, "rate": 0.5, "big": 18_446_744_073_709_551_615_u64, "name": "ann", "list": [10, 20, 30],
                "map": {"a": {"b": "deep"}, "with-dash": 1}, "nothing": null, "yes": true,
            }),
            nodes: json!({
                "a": {"state": "SUCCEEDED", "output": {"url": "s3://x", "sizes": [1, 2]}},
                "b-2": {"state": "SKIPPED", "output": null},
            }),
        }
    }

    fn scope(&self) -> ExpressionScope<'_> {
        ExpressionScope { run: "run-1", dag: "d", params: &self.params, nodes: &self.nodes, item: None }
    }
}
