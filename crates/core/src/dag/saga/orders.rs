//! Commands that people give to a saga.

use std::sync::Arc;

use super::step::SagaStep;
use super::undo::cancelled;
use crate::dag::plan::{OrderRefusal, RunCommand};
use crate::dag::{Closing, NodeKey, NodeRun, UndoState};
use crate::ids::ActorId;

impl SagaStep<'_> {
    pub(super) fn obey(&mut self, order: RunCommand) -> Result<(), OrderRefusal> {
        match order {
            RunCommand::Cancel { actor, note, compensate } => self.cancel(&actor, note.as_ref(), compensate),
            RunCommand::Resolve { key, actor } => self.resolve(key, actor),
            RunCommand::Retry { key } => {
                let round = self.give_up_stuck(key).ok_or(OrderRefusal::NotStuck)?;
                self.start_undo(key, round + 1);
                Ok(())
            }
            RunCommand::Pause | RunCommand::Resume | RunCommand::Rerun { .. } => Err(OrderRefusal::NoPlan),
        }
    }

    /// A saga that is over because it was idle can still be rolled back: its entries are remembered.
    fn cancel(&mut self, actor: &ActorId, note: Option<&Arc<str>>, compensate: bool) -> Result<(), OrderRefusal> {
        let head = &self.saga.run.head;
        match head.closing {
            Some(before) if before.undoes() && !head.state.is_over() => return Err(OrderRefusal::Compensating),
            Some(_) if head.state.is_over() => return Err(OrderRefusal::Over(head.state.as_str())),
            None if head.state.is_over() && !compensate => return Err(OrderRefusal::Over(head.state.as_str())),
            Some(_) if !compensate => return Ok(()),
            _ => {}
        }
        let note = note.map(|note| format!(": {note}")).unwrap_or_default();
        let (closing, what) = match compensate {
            true => (Closing::CancelAndCompensate, "rolled back"),
            false => (Closing::Cancel, "cancelled"),
        };
        self.close(closing, cancelled(format!("{what} by {actor}{note}")));
        Ok(())
    }

    fn resolve(&mut self, key: NodeKey, actor: ActorId) -> Result<(), OrderRefusal> {
        // A scanner may never answer, so an operator can end the wait. If the result comes later, the work is undone then.
        if self.row(key).is_some_and(NodeRun::awaits_scan) {
            self.change(key, NodeRun::forget_scan);
            return Ok(());
        }
        self.give_up_stuck(key).ok_or(OrderRefusal::NotStuck)?;
        self.change(key, |row| {
            if let Some(undo) = &mut row.undo {
                (undo.state, undo.resolved_by) = (UndoState::Resolved, Some(actor));
            }
        });
        Ok(())
    }
}
