//! Deliberate bugs that test the judges: a judge that never objects proves nothing.
//!
//! Each bug makes a port, a request of a process, or the edge's handling of workers wrong. It is implemented here or, behind
//! [`Planted::is`], in the simulated part that it concerns; the engine and the adapters contain none.

mod bug;
mod changes;
mod lanes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::audit::AuditRow;
use lockgate_core::ids::{EdgeId, JobId, JobSeq, RunId, SessionId};
use lockgate_core::job::{Duty, Evidence, Job};
use lockgate_core::request::Json;
use lockgate_core::schedule::Schedule;
use lockgate_core::worker::WorkerProfile;
use lockgate_model::MemoryStore;
use lockgate_ports::{
    Activation, AttachedSession, ChangeError, Claim, Claimed, JobChange, JobStore, NewsRow, Outdated, RunChange, RunRefusal,
    RunStore, ScheduleChange, ScheduleStore, Sessions, SnapshotKind, Snapshots, StoreError, Unattached,
};
use parking_lot::Mutex;

pub use bug::Bug;
pub(crate) use lanes::PlantedLanes;

#[derive(Default)]
pub(crate) struct Planted {
    bug: Option<Bug>,
    /// Changes that were acknowledged and not yet written.
    unwritten: Mutex<Vec<JobChange>>,
    changes: Mutex<u64>,
    claimed: Mutex<Option<Claim>>,
    lost: Mutex<changes::Lost>,
    /// The first result of each job.
    results: Mutex<BTreeMap<JobId, Json>>,
}

impl Planted {
    pub(crate) fn new(bug: Option<Bug>) -> Self {
        Self { bug, ..Self::default() }
    }

