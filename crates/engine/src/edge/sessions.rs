//! Sessions in memory: who is attached, what each holds, where places are free.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use lockgate_core::ids::{AttemptToken, EdgeId, PoolName, SessionId};
use lockgate_core::job::{Dispatch, Job, JobState};
use lockgate_core::lane::Shape;
use lockgate_core::time::Timestamp;
use lockgate_core::worker::WorkerProfile;
use lockgate_ports::{Seat, ShapeSet};
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::{Assignment, Progress, ToWorker};

/// One life of this process as a holder of worker streams.
pub(crate) struct Edge {
    state: Mutex<State>,
}

struct State {
    id: EdgeId,
    sessions: BTreeMap<SessionId, Session>,
    /// Starts that are not durable yet.
    starts: Vec<(SessionId, AttemptToken)>,
}

pub(super) struct Session {
    pub(super) epoch: u64,
    pub(super) profile: Arc<WorkerProfile>,
    /// Absent while no stream is attached.
    pub(super) outbound: Option<UnboundedSender<ToWorker>>,
    pub(super) heard_at: Instant,
    pub(super) heard_wall: Timestamp,
    pub(super) held: BTreeMap<AttemptToken, Held>,
    pub(super) last_assignment: u64,
    pub(super) draining: bool,
    /// Shapes this worker fits, for one generation of the pool's shapes.
    pub(super) fits: (Option<u64>, Arc<[Arc<Shape>]>),
}

pub(super) struct Held {
    pub(super) job: Arc<Job>,
    /// The start report came but is not committed.
    pub(super) started: Option<Timestamp>,
    pub(super) progress: Option<Progress>,
}

/// A session as others may see it.
pub(crate) struct SessionView {
    pub(crate) session: SessionId,
    pub(crate) profile: Arc<WorkerProfile>,
    pub(crate) busy: usize,
    pub(crate) heard_at: Timestamp,
    pub(crate) attached: bool,
    pub(crate) draining: bool,
}

/// What became of the wish for a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Taken,
    /// The session has this very attempt already: the claim was old news.
    Known,
    /// The session is leaving or gone.
    Closed,
}

/// A free place with what is needed to dispatch to it.
pub(super) struct FreeSeat {
    pub(super) session: SessionId,
    pub(super) seat: Seat,
}

impl Edge {
    pub(crate) fn new(id: EdgeId) -> Self {
        Self { state: Mutex::new(State { id, sessions: BTreeMap::new(), starts: Vec::new() }) }
    }

    pub(crate) fn id(&self) -> EdgeId {
        self.state.lock().id.clone()
    }

    /// This edge was closed by another process: every session must attach anew, under a new edge.
    pub(crate) fn reset(&self, id: EdgeId) {
        let mut state = self.state.lock();
        state.id = id;
        state.sessions.clear();
        state.starts.clear();
    }

    /// Takes a session that attached. An older attach that was slower does not replace a newer one.
    pub(super) fn insert(&self, id: SessionId, session: Session) {
        let mut state = self.state.lock();
        if state.sessions.get(&id).is_none_or(|known| known.epoch < session.epoch) {
            state.sessions.insert(id, session);
        }
    }

    /// Runs `f` on the session if it is attached with this epoch.
    pub(super) fn with<R>(&self, id: &SessionId, epoch: u64, f: impl FnOnce(&mut Session) -> R) -> Option<R> {
        let mut state = self.state.lock();
        state.sessions.get_mut(id).filter(|session| session.epoch == epoch).map(f)
    }

    /// Forgets a session that was closed in the Store.
    pub(crate) fn remove(&self, id: &SessionId, epoch: u64) {
        let mut state = self.state.lock();
        if state.sessions.get(id).is_some_and(|session| session.epoch == epoch) {
            state.sessions.remove(id);
        }
    }

    /// The stream ended. The session lives on until it is silent for too long.
    pub(super) fn detach(&self, id: &SessionId, epoch: u64) {
        self.with(id, epoch, |session| session.outbound = None);
    }

