//! A worker that speaks the protocol and misbehaves: it dies, hangs, loses its stream, forgets and repeats itself.
//!
//! Some have no stream and speak over NATS. What they say and are told may get lost, results may come in anywhere, twice and late,
//! and nobody hears that they are gone.

mod ahead;
mod leave;
mod places;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId, SessionId};
use lockgate_core::job::Outcome;
use lockgate_core::request::Json;
use lockgate_core::worker::{Load, WorkerProfile};
use lockgate_engine::{Assignment, Attachment, Beat, FromWorker, Hello, InventoryItem, ResultReport, ToWorker};
use lockgate_ports::Mint;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::check::Violation;
use crate::client::TOPICS;
use crate::faults::Fault;
use crate::parent::Parent;
use crate::plan::Plan;
use crate::planted::Bug;
use crate::process::Process;
use crate::wire::{deliver, forged, lie, linger, reordered, report};
use crate::world::World;

use ahead::Waiting;

/// Starts worker processes one after another: each has a session of its own.
pub(crate) async fn run(world: Arc<World>, number: u64) {
    loop {
        let mut life = Life::new(&world, number);
        loop {
            let away_ms = match life.connect(&world).await {
                End::Cut => 2_000,
                End::Quiet => QUIET_MS,
                End::Killed | End::Left => break,
            };
            tokio::time::sleep(world.faults.millis(away_ms)).await;
        }
        // What was sent outlives who sent it.
        life.posts.detach_all();
        tokio::time::sleep(world.faults.millis(5_000)).await;
    }
}

enum End {
    /// The stream ended; the process lives on.
    Cut,
    /// Nothing is heard of it for a while, perhaps for longer than is borne; the process lives on.
    Quiet,
    /// The process died and forgot everything.
    Killed,
    /// It was sent away, and holds nothing any more.
    Left,
}

/// One life of a worker process.
struct Life {
    session: SessionId,
    /// Whether it speaks over NATS.
    posted: bool,
    profile: WorkerProfile,
    /// Assignments it lets wait beside those it runs.
    prefetch: u32,
    highest: u64,
    taken: BTreeSet<AttemptToken>,
    /// Those that wait, in the order in which they came.
    line: VecDeque<Waiting>,
    running: BTreeMap<AttemptToken, Running>,
    /// Results that were not acknowledged.
    journal: BTreeMap<AttemptToken, (JobId, Outcome)>,
    beats: u64,
    /// Somebody wants it to leave.
    draining: bool,
    /// It may.
    dismissed: bool,
    /// Results on their way over NATS; each comes back with those that were answered.
    posts: JoinSet<Vec<AttemptToken>>,
    /// Handlers that make calls of their own. They die with the process, not with the stream.
    handlers: JoinSet<(Parent, Outcome)>,
    /// What of them goes on when it should not.
    late: JoinSet<()>,
}

struct Running {
    job_id: JobId,
    attempt: u32,
    ends: Option<(Instant, Outcome)>,
    /// When its time is over.
    over_at: Instant,
    hidden: bool,
    /// Whether it came in its turn, soon after it was sent.
    prompt: bool,
}

/// How many of a thousand speak over NATS. Few: where one dies, the rest of the story is a minute longer.
const POSTED: u64 = 200;
/// How long the silence of those is borne.
const POSTED_LOST_MS: u64 = 90_000;
/// How long they are silent at most.
const QUIET_MS: u64 = 120_000;
/// Slots at most.
const SLOTS: u64 = 4;
/// The same of those that are sent jobs ahead of a free one: few, so that there is something to send.
const SLOTS_AHEAD: u64 = 2;
/// How late the second of two messages comes at most.
const DOUBLED_MS: u64 = 10_000;
const BEAT: Duration = Duration::from_secs(3);
/// Longer than any story.
const FOREVER: Duration = Duration::from_secs(1_000_000);
/// The longest pause between two tries to connect.
const BACKOFF_MS: u64 = 5_000;
/// Most milliseconds between the welcome and the first message.
const FIRST_MESSAGE_MS: u64 = 300;
/// Most milliseconds between the end of a handler and its report.
const PARTING_MS: u64 = 40;