    pub(crate) fn is(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub(crate) async fn commit(
        &self,
        disk: &MemoryStore,
        mut changes: Vec<JobChange>,
    ) -> Result<Vec<Result<JobSeq, ChangeError>>, StoreError> {
        match self.bug {
            Some(Bug::VersionIgnored) => with_versions_of_now(disk, &mut changes).await?,
            Some(Bug::EvidenceIgnored) => {
                changes.iter_mut().for_each(|change| change.transition.evidence = Evidence::Version);
            }
            Some(Bug::PolicyIgnored) => changes.iter_mut().for_each(|change| {
                if let Evidence::Allowed { session, epoch, .. } = change.transition.evidence.clone() {
                    change.transition.evidence = Evidence::Attached { session, epoch };
                }
            }),
            Some(Bug::EventsDropped) => self.every_third(&mut changes, |change| change.transition.events.clear()),
            Some(Bug::LettersDropped) => changes.iter_mut().for_each(|change| change.transition.dead_letter = None),
            Some(Bug::GuessesKept) => changes::note_losses(&mut self.lost.lock(), &changes),
            Some(Bug::FirstResultsKept) => changes::keep_first_results(&mut self.results.lock(), &mut changes),
            Some(Bug::LossesCharged) => changes::charge_losses(&mut changes),
            Some(Bug::KeysForgotten) => changes
                .iter_mut()
                .for_each(|change| Arc::make_mut(&mut change.transition.job.request).idempotency_key = None),
            Some(Bug::BatchCutShort) if changes.len() > 2 => {
                let last = changes.pop().map(|change| change.transition.job.seq);
                let mut answers = disk.commit(changes).await?;
                answers.extend(last.map(Ok));
                return Ok(answers);
            }
            Some(Bug::AnsweredTooEarly) if waits_for_nothing(disk, &changes).await? => {
                let answers = changes.iter().map(|change| Ok(change.transition.job.seq)).collect();
                self.unwritten.lock().extend(changes);
                return Ok(answers);
            }
            _ => {}
        }
        disk.commit(changes).await
    }

    fn every_third(&self, changes: &mut [JobChange], spoil: impl Fn(&mut JobChange)) {
        for change in changes {
            let mut count = self.changes.lock();
            *count += 1;
            if count.is_multiple_of(3) {
                spoil(change);
            }
        }
    }

    /// Writes what was only acknowledged.
    pub(crate) async fn flush(&self, disk: &MemoryStore) {
        let unwritten = std::mem::take(&mut *self.unwritten.lock());
        if !unwritten.is_empty() {
            // The caller has its acknowledgement already, so an error cannot be reported.
            let _ = disk.commit(unwritten).await;
        }
    }

    /// A process dies, and with it what it had only in memory.
    pub(crate) fn power_cut(&self) {
        self.unwritten.lock().clear();
    }

    pub(crate) async fn advance(
        &self,
        disk: &MemoryStore,
        mut changes: Vec<RunChange>,
    ) -> Result<Vec<Result<Vec<JobSeq>, RunRefusal>>, StoreError> {
        if self.is(Bug::StepsNotCompared) {
            for change in changes.iter_mut().filter(|change| change.head.version > 1) {
                let now = disk.load_runs(std::slice::from_ref(&change.head.id)).await?.pop().flatten();
                change.head.version = now.map_or(change.head.version, |run| run.head.version + 1);
                let ids: Vec<JobId> = change.jobs.iter().map(|birth| birth.job.request.job_id.clone()).collect();
                let mut there = disk.load(&ids).await?.into_iter();
                change.jobs.retain(|_| there.next().is_none_or(|job| job.is_none()));
            }
        }
        disk.advance(changes).await
    }

    /// The steps that a process sends to the Store.
    pub(crate) fn steps(&self, mut changes: Vec<RunChange>) -> Vec<RunChange> {
        if self.is(Bug::UndoneTwice) {
            for change in &mut changes {
                let undo = |job: &Job| job.request.run.as_ref().is_some_and(|part| part.undo);
                let again: Vec<_> = change.jobs.iter().filter(|birth| undo(&birth.job)).cloned().collect();
                change.jobs.extend(again.into_iter().map(|mut birth| {
                    let request = Arc::make_mut(&mut birth.job.request);
                    request.job_id = JobId::from(format!("{}-again", request.job_id));
                    birth
                }));
            }
        }
        for change in changes.iter_mut().filter(|change| change.head.id.is_saga()) {
            if self.is(Bug::UndosDropped) {
                change.jobs.clear();
            }
            if self.is(Bug::EntriesForgotten) {
                change.nodes.iter_mut().for_each(|(_, row)| (row.entry, row.entry_no) = (None, 0));
            }
        }
        changes
    }

    pub(crate) fn news(&self, news: Vec<NewsRow>) -> Vec<NewsRow> {
        let forgotten = |run: &RunId| self.is(Bug::NewsForgotten) && picked(run.as_str());
        let told = news.into_iter().filter(|row| !forgotten(&row.run));
        let (last_first, mut in_order): (Vec<NewsRow>, Vec<NewsRow>) =
            told.partition(|row| self.is(Bug::NewsReversed) && row.run.is_saga());
        in_order.extend(last_first.into_iter().rev());
        if self.is(Bug::CancelsBelieved) {
            in_order.iter_mut().for_each(changes::believe_cancels);
        }
        if self.is(Bug::UndoSkipped) {
            in_order.iter_mut().for_each(changes::call_cancelled);
        }
        in_order
    }

    pub(crate) async fn turns(&self, disk: &MemoryStore, mut changes: Vec<ScheduleChange>) -> Vec<ScheduleChange> {
        if self.is(Bug::TurnsNotCompared) {
            for change in &mut changes {
                let key = (change.schedule.tenant.clone(), change.schedule.name.clone());
                let now = disk.load_schedules(&[key]).await.ok().and_then(|mut found| found.pop().flatten());
                change.schedule.version = now.map_or(change.schedule.version, |schedule| schedule.version + 1);
                let fresh = std::mem::take(&mut change.fresh);
                change.changed.splice(0..0, fresh);
            }
        }
        changes
    }

    /// Due schedules, as the Store lists them.
    pub(crate) fn due(&self, schedules: Vec<Schedule>) -> Vec<Schedule> {
        if self.is(Bug::SchedulesForgotten) { Vec::new() } else { schedules }
    }

    /// Rows of the audit trail, as they are read.
    pub(crate) fn audited(&self, mut rows: Vec<AuditRow>) -> Vec<AuditRow> {
        let hidden = |row: &AuditRow| match self.bug {
            Some(Bug::RowsUnsealed) => picked(&row.entry.subject),
            bug => bug == Some(Bug::NothingSealed),
        };
        rows.retain(|row| !hidden(row));
        rows
    }

    pub(crate) fn grace(&self, grace: Duration) -> Duration {
        if self.is(Bug::EdgesClosedAlive) { Duration::ZERO } else { grace }
    }

    pub(crate) async fn attach(
        &self,
        disk: &MemoryStore,
        id: &SessionId,
        edge: &EdgeId,
        profile: &WorkerProfile,
    ) -> Result<Result<AttachedSession, Unattached>, StoreError> {
        let forgotten = WorkerProfile { lost_after_ms: None, ..profile.clone() };
        disk.attach(id, edge, if self.is(Bug::PromisesForgotten) { &forgotten } else { profile }).await
    }

    pub(crate) async fn activate(
        &self,
        disk: &MemoryStore,
        mut change: Activation,
    ) -> Result<Result<u64, Outdated>, StoreError> {
        if self.is(Bug::ActivationsNotCompared) {
            change.expected = disk.active(change.kind).await?.map_or(0, |active| active.version);
        }
        disk.activate(change).await
    }

    pub(crate) async fn close_session(&self, disk: &MemoryStore, id: &SessionId, epoch: u64) -> Result<bool, StoreError> {
        let mut closed = disk.close_session(id, epoch).await?;
        if self.is(Bug::EpochIgnored) && !closed {
            closed = disk.close_session(id, epoch + 1).await?;
        }
        Ok(closed)
    }

    /// The changes that a process sends to the Store.
    pub(crate) fn asked(&self, mut changes: Vec<JobChange>) -> Vec<JobChange> {
        if self.is(Bug::EvidenceOmitted) {
            changes::omit_evidence(&mut changes);
        }
        if self.is(Bug::EndedTwice) {
            changes::end_again(&mut changes);
        }
        if self.is(Bug::VerdictsAssumed) {
            changes::assume_verdicts(&mut changes);
        }
        if self.is(Bug::BirthsUnfenced) {
            let fenced = |change: &&mut JobChange| matches!(change.transition.evidence, Evidence::Unchanged { .. });
            changes.iter_mut().filter(fenced).for_each(|change| change.transition.evidence = Evidence::Version);
        }
        changes
    }

    /// Like `asked`, for a bug that needs to read the disk.
    pub(crate) async fn chosen(&self, disk: &MemoryStore, mut changes: Vec<JobChange>) -> Vec<JobChange> {
        if self.is(Bug::StatesAssumed) {
            let active = disk.active(SnapshotKind::PoolStates).await.ok().flatten();
            let now = active.map_or_else(|| SnapshotKind::PoolStates.builtin().into(), |active| active.id);
            changes::assume_states(&mut changes, &now);
        }
        changes
    }

    /// For each life, the latest live child as the Store reports it.
    pub(crate) fn under_way(&self, mut latest: Vec<Option<JobSeq>>) -> Vec<Option<JobSeq>> {
        if self.is(Bug::ChildrenOverlooked) {
            latest.fill(None);
        }
        latest
    }

    /// Jobs as the index of a duty lists them.
    pub(crate) fn owing(&self, duty: Duty, jobs: Vec<Job>) -> Vec<Job> {
        let forgotten = match duty {
            Duty::Gather => self.is(Bug::GatherForgotten),
            Duty::Disown => self.is(Bug::DisownForgotten),
            Duty::Scan => self.is(Bug::ScansForgotten),
            Duty::Approve | Duty::Rejudge => false,
        };
        if forgotten { Vec::new() } else { jobs }
    }

    /// Jobs as they are loaded by id.
    pub(crate) fn loaded(&self, mut jobs: Vec<Option<Job>>) -> Vec<Option<Job>> {
        if self.is(Bug::GuessesKept) {
            let mut lost = self.lost.lock();
            jobs.iter_mut().flatten().for_each(|job| changes::keep_guess(&mut lost, job));
        }
        jobs
    }

    /// Jobs as an index lists them.
    pub(crate) fn named(&self, jobs: Vec<Job>) -> Vec<Job> {
        let forgotten = |job: &Job| self.is(Bug::RowsForgotten) && picked(job.request.job_id.as_str());
        jobs.into_iter().filter(|job| !forgotten(job)).collect()
    }

    /// Claims, plus those given to the next caller that has room.
    pub(crate) fn claims(&self, seats: &[usize], mut claimed: Claimed) -> Claimed {
        let taken = |seat: usize| claimed.claims.iter().filter(|claim| claim.seat == seat).count();
        let room = seats.iter().enumerate().find(|(seat, free)| taken(*seat) < **free).map(|(seat, _)| seat);
        if self.is(Bug::ClaimsDoubled) {
            let mut last = self.claimed.lock();
            let again = last.take().zip(room).map(|(claim, seat)| Claim { seat, ..claim });
            *last = claimed.claims.last().cloned();
            claimed.claims.extend(again);
        }
        claimed
    }

    /// Whether the lanes ignore a job.
    pub(crate) fn overlooks(&self, job: &Job) -> bool {
        self.is(Bug::JobsNeverClaimed) && picked(job.request.job_id.as_str())
    }
}

/// True for about one name in eight, always the same names.
pub(crate) fn picked(name: &str) -> bool {
    name.bytes().fold(7_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)) >> 32 & 7 == 0
}

async fn with_versions_of_now(disk: &MemoryStore, changes: &mut [JobChange]) -> Result<(), StoreError> {
    let mut seen = BTreeSet::new();
    for change in changes.iter_mut().filter(|change| change.transition.job.version > 1) {
        let job = &mut change.transition.job;
        let now = disk.load(std::slice::from_ref(&job.request.job_id)).await?.pop().flatten();
        // Later changes of one job in a call depend on this one.
        if seen.insert(job.request.job_id.clone()) {
            job.version = now.map_or(job.version, |now| now.version + 1);
        }
    }
    Ok(())
}

/// Whether a Store could acknowledge this change without checking: one change of one job.
async fn waits_for_nothing(disk: &MemoryStore, changes: &[JobChange]) -> Result<bool, StoreError> {
    let [change] = changes else { return Ok(false) };
    let transition = &change.transition;
    let now = disk.load(std::slice::from_ref(&transition.job.request.job_id)).await?.pop().flatten();
    let fits = now.is_some_and(|now| now.version + 1 == transition.job.version && now.seq == transition.job.seq);
    Ok(fits && transition.evidence == Evidence::Version)
}
