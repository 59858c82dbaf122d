//! What a worker was sent and has not ended, held against the places that it said it has: what it has in its hands, and not what
//! the rows say that it holds.

use std::time::Duration;

use lockgate_core::job::Job;

use super::ahead::Waiting;
use super::{RunningJob, WorkerLife};
use crate::check::Violation;
use crate::world::SimWorld;

/// An attempt that is stopped takes its place until its worker has let go of it, or until the worker says for ten seconds that it
/// has not even arrived. Clocks of processes are up to two seconds wrong.
const PROMPT: Duration = Duration::from_secs(6);

/// Whether a worker has the attempt before anybody can take it for one that never arrived.
pub(super) fn is_prompt(world: &SimWorld, job: &Job) -> bool {
    let sent_at = job.life.attempt.binding.as_ref().map(|binding| binding.dispatched_at);
    sent_at.is_some_and(|sent_at| world.clock.now().since(sent_at) < PROMPT)
}

impl WorkerLife {
    /// a place is free when its attempt has ended or its worker has let go of it, and only then is it given away. Somebody
    /// stopped the attempt, the worker came back elsewhere, or it goes on with what it should not: what it has and names takes a
    /// place all the while.
    ///
    /// Nothing is promised of what the server cannot know of, or must take for gone: what a worker hides, what it got so late that
    /// it may count as never arrived, and attempts that were declared lost. Those are nobody's until their worker comes back,
    /// and then run beside the rest as long as their result may count.
    pub(super) fn keeps_places(&self, world: &SimWorld) {
        let runs = |running: &&RunningJob| {
            running.prompt && !running.hidden && !world.witness.was_lost(&running.job_id, running.attempt)
        };
        let waits = |waiting: &&Waiting| {
            let job = &waiting.assignment.job;
            waiting.prompt && !world.witness.was_lost(&job.request.job_id, job.life.attempt.no)
        };
        let sent = self.running.values().filter(runs).count() + self.line.iter().filter(waits).count();
        let places = (self.profile.slots + self.prefetch) as usize;
        if sent > places {
            let detail = format!("{} has {places} places and {sent} attempts", self.session);
            let broken = Violation::new("A-5 a worker is sent no more than it has places for", detail);
            world.ledger.lock().broken.push(broken);
        }
    }
}
