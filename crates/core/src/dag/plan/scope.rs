//! The scope of a run's expressions.

use serde_json::{Map, Value, json};

use super::super::{ExpressionScope, NodeIx, NodeKey, NodeRun, NodeState};
use super::RunPlanner;
use crate::job::{Failure, Reason};
use crate::request::Json;

impl RunPlanner {
    pub(super) fn scope<'a>(&'a self, nodes: &'a Value, item: Option<(&'a Value, u32)>) -> ExpressionScope<'a> {
        ExpressionScope { run: self.run.head.id.as_str(), dag: &self.dag.name, params: &self.params, nodes, item }
    }

    /// These nodes by name. A node without an output has null. A quarantined output is left out, so that an expression that
    /// reads it fails instead of continuing without it. The compensation of `own` work reads its output even then.
    pub(super) fn nodes_seen(&self, reads: &[NodeIx], own: Option<(NodeIx, &NodeRun)>) -> Value {
        let mut nodes = Map::new();
        for node in reads.iter().filter(|node| own.is_none_or(|(own, _)| own != **node)) {
            let row = self.run.nodes.get(&NodeKey::of(*node));
            let hidden = row.is_some_and(|row| row.tainted);
            let output = row.and_then(NodeRun::shown_output);
            let state = row.map_or(NodeState::Pending, |row| row.state);
            let mut seen = json!({ "state": state.as_str() });
            if !hidden {
                seen["output"] = read(output);
            }
            nodes.insert(self.dag.node(*node).name.to_string(), seen);
        }
        if let Some((node, row)) = own {
            let seen = json!({ "state": row.state.as_str(), "output": read(row.output.as_ref()) });
            nodes.insert(self.dag.node(node).name.to_string(), seen);
        }
        Value::Object(nodes)
    }

    /// Whether the node's `when` condition holds.
    pub(super) fn holds(&self, node: NodeIx) -> Result<bool, Failure> {
        let definition = self.dag.node(node);
        let Some(when) = &definition.when else { return Ok(true) };
        let nodes = self.nodes_seen(&definition.reads, None);
        when.holds(&self.scope(&nodes, None)).map_err(|error| Failure::new(Reason::Failed, format!("when: {error}")))
    }

    /// The output of the run, now that every node is over.
    pub(super) fn answer(&self) -> Result<Option<Json>, String> {
        let Some(template) = &self.dag.output else { return Ok(None) };
        let read: Vec<NodeIx> = (0..self.total()).filter(|node| self.dag.node(*node).read).collect();
        let nodes = self.nodes_seen(&read, None);
        let output = template.fill(&self.scope(&nodes, None)).map_err(|error| format!("output: {error}"))?;
        Json::of(&output).map(Some).map_err(|error| error.in_field("output").to_string())
    }

    /// Whether some expression reads the node's output; the node's own compensation may be one.
    pub(super) fn keeps_output(&self, node: NodeIx) -> bool {
        let definition = self.dag.node(node);
        definition.read || definition.compensation.as_ref().is_some_and(|undo| undo.reads.contains(&node))
    }

    pub(super) fn why_skipped(&self, node: NodeIx) -> Failure {
        let definition = self.dag.node(node);
        let told = |state: NodeState| definition.needs.iter().find(|parent| self.state(**parent) == state);
        let bad = [NodeState::Failed, NodeState::Canceled, NodeState::Skipped].into_iter().find_map(|state| {
            let parent = told(state)?;
            Some(format!("{:?} is {}", &*self.dag.node(*parent).name, state.as_str()))
        });
        let why = bad.unwrap_or_else(|| "all before it succeeded".to_owned());
        Failure::new(Reason::Upstream, format!("{} does not hold: {why}", definition.join.as_str()))
    }
}

fn read(output: Option<&Json>) -> Value {
    output.and_then(|output| output.value().ok()).unwrap_or(Value::Null)
}
