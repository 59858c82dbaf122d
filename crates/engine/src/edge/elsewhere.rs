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

use lockgate_core::ids::{AttemptToken, EdgeId, JobId, SessionId, WorkerId};
use lockgate_core::job::Job;
use lockgate_core::placement::{Candidate, Unavailable};
use lockgate_core::worker::WorkerProfile;
use lockgate_ports::{LEAVING_MAX, SEEN_LIFE, SessionRow, Sighting, SnapshotWorker, WorkersSnapshot};
use tokio::time::Instant;

use super::Edge;
use super::sessions::{EdgeSession, EdgeState};

/// A worker that is attached to another process, by its row in the Store.
pub(super) struct RemoteWorker {
    profile: Arc<WorkerProfile>,
    epoch: u64,
    /// The process that it is attached to.
    edge: EdgeId,
}

/// A worker whose process speaks, and claims nothing of what is left to it, is left something again after this time. What waits loses
/// [`Settings::handover_wait`](crate::Settings::handover_wait) if it still does not.
const LEFT_AGAIN: Duration = Duration::from_secs(30);

/// Waiting jobs that are left to a worker of another process.
pub(super) struct LeftTo {
    /// Since when its process has not said that it claimed any.
    since: Instant,
    /// What its process had said by then of what it claimed, with the session's epoch.
    claimed: (u64, Option<u64>),
    /// The latest round of claims in which something was left to it.
    round: u64,
}

/// What is left to other processes, and which of them let it lie.
pub(super) struct LeftOver {
    /// How long a process has to claim what is left to it.
    wait: Duration,
    to: BTreeMap<SessionId, LeftTo>,
    round: u64,
    /// When each process last said anything.
    heard: BTreeMap<EdgeId, Instant>,
    /// Processes that were left something and have said nothing since.
    silent: BTreeSet<EdgeId>,
}

impl LeftOver {
    pub(super) fn new(wait: Duration) -> Self {
        Self { wait, to: BTreeMap::new(), round: 0, heard: BTreeMap::new(), silent: BTreeSet::new() }
    }
}

impl LeftTo {
    fn is_overdue(&self, wait: Duration) -> bool {
        self.since.elapsed() >= wait
    }

    /// Whether nothing is held against its worker any more. That a process speaks says that it lives, not that it claims; an older
    /// version says no more than that.
    fn is_settled_by(&self, sighting: &Sighting) -> bool {
        let claims = (sighting.epoch, sighting.claimed) > self.claimed;
        claims || sighting.claimed.is_none() || self.since.elapsed() >= LEFT_AGAIN
    }
}

/// What was last heard of a worker from its process, or from a snapshot.
pub(super) struct LastSighting {
    sighting: Sighting,
    /// When its process heard of it.
    at: Instant,
}

/// A stranger as others may see it.
pub(crate) struct StrangerView {
    pub(crate) session: SessionId,
    pub(crate) profile: Arc<WorkerProfile>,
    /// How it fares, and how long ago that was; none if nothing was heard lately.
    pub(crate) seen: Option<(Sighting, Duration)>,
}

impl Edge {
    /// An attach that its caller gave up may come late, and takes the session from where its worker is: nothing could be sent to it
    /// any more. Whose stream ends attaches anew.
    pub(crate) fn cut_overtaken(&self, open: &[SessionRow]) {
        let mut state = self.state.lock();
        for row in open {
            if let Some(session) = state.sessions.get_mut(&row.session).filter(|session| session.epoch < row.epoch) {
                session.outbound.close();
                state.touch(&row.session);
            }
        }
    }

    /// Takes in all sessions that other gateways hold. This process sends them nothing; they count for whether a job could ever run,
    /// and when a worker is chosen over the whole fleet.
    pub(crate) fn meet(&self, others: impl Iterator<Item = SessionRow>) {
        let mut state = self.state.lock();
        state.forget_unseen();
        let mut gone = std::mem::take(&mut state.elsewhere);
        for row in others {
            // One that moved away a moment ago: its stream here has ended, or is about to.
            if state.sessions.get(&row.session).is_some_and(|own| own.epoch >= row.epoch) {
                continue;
            }
            let known = gone.remove(&row.session).filter(|known| *known.profile == row.profile);
            let profile = if let Some(known) = known {
                known.profile
            } else {
                // Anew, for it may have come back with another profile.
                if !state.sessions.contains_key(&row.session) {
                    state.roster.remove(&row.session);
                }
                Arc::new(row.profile)
            };
            state.elsewhere.insert(row.session.clone(), RemoteWorker { profile, epoch: row.epoch, edge: row.edge });
            state.touch_stranger(&row.session);
        }
        for session in gone.into_keys() {
            if !state.sessions.contains_key(&session) {
                state.roster.remove(&session);
            }
        }
    }

