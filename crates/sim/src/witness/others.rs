//! Checks all other writes: steps of runs, turns of schedules, sessions, configuration.

use std::time::Duration;

use lockgate_core::ids::{EdgeId, JobSeq, SessionId};
use lockgate_core::worker::WorkerProfile;
use lockgate_ports::{
    Activation, AttachedSession, EdgeRow, JobStore as _, Outdated, RunChange, RunRefusal, ScheduleChange, ScheduleStore,
    Sessions, StoreError, TurnConflict, Unattached,
};

use super::{EdgeLease, SessionBook, Witness};

impl Witness {
    pub(crate) async fn advance(&self, changes: Vec<RunChange>) -> Result<Vec<Result<Vec<JobSeq>, RunRefusal>>, StoreError> {
        let asked = changes.clone();
        let answers = self.planted.advance(&self.disk, changes).await?;
        let now = self.clock.now();
        let mut books = self.books.lock();
        for (change, _) in asked.iter().zip(&answers).filter(|(_, answer)| answer.is_ok()) {
            let (id, version) = (&change.head.id, change.head.version);
            let before = books.runs.insert(id.clone(), version).unwrap_or(0);
            books.require(version == before + 1, "R-1 each version of a run is followed by one step", || {
                format!("{id}: {version} after {before}")
            });
            books.follow_run(change, now);
            for birth in &change.jobs {
                books.note(birth, now);
            }
            if id.is_saga() {
                books.follow_saga(change);
            }
        }
        for change in asked.iter().zip(&answers).filter_map(|(change, answer)| answer.is_ok().then_some(change)) {
            for birth in &change.jobs {
                let Some(part) = &birth.job.request.run else { continue };
                let key = (part.run.clone(), part.node, part.item, part.round, part.undo);
                let id = &birth.job.request.job_id;
                let first = books.parts.entry(key.clone()).or_insert_with(|| id.clone()).clone();
                books.require(first == *id, "R-7 a part of a run is one job", || format!("{key:?}: {first} and {id}"));
            }
        }
        Ok(answers)
    }

    pub(crate) async fn turn(&self, changes: Vec<ScheduleChange>) -> Result<Vec<Result<(), TurnConflict>>, StoreError> {
        let asked = changes.clone();
        let answers = self.disk.turn(self.planted.turns(&self.disk, changes).await).await?;
        let mut books = self.books.lock();
        for (change, _) in asked.iter().zip(&answers).filter(|(_, answer)| answer.is_ok()) {
            let (tenant, name) = (&change.schedule.tenant, &change.schedule.name);
            let version = change.schedule.version;
            let before = books.schedules.insert((tenant.clone(), name.clone()), version).unwrap_or(0);
            books.require(version == before + 1, "T-1 each version of a schedule is followed by one turn", || {
                format!("{name}: {version} after {before}")
            });
            for slot in &change.fresh {
                let new = books.slots.insert((tenant.clone(), name.clone(), slot.key.clone()));
                books.require(new, "T-2 a time is decided once", || format!("{name}: {:?}", slot.key));
            }
        }
        Ok(answers)
    }

    pub(crate) async fn renew_edge(&self, edge: &EdgeId, ttl: Duration) -> Result<bool, StoreError> {
        let renewed = self.disk.renew_edge(edge, ttl).await?;
        if renewed {
            let now = self.clock.now();
            self.books.lock().edges.insert(edge.clone(), EdgeLease { renewed_at: now, ends_at: now + ttl });
        }
        Ok(renewed)
    }

    pub(crate) async fn close_edges(&self, seen: &[EdgeRow], grace: Duration) -> Result<Vec<EdgeId>, StoreError> {
        let closed = self.disk.close_edges(seen, self.planted.grace(grace)).await?;
        let now = self.clock.now();
        let mut books = self.books.lock();
        for edge in &closed {
            let expired = books.edges.get(edge).is_none_or(|lease| lease.ends_at + grace <= now);
            books.require(expired, "S-1 an edge is closed when its lease is long over", || edge.to_string());
        }
        Ok(closed)
    }

    pub(crate) async fn attach(
        &self,
        id: &SessionId,
        edge: &EdgeId,
        profile: &WorkerProfile,
    ) -> Result<Result<AttachedSession, Unattached>, StoreError> {
        let attached = match self.planted.attach(&self.disk, id, edge, profile).await? {
            Ok(attached) => attached,
            Err(refused) => return Ok(Err(refused)),
        };
        let epoch = attached.epoch;
        let mut books = self.books.lock();
        let before = books.sessions.get(id).map_or(0, |session| session.epoch);
        books.require(epoch > before, "S-1 epochs grow", || format!("{id}: {epoch} after {before}"));
        books.sessions.insert(id.clone(), SessionBook::new(epoch, edge.clone(), profile, self.clock.now()));
        Ok(Ok(attached))
    }

    /// A worker's message reaches the process with edge `by`, if it has one. It counts only if that edge holds the session:
    /// a late attach may have named another edge, which hears nothing of this message.
    pub(crate) fn hear(&self, id: &SessionId, by: Option<&EdgeId>, drains: bool) {
        let now = self.clock.now();
        let mut books = self.books.lock();
        let session = books.sessions.get_mut(id).filter(|session| by == Some(&session.edge));
        if let Some(session) = session {
            (session.silent, session.heard_at) = (session.longest_silence(now), now);
            session.drains |= drains;
        }
    }

    /// Closed by a process with edge `by`, if it has one.
    pub(crate) async fn close_session(&self, id: &SessionId, epoch: u64, by: Option<EdgeId>) -> Result<bool, StoreError> {
        let held = self.disk.held(id).await?.len();
        let closed = self.planted.close_session(&self.disk, id, epoch).await?;
        let mut books = self.books.lock();
        if closed {
            let known = books.sessions.get(id).is_some_and(|session| session.epoch == epoch && session.open);
            books.require(known, "S-1 only the epoch that was looked at is closed", || format!("{id} {epoch}"));
            let now = self.clock.now();
            // The process that holds a session knows its silence; others know only when its edge was last heard.
            let early = books.sessions.get(id).is_some_and(|session| {
                if by.as_ref() == Some(&session.edge) {
                    // A worker that drained and holds nothing leaves without another message.
                    let left = session.drains && held == 0;
                    return !left && session.longest_silence(now) < session.promised;
                }
                let lease = books.edges.get(&session.edge);
                lease.is_some_and(|lease| now < lease.renewed_at + session.promised)
            });
            books.require(!early, "A-10 silence is borne for as long as was promised", || format!("{id} {epoch}"));
            if let Some(session) = books.sessions.get_mut(id) {
                session.open = false;
            }
        }
        Ok(closed)
    }

    pub(crate) async fn activate(&self, change: Activation) -> Result<Result<u64, Outdated>, StoreError> {
        let (kind, id, expected) = (change.kind, change.id.clone(), change.expected);
        let answer = self.planted.activate(&self.disk, change).await?;
        if let Ok(version) = answer {
            let mut books = self.books.lock();
            let before = books.in_force.insert(kind, (version, id)).map_or(0, |(version, _)| version);
            let follows = expected == before && version == before + 1;
            books.require(follows, "S-7 each version of a configuration is followed by one", || {
                format!("{kind:?}: {version} after {before}, {expected} was expected")
            });
        }
        Ok(answer)
    }
}
