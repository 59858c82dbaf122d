//! Dead letters and their replay.

use std::collections::BTreeMap;

use lockgate_core::job as core;
use lockgate_proto::v1;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::each_once::each_once;
use crate::name_set::{JobStateName, LanePriorityName, ReasonName, SoughtReasonName};
use crate::request::PriorityName;
use crate::time::Time;
use crate::{ToWire, present};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetterList)]
pub struct DeadLetters {
    pub dead_letters: Vec<DeadLetter>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Why a job ended badly, kept for replay.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeadLetter {
    pub job_id: String,
    pub tenant: String,
    pub topic: String,
    pub priority: LanePriorityName,
    pub state: JobStateName,
    #[schema(value_type = ReasonName)]
    pub reason: String,
    pub message: String,
    pub attempts: u32,
    pub life: u32,
    pub at: Time,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Absent while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discarded: Option<Discard>,
}

/// An operator's decision that a dead letter is not to be replayed.
#[derive(Debug, Serialize, ToSchema)]
pub struct Discard {
    pub actor: String,
    pub reason: String,
    pub at: Time,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Replayed {
    pub matched: u64,
    pub replayed: u64,
    /// Had no room: within their tenant's quota, or under a ceiling.
    pub no_room: u64,
    /// Matched and are not replayed: jobs of runs, undos and jobs of closed workflows, and those that others were faster with.
    pub left_out: u64,
    /// The first 1,000 of the others.
    pub job_ids: Vec<String>,
}

/// Which dead letters to replay, and how.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Replay)]
pub struct ReplayBody {
    pub topic: Option<String>,
    pub priority: Option<PriorityName>,
    #[schema(value_type = Option<SoughtReasonName>)]
    pub reason: Option<String>,
    /// Labels that the job must have.
    #[serde(default, deserialize_with = "each_once")]
    pub labels: BTreeMap<String, String>,
    /// Only say what would be replayed.
    #[serde(default)]
    pub dry_run: bool,
    /// Jobs a second; absent is as fast as possible.
    #[schema(minimum = 1)]
    pub rate: Option<u32>,
    /// At most this many.
    #[schema(minimum = 1)]
    pub limit: Option<u32>,
}

/// Why a dead letter is not to be replayed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DiscardOrder)]
pub struct DiscardBody {
    /// For the history of the job and the audit trail.
    #[schema(min_length = 1)]
    pub reason: String,
}

impl ToWire for core::Discard {
    type Wire = v1::Discard;

    fn to_wire(&self) -> v1::Discard {
        v1::Discard { actor: self.actor.to_string(), reason: self.reason.to_string(), at_ms: self.at.as_millis() }
    }
}

impl From<v1::Discard> for Discard {
    fn from(v1::Discard { actor, reason, at_ms }: v1::Discard) -> Self {
        Self { actor, reason, at: Time::from_millis(at_ms) }
    }
}

impl ToWire for core::DeadLetter {
    type Wire = v1::DeadLetter;

    fn to_wire(&self) -> v1::DeadLetter {
        v1::DeadLetter {
            job_id: self.job_id.to_string(),
            tenant: self.tenant.to_string(),
            topic: self.topic.to_string(),
            priority: self.priority.to_wire().into(),
            state: self.state.to_wire().into(),
            reason: self.reason.as_str().to_owned(),
            message: self.message.to_string(),
            attempts: self.attempts,
            life: self.life,
            at_ms: self.at.as_millis(),
            labels: self.labels.clone().into_iter().collect(),
            discarded: self.discarded.as_ref().map(ToWire::to_wire),
        }
    }
}

impl DeadLetter {
    /// What the bad end of a job left, read off the job; none if it did not end badly.
    pub fn of(job: &v1::Job) -> Option<Self> {
        let error = job.last_error.as_ref().filter(|_| job.phase() == v1::Phase::Deadletter)?;
        Some(Self::from(v1::DeadLetter {
            job_id: job.job_id.clone(),
            tenant: job.tenant.clone(),
            topic: job.topic.clone(),
            priority: job.priority,
            state: job.state,
            reason: error.reason.clone(),
            message: error.message.clone(),
            attempts: job.attempts,
            life: job.life,
            at_ms: job.ended_at_ms?,
            labels: job.labels.clone(),
            discarded: job.discarded.clone(),
        }))
    }
}

impl From<v1::DeadLetter> for DeadLetter {
    fn from(wire: v1::DeadLetter) -> Self {
        Self {
            priority: wire.priority().into(),
            state: wire.state().into(),
            job_id: wire.job_id,
            tenant: wire.tenant,
            topic: wire.topic,
            reason: wire.reason,
            message: wire.message,
            attempts: wire.attempts,
            life: wire.life,
            at: Time::from_millis(wire.at_ms),
            labels: wire.labels.into_iter().collect(),
            discarded: wire.discarded.map(Discard::from),
        }
    }
}

impl From<v1::ListDeadLettersResponse> for DeadLetters {
    fn from(wire: v1::ListDeadLettersResponse) -> Self {
        Self {
            dead_letters: wire.dead_letters.into_iter().map(DeadLetter::from).collect(),
            next_cursor: present(wire.next_cursor),
        }
    }
}

impl From<v1::ReplayDeadLettersResponse> for Replayed {
    fn from(wire: v1::ReplayDeadLettersResponse) -> Self {
        let v1::ReplayDeadLettersResponse { matched, replayed, no_room, left_out, job_ids } = wire;
        Self { matched, replayed, no_room, left_out, job_ids }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_job_that_ended_badly_has_a_dead_letter() {
        let error = v1::Failure { reason: "fatal".to_owned(), message: "boom".to_owned() };
        let (phase, ended_at_ms) = (v1::Phase::Deadletter.into(), Some(1));
        let dead = v1::Job { phase, ended_at_ms, last_error: Some(error), ..v1::Job::default() };
        let retried = v1::Job { phase: v1::Phase::Queued.into(), ..dead.clone() };
        assert_eq!(DeadLetter::of(&dead).map(|letter| letter.reason), Some("fatal".to_owned()));
        assert!(DeadLetter::of(&retried).is_none());
    }
}
