//! Commands that people give to a run.

use std::sync::Arc;

use super::super::{Closing, NodeKey, NodeRun, UndoState};
use super::step::RunStep;
use super::{OrderRefusal, RunCommand};
use crate::ids::ActorId;
use crate::job::{Failure, Reason};

impl RunStep<'_> {
    pub(super) fn obey(&mut self, order: RunCommand) -> Result<(), OrderRefusal> {
        match order {
            RunCommand::Pause => self.pause(true),
            RunCommand::Resume => self.pause(false),
            RunCommand::Cancel { actor, note, compensate } => self.cancel(&actor, note.as_ref(), compensate),
            RunCommand::Rerun { from, params, fresh } => self.rerun(&from, params, fresh),
            RunCommand::Resolve { key, actor } => self.resolve(key, actor),
            RunCommand::Retry { key } => self.retry(key),
        }
    }

    fn pause(&mut self, paused: bool) -> Result<(), OrderRefusal> {
        let head = &self.live.run.head;
        match head.closing {
            None if head.is_open() => self.head().paused = paused,
            Some(_) if !head.state.is_over() => return Err(OrderRefusal::Closing),
            _ => return Err(OrderRefusal::Over(head.state.as_str())),
        }
        Ok(())
    }

    /// A closing run can still be told to undo its work, until all its work has stopped.
    fn cancel(&mut self, actor: &ActorId, note: Option<&Arc<str>>, compensate: bool) -> Result<(), OrderRefusal> {
        let head = &self.live.run.head;
        if head.state.is_over() {
            return Err(OrderRefusal::Over(head.state.as_str()));
        }
        let closing = if compensate { Closing::CancelAndCompensate } else { Closing::Cancel };
        match head.closing {
            Some(before) if before.undoes() => return Err(OrderRefusal::Compensating),
            Some(_) if !compensate => return Ok(()),
            _ => {}
        }
        let note = note.map(|note| format!(": {note}")).unwrap_or_default();
        self.close(closing, Failure::new(Reason::Cancelled, format!("cancelled by {actor}{note}")));
        Ok(())
    }

    fn resolve(&mut self, key: NodeKey, actor: ActorId) -> Result<(), OrderRefusal> {
        // A scanner may never answer, so an operator can end the wait. If the result comes later, the work is undone then.
        if self.live.awaits_workers() && self.row(key).is_some_and(NodeRun::awaits_scan) {
            self.change(key, NodeRun::forget_scan);
            return Ok(());
        }
        self.stuck(key)?;
        self.change(key, |row| {
            if let Some(undo) = &mut row.undo {
                undo.state = UndoState::Resolved;
                undo.resolved_by = Some(actor);
            }
        });
        Ok(())
    }

    fn retry(&mut self, key: NodeKey) -> Result<(), OrderRefusal> {
        let round = self.stuck(key)?;
        self.start_undo(key, round + 1);
        Ok(())
    }

    /// The round of the compensation that is stuck. If it waits for an approval, that approval is given up too.
    fn stuck(&mut self, key: NodeKey) -> Result<u32, OrderRefusal> {
        let undo = self.row(key).and_then(|row| row.undo.as_ref());
        let stuck = undo.filter(|undo| undo.state == UndoState::Stuck).map(|undo| (undo.round, undo.job.clone()));
        let (round, job) = stuck.ok_or(OrderRefusal::NotStuck)?;
        self.stop_jobs.push(job);
        Ok(round)
    }
}
