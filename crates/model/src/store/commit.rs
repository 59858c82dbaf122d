//! Applies changes one after the other, each completely or not at all.

use std::collections::BTreeSet;
use std::time::Duration;

use lockgate_core::ids::{JobId, JobSeq, SessionId};
use lockgate_core::job::{DeadLetter, Evidence, JobState, Transition};
use lockgate_core::pools::RoutingId;
use lockgate_core::request::JobRequest;
use lockgate_core::time::Timestamp;

use super::data::{Data, JobRow, KeyRow, NewsSource, REFUSED, StoredSession};
use lockgate_ports::store::SnapshotKind;
use lockgate_ports::store::{ChangeError, DuplicateJob, JobChange, KEY_LIFE, MemoKey, OutboxEntry, OutboxRow};

/// The state of the call that is being committed.
struct ModelCommit {
    now: Timestamp,
    /// The last sequence number assigned before the call.
    last_seq: i64,
    refused: BTreeSet<JobId>,
}

impl Data {
    pub(super) fn commit(&mut self, changes: Vec<JobChange>, now: Timestamp) -> Vec<Result<JobSeq, ChangeError>> {
        let mut call = ModelCommit { now, last_seq: self.last_seq, refused: BTreeSet::new() };
        let one = |change: JobChange| {
            let id = change.transition.job.request.job_id.clone();
            let result = self.apply(change, &call);
            if result.is_err() {
                call.refused.insert(id);
            }
            result
        };
        changes.into_iter().map(one).collect()
    }

    fn apply(&mut self, change: JobChange, call: &ModelCommit) -> Result<JobSeq, ChangeError> {
        let JobChange { mut transition, outbox } = change;
        let now = call.now;
        if !self.proves(&transition.evidence, now) {
            return Err(ChangeError::Conflict);
        }
        let id = transition.job.request.job_id.clone();
        let drops_letter = transition.drops_letter();
        let letter = transition.dead_letter.take();
        let audit = transition.audit();
        let told = transition.job.request.run.as_ref().filter(|_| transition.tells_its_run());
        let told = told.map(|part| part.run.clone());
        let tenant = &transition.job.request.tenant;
        let memo = transition
            .memoises()
            .map(|(key, for_ms)| (MemoKey { tenant: tenant.clone(), key: key.into() }, now + Duration::from_millis(for_ms)));
        let seq = if transition.job.version == 1 { self.insert(transition, now)? } else { self.replace(transition, call)? };
        // J-4: a job that stays dead keeps its letter, unless an operator discards it.
        if drops_letter {
            self.letters.retain(|_, (of, _)| *of != seq);
        }
        if let Some(letter) = letter {
            self.keep_letter(seq, letter);
        }
        self.keep_audit(audit);
        for entry in outbox {
            self.keep_outbox(id.clone(), entry, now);
        }
        if let Some((key, until)) = memo {
            self.memos.insert(key, (seq, until));
        }
        // in the commit of the end itself.
        if let Some(run) = told {
            self.tell(run, NewsSource::Job(seq), now);
        }
        Ok(seq)
    }

    pub(super) fn proves(&self, evidence: &Evidence, now: Timestamp) -> bool {
        let with_epoch = |session: &SessionId, epoch: u64| self.sessions.get(session).filter(|row| row.epoch == epoch);
        let closed = |row: &StoredSession| row.closed_at.is_some();
        let attached = |session, epoch| with_epoch(session, epoch).is_some_and(|row| !closed(row));
        match evidence {
            Evidence::Version => true,
            Evidence::Reached(at) => *at <= now,
            Evidence::Attached { session, epoch } => attached(session, *epoch),
            Evidence::Allowed { session, epoch, policy, routing } => {
                attached(session, *epoch) && **policy == *self.in_force(SnapshotKind::Policy) && self.routes(routing)
            }
            Evidence::InForce(policy) => **policy == *self.in_force(SnapshotKind::Policy),
            Evidence::Routed(routing) => self.routes(routing),
            Evidence::Unchanged { job, version } => {
                self.row(job).is_some_and(|row| row.job.version == *version && !row.job.state().is_terminal())
            }
            Evidence::Closed { session, epoch } => with_epoch(session, *epoch).is_some_and(closed),
        }
    }

    fn routes(&self, routing: &RoutingId) -> bool {
        *routing.pools == *self.in_force(SnapshotKind::Pools) && *routing.states == *self.in_force(SnapshotKind::PoolStates)
    }

