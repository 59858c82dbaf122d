//! Undoes entries in reverse order. A stuck entry blocks all entries before it, because nothing but their order is known
//! about them.

use super::entry::{SagaEntry, Which, stand_in};
use super::step::SagaStep;
use crate::dag::plan::{or_in_words, waits_for_people};
use crate::dag::{NodeKey, NodeRun, NodeUndo, RunState, UndoState};
use crate::job::{Failure, JobState, Reason};
use crate::request::RunRef;

fn undo_of(row: &NodeRun) -> Option<UndoState> {
    row.undo.as_ref().map(|undo| undo.state)
}

impl SagaStep<'_> {
    /// all work has stopped. Starts the compensation of the latest entry not yet undone, unless a later entry is
    /// unsettled.
    pub(super) fn undo(&mut self) {
        let rows = self.saga.run.nodes.iter().filter(|(_, row)| row.entry.is_some());
        let open = rows.filter(|(_, row)| !undo_of(row).is_some_and(UndoState::is_settled));
        let last = open.max_by_key(|(_, row)| row.entry_no).map(|(key, row)| (*key, row.undo.is_none()));
        if let Some((key, true)) = last {
            self.start_undo(key, 0);
        }
    }

    pub(super) fn start_undo(&mut self, key: NodeKey, round: u32) {
        let Some((entry, job)) = self.row(key).and_then(|row| Some((row.entry.clone()?, row.job.clone()?))) else { return };
        let head = self.saga.run.head.clone();
        let which = || Which {
            workflow: &head.dag.name,
            tenant: &head.tenant,
            verified: head.actor_verified,
            job: &job,
            life: key.item.unwrap_or(1),
            part: RunRef { run: head.id.clone(), node: key.node, item: key.item, round, undo: true },
        };
        let (id, made) = SagaEntry::job(&entry, which());
        let failure = made.as_ref().err().cloned();
        match made {
            Ok(request) => self.jobs.push(request),
            Err(failure) => self.dead.extend(stand_in(&id, &entry, which()).map(|request| (request, failure))),
        }
        let state = if failure.is_some() { UndoState::Stuck } else { UndoState::Running };
        self.change(key, |row| row.undo = Some(NodeUndo { state, job: id, round, failure, resolved_by: None }));
    }

    pub(super) fn hear_undo(&mut self, part: &RunRef, state: JobState, failure: Option<&Failure>) {
        let key = NodeKey { node: part.node, item: part.item };
        let Some(undo) = self.row(key).and_then(|row| row.undo.as_ref()).filter(|undo| undo.round == part.round) else {
            return;
        };
        // A late success overrides the guess: a compensation that was given up as lost and then succeeded is done.
        let done = matches!(state, JobState::Succeeded | JobState::OutputQuarantined);
        match undo.state {
            UndoState::Running if state == JobState::ApprovalRequired => {
                self.end_undo(key, UndoState::Stuck, Some(waits_for_people()));
            }
            _ if !state.is_terminal() => {}
            UndoState::Running | UndoState::Stuck if done => self.end_undo(key, UndoState::Done, None),
            UndoState::Running => self.end_undo(key, UndoState::Stuck, Some(or_in_words(failure, state))),
            // A refused approval replaces the failure, so that people see why the compensation is stuck.
            UndoState::Stuck => self.end_undo(key, UndoState::Stuck, Some(or_in_words(failure, state))),
            UndoState::Done | UndoState::Resolved => {}
        }
    }

    pub(super) fn end_undo(&mut self, key: NodeKey, state: UndoState, failure: Option<Failure>) {
        self.change(key, |row| {
            if let Some(undo) = &mut row.undo {
                (undo.state, undo.failure) = (state, failure);
            }
        });
    }

    /// The state of a saga that is rolled back.
    pub(super) fn undo_state(&self, still: bool) -> RunState {
        let entries = || self.saga.run.nodes.values().filter(|row| row.entry.is_some());
        if entries().any(|row| undo_of(row) == Some(UndoState::Stuck)) {
            return RunState::CompensationStuck;
        }
        let settled = || entries().all(|row| undo_of(row).is_some_and(UndoState::is_settled));
        if still && settled() { RunState::Compensated } else { RunState::Compensating }
    }

    /// The round of a stuck compensation that is retried or resolved. If it waits for an approval, that approval is given up
    /// too.
    pub(super) fn give_up_stuck(&mut self, key: NodeKey) -> Option<u32> {
        let undo = self.row(key).and_then(|row| row.undo.as_ref());
        let (round, job) = undo.filter(|undo| undo.state == UndoState::Stuck).map(|undo| (undo.round, undo.job.clone()))?;
        self.stops.push(job);
        Some(round)
    }
}

/// The failure that names the person who cancelled the saga.
pub(super) fn cancelled(message: String) -> Failure {
    Failure::new(Reason::Cancelled, message)
}
