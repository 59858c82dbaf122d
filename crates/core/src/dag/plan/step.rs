//! A step: one decision about a run in the making.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::{Closing, JobTries, NodeIx, NodeKey, NodeRun, NodeState, RunHead, RunState};
use super::join::Decided;
use super::undo::needs_undo;
use super::{RunPlanner, RunTransition, STARTS_MAX, Settled, SubRun};
use crate::ids::{JobId, RunId};
use crate::job::{Failure, Reason};
use crate::request::JobRequest;
use crate::time::Timestamp;

pub(super) struct RunStep<'a> {
    pub(super) live: &'a mut RunPlanner,
    pub(super) now: Timestamp,
    before: RunHead,
    /// Nodes to decide because a parent changed.
    touched: BTreeSet<NodeIx>,
    changed: BTreeSet<NodeKey>,
    settled: Settled,
    /// What the message that is being taken says of the tries of a node's job. The change that the message causes writes it too, so
    /// that the row is written once.
    pub(super) heard: Option<(NodeKey, JobTries)>,
    pub(super) jobs: Vec<Arc<JobRequest>>,
    pub(super) runs: Vec<SubRun>,
    pub(super) stop_jobs: Vec<JobId>,
    pub(super) stop_runs: Vec<RunId>,
}

impl<'a> RunStep<'a> {
    pub(super) fn of(live: &'a mut RunPlanner, now: Timestamp) -> Self {
        Self {
            before: live.run.head.clone(),
            live,
            now,
            touched: BTreeSet::new(),
            changed: BTreeSet::new(),
            settled: Settled::default(),
            heard: None,
            jobs: Vec::new(),
            runs: Vec::new(),
            stop_jobs: Vec::new(),
            stop_runs: Vec::new(),
        }
    }

    pub(super) fn head(&mut self) -> &mut RunHead {
        &mut self.live.run.head
    }

    pub(super) fn row(&self, key: NodeKey) -> Option<&NodeRun> {
        self.live.run.nodes.get(&key)
    }

    pub(super) fn state(&self, node: NodeIx) -> NodeState {
        self.live.state(node)
    }

    /// The only way to change a row, so that all counts derived from rows stay correct.
    pub(super) fn change(&mut self, key: NodeKey, change: impl FnOnce(&mut NodeRun)) {
        let old = self.row(key).cloned();
        let mut new = old.clone().unwrap_or_default();
        change(&mut new);
        if let Some((_, tries)) = self.heard.filter(|(of, _)| *of == key) {
            new.tries = Some(tries);
        }
        if old.as_ref() == Some(&new) {
            return;
        }
        self.changed.insert(key);
        self.settled.note(key, old.as_ref(), &new);
        let dag = self.live.dag.clone();
        let state_before = old.as_ref().map_or(NodeState::Pending, |row| row.state);
        if key.item.is_none() && state_before != new.state && (state_before.is_over() || new.state.is_over()) {
            self.touched.extend(&dag.node(key.node).children);
        }
        self.live.put(key, old.as_ref(), &new);
    }

    /// Marks nodes to be decided although none of their parents changed.
    pub(super) fn touch(&mut self, nodes: impl IntoIterator<Item = NodeIx>) {
        self.touched.extend(nodes);
    }

    /// Decides and starts everything that follows, and returns the transition.
    pub(super) fn go_on(mut self) -> Option<RunTransition> {
        // Decide what the messages settled before timers fire: a run whose last node has just ended did not miss its
        // timeout.
        self.decide_touched();
        self.wake();
        loop {
            self.decide_touched();
            if !self.start_next() {
                break;
            }
        }
        self.finish();
        self.into_next()
    }

    fn decide_touched(&mut self) {
        // Nodes are numbered in topological order, so a node is decided before its children are.
        while let Some(node) = self.touched.pop_first() {
            #[cfg(test)]
            self.live.look(1);
            if self.live.run.head.is_open() && matches!(self.state(node), NodeState::Pending | NodeState::Ready) {
                self.decide(node);
            }
        }
    }

    fn decide(&mut self, node: NodeIx) {
        let definition = self.live.dag.node(node);
        let join = definition.join;
        let decided = self.live.tally.parents[node as usize].decide(join, definition.needs.len());
        match (decided, self.state(node)) {
            (Decided::Run, NodeState::Pending) => self.become_ready(node),
            (Decided::Skip, _) => self.skip(node, Some(self.live.why_skipped(node))),
            // The node's reason to be ready was withdrawn: the result of a parent was quarantined.
            (Decided::Wait, NodeState::Ready) => self.change(NodeKey::of(node), |row| row.state = NodeState::Pending),
            (Decided::Run | Decided::Wait, _) => {}
        }
    }

    fn become_ready(&mut self, node: NodeIx) {
        match self.live.holds(node) {
            Ok(true) => self.change(NodeKey::of(node), |row| row.state = NodeState::Ready),
            Ok(false) => self.skip(node, None),
            Err(failure) => self.end(NodeKey::of(node), NodeState::Failed, None, Some(failure)),
        }
    }

    fn skip(&mut self, node: NodeIx, why: Option<Failure>) {
        self.end(NodeKey::of(node), NodeState::Skipped, None, why);
    }

