//! Closing a run that will not continue: no node starts any more, running ones are stopped, and then the run ends or is
//! undone.

use std::collections::BTreeSet;

use super::super::{Closing, NodeIx, NodeKey, NodeState, NodeWork, OnFail};
use super::RunPlanner;
use super::step::RunStep;
use crate::ids::SessionId;
use crate::job::{Failure, Reason};
use crate::request::Json;
use crate::time::Timestamp;

impl RunStep<'_> {
    /// Ends a node or an item, for any reason.
    pub(super) fn end(&mut self, key: NodeKey, state: NodeState, output: Option<Json>, failure: Option<Failure>) {
        let now = self.now;
        self.change(key, |row| {
            row.state = state;
            row.ended_at = Some(now);
            // A quarantined result stays in the row, because the compensation of the work may read it.
            row.output = output.or_else(|| row.output.take());
            row.failure = failure;
        });
        if key.item.is_some() {
            self.settle_items(key.node);
        } else if state == NodeState::Failed {
            self.failed(key.node);
        }
    }

    /// A node failed. `on_fail: compensate` turns a run that merely fails into one that is undone, whichever of two failures
    /// was reported first. A cancel by people is not overridden.
    fn failed(&mut self, node: NodeIx) {
        let definition = self.live.dag.node(node);
        let closing = match (definition.on_fail, self.live.run.head.closing) {
            (OnFail::Stop, None) => Closing::Fail,
            (OnFail::Compensate, None | Some(Closing::Fail)) => Closing::Compensate,
            _ => return,
        };
        let failure = self.row(NodeKey::of(node)).and_then(|row| row.failure.as_ref());
        let reason = failure.map_or(Reason::Failed, |failure| failure.reason);
        let message = failure.map_or("it failed", |failure| &*failure.message);
        let failure = Failure::new(reason, format!("node {:?}: {message}", &*definition.name));
        self.close(closing, failure);
    }

    /// Closes the run. Its failure stays the first one that closed it.
    pub(super) fn close(&mut self, closing: Closing, failure: Failure) {
        let head = self.head();
        head.closing = Some(closing);
        head.paused = false;
        head.failure.get_or_insert(failure);
        self.still();
    }

    /// no node of a closed run continues: one that has not begun is cancelled, one under way is told to stop.
    pub(super) fn still(&mut self) {
        for node in 0..self.live.total() {
            let key = NodeKey::of(node);
            let definition = self.live.dag.node(node);
            let (waits, each) = (matches!(definition.work, NodeWork::Delay(_)), definition.for_each.is_some());
            match self.state(node) {
                NodeState::Pending | NodeState::Ready => self.end(key, NodeState::Canceled, None, None),
                NodeState::Running if waits => self.end(key, NodeState::Canceled, None, None),
                NodeState::Running if each => self.settle_items(node),
                _ => {}
            }
        }
        (self.stop_jobs, self.stop_runs) = self.live.to_stop();
    }

    /// Fires timers: waits for revoked attempts, the run's timeout, and delays.
    pub(super) fn wake(&mut self) {
        while let Some(key) = self.live.left_in_time(self.now) {
            self.change(key, |row| row.leaving.clear());
        }
        let head = &self.live.run.head;
        if !head.is_open() {
            return;
        }
        let unfinished = self.live.tally.over < self.live.total();
        if unfinished && head.deadline_at.is_some_and(|deadline| deadline <= self.now) {
            let failure = Failure::new(Reason::DeadlineExceeded, "the run did not end within its timeout");
            return self.close(self.live.closing_at_deadline(), failure);
        }
        while let Some((_, node)) = self.live.due_delay(self.now) {
            self.end(NodeKey::of(node), NodeState::Succeeded, None, None);
        }
    }
}

impl RunStep<'_> {
    /// Ends the wait for workers whose sessions are closed.
    pub(super) fn note_closed(&mut self, closed: &BTreeSet<SessionId>) {
        let keys: Vec<NodeKey> = self.live.tally.leaving.iter().map(|(_, key)| *key).collect();
        for key in keys {
            self.change(key, |row| row.note_closed(closed));
        }
    }
}

impl RunPlanner {
    /// A row whose revoked attempts must be over by now, because their workers had to stop them.
    fn left_in_time(&self, now: Timestamp) -> Option<NodeKey> {
        self.tally.leaving.first().filter(|(until, _)| self.awaits_workers() && *until <= now).map(|(_, key)| *key)
    }

    /// A run that would be undone when a node fails is undone at its timeout too.
    pub(super) fn closing_at_deadline(&self) -> Closing {
        let nodes = &self.dag.nodes;
        let undoes = nodes.iter().any(|node| node.on_fail == OnFail::Compensate);
        let can = nodes.iter().any(|node| node.compensation.is_some());
        if undoes && can { Closing::Compensate } else { Closing::Fail }
    }

    fn due_delay(&self, now: Timestamp) -> Option<(Timestamp, NodeIx)> {
        self.tally.delays.first().copied().filter(|(at, _)| *at <= now && !self.run.head.paused)
    }
}
