//! Sessions in memory: who is attached, what each holds, where places are free.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, EdgeId, JobId, SessionId, WorkerId};
use lockgate_core::job::{Binding, Dispatch, Job, JobState};
use lockgate_core::placement::Roster;
use lockgate_core::pools::{Routing, RoutingId};
use lockgate_core::time::Timestamp;
use lockgate_core::trace::TraceParent;
use lockgate_core::worker::{Load, WorkerProfile};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::elsewhere::{LastSighting, LeftOver, RemoteWorker};
use super::outbound::Outbound;
use super::pace::TopicPace;
use super::{Assignment, AttemptProgress, ToWorker};

/// One life of this process as a holder of worker streams.
pub(crate) struct Edge {
    pub(super) state: Mutex<EdgeState>,
    /// Rings when other processes should hear of a worker.
    pub(super) told: Arc<Notify>,
}

pub(super) struct EdgeState {
    id: EdgeId,
    /// When its lease in the Store was last renewed, at the earliest.
    renewed_at: Instant,
    pub(super) sessions: BTreeMap<SessionId, EdgeSession>,
    /// Who takes what. Says of every session what the session says of itself: see [`EdgeState::touch`].
    pub(super) roster: Roster<SessionId>,
    /// Sessions of other processes.
    pub(super) elsewhere: BTreeMap<SessionId, RemoteWorker>,
    /// What was heard of sessions of other processes, those of whom the Store has not told us yet among them.
    pub(super) seen: BTreeMap<SessionId, LastSighting>,
    /// Waiting jobs that are left to workers of other processes.
    pub(super) left: LeftOver,
    /// Other processes may have workers on the same Store.
    pub(super) has_neighbours: bool,
    /// Own sessions of which others should hear before the next beat.
    pub(super) news: BTreeSet<SessionId>,
    pub(super) told: Arc<Notify>,
    /// How often something was said of own sessions.
    pub(super) said: u64,
    /// Sessions that hold more than they can run at once.
    pub(super) ahead: BTreeSet<SessionId>,
    pub(super) pace: TopicPace,
    /// Starts that are not durable yet.
    starts: Vec<(SessionId, AttemptToken)>,
}

pub(super) struct EdgeSession {
    pub(super) epoch: u64,
    pub(super) profile: Arc<WorkerProfile>,
    /// Jobs it may hold beyond its slots.
    pub(super) prefetch: u32,
    pub(super) outbound: Outbound,
    pub(super) heard_at: Instant,
    pub(super) heard_wall: Timestamp,
    pub(super) held: BTreeMap<AttemptToken, HeldAttempt>,
    /// Attempts that no longer count and that its worker has not let go of. They take places, and whatever limits they took,
    /// until then.
    pub(super) leaving: BTreeMap<AttemptToken, LeavingAttempt>,
    pub(super) last_assignment: u64,
    pub(super) draining: bool,
    /// Its worker said that it drains. One that an operator sends away may not have heard of it yet.
    pub(super) says_it_drains: bool,
    /// An operator wants it to leave.
    pub(super) sent_away: bool,
    /// What it measured of its machine.
    pub(super) load: Load,
    /// Slots in use by its own count.
    pub(super) active_jobs: u32,
}

pub(super) struct HeldAttempt {
    pub(super) job: Arc<Job>,
    /// Its dispatch is committed. Until then nothing is decided from it: the Store may have another job of this version.
    pub(super) stored: bool,
    /// It was sent to its worker, who has it or will have.
    pub(super) told: bool,
    /// The start report came but is not committed.
    pub(super) started: Option<Timestamp>,
    /// When this edge came to know of it: it was sent, or its worker came with it.
    known_since: Instant,
    /// When its place was taken, if that was on this stream.
    pub(super) sent: Option<Instant>,
    /// When the start report came.
    pub(super) begun: Option<Instant>,
    pub(super) progress: Option<AttemptProgress>,
    /// It was asked back for something more urgent.
    pub(super) asked_back: bool,
}

