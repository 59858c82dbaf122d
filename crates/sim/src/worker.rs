//! A worker that speaks the protocol and misbehaves: it dies, hangs, loses its stream, forgets and repeats itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId, SessionId};
use lockgate_core::job::Outcome;
use lockgate_core::worker::{Load, WorkerProfile};
use lockgate_engine::{Assignment, Attachment, Beat, FromWorker, Hello, InventoryItem, ResultReport, ToWorker};
use lockgate_ports::Mint;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use crate::check::Violation;
use crate::client::TOPICS;
use crate::plan::Plan;
use crate::process::Process;
use crate::world::World;

/// Starts worker processes one after another: each has a session of its own.
pub(crate) async fn run(world: Arc<World>, number: u64) {
    loop {
        let mut life = Life::new(&world, number);
        while life.connect(&world).await == End::Cut {
            tokio::time::sleep(world.faults.millis(2_000)).await;
        }
        tokio::time::sleep(world.faults.millis(5_000)).await;
    }
}

#[derive(PartialEq, Eq)]
enum End {
    /// The stream ended; the process lives on.
    Cut,
    /// The process died and forgot everything.
    Killed,
}

/// One life of a worker process.
struct Life {
    session: SessionId,
    profile: WorkerProfile,
    highest: u64,
    taken: BTreeSet<AttemptToken>,
    running: BTreeMap<AttemptToken, Running>,
    /// Results that were not acknowledged.
    journal: BTreeMap<AttemptToken, (JobId, Outcome)>,
    beats: u64,
}

struct Running {
    job_id: JobId,
    ends: Option<(Instant, Outcome)>,
    hidden: bool,
}

const BEAT: Duration = Duration::from_secs(3);

impl Life {
    fn new(world: &World, number: u64) -> Self {
        // One worker serves everything, so that nothing waits for ever once the others serve only a part.
        let topics = match world.faults.below(4) {
            0 if number > 0 => vec![Arc::from(TOPICS[0]), Arc::from(TOPICS[1])],
            _ => vec![Arc::from("sim.*")],
        };
        Self {
            session: world.entropy.session_id(world.clock.now()),
            profile: WorkerProfile {
                worker: format!("worker-{number}").into(),
                pool: "default".into(),
                topics,
                capabilities: BTreeSet::new(),
                labels: BTreeMap::new(),
                slots: 1 + u32::try_from(world.faults.below(4)).unwrap_or(0),
                in_process: false,
            },
            highest: 0,
            taken: BTreeSet::new(),
            running: BTreeMap::new(),
            journal: BTreeMap::new(),
            beats: 0,
        }
    }

    async fn connect(&mut self, world: &World) -> End {
        let process = world.process().await;
        let hello = Hello {
            session: self.session.clone(),
            profile: self.profile.clone(),
            inventory: self.inventory(),
            highest_assignment: self.highest,
            prefetch: 0,
        };
        let attached = tokio::select! {
            biased;
            () = process.lifeline.died() => return End::Cut,
            attached = process.engine.attach(hello) => attached,
        };
        match attached {
            Ok((attachment, _, inbound)) => self.work(world, &process, attachment, inbound).await,
            Err(_) => End::Cut,
        }
    }

    async fn work(
        &mut self,
        world: &World,
        process: &Process,
        attachment: Attachment,
        mut inbound: UnboundedReceiver<ToWorker>,
    ) -> End {
        let mut outbox = FromWorker { results: self.unacknowledged(), ..FromWorker::default() };
        let mut beat_at = Instant::now() + BEAT;
        loop {
            if !outbox.results.is_empty() || !outbox.starts.is_empty() || outbox.beat.is_some() {
                tokio::select! {
                    biased;
                    () = process.lifeline.died() => return End::Cut,
                    () = attachment.receive(std::mem::take(&mut outbox)) => {}
                }
            }
            if let Some(end) = misbehave(world).await {
                return end;
            }
            let wake = self.next_end().map_or(beat_at, |end| end.min(beat_at));
            tokio::select! {
                biased;
                () = process.lifeline.died() => return End::Cut,
                message = inbound.recv() => match message {
                    Some(message) => self.take(world, message, &mut outbox),
                    None => return End::Cut,
                },
                () = tokio::time::sleep_until(wake) => {}
            }
            self.finish(world, &mut outbox);
            if Instant::now() >= beat_at {
                beat_at = Instant::now() + BEAT;
                self.beats += 1;
                let inventory = self.inventory();
                let (active_jobs, load) = (u32::try_from(self.running.len()).unwrap_or(u32::MAX), Load::default());
                let (number, highest_assignment) = (self.beats, self.highest);
                outbox.beat = Some(Beat { number, highest_assignment, inventory, active_jobs, load });
            }
        }
    }

