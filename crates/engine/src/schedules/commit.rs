//! Turns become durable, in batches of a bounded size.

use std::collections::BTreeSet;
use std::ops::Range;

use lockgate_core::audit::AuditEntry;
use lockgate_core::schedule::{ScheduleDecision, Slot, SlotOutcome};
use lockgate_core::time::Timestamp;
use lockgate_ports::{ScheduleChange, StoreError, TurnConflict, in_parts};

use super::awaited::key_of;
use crate::Inner;

/// A decision about one schedule, on its way.
pub(crate) struct DecidedSchedule {
    pub(crate) turn: ScheduleDecision,
    /// The schedule goes.
    pub(crate) gone: bool,
    pub(crate) audit: Vec<AuditEntry>,
}

impl DecidedSchedule {
    pub(crate) fn of(turn: ScheduleDecision) -> Self {
        Self { turn, gone: false, audit: Vec::new() }
    }

    fn rows(&self) -> usize {
        1 + self.turn.fresh.len() + self.turn.changed.len()
    }
}

/// Why a turn was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unturned {
    /// Somebody else turned the schedule.
    Conflict,
    /// The Store does not take it.
    Refused(String),
}

impl From<TurnConflict> for Unturned {
    fn from(_: TurnConflict) -> Self {
        Self::Conflict
    }
}

pub(crate) type Turned = Result<(), Unturned>;

impl Inner {
    /// Commits turns, each alone; answers in the order given.
    pub(crate) async fn commit_turns(
        &self,
        decided: Vec<DecidedSchedule>,
        now: Timestamp,
    ) -> Result<Vec<Turned>, StoreError> {
        let mut answers = Vec::with_capacity(decided.len());
        let mut decided = decided.into_iter().peekable();
        while decided.peek().is_some() {
            let (mut batch, mut rows) = (Vec::new(), 0);
            while let Some(next) = decided.next_if(|next| rows == 0 || rows + next.rows() <= self.settings.batch_max) {
                rows += next.rows();
                batch.push(next);
            }
            answers.extend(self.commit_batch(batch, now).await?);
        }
        Ok(answers)
    }

    async fn commit_batch(&self, batch: Vec<DecidedSchedule>, now: Timestamp) -> Result<Vec<Turned>, StoreError> {
        let change = |DecidedSchedule { turn, gone, audit }: DecidedSchedule| ScheduleChange {
            schedule: turn.schedule,
            gone,
            fresh: turn.fresh,
            changed: turn.changed,
            audit,
        };
        let changes: Vec<ScheduleChange> = batch.into_iter().map(change).collect();
        let turn = |part: Range<usize>| {
            let turning = self.ports.store.turn(changes[part].to_vec());
            async move {
                let turned = turning.await?;
                Ok::<Vec<Turned>, StoreError>(turned.into_iter().map(|one| one.map_err(Unturned::from)).collect())
            }
        };
        let refused = |at: usize, why: String| {
            let (tenant, name) = key_of(&changes[at].schedule);
            self.cannot_write(&format!("schedule {name} of {tenant}"), &why);
            Err(Unturned::Refused(why))
        };
        let committed = in_parts(changes.len(), turn, refused).await;
        if let Err(error) = &committed {
            self.health.store_failed(error);
        }
        let answers = match committed {
            Err(StoreError::UnknownOutcome(text)) => {
                self.read_back(&changes).await.ok_or(StoreError::UnknownOutcome(text))?
            }
            other => other?,
        };
        for (change, _) in changes.iter().zip(&answers).filter(|(_, answer)| answer.is_ok()) {
            self.count_slots(change, now);
        }
        Ok(answers)
    }

    /// What became of a commit whose outcome is unknown: the turn is ours if the schedule is as we left it. If it is not,
    /// somebody may have turned it since, or the commit may still come. That does not matter to a turn, which is decided anew
    /// from whatever is there; but an order would be followed twice.
    async fn read_back(&self, changes: &[ScheduleChange]) -> Option<Vec<Turned>> {
        let keys: Vec<_> = changes.iter().map(|change| key_of(&change.schedule)).collect();
        let stored = self.ports.store.load_schedules(&keys).await.ok()?;
        let ours = |(change, stored): (&ScheduleChange, Option<_>)| {
            let there = if change.gone { stored.is_none() } else { stored.as_ref() == Some(&change.schedule) };
            let is_order = !change.audit.is_empty();
            if there { Some(Ok(())) } else { (!is_order).then_some(Err(Unturned::Conflict)) }
        };
        changes.iter().zip(stored).map(ours).collect()
    }

    fn count_slots(&self, change: &ScheduleChange, now: Timestamp) {
        let mut counted = BTreeSet::new();
        let written: Vec<&Slot> = change.fresh.iter().chain(&change.changed).collect();
        for slot in written {
            self.metrics.schedules.decided(slot.outcome);
            if slot.outcome == SlotOutcome::Started && counted.insert(&slot.key) {
                let lag = change.schedule.due_at(&slot.key).map(|due| now.since(due));
                lag.into_iter().for_each(|lag| self.metrics.schedules.started(lag));
            }
        }
    }
}
