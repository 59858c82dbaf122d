//! A worker and the process that it is attached to.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::worker::Load;
use lockgate_engine::{Attachment, Beat, FromWorker, Hello, ToWorker};
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

use super::{End, WorkerLife};
use crate::faults::Fault;
use crate::process::SimProcess;
use crate::wire::{deliver, forged, lie, linger, reordered};
use crate::world::SimWorld;

/// Longer than any story.
const FOREVER: Duration = Duration::from_secs(1_000_000);
const BEAT: Duration = Duration::from_secs(3);
/// The longest pause between two tries to connect.
const BACKOFF_MS: u64 = 5_000;
/// Most milliseconds between the welcome and the first message.
const FIRST_MESSAGE_MS: u64 = 300;

impl WorkerLife {
    pub(super) async fn connect(&mut self, world: &Arc<SimWorld>) -> End {
        let process = self.find_process(world).await;
        world.witness.expect_ahead(&self.session, self.prefetch as usize);
        let hello = Hello {
            session: self.session.clone(),
            profile: self.profile.clone(),
            inventory: self.inventory(),
            highest_assignment: self.highest,
            prefetch: self.prefetch,
        };
        let attached = tokio::select! {
            biased;
            () = process.lifeline.died() => return End::Cut,
            attached = process.engine.attach(hello) => attached,
        };
        match attached {
            Ok((attachment, _, mut inbound)) => {
                let end = self.work(world, &process, &attachment, &mut inbound).await;
                if self.posted {
                    tokio::spawn(linger(attachment, inbound));
                }
                end
            }
            // The Store may have the session nevertheless.
            Err(_) if world.faults.inject(100, Fault::WorkerKilled) => End::Killed,
            Err(_) => End::Cut,
        }
    }

    /// Work continues and ends while no process can be reached. A worker that had to wait notices a new process only with
    /// its next try.
    async fn find_process(&mut self, world: &Arc<SimWorld>) -> SimProcess {
        let mut found = std::pin::pin!(async {
            let asked = Instant::now();
            let process = world.process().await;
            if Instant::now() > asked {
                tokio::time::sleep(world.faults.millis(BACKOFF_MS)).await;
            }
            process
        });
        loop {
            let mut unheard = FromWorker::default();
            self.finish(world, &mut unheard);
            self.begin_ready(world, &mut unheard);
            let next = self.next_end().unwrap_or_else(|| Instant::now() + FOREVER);
            tokio::select! {
                biased;
                process = &mut found => return process,
                Some(Ok((parent, outcome))) = self.handlers.join_next() => self.hear(world, parent, outcome),
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    async fn work(
        &mut self,
        world: &Arc<SimWorld>,
        process: &SimProcess,
        attachment: &Attachment,
        inbound: &mut Receiver<ToWorker>,
    ) -> End {
        let (results, draining) = (self.unacknowledged(), self.draining);
        let mut outbox = FromWorker { results, draining, ..FromWorker::default() };
        let mut beat_at = Instant::now() + BEAT;
        tokio::time::sleep(world.faults.millis(FIRST_MESSAGE_MS)).await;
        loop {
            lie(world, &mut outbox);
            if !self.send(world, process, attachment, &mut outbox).await {
                return End::Cut;
            }
            if let Some(end) = misbehave(world, self.posted).await {
                return end;
            }
            let wake = self.next_end().map_or(beat_at, |end| end.min(beat_at));
            tokio::select! {
                biased;
                () = process.lifeline.died() => return End::Cut,
                message = inbound.recv() => match message {
                    Some(_) if self.posted && world.faults.inject(20, Fault::PostLost) => {}
                    Some(message) => self.take(world, message, &mut outbox),
                    None => return End::Cut,
                },
                Some(Ok(answered)) = self.posts.join_next() => self.journal.retain(|token, _| !answered.contains(token)),
                Some(Ok((parent, outcome))) = self.handlers.join_next() => self.hear(world, parent, outcome),
                () = tokio::time::sleep_until(wake) => {}
            }
            if self.dismissed {
                return End::Left;
            }
            self.finish(world, &mut outbox);
            self.begin_ready(world, &mut outbox);
            if Instant::now() >= beat_at {
                beat_at = Instant::now() + BEAT;
                if self.posted {
                    outbox.results = self.unacknowledged();
                }
                (outbox.draining, outbox.beat) = (self.draining, Some(self.beat()));
            }
        }
    }

    /// Sends the outbox. False if the stream has ended.
    async fn send(
        &mut self,
        world: &Arc<SimWorld>,
        process: &SimProcess,
        attachment: &Attachment,
        outbox: &mut FromWorker,
    ) -> bool {
        if self.posted {
            self.post(world, std::mem::take(&mut outbox.results));
        }
        if outbox.results.is_empty() && outbox.starts.is_empty() && outbox.beat.is_none() && !outbox.draining {
            return true;
        }
        let message = std::mem::take(outbox);
        let messages = if world.faults.inject(30, Fault::MessageReordered) { reordered(message) } else { vec![message] };
        for message in messages {
            if self.posted && world.faults.inject(50, Fault::PostLost) {
                continue;
            }
            let message = forged(world, message).await;
            let heard = tokio::select! {
                biased;
                () = process.lifeline.died() => false,
                heard = deliver(world, process, attachment, message) => heard,
            };
            if !heard {
                return false;
            }
        }
        true
    }

    fn beat(&mut self) -> Beat {
        self.beats += 1;
        let inventory = self.inventory();
        let (active_jobs, load) = (u32::try_from(self.running.len()).unwrap_or(u32::MAX), Load::default());
        let (number, highest_assignment) = (self.beats, self.highest);
        Beat { number, highest_assignment, inventory, active_jobs, load, slots: None }
    }
}

async fn misbehave(world: &SimWorld, posted: bool) -> Option<End> {
    if world.faults.inject(10, Fault::WorkerKilled) {
        return Some(End::Killed);
    }
    if world.faults.inject(10, Fault::StreamCut) {
        return Some(End::Cut);
    }
    if world.faults.inject(5, Fault::WorkerHung) {
        if posted {
            return Some(End::Quiet);
        }
        tokio::time::sleep(world.faults.millis(25_000)).await;
    }
    None
}
