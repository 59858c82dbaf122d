//! Lints: constructs that a DAG may have and that still deserve a look.

use super::{Dag, Join, NodeWork, OnFail};

impl Dag {
    /// Nodes that do work and have no compensation.
    pub fn uncompensated(&self) -> Vec<&str> {
        let works = |work: &NodeWork| matches!(work, NodeWork::Job(_) | NodeWork::Dag(_));
        let left = self.nodes.iter().filter(|node| works(&node.work) && node.compensation.is_none());
        left.map(|node| &*node.name).collect()
    }

    /// Nodes whose join tolerates a failed parent, with those parents whose failure ends the run before the join is
    /// evaluated. That can be intended, so it is no error: `on_fail: continue` on the parent lets the join decide.
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

/// A join that is never evaluated if one of these parents fails.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct OverruledJoin<'a> {
    pub node: &'a str,
    pub join: &'static str,
    pub by: Vec<&'a str>,
}
