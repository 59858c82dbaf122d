//! Workers that are attached to other processes, and what is held here as other processes may have left it.
//!
//! The Store says which workers there are; their processes say how they fare, and a snapshot says what they said before this
//! process began to listen.
//!
//! Where a worker is chosen over the whole fleet, every process makes the same choice from what it knows, takes what falls to its
//! own workers, and leaves the rest to the processes of the others. A process that is left something and says nothing for a moment
//! is left nothing more until it is heard of again; a worker for which nothing was claimed meanwhile, until something is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::session::EdgeSession;
use super::{EdgeEffect, EdgeState, LEAVING_MAX, Moment, SEEN_LIFE, Sighting};
use crate::ids::{AttemptToken, EdgeId, SessionId, WorkerId};
use crate::placement::{Candidate, Unavailable};
use crate::worker::WorkerProfile;

/// A session that another process holds, by its row in the Store.
#[derive(Clone, Debug)]
pub struct RemoteSession {
    pub session: SessionId,
    pub epoch: u64,
    /// The process that it is attached to.
    pub edge: EdgeId,
    pub profile: WorkerProfile,
}

/// A worker that is attached to another process, by its row in the Store.
#[derive(Debug)]
pub(super) struct RemoteWorker {
    profile: Arc<WorkerProfile>,
    epoch: u64,
    /// The process that it is attached to.
    edge: EdgeId,
}

/// A worker whose process speaks, and claims nothing of what is left to it, is left something again after this time. What waits loses
/// [`EdgeRules::handover_wait`](super::EdgeRules::handover_wait) if it still does not.
pub(super) const LEFT_AGAIN: Duration = Duration::from_secs(30);

/// Waiting jobs that are left to a worker of another process.
#[derive(Debug)]
pub(super) struct LeftTo {
    /// Since when its process has not said that it claimed any.
    since: Moment,
    /// What its process had said by then of what it claimed, with the session's epoch.
    claimed: (u64, Option<u64>),
    /// The latest round of claims in which something was left to it.
    round: u64,
}

/// What is left to other processes, and which of them let it lie.
#[derive(Debug)]
pub(super) struct LeftOver {
    /// How long a process has to claim what is left to it.
    wait: Duration,
    to: BTreeMap<SessionId, LeftTo>,
    round: u64,
    /// When each process last said anything.
    heard: BTreeMap<EdgeId, Moment>,
    /// Processes that were left something and have said nothing since.
    silent: BTreeSet<EdgeId>,
}

impl LeftOver {
    pub(super) fn new(wait: Duration) -> Self {
        Self { wait, to: BTreeMap::new(), round: 0, heard: BTreeMap::new(), silent: BTreeSet::new() }
    }
}

impl LeftTo {
    fn is_overdue(&self, wait: Duration, now: Moment) -> bool {
        now.since(self.since) >= wait
    }

    /// Whether nothing is held against its worker any more. That a process speaks says that it lives, not that it claims; an older
    /// version says no more than that.
    fn is_settled_by(&self, sighting: &Sighting, now: Moment) -> bool {
        let claims = (sighting.epoch, sighting.claimed) > self.claimed;
        claims || sighting.claimed.is_none() || now.since(self.since) >= LEFT_AGAIN
    }
}

/// What was last heard of a worker from its process, or from a snapshot.
#[derive(Debug)]
pub(super) struct LastSighting {
    pub(super) sighting: Sighting,
    /// When its process heard of it.
    at: Moment,
}

/// A stranger as others may see it.
#[derive(Debug)]
pub struct StrangerView {
    pub session: SessionId,
    pub profile: Arc<WorkerProfile>,
    /// How it fares, and how long ago that was; none if nothing was heard lately.
    pub seen: Option<(Sighting, Duration)>,
}

