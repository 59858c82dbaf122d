//! Start reports, until they are durable. Most results come first, and then there is nothing to store.

use std::sync::Arc;

use super::attempt::HeldPhase;
use super::{EdgeEffect, EdgeState, Moment};
use crate::ids::{AttemptToken, SessionId};
use crate::job::{Job, JobState};
use crate::time::Timestamp;

impl EdgeState {
    /// Remembers start reports until they are stored or overtaken by the results. Says which are new.
    pub(super) fn note_starts<'t>(
        &mut self,
        id: &SessionId,
        tokens: impl Iterator<Item = &'t AttemptToken>,
        now: Moment,
        wall: Timestamp,
        out: &mut Vec<EdgeEffect>,
    ) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        for token in tokens {
            let Some(held) = session.held.get_mut(token).filter(|held| held.is_unstarted()) else { continue };
            if let Some(number) = held.number().filter(|_| held.is_unsent()) {
                // It arrived after all.
                session.unsent.remove(&number);
            }
            held.phase = HeldPhase::Begun { at: wall, since: now };
            self.starts.push((id.clone(), token.clone()));
            out.push(EdgeEffect::Started { job: held.job.clone(), at: wall });
        }
        session.send_ready(out);
    }

    /// Starts whose attempts are still held and not durable. They are the caller's to store, or to put back.
    pub fn take_starts(&mut self) -> Vec<(Arc<Job>, Timestamp)> {
        let held = |(id, token): (SessionId, AttemptToken)| {
            let held = self.sessions.get(&id)?.held.get(&token)?;
            Some((held.job.clone(), held.started()?))
        };
        let starts = std::mem::take(&mut self.starts).into_iter().filter_map(held);
        starts.filter(|(job, _)| job.state() == JobState::Dispatched).collect()
    }

    /// Starts that could not be stored: tried again with the next flush.
    pub fn put_starts_back<'j>(&mut self, jobs: impl Iterator<Item = &'j Job>) {
        let start = |job: &Job| Some((job.life.attempt.binding.as_ref()?.session.clone(), job.life.attempt.token.clone()));
        self.starts.extend(jobs.filter_map(start));
    }

    /// Replaces what is known of a held job after a commit.
    pub fn on_started(&mut self, job: &Arc<Job>) {
        let Some(binding) = &job.life.attempt.binding else { return };
        let session = self.sessions.get_mut(&binding.session);
        if let Some(held) = session.and_then(|session| session.held.get_mut(&job.life.attempt.token)) {
            held.job = job.clone();
        }
    }
}
