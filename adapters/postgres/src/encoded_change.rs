//! A change encoded as the columns that it writes.
//!
//! The caller encodes it, because all callers share a few writing tasks, which should not spend their time formatting JSON.

use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::JobId;
use lockgate_core::job::{Duty, Effect, Job, JobState, Transition};
use lockgate_core::request::ChildOf;
use lockgate_ports::JobChange;
use lockgate_sql::JobTexts;

use crate::error::StatementError;
use crate::row::lane_number;

pub(crate) struct EncodedChange {
    pub(crate) change: JobChange,
    pub(crate) life: String,
    /// One JSON text per line, to be appended to the job's column.
    pub(crate) events: String,
    /// Empty unless the job is new, because a request is written only once.
    pub(crate) request: String,
    /// The lane that the job waits in, if it waits.
    pub(crate) lane: Option<i64>,
    /// Duties that begin (true) or end (false). Most changes have none.
    pub(crate) duties: Vec<(Duty, bool)>,
    pub(crate) audit: Vec<AuditEntry>,
}

impl EncodedChange {
    pub(crate) fn fill(change: JobChange) -> Result<Self, StatementError> {
        let job = &change.transition.job;
        let JobTexts { life, events, request } = JobTexts::of(&change)?;
        let lane = if job.state() == JobState::Scheduled { Some(lane_number(&job.lane())?) } else { None };
        let (duties, audit) = (change.transition.duties().collect(), change.transition.audit());
        Ok(Self { change, life, events, request, lane, duties, audit })
    }

    pub(crate) fn transition(&self) -> &Transition {
        &self.change.transition
    }

    pub(crate) fn job(&self) -> &Job {
        &self.change.transition.job
    }

    pub(crate) fn id(&self) -> &JobId {
        &self.job().request.job_id
    }

    pub(crate) fn key(&self) -> Option<(&str, &str)> {
        let request = &self.job().request;
        request.idempotency_key.as_deref().filter(|_| self.is_birth()).map(|key| (request.tenant.as_str(), key))
    }

    pub(crate) fn result(&self) -> Option<&str> {
        self.transition().result.as_ref().map(|result| result.as_str())
    }

    pub(crate) fn is_birth(&self) -> bool {
        self.job().version == 1
    }

    /// A new job that cannot conflict: its id is a UUIDv7 made by this program, which makes none twice, and it has no
    /// idempotency key.
    pub(crate) fn is_plain_birth(&self) -> bool {
        let request = &self.job().request;
        let minted = !request.id_chosen && is_uuid_v7(request.job_id.as_str());
        minted && request.idempotency_key.is_none() && !self.job().state().is_terminal()
    }

    /// Whether the job may have ended before this change; then its row is searched in history too. It has not if a worker
    /// held or holds the attempt, because only live jobs are held. Nor in a first life without a checked output, bypass,
    /// children, late result and discard, because only jobs with one of these change again after their end.
    pub(crate) fn may_have_ended(&self) -> bool {
        let (job, life) = (self.job(), &self.job().life);
        let was_held = self.transition().effects.iter().any(|effect| matches!(effect, Effect::Settled { .. }));
        let is_held = matches!(job.state(), JobState::Dispatched | JobState::Running);
        let unchecked = life.output.is_none() && life.bypass.is_none();
        let unmarked = unchecked && life.family.is_none() && life.late.is_none() && life.discarded.is_none();
        let first_look = life.no == 1 && unmarked;
        !(was_held || is_held || first_look)
    }

    /// J-4: a job that stays dead keeps its dead letter, unless an operator discards it.
    pub(crate) fn drops_letter(&self) -> bool {
        self.may_have_ended() && self.transition().drops_letter()
    }

    /// Whether the change writes more than the job's own row.
    pub(crate) fn has_more(&self) -> bool {
        let letter = self.transition().dead_letter.is_some() || self.drops_letter();
        letter
            || self.concerns_a_run()
            || self.parent().is_some()
            || !self.duties.is_empty()
            || !self.audit.is_empty()
            || !self.change.outbox.is_empty()
    }

    /// The parent, if the change creates a child.
    pub(crate) fn parent(&self) -> Option<&ChildOf> {
        self.job().request.child_of.as_ref().filter(|_| self.is_birth())
    }

    /// Whether the job's run must see the change: the job is new or has ended.
    fn concerns_a_run(&self) -> bool {
        self.job().request.run.is_some() && (self.is_birth() || self.transition().tells_its_run())
    }

    /// The change's weight in a transaction.
    pub(crate) fn weight(&self) -> usize {
        let bytes = self.life.len() + self.events.len() + self.request.len() + self.result().map_or(0, str::len);
        let payload = if self.is_birth() { self.job().request.payload.as_str().len() } else { 0 };
        1 + (bytes + payload) / WEIGHT_BYTES
    }
}

/// A change with this many bytes of text weighs twice as much as one without text.
pub(crate) const WEIGHT_BYTES: usize = 4_096;

/// Whether the id has the form of those that this program makes.
pub(crate) fn is_uuid_v7(id: &str) -> bool {
    let dash_or_hex = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        14 => byte == b'7',
        _ => byte.is_ascii_hexdigit(),
    };
    id.len() == 36 && id.bytes().enumerate().all(dash_or_hex)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_core::time::Timestamp;

    #[test]
    fn ids_made_here_are_told_from_others() {
        assert!(is_uuid_v7(&lockgate_core::ids::uuid_v7(Timestamp::from_millis(7), [3; 10])));
        for other in ["unnamed", "", "0189f7e0-0000-4000-8000-000000000000", "0189f7e0-0000-7000-8000-00000000000g"] {
            assert!(!is_uuid_v7(other), "{other}");
        }
    }
}