    /// Hears how workers fare that are attached to other processes. `age` ago it was so. What was heard later, or of a later
    /// attach, is known better already. Returns how many are news.
    pub(crate) fn saw<'s>(&self, seen: impl Iterator<Item = &'s Sighting>, age: Duration) -> usize {
        let mut state = self.state.lock();
        let now = Instant::now();
        let mut news = 0;
        for sighting in seen {
            let ago = age.saturating_add(Duration::from_millis(sighting.heard_ms_ago));
            let Some(at) = now.checked_sub(ago).filter(|_| ago < SEEN_LIFE) else { continue };
            let known = state.seen.get(&sighting.session);
            let known = known.map(|known| (known.sighting.epoch, known.sighting.said, known.at));
            if known.is_none_or(|known| known <= (sighting.epoch, sighting.said, at)) {
                state.seen.insert(sighting.session.clone(), LastSighting { sighting: sighting.clone(), at });
                if state.left.to.get(&sighting.session).is_some_and(|left| left.is_settled_by(sighting)) {
                    state.left.to.remove(&sighting.session);
                }
                if age.is_zero() {
                    state.hear_of(&sighting.session);
                }
                state.touch_stranger(&sighting.session);
                news += 1;
            }
        }
        news
    }

    pub(crate) fn elsewhere(&self) -> Vec<StrangerView> {
        let state = self.state.lock();
        let others = state.elsewhere.iter().filter(|(session, _)| !state.sessions.contains_key(*session));
        let view = |(session, stranger): (&SessionId, &RemoteWorker)| StrangerView {
            session: session.clone(),
            profile: stranger.profile.clone(),
            seen: state.seen_of(session, stranger).map(|seen| (seen.sighting.clone(), seen.at.elapsed())),
        };
        others.map(view).collect()
    }

    /// The workers attached here, for others.
    pub(crate) fn sightings(&self) -> Vec<Sighting> {
        let mut state = self.state.lock();
        state.said += 1;
        state.news.clear();
        state.sessions.iter().map(|(id, session)| session.sighting(id, state.said)).collect()
    }

    /// Those of them that others should hear of before the next beat.
    pub(crate) fn news(&self) -> Vec<Sighting> {
        let mut state = self.state.lock();
        state.said += 1;
        let news = std::mem::take(&mut state.news);
        let told = news.iter().filter_map(|id| Some(state.sessions.get(id)?.sighting(id, state.said)));
        told.collect()
    }

    /// Comes when there are some.
    pub(crate) async fn has_news(&self) {
        self.told.notified().await;
    }

    /// What was chosen for this worker by others was taken, or is about to be: they should hear of it.
    pub(super) fn tell_of(&self, id: &SessionId) {
        self.state.lock().tell_of(id);
    }

    /// Whether jobs are left to workers of other processes.
    pub(crate) fn leaves_jobs(&self) -> bool {
        !self.state.lock().left.to.is_empty()
    }

    /// A round of claims begins: what it leaves to others is told apart from what earlier ones did.
    pub(crate) fn begin_round(&self) {
        self.state.lock().left.round += 1;
    }

    /// What an earlier round left to others and this one did not was taken, or no longer waits: their silence means nothing.
    pub(crate) fn end_round(&self) {
        let LeftOver { to, round, wait, .. } = &mut self.state.lock().left;
        to.retain(|_, left| left.round == *round || left.is_overdue(*wait));
    }

    /// When jobs that are left to others were left for long enough.
    pub(super) fn left_until(&self) -> Option<Instant> {
        let state = self.state.lock();
        let until = state.left.to.values().map(|left| left.since + state.left.wait);
        until.filter(|until| *until > Instant::now()).min()
    }

    /// Every worker of which it is known how it fares, wherever it is attached.
    pub(crate) fn snapshot(&self) -> WorkersSnapshot {
        let state = self.state.lock();
        let own = state.sessions.iter().map(|(id, session)| (session.profile.clone(), session.sighting(id, state.said)));
        let other = |(id, stranger): (&SessionId, &RemoteWorker)| {
            let seen = state.seen_of(id, stranger).filter(|_| !state.sessions.contains_key(id))?;
            let sighting = Sighting { heard_ms_ago: millis(seen.at.elapsed()), ..seen.sighting.clone() };
            Some((stranger.profile.clone(), sighting))
        };
        let others = state.elsewhere.iter().filter_map(other);
        let workers = own.chain(others).map(|(profile, seen)| SnapshotWorker { profile, seen }).collect();
        WorkersSnapshot { workers }
    }

    /// Attempts that no longer count and are not gone yet, here and at other processes. None if one of these sessions, which are
    /// open by the Store, is nobody's whom we hear: its worker may have what nobody told of.
    pub(crate) fn leaving(&self, open: &[SessionRow]) -> Option<BTreeSet<AttemptToken>> {
        let state = self.state.lock();
        if !open.iter().all(|row| state.tells_all_of(row)) {
            return None;
        }
        let own = state.sessions.values().flat_map(|session| session.leaving.keys());
        let heard =
            state.seen.iter().filter(|(id, seen)| !state.sessions.contains_key(*id) && seen.at.elapsed() < SEEN_LIFE);
        Some(own.chain(heard.flat_map(|(_, seen)| &seen.sighting.leaving)).cloned().collect())
    }

    /// What a session of another process was letting go of when it was last heard of: it was closed, so no other process frees that.
    pub(crate) fn forget_stranger(&self, id: &SessionId, epoch: u64) -> Vec<AttemptToken> {
        let mut state = self.state.lock();
        let known = state.seen.get(id).is_some_and(|seen| seen.sighting.epoch <= epoch);
        let seen = if known { state.seen.remove(id) } else { None };
        seen.map(|seen| seen.sighting.leaving).unwrap_or_default()
    }

    /// Attempts held here of these jobs.
    pub(crate) fn held_of(&self, jobs: &BTreeSet<JobId>) -> Vec<Arc<Job>> {
        let state = self.state.lock();
        let held = state.sessions.values().flat_map(EdgeSession::stored);
        held.filter(|held| jobs.contains(&held.job.request.job_id)).map(|held| held.job.clone()).collect()
    }

    /// Everything held here.
    pub(crate) fn held_by_session(&self) -> Vec<(SessionId, Vec<Arc<Job>>)> {
        let state = self.state.lock();
        let busy = state.sessions.iter().filter(|(_, session)| !session.held.is_empty());
        busy.map(|(id, session)| (id.clone(), session.stored().map(|held| held.job.clone()).collect())).collect()
    }
}