impl EdgeState {
    /// An attach that its caller gave up may come late, and takes the session from where its worker is: nothing could be sent to it
    /// any more. Whose stream ends attaches anew.
    pub fn on_overtaken<'s>(&mut self, open: impl Iterator<Item = (&'s SessionId, u64)>) -> Vec<EdgeEffect> {
        let mut out = Vec::new();
        for (id, epoch) in open {
            if let Some(session) = self.sessions.get_mut(id).filter(|session| session.epoch < epoch) {
                session.end_stream(&mut out);
                self.touch(id, &mut out);
            }
        }
        out
    }

    /// Takes in all sessions that other gateways hold. This process sends them nothing; they count for whether a job could ever run,
    /// and when a worker is chosen over the whole fleet.
    pub fn meet(&mut self, others: impl Iterator<Item = RemoteSession>, now: Moment) {
        self.forget_unseen(now);
        let mut gone = std::mem::take(&mut self.elsewhere);
        for row in others {
            // One that moved away a moment ago: its stream here has ended, or is about to.
            if self.sessions.get(&row.session).is_some_and(|own| own.epoch >= row.epoch) {
                continue;
            }
            let known = gone.remove(&row.session).filter(|known| *known.profile == row.profile);
            let profile = if let Some(known) = known {
                known.profile
            } else {
                // Anew, for it may have come back with another profile.
                if !self.sessions.contains_key(&row.session) {
                    self.roster.remove(&row.session);
                }
                Arc::new(row.profile)
            };
            self.elsewhere.insert(row.session.clone(), RemoteWorker { profile, epoch: row.epoch, edge: row.edge });
            self.touch_stranger(&row.session, now);
        }
        for session in gone.into_keys() {
            if !self.sessions.contains_key(&session) {
                self.roster.remove(&session);
            }
        }
    }

    /// Hears how workers fare that are attached to other processes. `age` ago it was so. What was heard later, or of a later
    /// attach, is known better already. Returns how many are news.
    pub fn saw<'s>(&mut self, seen: impl Iterator<Item = &'s Sighting>, age: Duration, now: Moment) -> usize {
        let mut news = 0;
        for sighting in seen {
            let ago = age.saturating_add(Duration::from_millis(sighting.heard_ms_ago));
            if ago >= SEEN_LIFE {
                continue;
            }
            let at = now.back(ago);
            let known = self.seen.get(&sighting.session);
            let known = known.map(|known| (known.sighting.epoch, known.sighting.said, known.at));
            if known.is_none_or(|known| known <= (sighting.epoch, sighting.said, at)) {
                self.seen.insert(sighting.session.clone(), LastSighting { sighting: sighting.clone(), at });
                if self.left.to.get(&sighting.session).is_some_and(|left| left.is_settled_by(sighting, now)) {
                    self.left.to.remove(&sighting.session);
                }
                if age.is_zero() {
                    self.hear_of(&sighting.session, now);
                }
                self.touch_stranger(&sighting.session, now);
                news += 1;
            }
        }
        news
    }

    pub fn elsewhere(&self, now: Moment) -> Vec<StrangerView> {
        let others = self.elsewhere.iter().filter(|(session, _)| !self.sessions.contains_key(*session));
        let view = |(session, stranger): (&SessionId, &RemoteWorker)| StrangerView {
            session: session.clone(),
            profile: stranger.profile.clone(),
            seen: self.seen_of(session, stranger, now).map(|seen| (seen.sighting.clone(), now.since(seen.at))),
        };
        others.map(view).collect()
    }

    /// The workers attached here, for others.
    pub fn sightings(&mut self, now: Moment) -> Vec<Sighting> {
        self.said += 1;
        self.news.clear();
        self.sessions.values().map(|session| session.sighting(self.said, now)).collect()
    }

    /// Those of them that others should hear of before the next beat.
    pub fn news(&mut self, now: Moment) -> Vec<Sighting> {
        self.said += 1;
        let news = std::mem::take(&mut self.news);
        let told = news.iter().filter_map(|id| Some(self.sessions.get(id)?.sighting(self.said, now)));
        told.collect()
    }

    /// Whether jobs are left to workers of other processes.
    pub fn leaves_jobs(&self) -> bool {
        !self.left.to.is_empty()
    }

    /// A round of claims begins: what it leaves to others is told apart from what earlier ones did.
    pub fn begin_round(&mut self) {
        self.left.round += 1;
    }

    /// What an earlier round left to others and this one did not was taken, or no longer waits: their silence means nothing.
    pub fn end_round(&mut self, now: Moment) {
        let LeftOver { to, round, wait, .. } = &mut self.left;
        to.retain(|_, left| left.round == *round || left.is_overdue(*wait, now));
    }

    /// When jobs that are left to others were left for long enough.
    pub fn left_until(&self, now: Moment) -> Option<Moment> {
        let until = self.left.to.values().map(|left| left.since + self.left.wait);
        until.filter(|until| *until > now).min()
    }

    /// Every worker of which it is known how it fares, wherever it is attached.
    pub fn snapshot(&self, now: Moment) -> Vec<(Arc<WorkerProfile>, Sighting)> {
        let own = self.sessions.values().map(|session| (session.profile.clone(), session.sighting(self.said, now)));
        let other = |(id, stranger): (&SessionId, &RemoteWorker)| {
            let seen = self.seen_of(id, stranger, now).filter(|_| !self.sessions.contains_key(id))?;
            let sighting = Sighting { heard_ms_ago: millis(now.since(seen.at)), ..seen.sighting.clone() };
            Some((stranger.profile.clone(), sighting))
        };
        own.chain(self.elsewhere.iter().filter_map(other)).collect()
    }

    /// Attempts that no longer count and are not gone yet, here and at other processes. None if one of these sessions, which are
    /// open by the Store, belongs to a process that we do not hear: its worker may have attempts that we were not told of.
    pub fn leaving<'s>(
        &self,
        mut open: impl Iterator<Item = (&'s SessionId, u64)>,
        now: Moment,
    ) -> Option<BTreeSet<AttemptToken>> {
        if !open.all(|(id, epoch)| self.tells_all_of(id, epoch, now)) {
            return None;
        }
        let own = self.sessions.values().flat_map(|session| session.leaving.keys());
        let heard = self.seen.iter().filter(|(id, seen)| !self.sessions.contains_key(*id) && now.since(seen.at) < SEEN_LIFE);
        Some(own.chain(heard.flat_map(|(_, seen)| &seen.sighting.leaving)).cloned().collect())
    }

    /// What a session of another process was letting go of when it was last heard of: it was closed, so no other process frees that.
    pub fn forget_stranger(&mut self, id: &SessionId, epoch: u64) -> Vec<AttemptToken> {
        let known = self.seen.get(id).is_some_and(|seen| seen.sighting.epoch <= epoch);
        let seen = if known { self.seen.remove(id) } else { None };
        seen.map(|seen| seen.sighting.leaving).unwrap_or_default()
    }
}

