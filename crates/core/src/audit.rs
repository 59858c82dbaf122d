//! The audit trail: one row for each act of governance, and the chain of blocks that seals the rows.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::ids::{ActorId, TenantId};
use crate::request::Json;
use crate::time::Timestamp;

/// One act, written in the commit that performs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub at: Timestamp,
    pub tenant: TenantId,
    pub actor: ActorId,
    pub action: AuditAction,
    /// The job, policy snapshot or circuit breaker that the act changed.
    pub subject: Arc<str>,
    #[serde(skip)]
    pub detail: Json,
}

impl AuditEntry {
    /// Adds the actor's address to the detail, so that the seal covers it too.
    #[must_use]
    pub fn seen_from(mut self, source: Option<IpAddr>) -> Self {
        let Some(source) = source else { return self };
        let mut detail = match serde_json::from_str(self.detail.as_str()) {
            Ok(Value::Object(detail)) => detail,
            Ok(Value::Null) | Err(_) => Map::new(),
            Ok(other) => Map::from_iter([("detail".to_owned(), other)]),
        };
        detail.insert("source".to_owned(), source.to_string().into());
        self.detail = Json::trusted(Value::Object(detail).to_string());
        self
    }

    /// The actor's address, if it is known.
    pub fn source(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Sourced {
            source: Option<String>,
        }
        serde_json::from_str::<Sourced>(self.detail.as_str()).ok()?.source
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditAction {
    PolicyActivated,
    PoolsActivated,
    TimeoutsActivated,
    PoolStateChanged,
    WorkerDrained,
    JobDenied,
    ApprovalAsked,
    Approved,
    JobCancelled,
    JobReplayed,
    /// An operator ended a job's wait before its next attempt.
    RetryForced,
    /// An operator said that a dead letter is not to be replayed.
    DeadLetterDiscarded,
    OutputRedacted,
    OutputQuarantined,
    OutputReleased,
    OutputUnchecked,
    SafetyBypassed,
    BypassRefused,
    ActionRefused,
    BreakerMoved,
    DagStored,
    RunStarted,
    RunPaused,
    RunResumed,
    RunCancelled,
    RunRerun,
    CompensationResolved,
    CompensationRetried,
    ScheduleStored,
    ScheduleRemoved,
    SchedulePaused,
    ScheduleResumed,
    ScheduleTriggered,
    BackfillStarted,
    BackfillCancelled,
    CredentialCreated,
    CredentialEnded,
    AccessRefused,
    QuotasActivated,
    TenantErased,
    /// The Store was restored to an earlier state.
    StoreRestored,
    /// Acknowledged work was missing, and an operator chose to continue without it. The subject names the work.
    LossAccepted,
}

impl AuditAction {
    pub const ALL: [Self; 42] = [
        Self::PolicyActivated,
        Self::PoolsActivated,
        Self::TimeoutsActivated,
        Self::PoolStateChanged,
        Self::WorkerDrained,
        Self::JobDenied,
        Self::ApprovalAsked,
        Self::Approved,
        Self::JobCancelled,
        Self::JobReplayed,
        Self::RetryForced,
        Self::DeadLetterDiscarded,
        Self::OutputRedacted,
        Self::OutputQuarantined,
        Self::OutputReleased,
        Self::OutputUnchecked,
        Self::SafetyBypassed,
        Self::BypassRefused,
        Self::ActionRefused,
        Self::BreakerMoved,
        Self::DagStored,
        Self::RunStarted,
        Self::RunPaused,
        Self::RunResumed,
        Self::RunCancelled,
        Self::RunRerun,
        Self::CompensationResolved,
        Self::CompensationRetried,
        Self::ScheduleStored,
        Self::ScheduleRemoved,
        Self::SchedulePaused,
        Self::ScheduleResumed,
        Self::ScheduleTriggered,
        Self::BackfillStarted,
        Self::BackfillCancelled,
        Self::CredentialCreated,
        Self::CredentialEnded,
        Self::AccessRefused,
        Self::QuotasActivated,
        Self::TenantErased,
        Self::StoreRestored,
        Self::LossAccepted,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PolicyActivated => "policy_activated",
            Self::PoolsActivated => "pools_activated",
            Self::TimeoutsActivated => "timeouts_activated",
            Self::PoolStateChanged => "pool_state_changed",
            Self::WorkerDrained => "worker_drained",
            Self::JobDenied => "job_denied",
            Self::ApprovalAsked => "approval_asked",
            Self::Approved => "approved",
            Self::JobCancelled => "job_cancelled",
            Self::JobReplayed => "job_replayed",
            Self::RetryForced => "retry_forced",
            Self::DeadLetterDiscarded => "dead_letter_discarded",
            Self::OutputRedacted => "output_redacted",
            Self::OutputQuarantined => "output_quarantined",
            Self::OutputReleased => "output_released",
            Self::OutputUnchecked => "output_unchecked",
            Self::SafetyBypassed => "safety_bypassed",
            Self::BypassRefused => "bypass_refused",
            Self::ActionRefused => "action_refused",
            Self::BreakerMoved => "breaker_moved",
            Self::DagStored => "dag_stored",
            Self::RunStarted => "run_started",
            Self::RunPaused => "run_paused",
            Self::RunResumed => "run_resumed",
            Self::RunCancelled => "run_cancelled",
            Self::RunRerun => "run_rerun",
            Self::CompensationResolved => "compensation_resolved",
            Self::CompensationRetried => "compensation_retried",
            Self::ScheduleStored => "schedule_stored",
            Self::ScheduleRemoved => "schedule_removed",
            Self::SchedulePaused => "schedule_paused",
            Self::ScheduleResumed => "schedule_resumed",
            Self::ScheduleTriggered => "schedule_triggered",
            Self::BackfillStarted => "backfill_started",
            Self::BackfillCancelled => "backfill_cancelled",
            Self::CredentialCreated => "credential_created",
            Self::CredentialEnded => "credential_ended",
            Self::AccessRefused => "access_refused",
            Self::QuotasActivated => "quotas_activated",
            Self::TenantErased => "tenant_erased",
            Self::StoreRestored => "store_restored",
            Self::LossAccepted => "loss_accepted",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }
}

/// A row as the Store numbered it. Numbers grow and are never reused; gaps are possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    pub id: i64,
    pub entry: AuditEntry,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Seal(pub [u8; 32]);

impl fmt::Display for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Seals the rows `first..=last` and, through `previous`, every block before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Numbered from 1 without gaps.
    pub no: u64,
    pub first: i64,
    pub last: i64,
    pub rows: u64,
    pub previous: Seal,
    pub seal: Seal,
    pub sealed_at: Timestamp,
}

impl Block {
    /// The block after `head` over these rows; None if there are none.
    pub fn over(head: Option<&Block>, rows: &[AuditRow], sealed_at: Timestamp) -> Option<Self> {
        let mut block = Self {
            no: head.map_or(1, |head| head.no + 1),
            first: rows.first()?.id,
            last: rows.last()?.id,
            rows: rows.len() as u64,
            previous: head.map(|head| head.seal).unwrap_or_default(),
            seal: Seal::default(),
            sealed_at,
        };
        block.seal = block.digest(rows);
        Some(block)
    }

