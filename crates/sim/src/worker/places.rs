//! Compares what a worker was sent and has not ended with its announced slots: what it really holds, not what the rows say
//! that it holds.

use std::time::Duration;

use lockgate_core::job::Job;

use super::ahead::Waiting;
use super::{RunningJob, WorkerLife};
use crate::check::Violation;
use crate::world::SimWorld;

/// A stopped attempt keeps its slot until its worker lets go of it, or reports for ten seconds that it never arrived. Clocks
/// of processes are up to two seconds wrong.
const PROMPT: Duration = Duration::from_secs(6);

/// Whether the worker has the attempt before a process can conclude that it never arrived.
pub(super) fn is_prompt(world: &SimWorld, job: &Job) -> bool {
    let sent_at = job.life.attempt.binding.as_ref().map(|binding| binding.dispatched_at);
    sent_at.is_some_and(|sent_at| world.clock.now().since(sent_at) < PROMPT)
}

impl WorkerLife {
    /// a slot is free once its attempt has ended or its worker has let go of it, and is given away only then. Even if
    /// the attempt was stopped, the worker came back elsewhere, or it ignores the stop, an attempt that it holds and reports
    /// keeps its slot.
    ///
    /// Nothing is guaranteed for attempts that the server cannot know of or must consider gone: hidden ones, those that
    /// arrived so late that they may count as never arrived, and those declared lost. They count again when their worker
    /// comes back, and run besides the others as long as their result may count.
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