impl EdgeState {
    /// What is true of a worker elsewhere. Its process may have heard of an attach that the Store has not told us of yet, not the
    /// other way round.
    fn seen_of(&self, id: &SessionId, stranger: &RemoteWorker) -> Option<&LastSighting> {
        self.seen.get(id).filter(|seen| seen.sighting.epoch >= stranger.epoch && seen.at.elapsed() < SEEN_LIFE)
    }

    /// Whether everything is known that a session is letting go of: it is attached here, or its process told all of it lately.
    fn tells_all_of(&self, row: &SessionRow) -> bool {
        if let Some(own) = self.sessions.get(&row.session) {
            return own.epoch >= row.epoch;
        }
        self.seen.get(&row.session).is_some_and(|LastSighting { sighting, at }| {
            sighting.epoch >= row.epoch && at.elapsed() < SEEN_LIFE && sighting.leaving.len() < LEAVING_MAX
        })
    }

    fn forget_unseen(&mut self) {
        self.seen.retain(|_, seen| seen.at.elapsed() < SEEN_LIFE);
        let Self { left, elsewhere, .. } = self;
        left.to.retain(|id, _| elsewhere.contains_key(id));
        let edges: BTreeSet<&EdgeId> = elsewhere.values().map(|stranger| &stranger.edge).collect();
        left.heard.retain(|edge, _| edges.contains(edge));
        left.silent.retain(|edge| edges.contains(edge));
    }

