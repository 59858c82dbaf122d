//! Time passes: workers that are silent, attempts that are late, a lease that is not renewed.

use std::sync::Arc;

use super::attempt::{HeldAttempt, HeldSince};
use super::session::EdgeSession;
use super::{Departed, EdgeEffect, EdgeState, Moment};
use crate::ids::{EdgeId, SessionId};
use crate::job::{Binding, Job, JobState};
use crate::time::Timestamp;

impl EdgeState {
    /// The lease was renewed by a call that began then.
    pub fn on_renewed(&mut self, at: Moment) {
        self.renewed_at = at;
    }

    /// Whether others may call this process dead by now, and have or will have what it holds.
    pub fn may_be_closed(&self, now: Moment) -> bool {
        self.rules.lease.is_some_and(|lease| now.since(self.renewed_at) > lease)
    }

    /// Another process closed this edge: every session must attach anew, under a new edge.
    pub fn on_lease_lost(&mut self, id: EdgeId) -> Vec<EdgeEffect> {
        self.id = id;
        self.ahead.clear();
        self.starts.clear();
        let mut out = Vec::new();
        for session in std::mem::take(&mut self.sessions).into_keys() {
            self.roster.remove(&session);
            out.push(EdgeEffect::CloseStream { session });
        }
        out
    }

    /// No worker could be heard for a while, so none was silent.
    pub fn on_standstill(&mut self, now: Moment) {
        for session in self.sessions.values_mut() {
            session.heard_at = now;
        }
    }

    /// Workers that are spoken with by messages could not be heard for a while.
    pub fn on_deaf(&mut self, now: Moment) {
        for session in self.sessions.values_mut().filter(|session| session.profile.lost_after_ms.is_some()) {
            session.heard_at = now;
        }
    }

    /// Sessions whose workers are gone, as [`EdgeEffect::Close`]: those that left, and those of which nothing was heard for too long.
    /// They come again with the next tick until they are closed.
    pub fn on_tick(&self, now: Moment) -> Vec<EdgeEffect> {
        let gone = |(id, session): (&SessionId, &EdgeSession)| {
            let is_silent = now.since(session.heard_at) > session.profile.lost_after(self.rules.lost_after);
            let how = match session.is_through() {
                true if is_silent || !session.attached => Departed::Left,
                _ if is_silent => Departed::Silent,
                _ => return None,
            };
            Some(EdgeEffect::Close { session: id.clone(), epoch: session.epoch, how })
        };
        self.sessions.iter().filter_map(gone).collect()
    }

    /// Held attempts whose time to start or to end was over at `wall`, as far as their workers could tell us otherwise. One that
    /// came with its worker after `heard_since` may have ended long ago, in time, while no gateway received its report; and a
    /// worker without a stream cannot say anything.
    pub fn overdue(&self, wall: Timestamp, heard_since: Moment) -> Vec<Arc<Job>> {
        let overdue = |held: &&HeldAttempt| {
            let just_came = matches!(held.since, HeldSince::Attached(at) if at > heard_since);
            if !held.is_stored() || just_came {
                return false;
            }
            // A start that is not durable yet is about to be: nothing is due before it is.
            let begun = held.job.state() != JobState::Dispatched;
            let due = |binding: &Binding| if begun { binding.timeout_at } else { binding.start_by };
            let is_due = held.job.life.attempt.binding.as_ref().is_some_and(|binding| due(binding) <= wall);
            is_due && (begun || held.started().is_none())
        };
        let attached = self.sessions.values().filter(|session| session.attached);
        attached.flat_map(|session| session.held.values()).filter(overdue).map(|held| held.job.clone()).collect()
    }
}
