//! Rerun: a run that is over continues from some of its nodes and keeps the successful results of the others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::super::{NodeIx, NodeKey, NodeRun, NodeState, OnFail, RunHead, RunState};
use super::step::RunStep;
use super::{OrderRefusal, RunPlanner};
use crate::request::Json;

impl RunStep<'_> {
    pub(super) fn rerun(&mut self, from: &[NodeIx], params: Map<String, Value>, fresh: bool) -> Result<(), OrderRefusal> {
        self.live.may_rerun(from, &params)?;
        let again = self.live.to_rerun(from);
        self.reopen(params, fresh);
        for node in &again {
            let round = self.live.round(*node) + 1;
            let items: Vec<NodeKey> = self.live.run.nodes.range(RunPlanner::items_of(*node)).map(|(key, _)| *key).collect();
            // Item rows are reset and not deleted: the list may differ this time, and the round must not start again at 0.
            for item in items {
                self.change(item, |row| *row = NodeRun { round: row.round, ..NodeRun::default() });
            }
            self.change(NodeKey::of(*node), |row| *row = NodeRun { round, ..NodeRun::default() });
        }
        self.touch(again);
        Ok(())
    }

    fn reopen(&mut self, given: Map<String, Value>, fresh: bool) {
        let deadline_at =
            self.live.dag.timeout_ms.or(self.live.run.head.timeout_ms).map(|ms| self.now + Duration::from_millis(ms));
        if let (Value::Object(params), false) = (Arc::make_mut(&mut self.live.params), given.is_empty()) {
            params.extend(given);
        }
        let params = Json::trusted(self.live.params.to_string());
        self.live.expanded.clear();
        self.live.undo = None;
        let head = self.head();
        *head = RunHead {
            params,
            state: RunState::Running,
            ended_at: None,
            deadline_at,
            failure: None,
            closing: None,
            output: None,
            fresh,
            reruns: head.reruns + 1,
            ..head.clone()
        };
    }
}

impl RunPlanner {
    /// A compensated run has no work left to keep, and the parent of a sub-run has already taken its end.
    fn may_rerun(&self, from: &[NodeIx], params: &Map<String, Value>) -> Result<(), OrderRefusal> {
        let head = &self.run.head;
        if !head.state.is_over() || head.state == RunState::Compensated {
            return Err(OrderRefusal::NotAgain(head.state.as_str()));
        }
        if let Some(parent) = &head.parent {
            return Err(OrderRefusal::Child(parent.run.clone()));
        }
        if from.is_empty() || from.iter().any(|node| *node >= self.total()) {
            return Err(OrderRefusal::NoSuchNode);
        }
        let unknown = params.keys().find(|name| !self.dag.params.iter().any(|param| *param.name == ***name));
        unknown.map_or(Ok(()), |name| Err(OrderRefusal::Params(format!("the DAG has no parameter {name:?}"))))
    }

    /// These nodes, the nodes that never started, those whose failure ended the run, and all their descendants.
    fn to_rerun(&self, from: &[NodeIx]) -> BTreeSet<NodeIx> {
        let mut again: BTreeSet<NodeIx> = from.iter().copied().collect();
        for node in 0..self.total() {
            let definition = self.dag.node(node);
            let unfinished = match self.state(node) {
                NodeState::Canceled => true,
                NodeState::Failed => definition.on_fail != OnFail::Continue,
                _ => false,
            };
            if unfinished || definition.needs.iter().any(|parent| again.contains(parent)) {
                again.insert(node);
            }
        }
        again
    }
}