    /// The process of this worker said something just now: something may be left to all of its workers again.
    fn hear_of(&mut self, id: &SessionId) {
        let Some(edge) = self.elsewhere.get(id).map(|stranger| stranger.edge.clone()) else { return };
        self.left.heard.insert(edge.clone(), Instant::now());
        if self.left.silent.remove(&edge) {
            self.touch_all_of(&edge);
        }
    }

    /// Jobs that wait now should go to this worker of another process.
    pub(super) fn leave_to(&mut self, id: SessionId) {
        let round = self.left.round;
        let claimed = self.seen.get(&id).map_or((0, None), |seen| (seen.sighting.epoch, seen.sighting.claimed));
        self.left.to.entry(id).or_insert_with(|| LeftTo { since: Instant::now(), claimed, round }).round = round;
    }

    /// Nothing more is left to workers whose processes did not say that they claimed any of it since something was. A process that said nothing
    /// at all since then may be dead: nothing more is left to any of its workers, or each of them would cost another wait.
    pub(super) fn doubt_the_silent(&mut self) {
        let overdue = self.left.to.iter().filter(|(_, left)| left.is_overdue(self.left.wait));
        let overdue: Vec<_> = overdue.map(|(id, left)| (id.clone(), left.since)).collect();
        for (id, since) in overdue {
            let edge = self.elsewhere.get(&id).map(|stranger| stranger.edge.clone());
            let unheard = edge.filter(|edge| self.left.heard.get(edge).is_none_or(|at| *at <= since));
            match unheard {
                Some(edge) if self.left.silent.insert(edge.clone()) => self.touch_all_of(&edge),
                _ => self.touch_stranger(&id),
            }
        }
    }

    fn touch_all_of(&mut self, edge: &EdgeId) {
        let own = self.elsewhere.iter().filter(|(_, stranger)| stranger.edge == *edge).map(|(id, _)| id.clone());
        for id in own.collect::<Vec<_>>() {
            self.touch_stranger(&id);
        }
    }

    /// Others should hear how a worker fares that is attached here.
    pub(super) fn tell_of(&mut self, id: &SessionId) {
        if self.has_neighbours && self.news.insert(id.clone()) {
            self.told.notify_one();
        }
    }

