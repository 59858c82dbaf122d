//! Takes messages about the run's jobs and about its sub-runs.
//!
//! A message may come twice, late, in any order, and from an earlier round. A row takes the first end of the work that it
//! waits for. After that end, only three changes still count: a result that is quarantined, one that is released, and the
//! success of work that was given up.

use super::super::{JobTries, NodeIx, NodeKey, NodeRun, NodeState, RunHead, RunState, UndoState};
use super::step::RunStep;
use super::sweep::awaited;
use super::undo::was_quarantined;
use super::{RunMessage, RunPlanner};
use crate::ids::JobId;
use crate::job::{Failure, JobState, Leaving, Reason};
use crate::request::{Json, RunRef};

impl RunStep<'_> {
    pub(super) fn hear(&mut self, news: &RunMessage) {
        match news {
            RunMessage::Job { part, .. } if part.run != self.live.run.head.id => {}
            RunMessage::Job { part, state, failure, .. } if part.undo => self.hear_undo(part, *state, failure.as_ref()),
            RunMessage::Job { state, .. } if !state.is_terminal() => {}
            RunMessage::Job { part, state, output, failure, memo_of, tries, leaving } => {
                self.note_memo(part, memo_of.as_ref());
                self.heard = self.tries_of(part, *tries);
                self.note_leaving(part, leaving);
                self.hear_job(part, *state, output.as_ref(), failure.as_ref());
                self.note_tries();
            }
            RunMessage::Late { part, output } => self.hear_late(part, output.as_ref()),
            RunMessage::Run(head) => self.hear_run(head),
            // The jobs of a DAG's run are never plain jobs.
            RunMessage::Plain(_) => {}
        }
    }

    fn hear_job(&mut self, part: &RunRef, state: JobState, output: Option<&Json>, failure: Option<&Failure>) {
        let key = NodeKey { node: part.node, item: part.item };
        let Some(row) = self.row(key).filter(|row| row.round == part.round && row.job.is_some()) else { return };
        let output = output.filter(|_| self.live.keeps_output(key.node)).cloned();
        match (row.state, state) {
            (NodeState::Running, JobState::Succeeded) => self.end(key, NodeState::Succeeded, output, None),
            // Once the run is closing, a cancelled job counts as stopped by the run and not as a failure of its node.
            (NodeState::Running, JobState::Cancelled) if self.live.run.head.closing.is_some() => {
                self.end(key, NodeState::Canceled, None, failure.cloned());
            }
            (NodeState::Running, _) => self.end(key, NodeState::Failed, None, Some(or_in_words(failure, state))),
            (NodeState::Succeeded, JobState::OutputQuarantined) => self.quarantined(key, or_in_words(failure, state)),
            (NodeState::Succeeded, JobState::Succeeded) => self.confirmed(key, output),
            (NodeState::Failed | NodeState::Canceled, JobState::Succeeded) => self.done_after_all(key, None, output),
            (NodeState::Failed | NodeState::Canceled, JobState::OutputQuarantined) => {
                self.done_after_all(key, Some(or_in_words(failure, state)), None);
            }
            _ => {}
        }
    }

    /// Records the sessions that may still be working on revoked attempts of a node's job.
    fn note_leaving(&mut self, part: &RunRef, leaving: &[Leaving]) {
        let key = NodeKey { node: part.node, item: part.item };
        let news = |row: &&NodeRun| row.round == part.round && row.job.is_some() && row.leaving != leaving;
        if self.row(key).filter(news).is_some() {
            self.change(key, |row| row.leaving = leaving.to_vec());
        }
    }

    /// A revoked attempt succeeded. The node keeps the state by which its job ended. A run that undoes its work undoes this
    /// work too; if it was already over, it goes back to COMPENSATING.
    fn hear_late(&mut self, part: &RunRef, output: Option<&Json>) {
        if part.run != self.live.run.head.id || part.undo {
            return;
        }
        let key = NodeKey { node: part.node, item: part.item };
        let ended = |row: &&NodeRun| matches!(row.state, NodeState::Failed | NodeState::Canceled) && row.job.is_some();
        let Some(row) = self.row(key).filter(|row| row.round == part.round && !row.late).filter(ended) else { return };
        if self.live.dag.node(key.node).compensation.is_none() || was_quarantined(row) {
            return;
        }
        let undone = row.undo.as_ref().map(|undo| undo.round);
        let output = output.filter(|_| self.live.keeps_output(key.node)).cloned();
        self.change(key, |row| (row.late, row.output) = (true, output));
        if let Some(round) = undone {
            // The compensation ran before the work was complete, so a new round of it is needed.
            self.start_undo(key, round + 1);
        }
    }

    /// Records the job whose memoised result the node's job took.
    fn note_memo(&mut self, part: &RunRef, source: Option<&JobId>) {
        let key = NodeKey { node: part.node, item: part.item };
        let news = |row: &&NodeRun| row.round == part.round && row.job.is_some() && row.memo_of.as_ref() != source;
        if source.is_some() && self.row(key).filter(news).is_some() {
            self.change(key, |row| row.memo_of = source.cloned());
        }
    }

    fn tries_of(&self, part: &RunRef, tries: JobTries) -> Option<(NodeKey, JobTries)> {
        let key = NodeKey { node: part.node, item: part.item };
        let is_its = |row: &NodeRun| row.round == part.round && row.job.is_some();
        self.row(key).is_some_and(is_its).then_some((key, tries))
    }

    /// A message that changed nothing else may still tell of another attempt.
    fn note_tries(&mut self) {
        if let Some((key, tries)) = self.heard.take()
            && self.row(key).is_some_and(|row| row.tries != Some(tries))
        {
            self.change(key, |row| row.tries = Some(tries));
        }
    }

    /// The work that a node waits for does not exist, so no message about it will come.
    pub(super) fn give_up(&mut self, key: NodeKey, failure: Failure) {
        let Some(row) = self.row(key) else { return };
        if row.undo.as_ref().is_some_and(|undo| undo.state == UndoState::Running) {
            self.end_undo(key, UndoState::Stuck, Some(failure));
        } else if awaited(row).is_some() {
            self.end(key, NodeState::Failed, None, Some(failure));
        }
    }

    fn hear_run(&mut self, child: &RunHead) {
        let Some(parent) = child.parent.as_ref().filter(|_| child.state.is_over()) else { return };
        let key = NodeKey { node: parent.node, item: parent.item };
        let Some(row) = self.row(key).filter(|row| row.child.as_ref() == Some(&child.id)) else { return };
        let output = child.output.clone().filter(|_| self.live.keeps_output(key.node));
        let closing = self.live.run.head.closing.is_some();
        match (row.state, child.state) {
            (NodeState::Running, RunState::Succeeded | RunState::SucceededWithFailures) => {
                self.end(key, NodeState::Succeeded, output, None);
                self.taint(key, child.tainted);
            }
            (NodeState::Running, RunState::Canceled | RunState::Compensated) if closing => {
                self.end(key, NodeState::Canceled, None, child.failure.clone());
            }
            (NodeState::Running, _) => self.end(key, NodeState::Failed, None, Some(child_failure(child))),
            (NodeState::Succeeded, RunState::Succeeded | RunState::SucceededWithFailures) => {
                self.taint(key, child.tainted);
                self.revise(key, output.filter(|_| !child.tainted));
            }
            _ => {}
        }
    }

    /// An exposed result was quarantined. If no child has used it yet, the node fails; otherwise the node keeps its state
    /// and is marked as tainted.
    fn quarantined(&mut self, key: NodeKey, failure: Failure) {
        if self.live.may_revise(key) {
            self.end(key, NodeState::Failed, None, Some(failure));
        } else {
            self.taint(key, true);
        }
    }

    fn taint(&mut self, key: NodeKey, tainted: bool) {
        if self.row(key).is_none_or(|row| row.tainted == tainted) {
            return;
        }
        self.change(key, |row| row.tainted = tainted);
        if key.item.is_some() {
            let any = tainted || self.live.run.nodes.range(RunPlanner::items_of(key.node)).any(|(_, row)| row.tainted);
            self.change(NodeKey::of(key.node), |row| row.tainted = any);
        }
    }

    /// A repeated success changes nothing, unless the result was redacted or released meanwhile.
    fn confirmed(&mut self, key: NodeKey, output: Option<Json>) {
        self.taint(key, false);
        self.revise(key, output);
    }

    fn revise(&mut self, key: NodeKey, output: Option<Json>) {
        if output.is_none() || self.row(key).is_none_or(|row| row.output == output) {
            return;
        }
        self.change(key, |row| row.output = output);
        if key.item.is_some() && self.state(key.node) == NodeState::Succeeded {
            let outputs = self.live.items_output(key.node);
            self.change(NodeKey::of(key.node), |row| row.output = outputs);
        }
    }

    /// Work that was given up, cancelled or quarantined succeeded. A run that undoes its work undoes this too; if it was
    /// already over, it goes back to COMPENSATING. A live run accepts the late success unless a child was already decided;
    /// then it only records that an undo is owed.
    fn done_after_all(&mut self, key: NodeKey, quarantined: Option<Failure>, output: Option<Json>) {
        let Some(row) = self.row(key).filter(|row| !row.late) else { return };
        let revocable =
            was_quarantined(row) || row.failure.as_ref().is_some_and(|failure| failure.reason == Reason::Orphaned);
        let undone = row.undo.as_ref().map(|undo| undo.round);
        let takes = if self.live.undoes() {
            !was_quarantined(row)
        } else {
            quarantined.is_none() && revocable && self.live.may_revise(key)
        };
        if !takes {
            if self.live.dag.node(key.node).compensation.is_some() && !was_quarantined(row) {
                self.change(key, |row| (row.late, row.output) = (true, output));
            }
            return;
        }
        let state = if quarantined.is_some() { NodeState::Failed } else { NodeState::Succeeded };
        self.end(key, state, output, quarantined);
        if let Some(round) = undone {
            // The compensation ran before the work was done, so a new round of it is needed.
            self.start_undo(key, round + 1);
        }
    }
}

