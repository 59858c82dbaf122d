//! `for_each`: one node with a job or sub-run per item of a list.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::{Dag, ForEach, ITEMS_MAX, Items, MinSuccess, NodeIx, NodeKey, NodeRun, NodeState};
use super::RunPlanner;
use super::step::RunStep;
use crate::job::{Failure, Reason};
use crate::request::Json;

/// The list of a running node, and the nodes that its items' expressions read. Cached in memory only: reading the list again
/// for each item that starts would be quadratic in its length.
#[derive(Clone, Debug)]
pub(super) struct Expanded {
    pub(super) list: Vec<Value>,
    pub(super) nodes: Value,
}

impl RunStep<'_> {
    /// Evaluates the list once and stores it before any item starts, so that a later evaluation cannot give another list.
    pub(super) fn expand(&mut self, node: NodeIx, each: &ForEach) {
        let key = NodeKey::of(node);
        let now = self.now;
        match self.live.evaluate_items(node, each) {
            Err(failure) => self.end(key, NodeState::Failed, None, Some(failure)),
            Ok((list, count)) => {
                self.change(key, |row| {
                    row.state = NodeState::Running;
                    row.began_at = Some(now);
                    row.items = Some(Items { list, count });
                });
                self.settle_items(node);
            }
        }
    }

    pub(super) fn start_item(&mut self, node: NodeIx) {
        let next = self.live.tally.items.get(&node).map_or(0, |items| items.started());
        self.start_unit(NodeKey::item(node, next));
    }

    /// Ends the node when all items are over, or when those under way are over and no more will start. If the node had ended
    /// and an item was revised, the node's end may change.
    pub(super) fn settle_items(&mut self, node: NodeIx) {
        let Some((state, failure)) = self.live.items_end(node) else { return };
        let output = (state == NodeState::Succeeded).then(|| self.live.items_output(node)).flatten();
        if state.is_over() {
            self.live.expanded.remove(&node);
        }
        self.end(NodeKey::of(node), state, output, failure);
    }
}

impl RunPlanner {
    /// The list, and the number of its items.
    fn evaluate_items(&self, node: NodeIx, each: &ForEach) -> Result<(Json, u32), Failure> {
        let nodes = self.nodes_seen(&self.dag.node(node).reads, None);
        let refused = |message: String| Failure::new(Reason::Failed, message);
        let list = each.items.evaluate(&self.scope(&nodes, None)).map_err(|error| refused(format!("for_each: {error}")))?;
        let Value::Array(items) = &list else { return Err(refused("for_each: it is not a list".to_owned())) };
        if items.len() > ITEMS_MAX {
            return Err(refused(format!("for_each: the list has {} items, at most {ITEMS_MAX} are possible", items.len())));
        }
        let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let list = Json::of(&list).map_err(|error| refused(error.in_field("for_each").to_string()))?;
        Ok((list, count))
    }

    fn items_end(&self, node: NodeIx) -> Option<(NodeState, Option<Failure>)> {
        let row = self.run.nodes.get(&NodeKey::of(node))?;
        let count = row.items.as_ref()?.count;
        let items = self.tally.items.get(&node).copied().unwrap_or_default();
        let all_started = items.started() == count;
        let closing = self.run.head.closing.is_some();
        if items.at_work > 0 || !(all_started || closing) {
            return None;
        }
        let wanted = self.dag.node(node).for_each.as_ref().map_or(count, |each| each.wanted(count));
        Some(if all_started && items.succeeded >= wanted {
            (NodeState::Succeeded, None)
        } else if closing && (items.canceled > 0 || !all_started) {
            (NodeState::Canceled, None)
        } else {
            let message = format!("{} of {count} items succeeded, {wanted} must", items.succeeded);
            (NodeState::Failed, Some(Failure::new(Reason::Failed, message)))
        })
    }

    /// The outputs of the items in order, with null for items without one.
    pub(super) fn items_output(&self, node: NodeIx) -> Option<Json> {
        if !self.dag.node(node).read {
            return None;
        }
        let count = self.run.nodes.get(&NodeKey::of(node))?.items.as_ref()?.count;
        let output = |item| self.run.nodes.get(&NodeKey::item(node, item)).and_then(NodeRun::shown_output);
        let outputs: Vec<&str> = (0..count).map(|item| output(item).map_or("null", Json::as_str)).collect();
        Some(Json::trusted(format!("[{}]", outputs.join(","))))
    }

    /// The cached list of a running node.
    pub(super) fn expanded(&mut self, node: NodeIx) -> Option<Arc<Expanded>> {
        if let Some(expanded) = self.expanded.get(&node) {
            return Some(expanded.clone());
        }
        let items = self.run.nodes.get(&NodeKey::of(node))?.items.as_ref()?;
        let list = match items.list.value() {
            Ok(Value::Array(list)) => list,
            Ok(_) | Err(_) => Vec::new(),
        };
        let nodes = self.nodes_seen(&self.dag.node(node).reads, None);
        let expanded = Arc::new(Expanded { list, nodes });
        self.expanded.insert(node, expanded.clone());
        Some(expanded)
    }
}

/// For each node, the `for_each` nodes whose expressions read it.
pub(super) fn readers(dag: &Dag) -> BTreeMap<NodeIx, Vec<NodeIx>> {
    let mut readers: BTreeMap<NodeIx, Vec<NodeIx>> = BTreeMap::new();
    for (at, node) in (0..).zip(&dag.nodes).filter(|(_, node)| node.for_each.is_some()) {
        for read in &node.reads {
            readers.entry(*read).or_default().push(at);
        }
    }
    readers
}

impl ForEach {
    /// How many of `count` items must succeed. An empty list needs no success.
    fn wanted(&self, count: u32) -> u32 {
        match self.min_success {
            _ if count == 0 => 0,
            None => count,
            Some(MinSuccess::Count(wanted)) => wanted,
            Some(MinSuccess::Percent(percent)) => {
                u32::try_from((u64::from(count) * u64::from(percent)).div_ceil(100)).unwrap_or(count)
            }
        }
    }
}