    /// Tells the roster what is known of a worker elsewhere. One that is attached here speaks for itself.
    fn touch_stranger(&mut self, id: &SessionId) {
        let Some(stranger) = self.elsewhere.get(id).filter(|_| !self.sessions.contains_key(id)) else { return };
        let doubted = self.left.to.get(id).is_some_and(|left| left.is_overdue(self.left.wait))
            || self.left.silent.contains(&stranger.edge);
        let now = stranger.candidate(self.seen_of(id, stranger).map(|seen| &seen.sighting), doubted);
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
    fn sighting(&self, id: &SessionId, said: u64) -> Sighting {
        Sighting {
            session: id.clone(),
            epoch: self.epoch,
            busy: u32::try_from(self.taken()).unwrap_or(u32::MAX),
            active_jobs: self.active_jobs,
            load: self.load,
            attached: self.is_attached(),
            draining: self.draining,
            heard_ms_ago: millis(self.heard_at.elapsed()),
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

#[cfg(test)]
mod tests {
    use lockgate_core::ids::PoolName;
    use lockgate_core::lane::{Priority, Shape};
    use lockgate_core::pools::{PoolStates, Pools, Routing};
    use lockgate_core::worker::Load;
    use tokio::time::advance;

    use super::super::seats::Want;
    use super::*;
    use crate::settings::HANDOVER_WAIT;

    /// An edge without workers of its own, and workers of a direct pool at other edges.
    fn edge(others: &[(&str, &str)]) -> Edge {
        let pools = Pools::load("pools.yaml", "topics: {t: d}\npools: {d: {dispatch: direct}}\n").expect("valid");
        let routing = Routing::new(Arc::new(pools), PoolStates::default());
        let edge = Edge::new("here".into(), Arc::new(routing), HANDOVER_WAIT, true);
        edge.meet(others.iter().map(|(session, at)| row(session, at)));
        for (session, _) in others {
            say(&edge, session);
        }
        edge
    }

    fn row(session: &str, at: &str) -> SessionRow {
        let profile = WorkerProfile {
            worker: session.into(),
            pool: "d".into(),
            topics: vec!["*".into()],
            capabilities: BTreeSet::new(),
            labels: BTreeMap::new(),
            slots: 4,
            in_process: false,
            lost_after_ms: None,
            owner: None,
        };
        SessionRow { session: session.into(), epoch: 1, edge: at.into(), edge_closed: false, profile, sent_away: false }
    }

    /// The process of a worker says that it claimed something, and that this has ended.
    fn say(edge: &Edge, session: &str) {
        say_claimed(edge, session, 1);
    }

    /// The process of a worker says that it is idle, and that it claimed so much more for it.
    fn say_claimed(edge: &Edge, session: &str, more: u64) {
        let last = edge.state.lock().seen.get(&SessionId::from(session)).map(|seen| seen.sighting.clone());
        let said = last.as_ref().map_or(1, |last| last.said + 1);
        let claimed = last.and_then(|last| last.claimed).map_or(Some(0), |claimed| Some(claimed + more));
        let sighting = Sighting {
            session: session.into(),
            epoch: 1,
            busy: 0,
            active_jobs: 0,
            load: Load::default(),
            attached: true,
            draining: false,
            heard_ms_ago: 0,
            slots: 4,
            said,
            claimed,
            leaving: Vec::new(),
        };
        edge.saw(std::iter::once(&sighting), Duration::ZERO);
    }

    /// One round of claims while so many jobs wait: how many of them found no place, here or elsewhere.
    fn round(edge: &Edge, jobs: usize) -> usize {
        edge.begin_round();
        let want = Want { shape: Arc::new(Shape::of("t")), urgency: Priority::Default, jobs };
        let wants = if jobs == 0 { Vec::new() } else { vec![want] };
        let short = edge.plan(&PoolName::from("d"), &wants).short;
        edge.end_round();
        short.first().copied().unwrap_or(0)
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_process_is_left_nothing_for_any_of_its_workers_until_it_is_heard() {
        let edge = edge(&[("a1", "a"), ("a2", "a"), ("b1", "b")]);
        assert_eq!(round(&edge, 12), 0, "all of it is left to others");
        advance(HANDOVER_WAIT).await;
        say(&edge, "b1");
        assert_eq!(round(&edge, 12), 8, "a said nothing, b did");
        say(&edge, "a2");
        assert_eq!(round(&edge, 12), 4, "a is there, and still says nothing of a1");
        say(&edge, "a1");
        assert_eq!(round(&edge, 12), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_speaks_and_claims_nothing_is_left_nothing_until_it_claims() {
        let edge = edge(&[("a1", "a")]);
        assert_eq!(round(&edge, 4), 0, "all of it is left to it");
        advance(HANDOVER_WAIT).await;
        for _ in 0..20 {
            say_claimed(&edge, "a1", 0);
            assert_eq!(round(&edge, 4), 4, "its beat is no claim");
            advance(Duration::from_secs(1)).await;
        }
        say_claimed(&edge, "a1", 1);
        assert_eq!(round(&edge, 4), 0, "it claimed something");
        advance(HANDOVER_WAIT).await;
        say_claimed(&edge, "a1", 0);
        assert_eq!(round(&edge, 4), 4);
        advance(LEFT_AGAIN).await;
        say_claimed(&edge, "a1", 0);
        assert_eq!(round(&edge, 4), 0, "tried again, in case that there was nothing that it could claim");
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_left_what_no_longer_waits_is_not_doubted_for_its_silence() {
        let edge = edge(&[("a1", "a")]);
        assert_eq!(round(&edge, 1), 0);
        // It was cancelled.
        assert_eq!(round(&edge, 0), 0);
        advance(HANDOVER_WAIT * 2).await;
        assert_eq!(round(&edge, 1), 0, "the next one is left to it all the same");
    }
}