impl HeldAttempt {
    pub(super) fn new(job: Arc<Job>) -> Self {
        Self {
            job,
            stored: true,
            told: true,
            started: None,
            known_since: Instant::now(),
            sent: None,
            begun: None,
            progress: None,
            asked_back: false,
        }
    }

    /// Committed, and never sent on a stream that its worker still has.
    pub(super) fn unsent(job: Arc<Job>) -> Self {
        Self { told: false, ..Self::new(job) }
    }
}

/// An attempt on its way out.
pub(crate) struct LeavingAttempt {
    pub(super) job_id: JobId,
    /// A run waits for its end before it undoes anything.
    pub(super) of_run: bool,
    /// That it was sent under.
    pub(super) number: u64,
    pub(super) since: Instant,
}

impl LeavingAttempt {
    pub(super) fn new(job_id: JobId, of_run: bool, number: u64) -> Self {
        Self { job_id, of_run, number, since: Instant::now() }
    }
}

/// An attempt that its worker has let go of.
pub(crate) struct Left {
    pub(crate) token: AttemptToken,
    /// Its job, if a run waits for its end.
    pub(crate) job_of_run: Option<JobId>,
}

impl Left {
    fn of((token, leaving): (&AttemptToken, &LeavingAttempt)) -> Self {
        Self { token: token.clone(), job_of_run: leaving.of_run.then(|| leaving.job_id.clone()) }
    }
}

/// A session as others may see it.
pub(crate) struct SessionView {
    pub(crate) session: SessionId,
    pub(crate) profile: Arc<WorkerProfile>,
    pub(crate) busy: usize,
    pub(crate) load: Load,
    pub(crate) active_jobs: u32,
    pub(crate) heard_at: Timestamp,
    pub(crate) attached: bool,
    pub(crate) draining: bool,
}

/// What an attempt that is over had here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freed {
    Nothing,
    Place,
    /// A slot, and limits that are not freed yet.
    PlaceAndLimits,
}

/// How a worker went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It was drained, had nothing left, and went.
    Left,
    /// It was not heard of for too long.
    Silent,
}

/// What became of the wish for a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reservation {
    Taken,
    /// The session has this very attempt already: the claim was old news.
    Known,
    /// The session is leaving or gone.
    Closed,
}

impl Edge {
    pub(crate) fn new(id: EdgeId, routing: Arc<Routing>, handover_wait: Duration, has_neighbours: bool) -> Self {
        let told = Arc::new(Notify::new());
        let state = EdgeState {
            id,
            renewed_at: Instant::now(),
            sessions: BTreeMap::new(),
            roster: Roster::new(routing),
            elsewhere: BTreeMap::new(),
            seen: BTreeMap::new(),
            left: LeftOver::new(handover_wait),
            has_neighbours,
            news: BTreeSet::new(),
            told: told.clone(),
            said: 0,
            ahead: BTreeSet::new(),
            pace: TopicPace::default(),
            starts: Vec::new(),
        };
        Self { state: Mutex::new(state), told }
    }

    /// The lease was renewed by a call that began then.
    pub(crate) fn renewed(&self, at: Instant) {
        self.state.lock().renewed_at = at;
    }

    /// How long others may not have heard of this edge.
    pub(super) fn lease_age(&self) -> Duration {
        self.state.lock().renewed_at.elapsed()
    }

    pub(crate) fn id(&self) -> EdgeId {
        self.state.lock().id.clone()
    }

    /// This edge was closed by another process: every session must attach anew, under a new edge.
    pub(crate) fn reset(&self, id: EdgeId) {
        let mut state = self.state.lock();
        state.id = id;
        for session in std::mem::take(&mut state.sessions).into_keys() {
            state.roster.remove(&session);
        }
        state.ahead.clear();
        state.starts.clear();
    }