impl Life {
    fn new(world: &World, number: u64) -> Self {
        // One worker serves everything, so that nothing waits for ever once the others serve only a part.
        let topics = match world.faults.below(4) {
            0 if number > 0 => vec![Arc::from(TOPICS[0]), Arc::from(TOPICS[1])],
            _ => vec![Arc::from("sim.*")],
        };
        let posted = world.faults.chance(POSTED);
        // The end of a story, and stories without faults, have enough of what waits.
        let ahead = world.cast.quick && !posted && world.faults.are_on();
        let prefetch = if ahead { 1 + u32::try_from(world.faults.below(2)).unwrap_or(0) } else { 0 };
        let slots = world.faults.below(if ahead { SLOTS_AHEAD } else { SLOTS });
        Self {
            session: world.entropy.session_id(world.clock.now()),
            posted,
            prefetch,
            profile: WorkerProfile {
                worker: format!("worker-{number}").into(),
                pool: "default".into(),
                topics,
                capabilities: BTreeSet::new(),
                labels: BTreeMap::new(),
                slots: 1 + u32::try_from(slots).unwrap_or(0),
                in_process: false,
                lost_after_ms: posted.then_some(POSTED_LOST_MS),
                owner: None,
            },
            highest: 0,
            taken: BTreeSet::new(),
            line: VecDeque::new(),
            running: BTreeMap::new(),
            journal: BTreeMap::new(),
            beats: 0,
            draining: false,
            dismissed: false,
            posts: JoinSet::new(),
            handlers: JoinSet::new(),
            late: JoinSet::new(),
        }
    }