    fn in_force(&self, kind: SnapshotKind) -> &str {
        self.active(kind).map_or_else(|| kind.builtin(), |active| &*active.id)
    }

    fn insert(&mut self, transition: Transition, now: Timestamp) -> Result<JobSeq, ChangeError> {
        let request = transition.job.request.clone();
        let key = request.idempotency_key.clone().map(|key| (request.tenant.clone(), key));
        if let Some((owner, by_key)) = self.in_the_way(&request, now) {
            return Err(self
                .owner(owner, by_key)
                .map_or(ChangeError::Conflict, |taken| ChangeError::Taken(Box::new(taken))));
        }
        self.takes(&request.job_id)?;
        self.last_seq += 1;
        let seq = JobSeq(self.last_seq);
        if let Some(key) = key {
            self.keys.insert(key, KeyRow { seq, free_at: now + KEY_LIFE });
        }
        self.ids.insert(request.job_id.clone(), seq);
        self.tenants.insert(request.tenant.clone());
        let mut job = transition.job;
        job.seq = seq;
        let delayed = job.state() == JobState::Scheduled && job.life.due_at > now;
        self.jobs.insert(seq, JobRow { job, events: transition.events, result: transition.result, delayed });
        Ok(seq)
    }

    /// The job that has the key (true) or the id (false) of a new one.
    pub(super) fn in_the_way(&self, request: &JobRequest, now: Timestamp) -> Option<(JobSeq, bool)> {
        let key = request.idempotency_key.clone().map(|key| (request.tenant.clone(), key));
        let by_key = key.and_then(|key| self.keys.get(&key)).filter(|taken| taken.free_at > now);
        let by_id = || self.ids.get(&request.job_id).map(|seq| (*seq, false));
        by_key.map(|taken| (taken.seq, true)).or_else(by_id)
    }

    fn replace(&mut self, transition: Transition, call: &ModelCommit) -> Result<JobSeq, ChangeError> {
        let id = &transition.job.request.job_id;
        let seq = *self.ids.get(id).ok_or(ChangeError::Conflict)?;
        let unnumbered = transition.job.seq == JobSeq::default();
        if call.refused.contains(id) || (unnumbered && seq.0 <= call.last_seq) {
            return Err(ChangeError::Conflict);
        }
        if self.jobs.get(&seq).is_none_or(|row| row.job.version + 1 != transition.job.version) {
            return Err(ChangeError::Conflict);
        }
        self.takes(id)?;
        let row = self.jobs.get_mut(&seq).ok_or(ChangeError::Conflict)?;
        // S-8: a new life has no result of the one before.
        let before = row.result.take().filter(|_| row.job.life.no == transition.job.life.no);
        row.job.version = transition.job.version;
        row.job.life = transition.job.life;
        row.events.extend(transition.events);
        row.delayed = row.job.state() == JobState::Scheduled && row.job.life.due_at > call.now;
        if row.job.state().is_terminal() || row.job.in_output_check() {
            row.result = transition.result.or(before);
        }
        Ok(seq)
    }

    fn takes(&mut self, id: &JobId) -> Result<(), ChangeError> {
        if !self.refused.contains(id) {
            return Ok(());
        }
        self.refusals += 1;
        Err(ChangeError::Refused(REFUSED.to_owned()))
    }

    pub(super) fn taken(&self, request: &JobRequest, now: Timestamp) -> Option<DuplicateJob> {
        self.in_the_way(request, now).and_then(|(owner, by_key)| self.owner(owner, by_key))
    }

    fn owner(&self, seq: JobSeq, by_key: bool) -> Option<DuplicateJob> {
        self.jobs.get(&seq).map(|row| DuplicateJob {
            job_id: row.job.request.job_id.clone(),
            tenant: row.job.request.tenant.clone(),
            hash: row.job.hash,
            state: row.job.state(),
            by_key,
        })
    }

    fn keep_letter(&mut self, seq: JobSeq, letter: DeadLetter) {
        self.last_letter += 1;
        self.letters.insert(self.last_letter, (seq, letter));
    }

    fn keep_outbox(&mut self, job_id: JobId, entry: OutboxEntry, at: Timestamp) {
        self.last_outbox += 1;
        self.outbox.insert(self.last_outbox, OutboxRow { id: self.last_outbox, job_id, at, entry });
    }
}
