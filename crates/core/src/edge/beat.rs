//! A worker speaks: that it is there, what it holds, how it fares.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{AttemptProgress, Beat, EdgeEffect, EdgeState, FromWorker, Moment, ToWorker};
use crate::ids::{AttemptToken, SessionId};
use crate::job::Job;
use crate::time::Timestamp;

impl EdgeState {
    /// A message of a worker begins to be taken: it was heard, it may be draining, and attempts began. None, and nothing of it counts,
    /// if it came on the stream of another epoch.
    pub fn on_message(
        &mut self,
        id: &SessionId,
        epoch: u64,
        message: &FromWorker,
        now: Moment,
        wall: Timestamp,
    ) -> Option<Vec<EdgeEffect>> {
        let session = self.sessions.get_mut(id).filter(|session| session.epoch == epoch)?;
        let mut out = Vec::new();
        if message.draining {
            session.drain(&mut out);
        }
        (session.heard_at, session.heard_wall) = (now, wall);
        self.touch(id, &mut out);
        self.note_starts(id, message.starts.iter().map(|(_, token)| token), now, wall, &mut out);
        Some(out)
    }

    /// The worker spoke. Said again after a long wait for the Store, in which its next words could not be heard. Whether it is here
    /// under this epoch.
    pub fn on_heard(&mut self, id: &SessionId, epoch: u64, now: Moment, wall: Timestamp) -> bool {
        let session = self.sessions.get_mut(id).filter(|session| session.epoch == epoch);
        session.is_some_and(|session| {
            (session.heard_at, session.heard_wall) = (now, wall);
            true
        })
    }

    /// The inventory rule: an attempt that was sent, must have arrived and is not there is lost, or was let go of if it had to stop.
    pub fn on_beat(&mut self, id: &SessionId, epoch: u64, beat: Beat, now: Moment, wall: Timestamp) -> Vec<EdgeEffect> {
        let mut out = Vec::new();
        let begun = beat.inventory.iter().filter(|item| item.started).map(|item| &item.token);
        self.note_starts(id, begun, now, wall, &mut out);
        let inventory: BTreeSet<AttemptToken> = beat.inventory.into_iter().map(|item| item.token).collect();
        let patience = self.rules.lost_after;
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.epoch == epoch) else { return out };
        (session.load, session.active_jobs) = (beat.load, beat.active_jobs);
        let before = session.profile.slots;
        if let Some(slots) = beat.slots.filter(|slots| session.resize(*slots)) {
            out.extend([EdgeEffect::Resized { grown: slots > before }, EdgeEffect::WakeDispatch]);
        }
        let missing =
            session.held.values().filter(|held| held.is_missing(beat.highest_assignment, |it| inventory.contains(it)));
        let lost: Vec<Arc<Job>> = missing.map(|held| held.job.clone()).collect();
        let let_go = session.let_go(beat.highest_assignment, &inventory, patience, now);
        session.say_again(&mut out);
        self.touch(id, &mut out);
        if !let_go.is_empty() {
            out.push(EdgeEffect::LetGo { session: id.clone(), tokens: let_go });
        }
        if !lost.is_empty() {
            out.push(EdgeEffect::Lose { session: id.clone(), epoch, jobs: lost });
        }
        out.push(EdgeEffect::AckBeat { session: id.clone(), epoch, number: beat.number });
        out
    }

    /// What followed from a beat is done, or will be with the next one: the worker hears that it was heard.
    pub fn on_beat_done(&mut self, id: &SessionId, epoch: u64, number: u64, now: Moment) -> Vec<EdgeEffect> {
        let lease_age = self.rules.lease.map(|_| now.since(self.renewed_at)).unwrap_or_default();
        self.change(id, Some(epoch), |session, out| session.tell(ToWorker::BeatAck { number, lease_age }, out))
    }

    /// The worker says that it has nothing of these any more. Counts for what it was told to stop: of all else it must say how it
    /// ended.
    pub fn on_let_go(&mut self, id: &SessionId, epoch: u64, tokens: Vec<AttemptToken>) -> Vec<EdgeEffect> {
        let session = self.sessions.get(id).filter(|session| session.epoch == epoch);
        let Some(session) = session else { return Vec::new() };
        let tokens: Vec<_> = tokens.into_iter().filter(|token| session.leaving.contains_key(token)).collect();
        if tokens.is_empty() { Vec::new() } else { vec![EdgeEffect::LetGo { session: id.clone(), tokens }] }
    }

    /// How far attempts have come, in their handlers' words.
    pub fn on_progress(
        &mut self,
        id: &SessionId,
        epoch: u64,
        reports: Vec<(AttemptToken, AttemptProgress)>,
    ) -> Vec<EdgeEffect> {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.epoch == epoch) else { return Vec::new() };
        let mut jobs = Vec::new();
        for (token, progress) in reports {
            if let Some(held) = session.held.get_mut(&token) {
                held.progress = Some(progress);
                jobs.push(held.job.request.job_id.clone());
            }
        }
        if jobs.is_empty() { Vec::new() } else { vec![EdgeEffect::RingJobs(jobs)] }
    }

    /// The jobs of attempts that the session holds.
    pub fn held_jobs<'t>(
        &self,
        id: &SessionId,
        epoch: u64,
        tokens: impl Iterator<Item = &'t AttemptToken>,
    ) -> Vec<Option<Arc<Job>>> {
        let session = self.sessions.get(id).filter(|session| session.epoch == epoch);
        tokens.map(|token| Some(session?.held.get(token)?.job.clone())).collect()
    }
}
