//! One session: its stream, its places, and how it leaves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::attempt::{HeldAttempt, HeldPhase, LeavingAttempt};
use super::results::ReportedBatch;
use super::{Assignment, EdgeEffect, Moment, ToWorker};
use crate::ids::{AttemptToken, SessionId};
use crate::limits::SLOTS_MAX;
use crate::placement::{Candidate, Unavailable};
use crate::time::Timestamp;
use crate::worker::{Load, WorkerProfile};

/// Said of an attempt that its worker came with and that the Store does not know.
pub(super) const NO_LONGER_COUNTS: &str = "the attempt no longer counts";

/// A session that is attached here, or was until its stream ended.
#[derive(Debug)]
pub(super) struct EdgeSession {
    pub(super) id: SessionId,
    pub(super) epoch: u64,
    pub(super) profile: Arc<WorkerProfile>,
    /// Jobs it may hold beyond its slots.
    pub(super) prefetch: u32,
    /// It has a stream that takes messages.
    pub(super) attached: bool,
    pub(super) leave: Departure,
    pub(super) heard_at: Moment,
    pub(super) heard_wall: Timestamp,
    pub(super) held: BTreeMap<AttemptToken, HeldAttempt>,
    /// They take places, and whatever limits they took, until the worker has let go of them. None of them is held, too.
    pub(super) leaving: BTreeMap<AttemptToken, LeavingAttempt>,
    /// Held attempts that are not sent, by their assignments: they are sent in this order.
    pub(super) unsent: BTreeMap<u64, AttemptToken>,
    /// Results that are not acknowledged, oldest first.
    pub(super) reported: VecDeque<ReportedBatch>,
    pub(super) last_batch: u64,
    pub(super) last_assignment: u64,
    /// What it measured of its machine.
    pub(super) load: Load,
    /// Slots in use by its own count.
    pub(super) active_jobs: u32,
}

/// Whether a session is to leave, and who knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    Staying,
    /// An operator wants it to leave. Its worker may not have heard of it yet.
    Asked,
    /// Its worker said that it drains, perhaps because it was `asked` to.
    Draining {
        asked: bool,
    },
}

impl EdgeSession {
    pub(super) fn tell(&self, message: ToWorker, out: &mut Vec<EdgeEffect>) {
        // A message that has no stream is no loss: the worker attaches anew, and what it holds is compared then.
        if self.attached {
            out.push(EdgeEffect::Tell { session: self.id.clone(), message });
        }
    }

    pub(super) fn end_stream(&mut self, out: &mut Vec<EdgeEffect>) {
        self.attached = false;
        out.push(EdgeEffect::CloseStream { session: self.id.clone() });
    }