impl RunPlanner {
    /// Whether no child has been decided by this end yet, so that it may still change.
    fn may_revise(&self, key: NodeKey) -> bool {
        let undecided = |child: &NodeIx| matches!(self.state(*child), NodeState::Pending | NodeState::Ready);
        let unused = || self.dag.node(key.node).children.iter().all(undecided);
        let item_of_live_node = key.item.is_some() && self.state(key.node) == NodeState::Running;
        self.run.head.is_open() && (item_of_live_node || unused())
    }
}

pub(in crate::dag) fn or_in_words(failure: Option<&Failure>, state: JobState) -> Failure {
    let reason = if state == JobState::OutputQuarantined { Reason::OutputQuarantined } else { Reason::Failed };
    match failure {
        // `was_quarantined` recognises completed work by this reason, so it replaces the job's own.
        Some(failure) if state == JobState::OutputQuarantined => Failure { reason, ..failure.clone() },
        Some(failure) => failure.clone(),
        None => Failure::new(reason, format!("its job ended as {state}")),
    }
}

fn child_failure(child: &RunHead) -> Failure {
    let why = child.failure.as_ref();
    let message = why.map(|why| format!(": {}", why.message)).unwrap_or_default();
    let reason = why.map_or(Reason::Failed, |why| why.reason);
    Failure::new(reason, format!("run {} is {}{message}", child.id, child.state.as_str()))
}
