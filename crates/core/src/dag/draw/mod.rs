//! Drawings of a DAG, optionally with the states of a run's nodes.

mod layout;
mod mermaid;
mod svg;

use super::{Node, NodeState, NodeWork};

/// A word or two that say what kind of node it is.
fn kind(node: &Node) -> String {
    let each = if node.for_each.is_some() { " for each" } else { "" };
    match &node.work {
        NodeWork::Job(job) => format!("{}{each}", job.topic),
        NodeWork::Approval(_) => "approval".to_owned(),
        NodeWork::Delay(_) => "delay".to_owned(),
        NodeWork::Dag(dag) => format!("dag {}{each}", dag.dag),
    }
}

/// The colours of a state, for light and for dark pages. Text in the page's own colour is readable on both.
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

/// Escapes text for XML, and for Mermaid, which reads HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
