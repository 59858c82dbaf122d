//! What people ask of a saga.

use std::sync::Arc;

use super::step::Step;
use super::undo::cancelled;
use crate::dag::plan::{Order, Refusal};
use crate::dag::{Closing, NodeKey, UndoState};
use crate::ids::ActorId;

impl Step<'_> {
    pub(super) fn obey(&mut self, order: Order) -> Result<(), Refusal> {
        match order {
            Order::Cancel { actor, note, compensate } => self.cancel(&actor, note.as_ref(), compensate),
            Order::Resolve { key, actor } => self.resolve(key, actor),
            Order::Retry { key } => {
                let round = self.give_up_stuck(key).ok_or(Refusal::NotStuck)?;
                self.start_undo(key, round + 1);
                Ok(())
            }
            Order::Pause | Order::Resume | Order::Rerun { .. } => Err(Refusal::NoPlan),
        }
    }

    /// A workflow that is merely quiet can still be rolled back: what it did is remembered.
    fn cancel(&mut self, actor: &ActorId, note: Option<&Arc<str>>, compensate: bool) -> Result<(), Refusal> {
        let head = &self.saga.run.head;
        match head.closing {
            Some(before) if before.undoes() && !head.state.is_over() => return Err(Refusal::Compensating),
            Some(_) if head.state.is_over() => return Err(Refusal::Over(head.state.as_str())),
            None if head.state.is_over() && !compensate => return Err(Refusal::Over(head.state.as_str())),
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

    fn resolve(&mut self, key: NodeKey, actor: ActorId) -> Result<(), Refusal> {
        self.give_up_stuck(key).ok_or(Refusal::NotStuck)?;
        self.change(key, |row| {
            if let Some(undo) = &mut row.undo {
                (undo.state, undo.resolved_by) = (UndoState::Resolved, Some(actor));
            }
        });
        Ok(())
    }
}
