//! What the edge knows, and what every event does with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::fleet::{LastSighting, LeftOver, RemoteWorker};
use super::pace::TopicPace;
use super::session::EdgeSession;
use super::{EdgeEffect, Moment};
use crate::ids::{AttemptToken, EdgeId, SessionId};
use crate::placement::Roster;
use crate::pools::Routing;

/// What an edge goes by.
#[derive(Clone, Copy, Debug)]
pub struct EdgeRules {
    /// Silence after which a worker counts as lost, where its session was promised nothing else.
    pub lost_after: Duration,
    /// How long a process has to claim what is left to it.
    pub handover_wait: Duration,
    /// After so long without renewal, other processes may have closed this edge. None where no other process uses the Store.
    pub lease: Option<Duration>,
}

/// One life of a process as a holder of worker streams.
#[derive(Debug)]
pub struct EdgeState {
    pub(super) id: EdgeId,
    pub(super) rules: EdgeRules,
    /// When its lease in the Store was last renewed, at the earliest.
    pub(super) renewed_at: Moment,
    pub(super) sessions: BTreeMap<SessionId, EdgeSession>,
    /// Which worker takes what. Says of every session what the session says of itself: see [`EdgeState::touch`].
    pub(super) roster: Roster<SessionId>,
    /// Sessions of other processes.
    pub(super) elsewhere: BTreeMap<SessionId, RemoteWorker>,
    /// What was heard of sessions of other processes, those of which the Store has not told us yet among them.
    pub(super) seen: BTreeMap<SessionId, LastSighting>,
    /// Waiting jobs that are left to workers of other processes.
    pub(super) left: LeftOver,
    /// Own sessions of which others should hear before the next beat.
    pub(super) news: BTreeSet<SessionId>,
    /// How often something was said of own sessions.
    pub(super) said: u64,
    /// Sessions that hold more than they can run at once.
    pub(super) ahead: BTreeSet<SessionId>,
    pub(super) pace: TopicPace,
    /// Starts that are not durable yet.
    pub(super) starts: Vec<(SessionId, AttemptToken)>,
}

impl EdgeState {
    pub fn new(id: EdgeId, routing: Arc<Routing>, rules: EdgeRules) -> Self {
        Self {
            id,
            rules,
            renewed_at: Moment::BEGAN,
            sessions: BTreeMap::new(),
            roster: Roster::new(routing),
            elsewhere: BTreeMap::new(),
            seen: BTreeMap::new(),
            left: LeftOver::new(rules.handover_wait),
            news: BTreeSet::new(),
            said: 0,
            ahead: BTreeSet::new(),
            pace: TopicPace::default(),
            starts: Vec::new(),
        }
    }

    pub fn id(&self) -> &EdgeId {
        &self.id
    }

    /// The epoch of a session.
    pub fn epoch(&self, id: &SessionId) -> Option<u64> {
        self.sessions.get(id).map(|session| session.epoch)
    }

    /// Whether the session is here under this epoch, or a later one.
    pub fn knows(&self, id: &SessionId, epoch: u64) -> bool {
        self.sessions.get(id).is_some_and(|session| session.epoch >= epoch)
    }

    /// Choices from now on are made under this routing.
    pub fn on_routing(&mut self, routing: Arc<Routing>) {
        self.roster.adopt(routing);
    }

    /// The stream of a session ended, or takes no more. The session lives on until it is silent for too long.
    pub fn on_stream_ended(&mut self, id: &SessionId, epoch: u64) -> Vec<EdgeEffect> {
        self.change(id, Some(epoch), EdgeSession::end_stream)
    }

    /// The Store no longer agrees with what is known of this session: ends its stream, so that it attaches anew.
    pub fn on_disagreement(&mut self, id: &SessionId, epoch: u64) -> Vec<EdgeEffect> {
        self.change(id, Some(epoch), EdgeSession::end_stream)
    }

    /// An operator wants these to leave: those that are attached here get nothing more and are told so, once.
    pub fn on_sent_away(&mut self, ids: &[SessionId]) -> Vec<EdgeEffect> {
        let mut out = Vec::new();
        for id in ids {
            if let Some(session) = self.sessions.get_mut(id).filter(|session| !session.was_sent_away()) {
                session.send_away(&mut out);
                self.touch(id, &mut out);
            }
        }
        out
    }

    /// Forgets a session that was closed in the Store. What it was still letting go of comes as [`EdgeEffect::Left`].
    pub fn on_closed(&mut self, id: &SessionId, epoch: u64) -> Vec<EdgeEffect> {
        let Some(session) = self.sessions.get(id).filter(|session| session.epoch == epoch) else { return Vec::new() };
        let left = session.leaving.iter().map(super::LeftAttempt::of).collect();
        let out = vec![EdgeEffect::CloseStream { session: id.clone() }, EdgeEffect::Left(left)];
        self.sessions.remove(id);
        self.roster.remove(id);
        self.ahead.remove(id);
        out
    }

    /// Changes one session, if it is here (under this epoch).
    pub(super) fn change(
        &mut self,
        id: &SessionId,
        epoch: Option<u64>,
        change: impl FnOnce(&mut EdgeSession, &mut Vec<EdgeEffect>),
    ) -> Vec<EdgeEffect> {
        let mut out = Vec::new();
        let session = self.sessions.get_mut(id);
        if let Some(session) = session.filter(|session| epoch.is_none_or(|epoch| session.epoch == epoch)) {
            change(session, &mut out);
            self.touch(id, &mut out);
        }
        out
    }

    /// Tells the roster what became of a session.
    pub(super) fn touch(&mut self, id: &SessionId, out: &mut Vec<EdgeEffect>) {
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
        if self.roster.is_compared(id) {
            self.tell_of(id, out);
        }
    }

    /// Other processes should hear how a worker fares that is attached here.
    pub(super) fn tell_of(&mut self, id: &SessionId, out: &mut Vec<EdgeEffect>) {
        if self.rules.lease.is_some() && self.news.insert(id.clone()) {
            out.push(EdgeEffect::RingNews);
        }
    }
}