    fn take(&mut self, world: &World, message: ToWorker, outbox: &mut FromWorker) {
        match message {
            ToWorker::Assign(assignments) => {
                for assignment in assignments {
                    self.begin(world, &assignment, outbox);
                }
            }
            ToWorker::Stop { token, .. } => {
                self.running.remove(&token);
                self.journal.remove(&token);
            }
            ToWorker::Acks(acks) => {
                for (token, _) in acks {
                    self.journal.remove(&token);
                }
            }
            // Whatever it was sent has begun, so there is nothing to give back; and nobody drains it.
            ToWorker::BeatAck(_) | ToWorker::Dismissed | ToWorker::Revoke { .. } | ToWorker::Drain => {}
        }
    }

    fn begin(&mut self, world: &World, assignment: &Assignment, outbox: &mut FromWorker) {
        let job = &assignment.job;
        let token = job.life.attempt.token.clone();
        self.highest = self.highest.max(assignment.number);
        if !self.taken.insert(token.clone()) {
            return;
        }
        let job_id = job.request.job_id.clone();
        let mut ledger = world.ledger.lock();
        if ledger.executions.insert(token.clone(), job_id.clone()).is_some() {
            ledger.broken.push(Violation::new("A-1 one execution per fence", token.to_string()));
        }
        drop(ledger);
        let hidden = world.faults.inject(30, |i| &mut i.attempts_hidden);
        let ends = Plan::decode(&job.request.payload)
            .perform(job.life.attempt.no, &world.faults)
            .map(|(run, outcome)| (Instant::now() + run, outcome));
        if !world.faults.chance(100) {
            outbox.starts.push((job_id.clone(), token.clone()));
        }
        self.running.insert(token, Running { job_id, ends, hidden });
    }

    /// Moves ended work into the journal and reports it, sometimes twice.
    fn finish(&mut self, world: &World, outbox: &mut FromWorker) {
        let now = Instant::now();
        let ended = |r: &Running| r.ends.as_ref().is_some_and(|(at, _)| *at <= now);
        let done: Vec<AttemptToken> = self.running.iter().filter(|(_, r)| ended(r)).map(|(t, _)| t.clone()).collect();
        for token in done {
            let Some(Running { job_id, ends: Some((_, outcome)), .. }) = self.running.remove(&token) else { continue };
            if matches!(outcome, Outcome::Succeeded { .. }) {
                world.ledger.lock().finished.insert(job_id.clone());
            }
            let report = ResultReport { job_id: job_id.clone(), token: token.clone(), outcome: outcome.clone() };
            if world.faults.inject(50, |i| &mut i.results_doubled) {
                outbox.results.push(report.clone());
            }
            outbox.results.push(report);
            self.journal.insert(token, (job_id, outcome));
        }
    }

    fn next_end(&self) -> Option<Instant> {
        self.running.values().filter_map(|running| running.ends.as_ref().map(|(at, _)| *at)).min()
    }

    fn unacknowledged(&self) -> Vec<ResultReport> {
        let report = |(token, (job_id, outcome)): (&AttemptToken, &(JobId, Outcome))| ResultReport {
            job_id: job_id.clone(),
            token: token.clone(),
            outcome: outcome.clone(),
        };
        self.journal.iter().map(report).collect()
    }

    fn inventory(&self) -> Vec<InventoryItem> {
        let item = |job_id: &JobId, token: &AttemptToken, started| InventoryItem {
            job_id: job_id.clone(),
            token: token.clone(),
            started,
        };
        let running = self.running.iter().filter(|(_, r)| !r.hidden).map(|(token, r)| item(&r.job_id, token, true));
        running.chain(self.journal.iter().map(|(token, (job_id, _))| item(job_id, token, true))).collect()
    }
}

async fn misbehave(world: &World) -> Option<End> {
    if world.faults.inject(10, |i| &mut i.workers_killed) {
        return Some(End::Killed);
    }
    if world.faults.inject(10, |i| &mut i.streams_cut) {
        return Some(End::Cut);
    }
    if world.faults.inject(5, |i| &mut i.workers_hung) {
        tokio::time::sleep(world.faults.millis(25_000)).await;
    }
    None
}
