//! The state of a session, shared by the tasks that run attempts and the task of the stream.

mod stream;

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::task::AtomicWaker;
use lockgate_contract::Load;
use lockgate_contract::limits::ERROR_BYTES_MAX;
use lockgate_proto::v1::result::{Interrupted, Outcome, Revoked};
use lockgate_proto::v1::{
    Assignment, Hello, LogReport, ProgressReport, Result as Report, ResultAck, Revoke, ServerMessage, Stop,
};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::adapt::{HandlerTimes, LoadSample};
use super::attempt::RunningAttempt;
use super::held::{HeldAttempts, Removed, StoppedAttempt};
use super::journal::Journal;
use super::outbox::Outbox;
use super::uplink::StreamPhase;
use crate::registry::Registry;
use crate::trace::{self, SpanSink};
use crate::wall;
use lockgate_tls::grpc::BearerChannel;

/// An attempt that no longer runs, and how it ended.
pub(crate) struct EndedAttempt {
    pub attempt: Arc<RunningAttempt>,
    pub outcome: Outcome,
}

pub(crate) struct SessionState {
    /// The hello of every stream; the inventory is filled in when it is sent.
    profile: Hello,
    pub registry: Registry,
    journal: Option<Journal>,
    spans: Option<SpanSink>,
    state: Mutex<LockedState>,
    /// Wakes the stream when something waits to be sent.
    outgoing: AtomicWaker,
    /// Notified of every end and acknowledgement, for tasks that wait for the last one.
    settled: Notify,
    /// Notified when the server drains this worker.
    leave: Notify,
    /// Notified of every beat.
    beaten: Notify,
}

#[derive(Default)]
struct LockedState {
    held: HeldAttempts,
    outbox: Outbox,
    /// Assignments beyond the slots, in the order they came.
    line: VecDeque<Arc<RunningAttempt>>,
    /// How many attempts may run at once now.
    slots: usize,
    /// Whether all slots were in use at some time since the last sample.
    full: bool,
    /// Kept if the slots adapt to them.
    times: Option<HandlerTimes>,
    /// Slots in use. A stopped attempt uses its slot until its handler has ended.
    busy: usize,
    draining: bool,
    /// The server sends no more assignments on this stream.
    dismissed: bool,
    closing: bool,
    /// The latest reading, for the next beat.
    load: Load,
    /// The connection of the latest stream, for other calls.
    channel: Option<BearerChannel>,
    stream: u64,
    phase: StreamPhase,
}

impl SessionState {
    pub(crate) fn new(profile: Hello, registry: Registry, journal: Option<Journal>, restored: Vec<Report>) -> Self {
        let mut state = LockedState { slots: profile.slots as usize, ..LockedState::default() };
        for report in restored {
            state.held.restore(report);
        }
        Self {
            profile,
            registry,
            journal,
            spans: None,
            state: Mutex::new(state),
            outgoing: AtomicWaker::new(),
            settled: Notify::new(),
            leave: Notify::new(),
            beaten: Notify::new(),
        }
    }

    /// Measures the duration of handlers, for adaptive slots.
    pub(crate) fn timed(self, is_timed: bool) -> Self {
        self.state.lock().times = is_timed.then(HandlerTimes::default);
        self
    }

    /// The number of slots, and the load since the last call.
    pub(crate) fn seen(&self, cpu: Option<u32>) -> (u32, LoadSample) {
        let mut state = self.state.lock();
        let full = std::mem::take(&mut state.full) || state.busy >= state.slots;
        let seen = LoadSample { cpu, p95: state.times.as_mut().and_then(HandlerTimes::take_p95), full };
        (u32::try_from(state.slots).unwrap_or(u32::MAX), seen)
    }

    /// Changes the number of slots. Running attempts continue; returns the attempts that may start now. The next beat tells
    /// the server.
    pub(crate) fn resize(&self, slots: u32) -> Vec<Arc<RunningAttempt>> {
        let mut state = self.state.lock();
        state.slots = slots as usize;
        state.next_in_line()
    }

    /// Writes a span for every attempt that runs here.
    pub(crate) fn watched_by(self, spans: Option<SpanSink>) -> Self {
        Self { spans, ..self }
    }

    /// Whether spans have a sink.
    pub(crate) fn writes_spans(&self) -> bool {
        self.spans.is_some()
    }

    /// An attempt that never started has no span.
    fn write_span(&self, attempt: &RunningAttempt, outcome: &Outcome) {
        let Some((sink, began)) = self.spans.as_ref().and_then(|sink| Some((sink, attempt.take_start_ns()?))) else {
            return;
        };
        let times = (began, wall::now_ns());
        if let Some(span) = trace::span(&attempt.assignment, &self.profile.worker_id, times, outcome) {
            sink(span);
        }
    }