    /// Takes a session that attached under `edge`. An older attach that was slower does not replace a newer one. Attempts that
    /// it was told to stop before and does not have any more are returned: their limits are not freed yet. None, and it is not
    /// taken, if this is another edge by now: the session would have no stream there.
    pub(super) fn insert(&self, id: &SessionId, edge: &EdgeId, mut session: EdgeSession) -> Option<Vec<Left>> {
        let mut state = self.state.lock();
        if state.id != *edge {
            return None;
        }
        let known = state.sessions.get(id);
        let mut gone = Vec::new();
        if known.is_none_or(|known| known.epoch < session.epoch) {
            let left = known.iter().flat_map(|known| &known.leaving);
            gone.extend(left.filter(|(token, _)| !session.leaving.contains_key(*token)).map(Left::of));
            if known.is_some_and(|known| known.sent_away) && !session.sent_away {
                session.send_away();
            }
            // Who comes back again and again has been heard of all the time.
            for (token, held) in &mut session.held {
                if let Some(before) = known.and_then(|known| known.held.get(token)) {
                    held.known_since = before.known_since;
                }
            }
            // Anew, for it may have come back with another profile.
            state.roster.remove(id);
            state.sessions.insert(id.clone(), session);
            state.touch(id);
        }
        Some(gone)
    }

    /// Runs `f` on the session if it is attached with this epoch.
    pub(super) fn with<R>(&self, id: &SessionId, epoch: u64, f: impl FnOnce(&mut EdgeSession) -> R) -> Option<R> {
        let mut state = self.state.lock();
        let answer = state.sessions.get_mut(id).filter(|session| session.epoch == epoch).map(f);
        if answer.is_some() {
            state.touch(id);
        }
        answer
    }

    /// Forgets a session that was closed in the Store. Returns what it was still letting go of.
    pub(crate) fn remove(&self, id: &SessionId, epoch: u64) -> Vec<Left> {
        let mut state = self.state.lock();
        if state.sessions.get(id).is_none_or(|session| session.epoch != epoch) {
            return Vec::new();
        }
        let left = state.sessions.remove(id).map(|session| session.leaving);
        state.roster.remove(id);
        state.ahead.remove(id);
        left.iter().flatten().map(Left::of).collect()
    }

    /// Those of these attempts that the session is letting go of.
    pub(super) fn left(&self, id: &SessionId, tokens: &[AttemptToken]) -> Vec<Left> {
        let state = self.state.lock();
        let Some(session) = state.sessions.get(id) else { return Vec::new() };
        tokens.iter().filter_map(|token| session.leaving.get_key_value(token)).map(Left::of).collect()
    }

    /// The stream ended. The session lives on until it is silent for too long.
    pub(super) fn detach(&self, id: &SessionId, epoch: u64) {
        self.with(id, epoch, |session| session.outbound.close());
    }

    /// The Store no longer agrees with what is known of this session: ends its stream, so that it attaches anew.
    pub(super) fn suspect(&self, id: &SessionId, epoch: u64) {
        let mut state = self.state.lock();
        if let Some(session) = state.sessions.get_mut(id).filter(|session| session.epoch == epoch) {
            session.outbound.close();
        }
        state.touch(id);
    }

    /// Tells a worker that an attempt no longer counts. True if it was sent there: then it takes its place, and its limits, until
    /// the worker has let go of it. A process that the worker is attached to hears of it by itself; one that is attached nowhere yet
    /// comes back with the attempt, or its session ends.
    pub(crate) fn stop(&self, id: &SessionId, token: &AttemptToken, job: &Job) -> bool {
        let mut state = self.state.lock();
        let Some(session) = state.sessions.get_mut(id) else { return true };
        let reason = job.life.last_error.as_ref().map_or("superseded", |failure| failure.reason.as_str());
        let job_id = job.request.job_id.clone();
        session.outbound.tell(ToWorker::Stop { job_id, token: token.clone(), reason: reason.into() });
        let sent = session.held.remove(token).filter(|held| held.told);
        let number = sent.as_ref().and_then(|held| held.job.life.attempt.binding.as_ref()).map(|binding| binding.assignment);
        let of_run = job.request.run.is_some();
        // A run hears that an attempt is over from its worker's word, of one that the worker never got too.
        if number.is_some() || of_run {
            let leaving = || LeavingAttempt::new(job.request.job_id.clone(), of_run, number.unwrap_or(0));
            session.leaving.entry(token.clone()).or_insert_with(leaving);
        }
        let leaving = session.leaving.contains_key(token);
        session.dismiss_if_done();
        state.touch(id);
        leaving
    }

