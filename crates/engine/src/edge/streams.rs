//! The machine of the edge behind its lock, together with the streams that it speaks through.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::edge::{Arrival, EdgeEffect, EdgeRules, EdgeState, Greeting, Moment};
use lockgate_core::ids::{EdgeId, SessionId};
use lockgate_core::pools::Routing;
use lockgate_core::time::Timestamp;
use lockgate_ports::Unattached;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::outbound::Outbound;

/// One life of this process as a holder of worker streams.
pub(crate) struct Edge {
    attended: Mutex<AttendedEdge>,
    /// When the machine's time begins.
    began: Instant,
    /// Rings when other processes should hear of a worker.
    told: Notify,
}

struct AttendedEdge {
    state: EdgeState,
    /// Of the sessions that are attached, each with the epoch that it was opened under.
    streams: BTreeMap<SessionId, (u64, Outbound)>,
}

impl Edge {
    pub(crate) fn new(id: EdgeId, routing: Arc<Routing>, rules: EdgeRules) -> Self {
        let attended = AttendedEdge { state: EdgeState::new(id, routing, rules), streams: BTreeMap::new() };
        Self { attended: Mutex::new(attended), began: Instant::now(), told: Notify::new() }
    }

    /// What an instant is to the machine.
    pub(crate) fn moment(&self, at: Instant) -> Moment {
        match at.checked_duration_since(self.began) {
            Some(after) => Moment::BEGAN + after,
            None => Moment::BEGAN.back(self.began.duration_since(at)),
        }
    }

    pub(crate) fn id(&self) -> EdgeId {
        self.look(|state| state.id().clone())
    }

    /// Asks the machine something.
    pub(crate) fn look<R>(&self, question: impl FnOnce(&EdgeState) -> R) -> R {
        question(&self.attended.lock().state)
    }

    /// Like [`Self::ask`], for what depends on which streams are read. This walks all of them.
    pub(crate) fn survey<R>(&self, question: impl FnOnce(&mut EdgeState, Moment) -> R) -> R {
        let mut attended = self.attended.lock();
        self.end_unread(&mut attended);
        question(&mut attended.state, self.moment(Instant::now()))
    }

    /// Asks the machine something for which it rearranges what it knows, as when a worker is chosen.
    pub(crate) fn ask<R>(&self, question: impl FnOnce(&mut EdgeState, Moment) -> R) -> R {
        question(&mut self.attended.lock().state, self.moment(Instant::now()))
    }

    /// Tells the machine that something happened, and lets its words into the streams before anything else happens to it. What is left
    /// to do.
    #[must_use = "what is left of the effects is to be performed"]
    pub(crate) fn step(&self, event: impl FnOnce(&mut EdgeState, Moment) -> Vec<EdgeEffect>) -> Vec<EdgeEffect> {
        self.step_with(|state, now| ((), event(state, now))).1
    }

    /// Like [`Self::step`], for an event that is also answered.
    #[must_use = "what is left of the effects is to be performed"]
    pub(crate) fn step_with<R>(
        &self,
        event: impl FnOnce(&mut EdgeState, Moment) -> (R, Vec<EdgeEffect>),
    ) -> (R, Vec<EdgeEffect>) {
        let mut attended = self.attended.lock();
        let (answer, effects) = event(&mut attended.state, self.moment(Instant::now()));
        (answer, self.speak(&mut attended, effects))
    }

    /// Takes a session with its stream. Nothing is left to do where the worker attached again meanwhile: the stream ends with that.
    pub(super) fn attach(&self, arrival: Arrival, stream: Outbound, wall: Timestamp) -> Result<Vec<EdgeEffect>, Unattached> {
        let (id, epoch) = (arrival.hello.session.clone(), arrival.epoch);
        let mut attended = self.attended.lock();
        match attended.state.on_hello(arrival, self.moment(Instant::now()), wall) {
            Greeting::Welcome(effects) => {
                attended.streams.insert(id, (epoch, stream));
                Ok(self.speak(&mut attended, effects))
            }
            Greeting::Overtaken => Ok(Vec::new()),
            Greeting::EdgeClosed => Err(Unattached::EdgeClosed),
        }
    }

    /// Comes when others should hear of a worker.
    pub(crate) async fn has_news(&self) {
        self.told.notified().await;
    }

    /// Performs what belongs under the lock.
    fn speak(&self, attended: &mut AttendedEdge, effects: Vec<EdgeEffect>) -> Vec<EdgeEffect> {
        let mut rest = Vec::new();
        for effect in effects {
            match effect {
                EdgeEffect::Tell { session, message } => {
                    let Some((epoch, stream)) = attended.streams.get_mut(&session) else { continue };
                    if !stream.tell(message) {
                        let epoch = *epoch;
                        attended.streams.remove(&session);
                        rest.extend(self.end(attended, &session, epoch));
                    }
                }
                EdgeEffect::CloseStream { session } => drop(attended.streams.remove(&session)),
                EdgeEffect::RingNews => self.told.notify_one(),
                effect => rest.push(effect),
            }
        }
        rest
    }

    /// The stream is gone already, so nothing more is said.
    fn end(&self, attended: &mut AttendedEdge, session: &SessionId, epoch: u64) -> Vec<EdgeEffect> {
        let mut rest = attended.state.on_stream_ended(session, epoch);
        rest.retain(|effect| match effect {
            EdgeEffect::RingNews => {
                self.told.notify_one();
                false
            }
            EdgeEffect::Tell { .. } | EdgeEffect::CloseStream { .. } => false,
            _ => true,
        });
        rest
    }

    /// A stream whose reader went away takes no more, although nothing was said since.
    fn end_unread(&self, attended: &mut AttendedEdge) {
        let unread = attended.streams.iter().filter(|(_, (_, stream))| stream.is_unread());
        let unread: Vec<(SessionId, u64)> = unread.map(|(id, (epoch, _))| (id.clone(), *epoch)).collect();
        for (id, epoch) in unread {
            attended.streams.remove(&id);
            self.end(attended, &id, epoch);
        }
    }
}