    /// Handles a message; returns the attempts to start now.
    pub(crate) fn receive(&self, message: ServerMessage) -> Vec<Arc<RunningAttempt>> {
        let mut done_with = Vec::new();
        let ready = {
            let mut state = self.state.lock();
            state.acknowledge(message.acks, &mut done_with);
            state.stop(message.stops, &mut done_with);
            state.dismissed |= message.dismissed;
            let ready = self.assign(&mut state, message.assignments);
            self.revoke(&mut state, &message.revokes);
            ready
        };
        if message.drain {
            self.leave.notify_one();
        }
        if let Some(journal) = &self.journal {
            journal.remove(done_with);
        }
        self.outgoing.wake();
        self.settled.notify_waiters();
        ready
    }

    fn assign(&self, state: &mut LockedState, assignments: Vec<Assignment>) -> Vec<Arc<RunningAttempt>> {
        let mut ready = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            let attempt = Arc::new(RunningAttempt::new(assignment));
            if !state.held.take(&attempt) {
                continue;
            }
            if state.draining {
                self.conclude(state, EndedAttempt { attempt, outcome: Outcome::Interrupted(Interrupted {}) });
            } else if state.busy < state.slots {
                state.busy += 1;
                ready.push(attempt);
            } else {
                state.line.push_back(attempt);
            }
        }
        state.full |= state.busy >= state.slots;
        ready
    }

    /// Returns waiting attempts that the server revokes. An attempt that has left the line has a slot and is not returned,
    /// even if it has not started.
    fn revoke(&self, state: &mut LockedState, revokes: &[Revoke]) {
        for revoke in revokes {
            let place = state.line.iter().position(|waiting| waiting.token() == revoke.token);
            if let Some(attempt) = place.and_then(|place| state.line.remove(place)) {
                tracing::debug!(job_id = %revoke.job_id, "attempt called back by the server");
                self.conclude(state, EndedAttempt { attempt, outcome: Outcome::Revoked(Revoked {}) });
            }
        }
    }

    /// Records starts and ends; returns the attempts that have a free slot now.
    pub(crate) fn record(&self, begun: Vec<Arc<RunningAttempt>>, ended: Vec<EndedAttempt>) -> Vec<Arc<RunningAttempt>> {
        let ready = {
            let mut state = self.state.lock();
            for attempt in begun {
                state.outbox.push_start(attempt.token().to_owned());
            }
            state.busy -= ended.len();
            for one in ended {
                self.conclude(&mut state, one);
            }
            state.next_in_line()
        };
        self.outgoing.wake();
        self.settled.notify_waiters();
        ready
    }

    fn conclude(&self, state: &mut LockedState, EndedAttempt { attempt, outcome }: EndedAttempt) {
        let Assignment { job_id, token, .. } = &attempt.assignment;
        let outcome = excused(&attempt, outcome);
        if let (Some(times), Some(took)) = (&mut state.times, attempt.took()) {
            times.note(took);
        }
        self.write_span(&attempt, &outcome);
        let report = Report {
            job_id: job_id.clone(),
            token: token.clone(),
            outcome: Some(outcome),
            started_at_ms: attempt.started_at_ms(),
            ran_us: attempt.took().map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX)),
        };
        match state.held.finish(&attempt, report) {
            Removed::Nothing => {}
            Removed::Gone => state.outbox.push_let_go(token.clone()),
            Removed::Result => {
                state.outbox.push_result(token.clone());
                if let (Some(journal), Some(report)) = (&self.journal, state.held.report(token)) {
                    journal.add(report);
                }
            }
        }
    }

    pub(crate) fn progress(&self, attempt: &RunningAttempt, percent: u32, mut message: String) {
        // The server cuts it at this length too; a longer text could only make a message too large.
        message.truncate(message.floor_char_boundary(ERROR_BYTES_MAX));
        let Assignment { job_id, token, .. } = &attempt.assignment;
        let report = ProgressReport { job_id: job_id.clone(), token: token.clone(), percent: percent.min(100), message };
        self.state.lock().outbox.push_progress(report);
        self.outgoing.wake();
    }

    pub(crate) fn log(&self, attempt: &RunningAttempt, line: String) {
        let Assignment { job_id, token, .. } = &attempt.assignment;
        let report = LogReport { job_id: job_id.clone(), token: token.clone(), at_ms: wall::now_ms(), line };
        self.state.lock().outbox.push_log(report);
        self.outgoing.wake();
    }

    /// Whether [`stop_leased`](Self::stop_leased) would stop anything.
    pub(crate) fn holds_leased(&self) -> bool {
        let state = self.state.lock();
        state.held.all_going().any(|attempt| self.registry.stops_on_lease_loss(&attempt.assignment.topic))
    }

    /// Cancels the attempts of topics that must not outlive the lease, and returns those that have not started. Returns how
    /// many there were.
    pub(crate) fn stop_leased(&self) -> usize {
        let mut state = self.state.lock();
        let leased = |attempt: &Arc<RunningAttempt>| self.registry.stops_on_lease_loss(&attempt.assignment.topic);
        let (given_back, kept): (VecDeque<_>, _) = std::mem::take(&mut state.line).into_iter().partition(leased);
        state.line = kept;
        let unbegun = given_back.len();
        self.give_back(&mut state, given_back);
        let running = state.held.all_going().filter(|attempt| leased(attempt));
        unbegun + running.inspect(|attempt| attempt.cancel()).count()
    }

    /// Takes no more work and returns attempts that have not started.
    pub(crate) fn begin_drain(&self) {
        {
            let mut state = self.state.lock();
            state.draining = true;
            state.outbox.push_draining();
            let waiting = std::mem::take(&mut state.line);
            self.give_back(&mut state, waiting);
        }
        self.outgoing.wake();
    }

    fn give_back(&self, state: &mut LockedState, waiting: VecDeque<Arc<RunningAttempt>>) {
        for attempt in waiting {
            self.conclude(state, EndedAttempt { attempt, outcome: Outcome::Interrupted(Interrupted {}) });
        }
    }

    pub(crate) fn abort_all(&self) {
        self.state.lock().held.all_running().for_each(|attempt| attempt.abort());
    }

    /// Reports attempts that ignore even an abort as interrupted: their process is about to end.
    pub(crate) fn write_off(&self) -> usize {
        let written_off = {
            let mut state = self.state.lock();
            let stuck: VecDeque<_> = state.held.all_going().cloned().collect();
            let count = stuck.len();
            self.give_back(&mut state, stuck);
            count
        };
        self.outgoing.wake();
        written_off
    }

    /// Ends the stream as soon as everything that waits is sent.
    pub(crate) fn close(&self) {
        self.state.lock().closing = true;
        self.outgoing.wake();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.state.lock().closing
    }

    pub(crate) fn unacknowledged(&self) -> usize {
        self.state.lock().held.len()
    }

    /// Waits until the server drains this worker.
    pub(crate) async fn told_to_leave(&self) {
        self.leave.notified().await;
    }

    pub(crate) async fn all_idle(&self) {
        self.until(|state| state.busy == 0).await;
    }

    /// Waits until the server has every result and sends no more assignments. Without a stream there is nothing to wait for.
    pub(crate) async fn dismissed(&self) {
        self.until(|state| state.held.is_empty() && (state.dismissed || state.phase == StreamPhase::Away)).await;
    }

    async fn until(&self, met: impl Fn(&LockedState) -> bool) {
        loop {
            let settled = self.settled.notified();
            if met(&self.state.lock()) {
                return;
            }
            settled.await;
        }
    }
}

