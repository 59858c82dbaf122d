//! Assignments sent ahead of a free slot: they wait in line, start in turn, and are returned when the server asks for them.

use std::sync::Arc;

use lockgate_core::ids::AttemptToken;
use lockgate_core::job::Outcome;
use lockgate_engine::{Assignment, FromWorker, ResultReport};
use tokio::time::Instant;

use super::{RunningJob, WorkerLife, places};
use crate::world::SimWorld;

/// An assignment that has not started.
pub(super) struct Waiting {
    pub(super) assignment: Assignment,
    /// Whether the assignment arrived in order and soon after it was sent.
    pub(super) prompt: bool,
}

impl Waiting {
    pub(super) fn token(&self) -> &AttemptToken {
        &self.assignment.job.life.attempt.token
    }
}

/// How many of a thousand assignments are kept although the server asks for them, as if they had just started.
const KEPT: u64 = 200;

impl WorkerLife {
    /// Takes an assignment, unless the worker has it already. A draining worker starts nothing.
    pub(super) fn accept(&mut self, world: &Arc<SimWorld>, assignment: Assignment, outbox: &mut FromWorker) {
        // An assignment that was sent again may arrive after later ones.
        let prompt = assignment.number > self.highest && places::is_prompt(world, &assignment.job);
        self.highest = self.highest.max(assignment.number);
        let waiting = Waiting { assignment, prompt };
        if !self.taken.insert(waiting.token().clone()) {
            return;
        }
        self.line.push_back(waiting);
        self.keeps_places(world);
        if self.draining {
            return self.interrupt_line(outbox);
        }
        self.begin_ready(world, outbox);
        // The line is not empty, so the new assignment waits.
        world.ledger.lock().ahead += usize::from(!self.line.is_empty());
    }

    /// Starts waiting assignments as far as there are slots. A worker without prefetch starts whatever it is sent, so that
    /// the test sees when it is sent too much.
    pub(super) fn begin_ready(&mut self, world: &Arc<SimWorld>, outbox: &mut FromWorker) {
        while self.prefetch == 0 || self.busy() < self.profile.slots as usize {
            let Some(Waiting { assignment, prompt }) = self.line.pop_front() else { return };
            self.begin(world, &assignment, prompt, outbox);
        }
    }

    /// Slots in use. An attempt that exceeds its timeout or is hidden counts as ended, because no timer of this worker stops
    /// it.
    fn busy(&self) -> usize {
        let now = Instant::now();
        self.running.values().filter(|RunningJob { hidden, over_at, .. }| !hidden && now < *over_at).count()
    }

    /// Returns an attempt that has not started. One that has started or ended is not answered.
    pub(super) fn give_back(&mut self, world: &SimWorld, token: &AttemptToken, outbox: &mut FromWorker) {
        let place = self.line.iter().position(|waiting| waiting.token() == token);
        if world.faults.chance(KEPT) && world.faults.are_on() {
            return;
        }
        if let Some(waiting) = place.and_then(|place| self.line.remove(place)) {
            world.ledger.lock().given_back += 1;
            self.conclude_unbegun(&waiting, Outcome::Revoked, outbox);
        }
    }

    pub(super) fn conclude_unbegun(&mut self, waiting: &Waiting, outcome: Outcome, outbox: &mut FromWorker) {
        let (job_id, token) = (waiting.assignment.job.request.job_id.clone(), waiting.token().clone());
        outbox.results.push(ResultReport {
            job_id: job_id.clone(),
            token: token.clone(),
            outcome: outcome.clone(),
            began: None,
        });
        self.journal.insert(token, (job_id, outcome));
    }
}