    /// The Store no longer agrees with what is known of this session: ends its stream, so that it attaches anew.
    pub(super) fn suspect(&self, id: &SessionId) {
        if let Some(session) = self.state.lock().sessions.get_mut(id) {
            session.outbound = None;
        }
    }

    /// Tells a worker that an attempt no longer counts.
    pub(crate) fn stop(&self, id: &SessionId, token: &AttemptToken, job: &Job) {
        let state = self.state.lock();
        if let Some(outbound) = state.sessions.get(id).and_then(|session| session.outbound.as_ref()) {
            let reason = job.life.last_error.as_ref().map_or("superseded", |failure| failure.reason.as_str());
            // A closed stream means that the worker will attach again and be told by inventory.
            let _ = outbound.send(ToWorker::Stop {
                job_id: job.request.job_id.clone(),
                token: token.clone(),
                reason: reason.into(),
            });
        }
    }

    /// Frees the attempt's place. True if there was one.
    pub(crate) fn settle(&self, id: &SessionId, token: &AttemptToken) -> bool {
        let mut state = self.state.lock();
        state.sessions.get_mut(id).is_some_and(|session| {
            let freed = session.held.remove(token).is_some();
            session.dismiss_if_done();
            freed
        })
    }

    pub(super) fn free_seats(&self, pool: &PoolName, shapes: &ShapeSet) -> Vec<FreeSeat> {
        let mut state = self.state.lock();
        let open = |s: &&mut Session| s.is_attached() && !s.draining && s.profile.pool == *pool;
        let mut seats = Vec::new();
        for (id, session) in &mut state.sessions {
            let Some(session) = Some(session).filter(open) else { continue };
            let free = (session.profile.slots as usize).saturating_sub(session.held.len());
            if free > 0 {
                seats.push(FreeSeat { session: id.clone(), seat: Seat { shapes: session.fitting(shapes), free } });
            }
        }
        seats
    }

    /// Numbers the next assignment of a session.
    pub(super) fn next_dispatch(&self, id: &SessionId) -> Option<Dispatch> {
        let mut state = self.state.lock();
        let session = state.sessions.get_mut(id)?;
        session.last_assignment += 1;
        Some(Dispatch {
            session: id.clone(),
            epoch: session.epoch,
            worker: session.profile.worker.clone(),
            assignment: session.last_assignment,
        })
    }

    /// Takes a place for a job that is about to be dispatched. A draining session gives none: once it holds nothing it
    /// is dismissed, and nothing may follow that.
    pub(super) fn reserve(&self, id: &SessionId, job: Arc<Job>) -> Place {
        let mut state = self.state.lock();
        let Some(session) = state.sessions.get_mut(id).filter(|session| !session.draining) else { return Place::Closed };
        match session.held.entry(job.life.attempt.token.clone()) {
            Entry::Occupied(_) => Place::Known,
            Entry::Vacant(place) => {
                place.insert(Held { job, started: None, progress: None });
                Place::Taken
            }
        }
    }

    /// Sends committed dispatches to their workers, unless their place was freed meanwhile: by a cancel, for instance.
    /// A session that attached anew meanwhile has the job by its inventory; a worker ignores what it has already.
    pub(super) fn assign(&self, jobs: Vec<Arc<Job>>) {
        let mut state = self.state.lock();
        let mut batches: BTreeMap<SessionId, Vec<Assignment>> = BTreeMap::new();
        for job in jobs {
            let Some(binding) = &job.life.attempt.binding else { continue };
            let Some(session) = state.sessions.get_mut(&binding.session) else { continue };
            if !session.held.contains_key(&job.life.attempt.token) {
                continue;
            }
            batches.entry(binding.session.clone()).or_default().push(Assignment::of(&job));
        }
        for (id, batch) in batches {
            if let Some(outbound) = state.sessions.get(&id).and_then(|session| session.outbound.as_ref()) {
                let _ = outbound.send(ToWorker::Assign(batch));
            }
        }
    }

