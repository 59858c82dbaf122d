//! Workers that are attached to other processes, and what is held here as other processes may have left it.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockgate_core::ids::{JobId, SessionId};
use lockgate_core::job::Job;
use lockgate_core::placement::{Away, Candidate};
use lockgate_core::worker::{Load, WorkerProfile};
use lockgate_ports::SessionRow;

use super::Edge;

impl Edge {
    /// These are all that is attached elsewhere. Nobody here sends to them; they only count when somebody asks whether a job
    /// could ever run.
    pub(crate) fn meet(&self, others: impl Iterator<Item = SessionRow>) {
        let mut state = self.state.lock();
        let mut gone = std::mem::take(&mut state.elsewhere);
        for row in others {
            // One that moved away a moment ago: its stream here has ended, or is about to.
            if state.sessions.get(&row.session).is_some_and(|own| own.epoch >= row.epoch) {
                continue;
            }
            let known = gone.remove(&row.session).filter(|known| **known == row.profile);
            let listed = known.is_some() && state.roster.get(&row.session).is_some();
            let profile = known.unwrap_or_else(|| Arc::new(row.profile));
            if !listed && !state.sessions.contains_key(&row.session) {
                state.roster.insert(row.session.clone(), stranger(&profile));
            }
            state.elsewhere.insert(row.session, profile);
        }
        for session in gone.into_keys() {
            if !state.sessions.contains_key(&session) {
                state.roster.remove(&session);
            }
        }
    }

    pub(crate) fn elsewhere(&self) -> Vec<(SessionId, Arc<WorkerProfile>)> {
        let state = self.state.lock();
        let others = state.elsewhere.iter().filter(|(session, _)| !state.sessions.contains_key(*session));
        others.map(|(session, profile)| (session.clone(), profile.clone())).collect()
    }

    /// Attempts held here of these jobs.
    pub(crate) fn held_of(&self, jobs: &BTreeSet<JobId>) -> Vec<Arc<Job>> {
        let state = self.state.lock();
        let held = state.sessions.values().flat_map(|session| session.held.values());
        held.filter(|held| jobs.contains(&held.job.request.job_id)).map(|held| held.job.clone()).collect()
    }

    /// Everything held here.
    pub(crate) fn held_by_session(&self) -> Vec<(SessionId, Vec<Arc<Job>>)> {
        let state = self.state.lock();
        let busy = state.sessions.iter().filter(|(_, session)| !session.held.is_empty());
        busy.map(|(id, session)| (id.clone(), session.held.values().map(|held| held.job.clone()).collect())).collect()
    }
}

fn stranger(profile: &Arc<WorkerProfile>) -> Candidate {
    Candidate {
        profile: profile.clone(),
        capacity: profile.slots,
        spare: 0,
        active: 0,
        load: Load::default(),
        away: Some(Away::Elsewhere),
    }
}