impl EdgeState {
    /// What is true of a worker elsewhere. Its process may have heard of an attach that the Store has not told us of yet, not the
    /// other way round.
    fn seen_of(&self, id: &SessionId, stranger: &RemoteWorker, now: Moment) -> Option<&LastSighting> {
        self.seen.get(id).filter(|seen| seen.sighting.epoch >= stranger.epoch && now.since(seen.at) < SEEN_LIFE)
    }

    /// Whether everything is known that a session is letting go of: it is attached here, or its process told all of it lately.
    fn tells_all_of(&self, id: &SessionId, epoch: u64, now: Moment) -> bool {
        if let Some(own) = self.sessions.get(id) {
            return own.epoch >= epoch;
        }
        self.seen.get(id).is_some_and(|LastSighting { sighting, at }| {
            sighting.epoch >= epoch && now.since(*at) < SEEN_LIFE && sighting.leaving.len() < LEAVING_MAX
        })
    }

    fn forget_unseen(&mut self, now: Moment) {
        self.seen.retain(|_, seen| now.since(seen.at) < SEEN_LIFE);
        let Self { left, elsewhere, .. } = self;
        left.to.retain(|id, _| elsewhere.contains_key(id));
        let edges: BTreeSet<&EdgeId> = elsewhere.values().map(|stranger| &stranger.edge).collect();
        left.heard.retain(|edge, _| edges.contains(edge));
        left.silent.retain(|edge| edges.contains(edge));
    }