impl LockedState {
    /// Waiting attempts that have a free slot.
    fn next_in_line(&mut self) -> Vec<Arc<RunningAttempt>> {
        let free = self.slots.saturating_sub(self.busy).min(self.line.len());
        self.busy += free;
        self.line.drain(..free).collect()
    }

    fn acknowledge(&mut self, acks: Vec<ResultAck>, done_with: &mut Vec<String>) {
        for ack in acks {
            if ack.superseded {
                tracing::debug!(token = %ack.token, "the server no longer wanted this result");
            }
            if self.held.acknowledge(&ack.token) {
                done_with.push(ack.token);
            }
        }
    }

    fn stop(&mut self, stops: Vec<Stop>, done_with: &mut Vec<String>) {
        for stop in stops {
            match self.held.stop(&stop.token) {
                StoppedAttempt::Going(attempt) => {
                    tracing::debug!(job_id = %stop.job_id, reason = %stop.reason, "attempt stopped by the server");
                    attempt.cancel();
                    let place = self.line.iter().position(|waiting| Arc::ptr_eq(waiting, &attempt));
                    // Its handler is running, and reports its end.
                    let Some(place) = place else { continue };
                    self.line.remove(place);
                    self.held.let_go(&stop.token);
                }
                StoppedAttempt::Finished => done_with.push(stop.token.clone()),
                // Its result tells the server that it has ended.
                StoppedAttempt::Done => continue,
                StoppedAttempt::Unknown => {}
            }
            self.outbox.push_let_go(stop.token);
        }
    }
}

/// A handler that ended because it was told to stop has not failed.
fn excused(attempt: &RunningAttempt, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::FailedRetryable(_) | Outcome::FailedFatal(_) | Outcome::Cancelled(_) if attempt.is_cancelled() => {
            Outcome::Interrupted(Interrupted {})
        }
        outcome => outcome,
    }
}
