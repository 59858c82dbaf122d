//! One session, and what the roster is told of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, SessionId};
use lockgate_core::limits::SLOTS_MAX;
use lockgate_core::placement::{Candidate, Unavailable};

use super::sessions::{EdgeSession, EdgeState, HeldAttempt, LeavingAttempt};
use super::ToWorker;

impl EdgeState {
    /// Tells the roster what became of a session.
    pub(super) fn touch(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get(id) else { return };
        if session.taken() > session.profile.slots as usize {
            self.ahead.insert(id.clone());
        } else {
            self.ahead.remove(id);
        }
        let now = session.candidate();
        match self.roster.get(id) {
            Some(known) if known.same_room(&now) => return,
            Some(_) => self.roster.change(id, |known| *known = now),
            None => self.roster.insert(id.clone(), now),
        }
        if self.has_neighbours && self.roster.is_compared(id) {
            self.tell_of(id);
        }
    }
}

impl EdgeSession {
    fn candidate(&self) -> Candidate {
        let away = match (self.is_attached(), self.draining) {
            (false, _) => Some(Unavailable::Detached),
            (true, true) => Some(Unavailable::Draining),
            (true, false) => None,
        };
        Candidate {
            profile: self.profile.clone(),
            capacity: self.profile.slots,
            spare: self.prefetch,
            active: u32::try_from(self.taken()).unwrap_or(u32::MAX),
            load: self.load,
            away,
        }
    }

    /// The worker says how many jobs it runs at once from now on. Whether that changed anything.
    pub(super) fn resize(&mut self, slots: u32) -> bool {
        if slots == self.profile.slots || !(1..=SLOTS_MAX).contains(&slots) {
            return false;
        }
        Arc::make_mut(&mut self.profile).slots = slots;
        true
    }

    /// Places in use.
    pub(super) fn taken(&self) -> usize {
        self.held.len() + self.leaving.len()
    }

    /// Attempts on their way out that a beat does not name although they must have arrived: its worker has let go of them.
    /// One that came with its own end never arrives as far as numbers tell; after `patience` it is gone all the same.
    pub(super) fn let_go(&self, highest: u64, inventory: &BTreeSet<AttemptToken>, patience: Duration) -> Vec<AttemptToken> {
        let gone = |(token, leaving): &(&AttemptToken, &LeavingAttempt)| {
            let arrived = leaving.number <= highest || leaving.since.elapsed() > patience;
            arrived && !inventory.contains(*token)
        };
        self.leaving.iter().filter(gone).map(|(token, _)| token.clone()).collect()
    }

    /// Messages may be lost where there is no stream: what its worker should have heard is said with every beat.
    pub(super) fn say_again(&mut self) {
        if self.profile.lost_after_ms.is_none() {
            return;
        }
        for (token, leaving) in &self.leaving {
            let reason = "the attempt no longer counts".into();
            self.outbound.tell(ToWorker::Stop { job_id: leaving.job_id.clone(), token: token.clone(), reason });
        }
        if self.sent_away {
            self.outbound.tell(ToWorker::Drain);
        }
    }

    pub(super) fn is_attached(&self) -> bool {
        self.outbound.is_open()
    }

    /// Tells the worker to leave. Said again when the same session attaches anew, for it may not have heard.
    pub(super) fn send_away(&mut self) {
        self.sent_away = true;
        self.outbound.tell(ToWorker::Drain);
        self.drain();
    }

    pub(super) fn drain(&mut self) {
        self.draining = true;
        self.dismiss_if_done();
    }

    /// Its worker drains and has nothing left. If its stream ends now, it has left. A worker that was sent away and has not
    /// answered may come back without knowing of it, and must find its session.
    pub(super) fn is_through(&self) -> bool {
        self.says_it_drains && self.held.is_empty() && self.leaving.is_empty()
    }

    /// What it holds by the Store.
    pub(super) fn stored(&self) -> impl Iterator<Item = &HeldAttempt> {
        self.held.values().filter(|held| held.stored)
    }

    /// Places are taken before an assignment is on its way and freed after its end, so an empty session has nothing to
    /// come. Said anew whenever it becomes so: a worker that leaves twice leaves once.
    pub(super) fn dismiss_if_done(&mut self) {
        if self.draining && self.held.is_empty() {
            // A closed stream means that the worker attaches again, and says again that it is draining.
            self.outbound.tell(ToWorker::Dismissed);
        }
    }
}