    /// As the roster knows it.
    pub(super) fn candidate(&self) -> Candidate {
        let away = match (self.attached, self.is_leaving()) {
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

    /// What it holds by the Store.
    pub(super) fn stored(&self) -> impl Iterator<Item = &HeldAttempt> {
        self.held.values().filter(|held| held.is_stored())
    }

    pub(super) fn hold(&mut self, attempt: HeldAttempt) {
        let token = attempt.job.life.attempt.token.clone();
        debug_assert!(!self.leaving.contains_key(&token), "an attempt that no longer counts is dispatched");
        if let Some(number) = attempt.number().filter(|_| attempt.is_unsent()) {
            self.unsent.insert(number, token.clone());
        }
        self.held.insert(token, attempt);
    }

    /// Gives up a place. What waited for it to be sent first goes out.
    pub(super) fn release(&mut self, token: &AttemptToken, out: &mut Vec<EdgeEffect>) -> Option<HeldAttempt> {
        let held = self.held.remove(token)?;
        if let Some(number) = held.number().filter(|number| self.unsent.get(number) == Some(token)) {
            self.unsent.remove(&number);
            self.send_ready(out);
        }
        Some(held)
    }

    /// sends what is ready, strictly in the order of assignment numbers. The inventory rule rests on it: a worker that has taken an
    /// assignment and does not have one with a smaller number has lost that one.
    pub(super) fn send_ready(&mut self, out: &mut Vec<EdgeEffect>) {
        // Without a stream nothing is sent, so nothing is on its way: the worker gets it when it attaches again.
        if !self.attached {
            return;
        }
        let mut batch = Vec::new();
        while let Some(first) = self.unsent.first_entry() {
            let Some(held) = self.held.get_mut(first.get()) else { break };
            let HeldPhase::Ready { trace } = &held.phase else { break };
            batch.push(Assignment::of(&held.job, *trace));
            held.phase = HeldPhase::Sent { asked_back: false };
            first.remove();
        }
        if !batch.is_empty() {
            self.tell(ToWorker::Assign(batch), out);
        }
    }

    /// Attempts on their way out that a beat does not name although they must have arrived: its worker has let go of them.
    /// One that came with its own end never arrives as far as numbers tell; after `patience` it is gone all the same.
    pub(super) fn let_go(
        &self,
        highest: u64,
        inventory: &BTreeSet<AttemptToken>,
        patience: Duration,
        now: Moment,
    ) -> Vec<AttemptToken> {
        let gone = |(token, leaving): &(&AttemptToken, &LeavingAttempt)| {
            let arrived = leaving.number <= highest || now.since(leaving.since) > patience;
            arrived && !inventory.contains(*token)
        };
        self.leaving.iter().filter(gone).map(|(token, _)| token.clone()).collect()
    }

    /// Messages may be lost where there is no stream: what its worker should have heard is said with every beat.
    pub(super) fn say_again(&self, out: &mut Vec<EdgeEffect>) {
        if self.profile.lost_after_ms.is_none() {
            return;
        }
        for (token, leaving) in &self.leaving {
            let (job_id, token, reason) = (leaving.job_id.clone(), token.clone(), NO_LONGER_COUNTS.into());
            self.tell(ToWorker::Stop { job_id, token, reason }, out);
        }
        if self.was_sent_away() {
            self.tell(ToWorker::Drain, out);
        }
    }

    /// It gets nothing more.
    pub(super) fn is_leaving(&self) -> bool {
        self.leave != Departure::Staying
    }

    /// An operator wants it to leave.
    pub(super) fn was_sent_away(&self) -> bool {
        matches!(self.leave, Departure::Asked | Departure::Draining { asked: true })
    }

    /// Tells the worker to leave. Said again when the same session attaches anew, for it may not have heard.
    pub(super) fn send_away(&mut self, out: &mut Vec<EdgeEffect>) {
        self.leave = match self.leave {
            Departure::Staying | Departure::Asked => Departure::Asked,
            Departure::Draining { .. } => Departure::Draining { asked: true },
        };
        self.tell(ToWorker::Drain, out);
        self.dismiss_if_done(out);
    }

    /// Its worker says that it drains.
    pub(super) fn drain(&mut self, out: &mut Vec<EdgeEffect>) {
        self.leave = Departure::Draining { asked: self.was_sent_away() };
        self.dismiss_if_done(out);
    }

    /// Its worker drains and has nothing left. If its stream ends now, it has left. A worker that was sent away and has not
    /// answered may come back without knowing of it, and must find its session.
    pub(super) fn is_through(&self) -> bool {
        matches!(self.leave, Departure::Draining { .. }) && self.held.is_empty() && self.leaving.is_empty()
    }

    /// Places are taken before an assignment is on its way and freed after its end, so an empty session has nothing to
    /// come. Said anew whenever it becomes so: a worker that leaves twice leaves once.
    pub(super) fn dismiss_if_done(&self, out: &mut Vec<EdgeEffect>) {
        if self.is_leaving() && self.held.is_empty() {
            self.tell(ToWorker::Dismissed, out);
        }
    }
}