    fn finish(&mut self) {
        let all_over = self.live.tally.over == self.live.total();
        // work still under way may succeed, and must then be undone before the work that it used.
        if all_over && self.live.undoes() && self.live.tally.leaving.is_empty() {
            self.undo();
        }
        let state = if all_over { self.final_state() } else { self.live_state() };
        let (now, tally) = (self.now, &self.live.tally);
        let (done, tainted) = (tally.over, tally.tainted > 0);
        let wakes_at = self.live.wakes_at();
        let head = self.head();
        head.state = state;
        head.ended_at = if state.is_over() { head.ended_at.or(Some(now)) } else { None };
        head.wakes_at = wakes_at.filter(|_| !state.is_over());
        head.paused &= !state.is_over();
        (head.done, head.tainted) = (done, tainted);
    }

    /// Every node is over. So is the run, unless it waits for workers or has work to undo.
    fn final_state(&mut self) -> RunState {
        let RunHead { closing, state, .. } = self.live.run.head;
        let still = self.live.tally.leaving.is_empty();
        if !still && !state.is_over() && self.live.awaits_workers() {
            return self.live_state();
        }
        match closing {
            None if state.is_over() => self.answer_anew(),
            None => self.succeed(),
            Some(Closing::Fail) => RunState::Failed,
            Some(Closing::Cancel) => RunState::Canceled,
            Some(Closing::Compensate | Closing::CancelAndCompensate) => match self.live.undo_plan().open {
                0 if still => RunState::Compensated,
                _ => self.live_state(),
            },
        }
    }

    fn live_state(&self) -> RunState {
        let stuck = self.live.undo.as_ref().is_some_and(|plan| plan.stuck > 0);
        match (self.live.undoes(), self.live.run.head.paused) {
            (true, _) if stuck => RunState::CompensationStuck,
            (true, _) => RunState::Compensating,
            (false, true) => RunState::Paused,
            (false, false) => RunState::Running,
        }
    }

    /// Every node is over and nothing closed the run. If its output cannot be evaluated, the run fails: a parent run must
    /// not take a missing output for an empty one.
    fn succeed(&mut self) -> RunState {
        match self.live.answer() {
            Ok(output) => self.head().output = output,
            Err(message) => {
                self.head().failure = Some(Failure::new(Reason::Failed, message));
                return RunState::Failed;
            }
        }
        if self.live.tally.failed > 0 { RunState::SucceededWithFailures } else { RunState::Succeeded }
    }

    /// G-4: the run's output is evaluated again, because it must not outlive a result that was redacted later.
    fn answer_anew(&mut self) -> RunState {
        if !self.changed.is_empty()
            && let Ok(output) = self.live.answer()
        {
            self.head().output = output;
        }
        self.live.run.head.state
    }

    /// Whether further jobs and runs may start in this step.
    pub(super) fn has_room(&self) -> bool {
        self.jobs.len() + self.runs.len() < STARTS_MAX && self.live.has_room()
    }

    fn into_next(self) -> Option<RunTransition> {
        if self.changed.is_empty() && self.live.run.head == self.before {
            return None;
        }
        self.live.run.head.version += 1;
        let rows = &self.live.run.nodes;
        Some(RunTransition {
            head: self.live.run.head.clone(),
            nodes: self.changed.iter().filter_map(|key| rows.get(key).map(|row| (*key, row.clone()))).collect(),
            more: self.live.could_start(),
            jobs: self.jobs,
            dead: Vec::new(),
            runs: self.runs,
            stop_jobs: self.stop_jobs,
            stop_runs: self.stop_runs,
            settled: self.settled,
        })
    }
}

impl RunPlanner {
    /// Replaces a row and updates all counts derived from it.
    fn put(&mut self, key: NodeKey, old: Option<&NodeRun>, new: &NodeRun) {
        let dag = self.dag.clone();
        #[cfg(test)]
        self.look(1 + if key.item.is_none() && new.state.is_over() { dag.node(key.node).children.len() } else { 0 });
        self.run.nodes.insert(key, new.clone());
        for reader in self.readers.get(&key.node).into_iter().flatten() {
            self.expanded.remove(reader);
        }
        let node = self.run.nodes.get(&NodeKey::of(key.node));
        self.tally.changed(&dag, key, old, new, node);
        let owed = |row: &NodeRun| needs_undo(dag.node(key.node), key, row);
        let Some(mut plan) = self.undo.take() else { return };
        match old {
            // A settled row became unsettled. That is rare, so the undo plan is dropped and computed anew when next needed.
            Some(old) if owed(old) != owed(new) || is_reopened(old, new) => {}
            None if owed(new) => {}
            Some(old) if owed(new) => {
                plan.changed(&dag, &self.run.nodes, key, old, new);
                self.undo = Some(plan);
            }
            _ => self.undo = Some(plan),
        }
    }
}

fn is_reopened(old: &NodeRun, new: &NodeRun) -> bool {
    let settled = |row: &NodeRun| row.undo.as_ref().is_some_and(|undo| undo.state.is_settled());
    settled(old) && !settled(new)
}