    async fn connect(&mut self, world: &Arc<World>) -> End {
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
            // The Store may have its session all the same.
            Err(_) if world.faults.inject(100, Fault::WorkerKilled) => End::Killed,
            Err(_) => End::Cut,
        }
    }

    /// Work goes on and ends while there is nobody to tell. Whoever had to wait notices only with its next try that somebody
    /// is there again.
    async fn find_process(&mut self, world: &Arc<World>) -> Process {
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
        world: &Arc<World>,
        process: &Process,
        attachment: &Attachment,
        inbound: &mut Receiver<ToWorker>,
    ) -> End {
        let (results, draining) = (self.unacknowledged(), self.draining);
        let mut outbox = FromWorker { results, draining, ..FromWorker::default() };
        let mut beat_at = Instant::now() + BEAT;
        tokio::time::sleep(world.faults.millis(FIRST_MESSAGE_MS)).await;
        loop {
            lie(world, &mut outbox);
            if self.posted {
                self.post(world, std::mem::take(&mut outbox.results));
            }
            if !outbox.results.is_empty() || !outbox.starts.is_empty() || outbox.beat.is_some() || outbox.draining {
                let message = std::mem::take(&mut outbox);
                let messages =
                    if world.faults.inject(30, Fault::MessageReordered) { reordered(message) } else { vec![message] };
                for message in messages {
                    if self.posted && world.faults.inject(50, Fault::PostLost) {
                        continue;
                    }
                    let message = forged(world, message).await;
                    tokio::select! {
                        biased;
                        () = process.lifeline.died() => return End::Cut,
                        heard = deliver(world, process, attachment, message) => if !heard { return End::Cut },
                    }
                }
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

    fn beat(&mut self) -> Beat {
        self.beats += 1;
        let inventory = self.inventory();
        let (active_jobs, load) = (u32::try_from(self.running.len()).unwrap_or(u32::MAX), Load::default());
        let (number, highest_assignment) = (self.beats, self.highest);
        Beat { number, highest_assignment, inventory, active_jobs, load, slots: None }
    }

    /// Sends results to whoever takes them. What is not answered is sent again with the next beat.
    fn post(&mut self, world: &Arc<World>, results: Vec<ResultReport>) {
        if results.is_empty() || world.faults.inject(100, Fault::PostLost) {
            return;
        }
        let post = |results, late_ms| report(world.clone(), self.session.clone(), results, late_ms);
        if world.faults.inject(50, Fault::PostDoubled) {
            self.posts.spawn(post(results.clone(), DOUBLED_MS));
        }
        self.posts.spawn(post(results, 0));
    }

    fn take(&mut self, world: &Arc<World>, message: ToWorker, outbox: &mut FromWorker) {
        match message {
            ToWorker::Assign(assignments) => {
                for assignment in assignments {
                    self.accept(world, assignment, outbox);
                }
            }
            ToWorker::Stop { token, .. } => match self.running.get_mut(&token) {
                // Whatever goes on like that takes its place meanwhile, so it has to end some day.
                Some(running) if world.faults.inject(200, Fault::StopIgnored) => {
                    let late =
                        || (Instant::now() + world.faults.millis(60_000), Outcome::Succeeded { result: Json::null() });
                    running.ends.get_or_insert_with(late);
                    outbox.let_go.extend(world.planted.is(Bug::StopsBelieved).then_some(token));
                }
                _ => {
                    self.running.remove(&token);
                    self.journal.remove(&token);
                    self.line.retain(|waiting| *waiting.token() != token);
                    outbox.let_go.extend(world.faults.chance(500).then_some(token));
                }
            },
            ToWorker::Acks(acks) => {
                for (token, _) in acks {
                    self.journal.remove(&token);
                }
            }
            ToWorker::Revoke { token, .. } => self.give_back(world, &token, outbox),
            ToWorker::Drain => self.drain(outbox),
            ToWorker::Dismissed => self.dismissed = self.draining,
            ToWorker::BeatAck { .. } => {}
        }
    }

    fn begin(&mut self, world: &Arc<World>, assignment: &Assignment, prompt: bool, outbox: &mut FromWorker) {
        let job = &assignment.job;
        let token = job.life.attempt.token.clone();
        let job_id = job.request.job_id.clone();
        let mut ledger = world.ledger.lock();
        if !ledger.executions.insert(token.clone()) {
            ledger.broken.push(Violation::new("A-1 one execution per fence", token.to_string()));
        }
        drop(ledger);
        world.witness.saw_begin(&job_id, job.life.attempt.no);
        let hidden = world.faults.inject(30, Fault::AttemptHidden);
        let plan = Plan::decode(&job.request.payload);
        if let Plan::Parent(brood) = plan {
            self.handlers.spawn(Parent::of(job, brood).handle(world.clone()));
        }
        let ended = plan.perform(job.life.attempt.no, &world.faults, world.longest_run_ms());
        let over_at = Instant::now() + assignment.timeout;
        let ends = ended.map(|(run, outcome)| (Instant::now() + run, outcome));
        if !world.faults.chance(100) {
            outbox.starts.push((job_id.clone(), token.clone()));
        }
        self.running.insert(token, Running { job_id, attempt: job.life.attempt.no, ends, over_at, hidden, prompt });
    }

    /// A handler is done. If its attempt was stopped meanwhile, nobody is told.
    fn hear(&mut self, world: &Arc<World>, parent: Parent, outcome: Outcome) {
        if let Some(running) = self.running.get_mut(parent.token()) {
            // So that what it does late comes before and after its report.
            let soon = Instant::now() + world.faults.millis(PARTING_MS);
            running.ends.get_or_insert((soon, outcome));
        }
        if world.faults.inject(300, Fault::ChildrenLate) {
            self.late.spawn(parent.submit_late(world.clone()));
        }
    }

    /// Moves ended work into the journal and reports it, sometimes twice.
    fn finish(&mut self, world: &World, outbox: &mut FromWorker) {
        let now = Instant::now();
        let ended = |r: &Running| r.ends.as_ref().is_some_and(|(at, _)| *at <= now);
        let done: Vec<AttemptToken> = self.running.iter().filter(|(_, r)| ended(r)).map(|(t, _)| t.clone()).collect();
        for token in done {
            let Some(Running { job_id, attempt, ends: Some((_, outcome)), .. }) = self.running.remove(&token) else {
                continue;
            };
            world.witness.saw_end(&job_id, attempt, &outcome);
            if matches!(outcome, Outcome::Succeeded { .. }) {
                world.ledger.lock().finished.insert((job_id.clone(), attempt));
            }
            let report = ResultReport { job_id: job_id.clone(), token: token.clone(), outcome: outcome.clone() };
            if world.faults.inject(50, Fault::ResultDoubled) {
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
        let waiting = self.line.iter().map(|w| item(&w.assignment.job.request.job_id, w.token(), false));
        // What was given back never began.
        let begun = |outcome: &Outcome| !matches!(outcome, Outcome::Revoked | Outcome::Interrupted);
        let ended = self.journal.iter().map(|(token, (job_id, outcome))| item(job_id, token, begun(outcome)));
        running.chain(waiting).chain(ended).collect()
    }
}

async fn misbehave(world: &World, posted: bool) -> Option<End> {
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
