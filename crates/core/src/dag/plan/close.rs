//! A run that does not go on: nothing more starts, what runs is stopped, and once all is still it is over or undone.

use std::collections::BTreeSet;

use super::super::{Closing, NodeIx, NodeKey, NodeState, NodeWork, OnFail};
use super::RunPlanner;
use super::step::RunStep;
use crate::ids::SessionId;
use crate::job::{Failure, Reason};
use crate::request::Json;
use crate::time::Timestamp;

impl RunStep<'_> {
    /// A node or an item is over, for whatever reason.
    pub(super) fn end(&mut self, key: NodeKey, state: NodeState, output: Option<Json>, failure: Option<Failure>) {
        let now = self.now;
        self.change(key, |row| {
            row.state = state;
            row.ended_at = Some(now);
            // A quarantined result stays for the undo of the work that made it.
            row.output = output.or_else(|| row.output.take());
            row.failure = failure;
        });
        if key.item.is_some() {
            self.settle_items(key.node);
        } else if state == NodeState::Failed {
            self.failed(key.node);
        }
    }

    /// A node failed. A failure that asks for an undo turns a run that merely ends into one that is undone, whichever of
    /// the two was heard of first; only people who cancelled it know better.
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

    /// The first failure that counted stays the run's.
    pub(super) fn close(&mut self, closing: Closing, failure: Failure) {
        let head = self.head();
        head.closing = Some(closing);
        head.paused = false;
        head.failure.get_or_insert(failure);
        self.still();
    }

    /// nothing of a closed run goes on: what has not begun is cancelled, what is under way is told to stop.
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

    /// Timers: delays that are over, and the end of the time the whole run has.
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
    /// Sessions that are closed have nothing under way.
    pub(super) fn note_closed(&mut self, closed: &BTreeSet<SessionId>) {
        let keys: Vec<NodeKey> = self.live.tally.leaving.iter().map(|(_, key)| *key).collect();
        for key in keys {
            self.change(key, |row| row.note_closed(closed));
        }
    }
}

impl RunPlanner {
    /// A row whose attempts had to be over by now, wherever their workers are.
    fn left_in_time(&self, now: Timestamp) -> Option<NodeKey> {
        self.tally.leaving.first().filter(|(until, _)| self.awaits_workers() && *until <= now).map(|(_, key)| *key)
    }

    /// A run that undoes its work when a node fails does so too when its time is over.
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
