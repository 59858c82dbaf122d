//! Attempts that no longer count, and places that become free.

use super::attempt::{HeldAttempt, LeavingAttempt};
use super::{EdgeEffect, EdgeState, LeftAttempt, Moment, ToWorker};
use crate::ids::{AttemptToken, SessionId};
use crate::job::Job;

impl EdgeState {
    /// Tells a worker that an attempt no longer counts. True if it was sent there: then it takes its place, and its limits, until
    /// the worker has let go of it. A process that the worker is attached to hears of it by itself; one that is attached nowhere yet
    /// comes back with the attempt, or its session ends.
    pub fn on_superseded(
        &mut self,
        id: &SessionId,
        token: &AttemptToken,
        job: &Job,
        now: Moment,
    ) -> (bool, Vec<EdgeEffect>) {
        let mut is_leaving = true;
        let out = self.change(id, None, |session, out| {
            let reason = job.life.last_error.as_ref().map_or("superseded", |failure| failure.reason.as_str());
            let (job_id, of_run) = (job.request.job_id.clone(), job.request.run.is_some());
            let stop = ToWorker::Stop { job_id: job_id.clone(), token: token.clone(), reason: reason.into() };
            session.tell(stop, out);
            let number = session.release(token, out).filter(HeldAttempt::is_told).and_then(|held| held.number());
            // A run hears that an attempt is over from its worker's word, of one that the worker never got too.
            if number.is_some() || of_run {
                let leaving = || LeavingAttempt { job_id, of_run, number: number.unwrap_or(0), since: now };
                session.leaving.entry(token.clone()).or_insert_with(leaving);
            }
            is_leaving = session.leaving.contains_key(token);
            session.dismiss_if_done(out);
        });
        (is_leaving, out)
    }

    /// A commit ended an attempt, and its worker has nothing of it: its place is free. Its limits are the committer's to free.
    pub fn on_settled(&mut self, id: &SessionId, token: &AttemptToken) -> Vec<EdgeEffect> {
        let mut out = Vec::new();
        self.free_places(id, std::slice::from_ref(token), &mut out);
        out
    }

    /// Attempts are over, and no worker has anything of them.
    pub fn on_over(&mut self, id: &SessionId, tokens: &[AttemptToken]) -> Vec<EdgeEffect> {
        self.on_committed(id, tokens, Vec::new())
    }

    /// Those whose limits are not freed yet.
    pub(super) fn free_places(
        &mut self,
        id: &SessionId,
        tokens: &[AttemptToken],
        out: &mut Vec<EdgeEffect>,
    ) -> Vec<AttemptToken> {
        let (mut freed, mut limits) = (false, Vec::new());
        let changed = self.change(id, None, |session, out| {
            for token in tokens {
                freed |= session.release(token, out).is_some();
                if session.leaving.remove(token).is_some() {
                    freed = true;
                    limits.push(token.clone());
                }
            }
            session.dismiss_if_done(out);
        });
        out.extend(changed);
        if freed {
            out.push(EdgeEffect::WakeDispatch);
        }
        limits
    }

    /// Those of these attempts that the session is letting go of.
    pub fn letting_go(&self, id: &SessionId, tokens: &[AttemptToken]) -> Vec<LeftAttempt> {
        let Some(session) = self.sessions.get(id) else { return Vec::new() };
        tokens.iter().filter_map(|token| session.leaving.get_key_value(token)).map(LeftAttempt::of).collect()
    }
}
