//! Starts ready nodes in topological order, as far as `max_parallelism` has room.

use std::time::Duration;

use super::super::{Delay, NodeIx, NodeKey, NodeRun, NodeState, NodeWork};
use super::make::Made;
use super::step::RunStep;
use super::{RunPlanner, STARTS_MAX};
use crate::job::{Failure, Reason};
use crate::limits::SPAN_MS_MAX;
use crate::time::Timestamp;

impl RunStep<'_> {
    /// Starts one node or item. False if none can start now.
    pub(super) fn start_next(&mut self) -> bool {
        let Some(node) = self.live.next_start().filter(|_| self.jobs.len() + self.runs.len() < STARTS_MAX) else {
            return false;
        };
        let definition = self.live.dag.clone();
        let definition = definition.node(node);
        match (&definition.work, &definition.for_each) {
            (NodeWork::Delay(delay), _) => self.start_delay(node, delay),
            (_, Some(each)) if self.state(node) == NodeState::Ready => self.expand(node, each),
            (_, Some(_)) => self.start_item(node),
            (_, None) => self.start_unit(NodeKey::of(node)),
        }
        true
    }

    /// the job is inserted in the commit that marks the node as running. Its id is derived, so that a repeated decision
    /// makes the same job.
    pub(super) fn start_unit(&mut self, key: NodeKey) {
        let made = self.live.make(key);
        let mut row = NodeRun { state: NodeState::Running, round: self.live.round(key.node), ..NodeRun::default() };
        row.began_at = Some(self.now);
        match made {
            Ok(Made::Job(request)) => {
                row.job = Some(request.job_id.clone());
                self.jobs.push(request);
            }
            Ok(Made::Run(run)) => {
                row.child = Some(run.id.clone());
                self.runs.push(run);
            }
            Err(failure) => {
                self.change(key, |old| *old = row);
                return self.end(key, NodeState::Failed, None, Some(failure));
            }
        }
        self.change(key, |old| *old = row);
    }

    fn start_delay(&mut self, node: NodeIx, delay: &Delay) {
        let key = NodeKey::of(node);
        let now = self.now;
        match self.live.delay_ends(node, delay, now) {
            Err(failure) => self.end(key, NodeState::Failed, None, Some(failure)),
            Ok(at) => {
                self.change(key, |row| {
                    row.state = NodeState::Running;
                    row.began_at = Some(now);
                    row.wakes_at = Some(at);
                });
                if at <= now {
                    self.end(key, NodeState::Succeeded, None, None);
                }
            }
        }
    }
}

impl RunPlanner {
    /// The next node to start: first those that need no room (delays and approvals), then the first in topological order
    /// with something to start.
    fn next_start(&self) -> Option<NodeIx> {
        if !self.run.head.is_open() || self.run.head.paused {
            return None;
        }
        let queued = || self.tally.queue.first().filter(|_| self.has_room());
        self.tally.free.first().or_else(queued).copied()
    }

    pub(super) fn has_room(&self) -> bool {
        self.dag.max_parallelism.is_none_or(|most| self.tally.at_work < most.max(1))
    }

    /// Whether another step would start something at once.
    pub(super) fn could_start(&self) -> bool {
        let still = self.tally.leaving.is_empty();
        let undoes = self.undo.as_ref().is_some_and(|plan| still && !plan.waiting.is_empty() && self.has_room());
        undoes || self.next_start().is_some()
    }

    fn delay_ends(&self, node: NodeIx, delay: &Delay, now: Timestamp) -> Result<Timestamp, Failure> {
        let refused = |message: String| Failure::new(Reason::Failed, format!("delay: {message}"));
        let template = match delay {
            Delay::For { millis } => return Ok(now + Duration::from_millis((*millis).min(SPAN_MS_MAX))),
            Delay::Until(template) => template,
        };
        let nodes = self.nodes_seen(&self.dag.node(node).reads, None);
        let until = template.fill(&self.scope(&nodes, None)).map_err(refused)?;
        let no_time = || refused(format!("{until} is not a time; write it like 2030-01-31T12:00:00Z"));
        let until = Delay::moment(&until).ok_or_else(no_time)?;
        if until.since(now) > Duration::from_millis(SPAN_MS_MAX) {
            return Err(refused(format!("{until} is more than a year away")));
        }
        Ok(until)
    }

    /// When the next timer of the run fires. A paused run wakes only for its own timeout.
    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        let head = &self.run.head;
        if self.awaits_workers() {
            return self.tally.leaving.first().map(|(until, _)| *until);
        }
        let delay = self.tally.delays.first().map(|(at, _)| *at).filter(|_| !head.paused);
        [delay, head.deadline_at].into_iter().flatten().min().filter(|_| head.closing.is_none())
    }
}