    /// The process of this worker said something just now: something may be left to all of its workers again.
    fn hear_of(&mut self, id: &SessionId, now: Moment) {
        let Some(edge) = self.elsewhere.get(id).map(|stranger| stranger.edge.clone()) else { return };
        self.left.heard.insert(edge.clone(), now);
        if self.left.silent.remove(&edge) {
            self.touch_all_of(&edge, now);
        }
    }

    /// Jobs that wait now should go to this worker of another process.
    pub(super) fn leave_to(&mut self, id: SessionId, now: Moment) {
        let round = self.left.round;
        let claimed = self.seen.get(&id).map_or((0, None), |seen| (seen.sighting.epoch, seen.sighting.claimed));
        self.left.to.entry(id).or_insert_with(|| LeftTo { since: now, claimed, round }).round = round;
    }

    /// Nothing more is left to workers whose processes did not say that they claimed any of it since something was. A process that said nothing
    /// at all since then may be dead: nothing more is left to any of its workers, or each of them would cost another wait.
    pub(super) fn doubt_the_silent(&mut self, now: Moment) {
        let overdue = self.left.to.iter().filter(|(_, left)| left.is_overdue(self.left.wait, now));
        let overdue: Vec<_> = overdue.map(|(id, left)| (id.clone(), left.since)).collect();
        for (id, since) in overdue {
            let edge = self.elsewhere.get(&id).map(|stranger| stranger.edge.clone());
            let unheard = edge.filter(|edge| self.left.heard.get(edge).is_none_or(|at| *at <= since));
            match unheard {
                Some(edge) if self.left.silent.insert(edge.clone()) => self.touch_all_of(&edge, now),
                _ => self.touch_stranger(&id, now),
            }
        }
    }

    fn touch_all_of(&mut self, edge: &EdgeId, now: Moment) {
        let own = self.elsewhere.iter().filter(|(_, stranger)| stranger.edge == *edge).map(|(id, _)| id.clone());
        for id in own.collect::<Vec<_>>() {
            self.touch_stranger(&id, now);
        }
    }

    /// Tells the roster what is known of a worker elsewhere. One that is attached here speaks for itself.
    fn touch_stranger(&mut self, id: &SessionId, now: Moment) {
        let Some(stranger) = self.elsewhere.get(id).filter(|_| !self.sessions.contains_key(id)) else { return };
        let doubted = self.left.to.get(id).is_some_and(|left| left.is_overdue(self.left.wait, now))
            || self.left.silent.contains(&stranger.edge);
        let now = stranger.candidate(self.seen_of(id, stranger, now).map(|seen| &seen.sighting), doubted);
        match self.roster.get(id) {
            Some(known) if *known == now => {}
            Some(_) => self.roster.change(id, |known| *known = now),
            None => self.roster.insert(id.clone(), now),
        }
    }
}

impl RemoteWorker {
    pub(super) fn worker(&self) -> &WorkerId {
        &self.profile.worker
    }

    fn candidate(&self, seen: Option<&Sighting>, doubted: bool) -> Candidate {
        let away = match seen {
            Some(Sighting { attached: false, .. }) => Unavailable::Detached,
            Some(Sighting { draining: true, .. }) => Unavailable::Draining,
            Some(_) if !doubted => Unavailable::Elsewhere,
            _ => Unavailable::Unheard,
        };
        Candidate {
            profile: self.profile.clone(),
            capacity: seen.map(|seen| seen.slots).filter(|slots| *slots > 0).unwrap_or(self.profile.slots),
            spare: 0,
            active: seen.map_or(0, |seen| seen.busy),
            load: seen.map(|seen| seen.load).unwrap_or_default(),
            away: Some(away),
        }
    }
}

impl EdgeSession {
    fn sighting(&self, said: u64, now: Moment) -> Sighting {
        Sighting {
            session: self.id.clone(),
            epoch: self.epoch,
            busy: u32::try_from(self.taken()).unwrap_or(u32::MAX),
            active_jobs: self.active_jobs,
            load: self.load,
            attached: self.attached,
            draining: self.is_leaving(),
            heard_ms_ago: millis(now.since(self.heard_at)),
            slots: self.profile.slots,
            said,
            claimed: Some(self.last_assignment),
            leaving: self.leaving.keys().take(LEAVING_MAX).cloned().collect(),
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