    /// Each field is preceded by its length, so that moving a byte from one field to the next changes the seal.
    fn digest(&self, rows: &[AuditRow]) -> Seal {
        let mut digest = Sha256::new();
        let mut frame = |bytes: &[u8]| {
            digest.update((bytes.len() as u64).to_be_bytes());
            digest.update(bytes);
        };
        frame(&self.no.to_be_bytes());
        frame(&self.previous.0);
        frame(&self.sealed_at.as_millis().to_be_bytes());
        for AuditRow { id, entry } in rows {
            frame(&id.to_be_bytes());
            frame(&entry.at.as_millis().to_be_bytes());
            frame(entry.tenant.as_str().as_bytes());
            frame(entry.actor.as_str().as_bytes());
            frame(entry.action.as_str().as_bytes());
            frame(entry.subject.as_bytes());
            frame(entry.detail.as_str().as_bytes());
        }
        Seal(digest.finalize().into())
    }

    /// Checks the block against the block before it and against its rows.
    pub fn verify(&self, before: Option<&Block>, rows: &[AuditRow]) -> Result<(), Broken> {
        let at = |what| Err(Broken { block: self.no, first: self.first, last: self.last, what });
        if self.no != before.map_or(1, |before| before.no + 1) {
            return at(Damage::Numbering);
        }
        if self.previous != before.map(|before| before.seal).unwrap_or_default() {
            return at(Damage::Chain);
        }
        if rows.len() as u64 != self.rows {
            return at(Damage::Missing { expected: self.rows, found: rows.len() as u64 });
        }
        if self.digest(rows) != self.seal { at(Damage::Rows) } else { Ok(()) }
    }
}

/// The first inconsistency of the chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("audit block {block} (rows {first} to {last}) is broken: {what}")]
pub struct Broken {
    pub block: u64,
    pub first: i64,
    pub last: i64,
    pub what: Damage,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("a block before it is missing")]
    Numbering,
    #[error("it does not continue the block before it")]
    Chain,
    #[error("it sealed {expected} rows and {found} are there")]
    Missing { expected: u64, found: u64 },
    #[error("its rows are not the ones that were sealed")]
    Rows,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ids: std::ops::RangeInclusive<i64>) -> Vec<AuditRow> {
        let entry = |id: i64| AuditEntry {
            at: Timestamp::from_millis(1_000 + id),
            tenant: "acme".into(),
            actor: "ann".into(),
            action: AuditAction::JobDenied,
            subject: format!("job-{id}").into(),
            detail: Json::trusted(r#"{"rule":"r"}"#),
        };
        ids.map(|id| AuditRow { id, entry: entry(id) }).collect()
    }

    fn chain() -> (Block, Block) {
        let first = Block::over(None, &rows(1..=3), Timestamp::from_millis(5_000)).unwrap();
        let second = Block::over(Some(&first), &rows(4..=5), Timestamp::from_millis(6_000)).unwrap();
        (first, second)
    }

    #[test]
    fn an_untouched_chain_verifies() {
        let (first, second) = chain();
        assert_eq!(first.verify(None, &rows(1..=3)), Ok(()));
        assert_eq!(second.verify(Some(&first), &rows(4..=5)), Ok(()));
        assert_eq!(Block::over(Some(&second), &[], Timestamp::from_millis(7_000)), None);
    }

    #[test]
    fn any_changed_field_of_any_row_breaks_its_block() {
        let (first, _) = chain();
        let changes: [fn(&mut AuditEntry); 6] = [
            |entry| entry.at = Timestamp::from_millis(1),
            |entry| entry.tenant = "other".into(),
            |entry| entry.actor = "bob".into(),
            |entry| entry.action = AuditAction::Approved,
            |entry| entry.subject = "job-9".into(),
            |entry| entry.detail = Json::trusted(r#"{"rule":"s"}"#),
        ];
        for change in changes {
            let mut rows = rows(1..=3);
            change(&mut rows[1].entry);
            assert_eq!(first.verify(None, &rows).unwrap_err().what, Damage::Rows);
        }
    }

    #[test]
    fn missing_rows_and_blocks_are_named() {
        let (first, second) = chain();
        let broken = first.verify(None, &rows(1..=2)).unwrap_err();
        assert_eq!(broken.what, Damage::Missing { expected: 3, found: 2 });
        assert_eq!(second.verify(None, &rows(4..=5)).unwrap_err().what, Damage::Numbering);
        let forged = Block { seal: Seal([7; 32]), ..first };
        assert_eq!(second.verify(Some(&forged), &rows(4..=5)).unwrap_err().what, Damage::Chain);
    }

    #[test]
    fn moving_a_byte_between_fields_is_seen() {
        let mut moved = rows(1..=1);
        let block = Block::over(None, &moved, Timestamp::from_millis(5_000)).unwrap();
        moved[0].entry.tenant = "acmea".into();
        moved[0].entry.actor = "nn".into();
        assert_eq!(block.verify(None, &moved).unwrap_err().what, Damage::Rows);
    }

    #[test]
    fn where_somebody_was_is_part_of_what_is_sealed() {
        let mut rows = rows(1..=1);
        assert_eq!(rows[0].entry.source(), None);
        let from = |text: &str| text.parse().ok();
        rows[0].entry = rows[0].entry.clone().seen_from(from("192.0.2.7"));
        assert_eq!(rows[0].entry.source().as_deref(), Some("192.0.2.7"));
        assert_eq!(rows[0].entry.detail.as_str(), r#"{"rule":"r","source":"192.0.2.7"}"#);
        let block = Block::over(None, &rows, Timestamp::from_millis(5_000)).unwrap();
        rows[0].entry = rows[0].entry.clone().seen_from(from("192.0.2.8"));
        assert_eq!(block.verify(None, &rows).unwrap_err().what, Damage::Rows);
        let nothing = AuditEntry { detail: Json::null(), ..rows[0].entry.clone() };
        assert_eq!(nothing.clone().seen_from(None), nothing);
        assert_eq!(nothing.seen_from(from("::1")).detail.as_str(), r#"{"source":"::1"}"#);
    }

    #[test]
    fn every_action_is_read_back_from_its_name() {
        for action in AuditAction::ALL {
            assert_eq!(AuditAction::parse(action.as_str()), Some(action));
        }
    }
}