    /// Learns how long attempts of their topics run, from those that ran to an end.
    pub(super) fn note_runs<'t>(&self, id: &SessionId, tokens: impl Iterator<Item = &'t AttemptToken>) {
        let mut state = self.state.lock();
        let EdgeState { sessions, pace, .. } = &mut *state;
        let Some(session) = sessions.get(id) else { return };
        for held in tokens.filter_map(|token| session.held.get(token)) {
            // The start of what ends at once is never reported; then the whole way there and back is time enough.
            if let Some(from) = held.begun.or(held.sent) {
                pace.note(&held.job.request.topic, from.elapsed());
            }
        }
    }

    /// Frees the place of an attempt that is over and that its worker has nothing of.
    pub(crate) fn settle(&self, id: &SessionId, token: &AttemptToken) -> Freed {
        let mut state = self.state.lock();
        let Some(session) = state.sessions.get_mut(id) else { return Freed::Nothing };
        let freed = match (session.held.remove(token).is_some(), session.leaving.remove(token).is_some()) {
            (_, true) => Freed::PlaceAndLimits,
            (true, false) => Freed::Place,
            (false, false) => Freed::Nothing,
        };
        session.dismiss_if_done();
        state.touch(id);
        freed
    }

    /// The sessions of a worker and of its groups of topics, wherever they are attached.
    pub(crate) fn sessions_of(&self, worker: &WorkerId) -> Vec<SessionId> {
        let state = self.state.lock();
        let mine = state.sessions.iter().filter(|(id, session)| is_part_of(worker, &session.profile.worker, id));
        let own = mine.map(|(id, _)| id);
        let others =
            state.elsewhere.iter().filter(|(id, stranger)| is_part_of(worker, stranger.worker(), id)).map(|(id, _)| id);
        own.chain(others.filter(|id| !state.sessions.contains_key(*id))).cloned().collect()
    }

    /// An operator wants these to leave: those that are attached here get nothing more and are told so, once.
    pub(crate) fn send_away(&self, ids: &[SessionId]) {
        let mut state = self.state.lock();
        for id in ids {
            if let Some(session) = state.sessions.get_mut(id).filter(|session| !session.sent_away) {
                session.send_away();
                state.touch(id);
            }
        }
    }

    /// Numbers the next assignment of a session.
    pub(super) fn next_dispatch(&self, id: &SessionId, epoch: u64, routing: &RoutingId) -> Option<Dispatch> {
        let mut state = self.state.lock();
        let session = state.sessions.get_mut(id).filter(|session| session.epoch == epoch)?;
        session.last_assignment += 1;
        Some(Dispatch {
            session: id.clone(),
            epoch: session.epoch,
            worker: session.profile.worker.clone(),
            assignment: session.last_assignment,
            routing: routing.clone(),
        })
    }

    /// Takes a place for a job that is about to be dispatched. A draining session gives none: once it holds nothing it
    /// is dismissed, and nothing may follow that.
    pub(super) fn reserve(&self, id: &SessionId, epoch: u64, job: Arc<Job>) -> Reservation {
        let mut state = self.state.lock();
        let session = state.sessions.get_mut(id).filter(|session| session.epoch == epoch && !session.draining);
        let Some(session) = session else { return Reservation::Closed };
        match session.held.entry(job.life.attempt.token.clone()) {
            Entry::Occupied(_) => Reservation::Known,
            Entry::Vacant(place) => {
                place.insert(HeldAttempt { stored: false, sent: Some(Instant::now()), ..HeldAttempt::unsent(job) });
                state.touch(id);
                Reservation::Taken
            }
        }
    }

    /// Gives up a place whose dispatch was not committed. One that was taken since the session attached anew is not that one,
    /// though it may be for the same attempt.
    pub(super) fn unreserve(&self, id: &SessionId, epoch: u64, token: &AttemptToken) {
        self.with(id, epoch, |session| {
            session.held.remove(token);
            session.dismiss_if_done();
        });
    }

    /// Sends committed dispatches to their workers, unless their place was freed meanwhile: by a cancel, for instance.
    /// A session that attached anew meanwhile has the job by its inventory; a worker ignores what it has already.
    pub(super) fn assign(&self, jobs: Vec<(Arc<Job>, Option<TraceParent>)>) {
        let mut state = self.state.lock();
        let mut batches: BTreeMap<SessionId, Vec<Assignment>> = BTreeMap::new();
        for (job, trace) in jobs {
            let Some(binding) = &job.life.attempt.binding else { continue };
            let Some(session) = state.sessions.get_mut(&binding.session) else { continue };
            let Some(held) = session.held.get_mut(&job.life.attempt.token) else { continue };
            (held.stored, held.told) = (true, true);
            batches.entry(binding.session.clone()).or_default().push(Assignment::of(&job, trace));
        }
        for (id, batch) in batches {
            let Some(session) = state.sessions.get_mut(&id) else { continue };
            session.outbound.tell(ToWorker::Assign(batch));
            if !session.is_attached() {
                // Or it would be given more before its reader has noticed.
                state.touch(&id);
            }
        }
    }

    /// Remembers a start report until it is flushed or overtaken by the result. The job, if the start is new.
    pub(super) fn note_start(&self, id: &SessionId, token: &AttemptToken, now: Timestamp) -> Option<Arc<Job>> {
        let mut state = self.state.lock();
        let EdgeState { sessions, starts, .. } = &mut *state;
        let held = sessions.get_mut(id).and_then(|session| session.held.get_mut(token))?;
        let new = held.stored && held.started.is_none() && held.job.state() == JobState::Dispatched;
        new.then(|| {
            held.started = Some(now);
            held.begun = Some(Instant::now());
            starts.push((id.clone(), token.clone()));
            held.job.clone()
        })
    }

    /// Starts that could not be stored: tried again with the next flush.
    pub(crate) fn put_starts_back(&self, jobs: Vec<Arc<Job>>) {
        let mut state = self.state.lock();
        let start =
            |job: Arc<Job>| Some((job.life.attempt.binding.as_ref()?.session.clone(), job.life.attempt.token.clone()));
        state.starts.extend(jobs.into_iter().filter_map(start));
    }

    /// Starts whose attempts are still held and not durable.
    pub(crate) fn take_starts(&self) -> Vec<(Arc<Job>, Timestamp)> {
        let mut state = self.state.lock();
        let EdgeState { sessions, starts, .. } = &mut *state;
        let held = |(id, token): (SessionId, AttemptToken)| {
            let held = sessions.get(&id)?.held.get(&token)?;
            Some((held.job.clone(), held.started?))
        };
        std::mem::take(starts).into_iter().filter_map(held).filter(|(job, _)| job.state() == JobState::Dispatched).collect()
    }

    /// Replaces what is known of a held job after a commit.
    pub(crate) fn update(&self, job: &Arc<Job>) {
        let Some(binding) = &job.life.attempt.binding else { return };
        let mut state = self.state.lock();
        let session = state.sessions.get_mut(&binding.session);
        if let Some(held) = session.and_then(|session| session.held.get_mut(&job.life.attempt.token)) {
            held.job = job.clone();
        }
    }

    /// No worker could be heard for a while, so none was silent.
    pub(crate) fn forgive(&self) {
        for session in self.state.lock().sessions.values_mut() {
            session.heard_at = Instant::now();
        }
    }

    /// Whether the session is here under this epoch, or a later one.
    pub(crate) fn knows(&self, id: &SessionId, epoch: u64) -> bool {
        self.state.lock().sessions.get(id).is_some_and(|session| session.epoch >= epoch)
    }

    /// Sessions whose workers are gone: those that left, and those of which nothing was heard for `lost_after`, or for as long as
    /// theirs are borne with.
    pub(crate) fn gone(&self, lost_after: Duration) -> Vec<(SessionId, u64, Gone)> {
        let state = self.state.lock();
        let gone = |(id, session): (&SessionId, &EdgeSession)| {
            let is_silent = session.heard_at.elapsed() > session.profile.lost_after(lost_after);
            let gone = match session.is_through() {
                true if is_silent || !session.is_attached() => Gone::Left,
                _ if is_silent => Gone::Silent,
                _ => return None,
            };
            Some((id.clone(), session.epoch, gone))
        };
        state.sessions.iter().filter_map(gone).collect()
    }

    /// Held attempts whose time to start or to end was over at `now`, as far as their workers could tell us otherwise. One that
    /// came with its worker after `heard_since` may have ended long ago, in time, while no gateway received its report; and a
    /// worker without a stream cannot say anything.
    pub(crate) fn overdue(&self, now: Timestamp, heard_since: Instant) -> Vec<Arc<Job>> {
        let overdue = |held: &&HeldAttempt| {
            if !held.stored || (held.sent.is_none() && held.known_since > heard_since) {
                return false;
            }
            // A start that is not durable yet is about to be: nothing is due before it is.
            let begun = held.job.state() != JobState::Dispatched;
            let due = |binding: &Binding| if begun { binding.timeout_at } else { binding.start_by };
            held.job.life.attempt.binding.as_ref().is_some_and(|b| due(b) <= now && (begun || held.started.is_none()))
        };
        let state = self.state.lock();
        let attached = state.sessions.values().filter(|session| session.is_attached());
        attached.flat_map(|session| session.held.values()).filter(overdue).map(|held| held.job.clone()).collect()
    }

    /// Held attempts whose start was not reported.
    pub(crate) fn unstarted(&self) -> Vec<Arc<Job>> {
        let unstarted =
            |held: &&HeldAttempt| held.stored && held.job.state() == JobState::Dispatched && held.started.is_none();
        let state = self.state.lock();
        state.sessions.values().flat_map(|s| s.held.values()).filter(unstarted).map(|held| held.job.clone()).collect()
    }

    pub(crate) fn views(&self) -> Vec<SessionView> {
        let state = self.state.lock();
        let view = |(id, session): (&SessionId, &EdgeSession)| SessionView {
            session: id.clone(),
            profile: session.profile.clone(),
            busy: session.taken(),
            load: session.load,
            active_jobs: session.active_jobs,
            heard_at: session.heard_wall,
            attached: session.is_attached(),
            draining: session.draining,
        };
        state.sessions.iter().map(view).collect()
    }

    pub(crate) fn progress(&self, job: &Job) -> Option<AttemptProgress> {
        let binding = job.life.attempt.binding.as_ref()?;
        let state = self.state.lock();
        state.sessions.get(&binding.session)?.held.get(&job.life.attempt.token)?.progress.clone()
    }

    /// Held attempts by priority.
    pub(crate) fn held(&self) -> [u64; 4] {
        let mut counts = [0; 4];
        for held in self.state.lock().sessions.values().flat_map(|session| session.held.values()) {
            counts[held.job.request.priority() as usize] += 1;
        }
        counts
    }
}

/// Whether a session is that of a worker, or of a group of its topics: those end alike, in their names and in their ids.
fn is_part_of(worker: &WorkerId, named: &WorkerId, session: &SessionId) -> bool {
    let group = named.as_str().strip_prefix(worker.as_str());
    group.is_some_and(|group| group.is_empty() || group.starts_with('.') && session.as_str().ends_with(group))
}
