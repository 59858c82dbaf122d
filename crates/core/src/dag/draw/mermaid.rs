//! Draws a DAG in the language of Mermaid, which most tools that show Markdown render.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::super::{Dag, NodeIx, NodeState, NodeWork};
use super::{colours, escaped, kind};

impl Dag {
    /// A flowchart. A node with a state has the colour of the state.
    pub fn mermaid(&self, state: impl Fn(NodeIx) -> Option<NodeState>) -> String {
        let mut text = String::from("flowchart LR\n");
        let mut seen = BTreeSet::new();
        for (at, node) in (0..).zip(&self.nodes) {
            let label = format!("{}<br/><small>{}</small>", escaped(&node.name), escaped(&kind(node)));
            let (open, close) = match &node.work {
                NodeWork::Job(_) => ("[", "]"),
                NodeWork::Approval(_) => ("{{", "}}"),
                NodeWork::Delay(_) => ("([", "])"),
                NodeWork::Dag(_) => ("[[", "]]"),
            };
            let state = state(at);
            seen.extend(state);
            let class = state.map_or_else(String::new, |state| format!(":::{}", class(state)));
            let _ = writeln!(text, "  n{at}{open}\"{label}\"{close}{class}");
        }
        for (at, node) in self.nodes.iter().enumerate() {
            for parent in &node.needs {
                let _ = writeln!(text, "  n{parent} --> n{at}");
            }
        }
        for state in seen {
            let _ = writeln!(text, "  classDef {} fill:{},stroke:#71717a,color:#18181b", class(state), colours(state).0);
        }
        text
    }
}

fn class(state: NodeState) -> String {
    state.as_str().to_ascii_lowercase()
}
