//! What is allowed in a DAG and still worth a look.

use super::{Dag, Join, NodeWork, OnFail};

impl Dag {
    /// Nodes whose work nothing can undo.
    pub fn uncompensated(&self) -> Vec<&str> {
        let works = |work: &NodeWork| matches!(work, NodeWork::Job(_) | NodeWork::Dag(_));
        let left = self.nodes.iter().filter(|node| works(&node.work) && node.compensation.is_none());
        left.map(|node| &*node.name).collect()
    }

    /// Nodes whose join could bear a failure of what they need, with the needed nodes whose failure ends the run before the join
    /// is asked. Maybe meant, so it is no error: `on_fail: continue` there lets the join decide.
    pub fn overruled_joins(&self) -> Vec<OverruledJoin<'_>> {
        let bears_failure = |join| matches!(join, Join::AnySuccess | Join::AllDone | Join::OneFailed);
        let mut overruled = Vec::new();
        for node in self.nodes.iter().filter(|node| bears_failure(node.join)) {
            let needed = node.needs.iter().map(|at| self.node(*at));
            let by: Vec<&str> =
                needed.filter(|needed| needed.on_fail != OnFail::Continue).map(|needed| &*needed.name).collect();
            if !by.is_empty() {
                overruled.push(OverruledJoin { node: &node.name, join: node.join.as_str(), by });
            }
        }
        overruled
    }
}

/// A join that is not asked if one of these nodes fails.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct OverruledJoin<'a> {
    pub node: &'a str,
    pub join: &'static str,
    pub by: Vec<&'a str>,
}
