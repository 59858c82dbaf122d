//! Pictures of a DAG, with how far a run got.

mod layout;
mod mermaid;
mod svg;

use super::{Node, NodeState, NodeWork};

/// What a node does, in a word or two.
fn kind(node: &Node) -> String {
    let each = if node.for_each.is_some() { " for each" } else { "" };
    match &node.work {
        NodeWork::Job(job) => format!("{}{each}", job.topic),
        NodeWork::Approval(_) => "approval".to_owned(),
        NodeWork::Delay(_) => "delay".to_owned(),
        NodeWork::Dag(dag) => format!("dag {}{each}", dag.dag),
    }
}

/// The colour of a state: filled with the first on white, with the second on black; both under text of the page's colour.
const fn colours(state: NodeState) -> (&'static str, &'static str) {
    match state {
        NodeState::Pending => ("#f4f4f5", "#27272a"),
        NodeState::Ready => ("#e0e7ff", "#312e81"),
        NodeState::Running => ("#bfdbfe", "#1e40af"),
        NodeState::Succeeded => ("#bbf7d0", "#166534"),
        NodeState::Failed => ("#fecaca", "#991b1b"),
        NodeState::Canceled => ("#fed7aa", "#9a3412"),
        NodeState::Skipped => ("#e4e4e7", "#3f3f46"),
    }
}

/// Text inside of XML, or of what Mermaid takes for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
