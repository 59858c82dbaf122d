//! What the edge answers when asked. Nothing here changes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::session::EdgeSession;
use super::{AttemptProgress, EdgeState};
use crate::ids::{JobId, PoolName, SessionId, WorkerId};
use crate::job::Job;
use crate::time::Timestamp;
use crate::worker::{Load, WorkerProfile};

/// A session as others may see it.
#[derive(Debug)]
pub struct SessionView {
    pub session: SessionId,
    pub profile: Arc<WorkerProfile>,
    pub busy: usize,
    pub load: Load,
    pub active_jobs: u32,
    pub heard_at: Timestamp,
    pub attached: bool,
    pub draining: bool,
}

impl EdgeState {
    pub fn views(&self) -> Vec<SessionView> {
        let view = |session: &EdgeSession| SessionView {
            session: session.id.clone(),
            profile: session.profile.clone(),
            busy: session.taken(),
            load: session.load,
            active_jobs: session.active_jobs,
            heard_at: session.heard_wall,
            attached: session.attached,
            draining: session.is_leaving(),
        };
        self.sessions.values().map(view).collect()
    }

    /// The sessions of a worker and of its groups of topics, wherever they are attached.
    pub fn sessions_of(&self, worker: &WorkerId) -> Vec<SessionId> {
        let mine = self.sessions.iter().filter(|(id, session)| is_part_of(worker, &session.profile.worker, id));
        let own = mine.map(|(id, _)| id);
        let others =
            self.elsewhere.iter().filter(|(id, stranger)| is_part_of(worker, stranger.worker(), id)).map(|(id, _)| id);
        own.chain(others.filter(|id| !self.sessions.contains_key(*id))).cloned().collect()
    }

    /// The pool of a session that is attached here.
    pub fn pool_of(&self, session: &SessionId) -> Option<PoolName> {
        self.sessions.get(session).map(|session| session.profile.pool.clone())
    }

    /// Held attempts whose start was not reported.
    pub fn unstarted(&self) -> Vec<Arc<Job>> {
        let held = self.sessions.values().flat_map(|session| session.held.values());
        held.filter(|held| held.is_unstarted()).map(|held| held.job.clone()).collect()
    }

    pub fn progress(&self, job: &Job) -> Option<AttemptProgress> {
        let binding = job.life.attempt.binding.as_ref()?;
        self.sessions.get(&binding.session)?.held.get(&job.life.attempt.token)?.progress.clone()
    }

    /// Held attempts by priority.
    pub fn held(&self) -> [u64; 4] {
        let mut counts = [0; 4];
        for held in self.sessions.values().flat_map(|session| session.held.values()) {
            counts[held.job.request.priority() as usize] += 1;
        }
        counts
    }

    /// Attempts held here of these jobs.
    pub fn held_of(&self, jobs: &BTreeSet<JobId>) -> Vec<Arc<Job>> {
        let held = self.sessions.values().flat_map(EdgeSession::stored);
        held.filter(|held| jobs.contains(&held.job.request.job_id)).map(|held| held.job.clone()).collect()
    }

    /// Everything held here.
    pub fn held_by_session(&self) -> Vec<(SessionId, Vec<Arc<Job>>)> {
        let busy = self.sessions.iter().filter(|(_, session)| !session.held.is_empty());
        busy.map(|(id, session)| (id.clone(), session.stored().map(|held| held.job.clone()).collect())).collect()
    }
}

/// Whether a session is that of a worker, or of a group of its topics: those end alike, in their names and in their ids.
fn is_part_of(worker: &WorkerId, named: &WorkerId, session: &SessionId) -> bool {
    let group = named.as_str().strip_prefix(worker.as_str());
    group.is_some_and(|group| group.is_empty() || group.starts_with('.') && session.as_str().ends_with(group))
}
