//! Final checks of the audit trail: its rows about jobs match the jobs' histories, and its blocks form one chain over all
//! rows, up to the last one once faults have stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::audit::{AuditAction, AuditRow, Block};
use lockgate_core::ids::JobId;
use lockgate_core::job::{EventKind, JobEvent};
use lockgate_ports::{AuditStore as _, StoreError};
use tokio::time::Instant;

use crate::check::{Violation, ensure, tell};
use crate::world::SimWorld;

/// Without faults a row is sealed within this time.
const SEALED: Duration = Duration::from_secs(60);

pub(crate) struct Trail {
    rows: Vec<AuditRow>,
    blocks: Vec<Block>,
    /// The rows about each job.
    told: BTreeMap<Arc<str>, Vec<AuditAction>>,
}

impl Trail {
    /// Reads the blocks first: rows added meanwhile cannot be sealed by them.
    pub(crate) async fn read(world: &SimWorld) -> Result<Self, Violation> {
        let blocks = world.disk.blocks(0, usize::MAX).await.map_err(|error| unread(&error))?;
        let rows = world.disk.audit(0, usize::MAX).await.map_err(|error| unread(&error))?;
        let mut told = BTreeMap::<_, Vec<AuditAction>>::new();
        for entry in rows.iter().map(|row| &row.entry).filter(|entry| OF_JOBS.contains(&entry.action)) {
            told.entry(entry.subject.clone()).or_default().push(entry.action);
        }
        Ok(Self { rows, blocks, told })
    }

    /// Rows are written in the commits of their acts, so they match the events, in order.
    pub(crate) fn tells(&self, id: &JobId, events: &[JobEvent]) -> Result<(), Violation> {
        let acts: Vec<AuditAction> = events.iter().filter_map(act).collect();
        let told = self.told.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
        ensure(acts == told, "G-5 the audit trail tells of a job what happened", || {
            format!("{id}: {told:?} of {}", tell(events))
        })
    }

    pub(crate) fn is_one_chain(&self) -> Result<(), Violation> {
        let grow = self.rows.is_sorted_by(|row, next| row.id < next.id);
        ensure(grow, "S-6 numbers of audit rows grow", || format!("{:?}", self.rows))?;
        let until = |id: i64| self.rows.partition_point(|row| row.id <= id);
        let mut before: Option<&Block> = None;
        for block in &self.blocks {
            let since = before.map_or(0, |before| before.last);
            let sealed = self.rows.get(until(since)..until(block.last)).unwrap_or_default();
            let fits = block.verify(before, sealed);
            fits.map_err(|broken| Violation::new("S-6 blocks are one chain over all rows", broken.to_string()))?;
            before = Some(block);
        }
        Ok(())
    }
}

fn unread(error: &StoreError) -> Violation {
    Violation::new("the audit trail is read", error.to_string())
}

/// Waits until every present row is sealed.
pub(crate) async fn settle(world: &SimWorld) -> Result<(), Violation> {
    let rows = world.disk.audit(0, usize::MAX).await.map_err(|error| unread(&error))?;
    let Some(last) = rows.last().map(|row| row.id) else { return Ok(()) };
    let deadline = Instant::now() + SEALED;
    loop {
        let head = world.disk.head().await.map_err(|error| unread(&error))?.map_or(0, |block| block.last);
        if head >= last {
            return Ok(());
        }
        let in_time = Instant::now() < deadline;
        ensure(in_time, "S-6 every row of the audit trail is sealed", || format!("{last}, sealed until {head}"))?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// The acts that concern jobs.
const OF_JOBS: [AuditAction; 11] = [
    AuditAction::JobDenied,
    AuditAction::ApprovalAsked,
    AuditAction::Approved,
    AuditAction::SafetyBypassed,
    AuditAction::BypassRefused,
    AuditAction::JobReplayed,
    AuditAction::JobCancelled,
    AuditAction::OutputUnchecked,
    AuditAction::OutputRedacted,
    AuditAction::OutputQuarantined,
    AuditAction::OutputReleased,
];

fn act(event: &JobEvent) -> Option<AuditAction> {
    match event.kind {
        EventKind::Denied => Some(AuditAction::JobDenied),
        EventKind::ApprovalRequired => Some(AuditAction::ApprovalAsked),
        EventKind::Approved => Some(AuditAction::Approved),
        EventKind::SafetyBypassed => Some(AuditAction::SafetyBypassed),
        EventKind::BypassRefused => Some(AuditAction::BypassRefused),
        EventKind::Replayed => Some(AuditAction::JobReplayed),
        EventKind::OutputUnchecked => Some(AuditAction::OutputUnchecked),
        EventKind::OutputRedacted => Some(AuditAction::OutputRedacted),
        EventKind::OutputQuarantined => Some(AuditAction::OutputQuarantined),
        EventKind::Released => Some(AuditAction::OutputReleased),
        // Cancelled by a person, and not by the job's own worker.
        EventKind::Cancelled => event.actor.is_some().then_some(AuditAction::JobCancelled),
        _ => None,
    }
}
