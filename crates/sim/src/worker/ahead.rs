//! What a worker was sent ahead of a free slot: it waits in line, is begun in turn, and is given back when it is asked for.

use std::sync::Arc;

use lockgate_core::ids::AttemptToken;
use lockgate_core::job::Outcome;
use lockgate_engine::{Assignment, FromWorker, ResultReport};
use tokio::time::Instant;

use super::{RunningJob, WorkerLife, places};
use crate::world::SimWorld;

/// An assignment that has not begun.
pub(super) struct Waiting {
    pub(super) assignment: Assignment,
    /// Whether it came in its turn, soon after it was sent.
    pub(super) prompt: bool,
}

impl Waiting {
    pub(super) fn token(&self) -> &AttemptToken {
        &self.assignment.job.life.attempt.token
    }
}

/// How many of a thousand that are asked back are kept all the same, as if they had just begun.
const KEPT: u64 = 200;

impl WorkerLife {
    /// Takes an assignment, unless it has it already. Who drains begins nothing any more.
    pub(super) fn accept(&mut self, world: &Arc<SimWorld>, assignment: Assignment, outbox: &mut FromWorker) {
        // One that was sent again may come behind those that were sent after it.
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
        // Whoever waits came last.
        world.ledger.lock().ahead += usize::from(!self.line.is_empty());
    }

    /// Begins what waits, as far as there are slots. Who never lets anything wait begins whatever it is sent: a worker that is sent
    /// too much must show it.
    pub(super) fn begin_ready(&mut self, world: &Arc<SimWorld>, outbox: &mut FromWorker) {
        while self.prefetch == 0 || self.busy() < self.profile.slots as usize {
            let Some(Waiting { assignment, prompt }) = self.line.pop_front() else { return };
            self.begin(world, &assignment, prompt, outbox);
        }
    }

    /// Slots in use. What runs for longer than it may, or in secret, has ended as far as others have to wait for it: no timer of
    /// its worker stops it here.
    fn busy(&self) -> usize {
        let now = Instant::now();
        self.running.values().filter(|RunningJob { hidden, over_at, .. }| !hidden && now < *over_at).count()
    }

    /// Gives an attempt back if it has not begun. If it has, or has ended, there is nothing to say.
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