    /// Remembers a start report until it is flushed or overtaken by the result.
    pub(super) fn note_start(&self, id: &SessionId, token: &AttemptToken, now: Timestamp) {
        let mut state = self.state.lock();
        let State { sessions, starts, .. } = &mut *state;
        let Some(held) = sessions.get_mut(id).and_then(|session| session.held.get_mut(token)) else { return };
        if held.started.is_none() && held.job.state() == JobState::Dispatched {
            held.started = Some(now);
            starts.push((id.clone(), token.clone()));
        }
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
        let State { sessions, starts, .. } = &mut *state;
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

    /// Nobody could be heard for a while, so nobody was silent.
    pub(crate) fn forgive(&self) {
        for session in self.state.lock().sessions.values_mut() {
            session.heard_at = Instant::now();
        }
    }

    /// Sessions nothing was heard of since `before`.
    pub(crate) fn silent(&self, before: Instant) -> Vec<(SessionId, u64)> {
        let state = self.state.lock();
        state.sessions.iter().filter(|(_, s)| s.heard_at < before).map(|(id, s)| (id.clone(), s.epoch)).collect()
    }

    /// Held attempts whose time to start or to end was over at `now`.
    pub(crate) fn overdue(&self, now: Timestamp) -> Vec<Arc<Job>> {
        let overdue = |held: &&Held| {
            let unstarted = held.job.state() == JobState::Dispatched && held.started.is_none();
            held.job.life.attempt.binding.as_ref().is_some_and(|b| b.timeout_at <= now || (unstarted && b.start_by <= now))
        };
        let state = self.state.lock();
        state.sessions.values().flat_map(|s| s.held.values()).filter(overdue).map(|held| held.job.clone()).collect()
    }

    /// Held attempts whose start was not reported.
    pub(crate) fn unstarted(&self) -> Vec<Arc<Job>> {
        let unstarted = |held: &&Held| held.job.state() == JobState::Dispatched && held.started.is_none();
        let state = self.state.lock();
        state.sessions.values().flat_map(|s| s.held.values()).filter(unstarted).map(|held| held.job.clone()).collect()
    }

    pub(crate) fn views(&self) -> Vec<SessionView> {
        let state = self.state.lock();
        let view = |(id, session): (&SessionId, &Session)| SessionView {
            session: id.clone(),
            profile: session.profile.clone(),
            busy: session.held.len(),
            heard_at: session.heard_wall,
            attached: session.is_attached(),
            draining: session.draining,
        };
        state.sessions.iter().map(view).collect()
    }

    pub(crate) fn progress(&self, job: &Job) -> Option<Progress> {
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

impl Session {
    fn is_attached(&self) -> bool {
        self.outbound.as_ref().is_some_and(|outbound| !outbound.is_closed())
    }

    pub(super) fn drain(&mut self) {
        self.draining = true;
        self.dismiss_if_done();
    }

    /// Places are taken before an assignment is on its way and freed after its end, so an empty session has nothing to
    /// come. Said anew whenever it becomes so: a worker that leaves twice leaves once.
    fn dismiss_if_done(&self) {
        if let Some(outbound) = self.outbound.as_ref().filter(|_| self.draining && self.held.is_empty()) {
            // A closed stream means that the worker attaches again, and says again that it is draining.
            let _ = outbound.send(ToWorker::Dismissed);
        }
    }

    /// Recomputed only when the pool's shapes change.
    fn fitting(&mut self, shapes: &ShapeSet) -> Arc<[Arc<Shape>]> {
        if self.fits.0 != Some(shapes.generation) {
            let fits = shapes.shapes.iter().filter(|shape| self.profile.check(shape).is_ok()).cloned().collect();
            self.fits = (Some(shapes.generation), fits);
        }
        self.fits.1.clone()
    }
}

impl Assignment {
    pub(super) fn of(job: &Arc<Job>) -> Self {
        let binding = job.life.attempt.binding.as_ref();
        Self {
            number: binding.map_or(0, |b| b.assignment),
            timeout: binding.map(|b| b.timeout_at.since(b.dispatched_at)).unwrap_or_default(),
            job: job.clone(),
        }
    }
}
