//! A worker that speaks the protocol and misbehaves: it dies, hangs, loses its stream, forgets and repeats itself.
//!
//! Some workers have no stream and connect over NATS. Their messages may get lost, their results may arrive at any process,
//! twice and late, and no process is told when they die.

mod ahead;
mod leave;
mod places;
mod stream;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use lockgate_core::ids::{AttemptToken, JobId, SessionId};
use lockgate_core::job::Outcome;
use lockgate_core::request::Json;
use lockgate_core::worker::WorkerProfile;
use lockgate_engine::{Assignment, FromWorker, InventoryItem, ResultReport, ToWorker};
use lockgate_ports::Mint;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::check::Violation;
use crate::client::TOPICS;
use crate::faults::Fault;
use crate::outputs::has_secret;
use crate::parent::Parent;
use crate::plan::JobScript;
use crate::planted::Bug;
use crate::wire::report;
use crate::world::SimWorld;

use ahead::Waiting;

/// Starts worker processes one after another: each has a session of its own.
pub(crate) async fn run(world: Arc<SimWorld>, number: u64) {
    loop {
        let mut life = WorkerLife::new(&world, number);
        loop {
            let away_ms = match life.connect(&world).await {
                End::Cut => 2_000,
                End::Quiet => QUIET_MS,
                End::Killed | End::Left => break,
            };
            tokio::time::sleep(world.faults.millis(away_ms)).await;
        }
        // Messages in flight outlive the process that sent them.
        life.posts.detach_all();
        tokio::time::sleep(world.faults.millis(5_000)).await;
    }
}

enum End {
    /// The stream ended; the process lives on.
    Cut,
    /// The worker is silent for a while, perhaps longer than tolerated; the process lives on.
    Quiet,
    /// The process died and forgot everything.
    Killed,
    /// The worker was drained, and holds nothing any more.
    Left,
}

/// One life of a worker process.
struct WorkerLife {
    session: SessionId,
    /// Whether it connects over NATS.
    posted: bool,
    profile: WorkerProfile,
    /// Assignments that it lets wait besides those it runs.
    prefetch: u32,
    highest: u64,
    taken: BTreeSet<AttemptToken>,
    /// Waiting assignments, in the order of arrival.
    line: VecDeque<Waiting>,
    running: BTreeMap<AttemptToken, RunningJob>,
    /// Unacknowledged results.
    journal: BTreeMap<AttemptToken, (JobId, Outcome)>,
    beats: u64,
    /// Whether it was told to drain.
    draining: bool,
    /// Whether it may leave.
    dismissed: bool,
    /// Results on their way over NATS; each task returns the answered ones.
    posts: JoinSet<Vec<AttemptToken>>,
    /// Handlers that make calls of their own. They die with the process, not with the stream.
    handlers: JoinSet<(Parent, Outcome)>,
    /// Handlers that continue when they should not.
    late: JoinSet<()>,
}

struct RunningJob {
    job_id: JobId,
    attempt: u32,
    ends: Option<(Instant, Outcome)>,
    /// When the attempt's time is over.
    over_at: Instant,
    hidden: bool,
    /// Whether the assignment arrived in order and soon after it was sent.
    prompt: bool,
}

/// How many of a thousand workers connect over NATS. Few, because where one dies the story takes a minute longer.
const POSTED: u64 = 200;
/// The silence after which these count as lost.
const POSTED_LOST_MS: u64 = 90_000;
/// Their longest silence.
const QUIET_MS: u64 = 120_000;
/// Slots at most.
const SLOTS: u64 = 4;
/// The most slots of workers that get jobs ahead of a free slot: few, so that jobs are sent ahead.
const SLOTS_AHEAD: u64 = 2;
/// The longest delay of the second of two equal messages.
const DOUBLED_MS: u64 = 10_000;
/// The longest time between the end of a handler and its report.
const PARTING_MS: u64 = 40;

impl WorkerLife {
    fn new(world: &SimWorld, number: u64) -> Self {
        // One worker serves every topic, so that no job waits for ever while the others serve only some.
        let topics = match world.faults.below(4) {
            0 if number > 0 => vec![Arc::from(TOPICS[0]), Arc::from(TOPICS[1])],
            _ => vec![Arc::from("sim.*")],
        };
        let posted = world.faults.chance(POSTED);
        // At the end of a story and in stories without faults no further waiting jobs are needed.
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

    /// Sends results to any process. Unanswered ones are sent again with the next beat.
    fn post(&mut self, world: &Arc<SimWorld>, results: Vec<ResultReport>) {
        if results.is_empty() || world.faults.inject(100, Fault::PostLost) {
            return;
        }
        let post = |results, late_ms| report(world.clone(), self.session.clone(), results, late_ms);
        if world.faults.inject(50, Fault::PostDoubled) {
            self.posts.spawn(post(results.clone(), DOUBLED_MS));
        }
        self.posts.spawn(post(results, 0));
    }

    fn take(&mut self, world: &Arc<SimWorld>, message: ToWorker, outbox: &mut FromWorker) {
        match message {
            ToWorker::Assign(assignments) => {
                for assignment in assignments {
                    self.accept(world, assignment, outbox);
                }
            }
            ToWorker::Stop { token, .. } => match self.running.get_mut(&token) {
                // An attempt that ignores its stop keeps its slot, so it must end some day.
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

    fn begin(&mut self, world: &Arc<SimWorld>, assignment: &Assignment, prompt: bool, outbox: &mut FromWorker) {
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
        let plan = JobScript::decode(&job.request.payload);
        if let JobScript::Parent(brood) = plan {
            self.handlers.spawn(Parent::of(job, brood).handle(world.clone()));
        }
        let secret = has_secret(world, &job.request);
        let ended = plan.perform(job.life.attempt.no, secret, &world.faults, world.longest_run_ms());
        let over_at = Instant::now() + assignment.timeout;
        let ends = ended.map(|(run, outcome)| (Instant::now() + run, outcome));
        if !world.faults.chance(100) {
            outbox.starts.push((job_id.clone(), token.clone()));
        }
        self.running.insert(token, RunningJob { job_id, attempt: job.life.attempt.no, ends, over_at, hidden, prompt });
    }

    /// A handler has ended. If its attempt was stopped meanwhile, no report is sent.
    fn hear(&mut self, world: &Arc<SimWorld>, parent: Parent, outcome: Outcome) {
        if let Some(running) = self.running.get_mut(parent.token()) {
            // Delayed, so that the handler's late calls come both before and after its report.
            let soon = Instant::now() + world.faults.millis(PARTING_MS);
            running.ends.get_or_insert((soon, outcome));
        }
        if world.faults.inject(300, Fault::ChildrenLate) {
            self.late.spawn(parent.submit_late(world.clone()));
        }
    }

    /// Moves ended work into the journal and reports it, sometimes twice.
    fn finish(&mut self, world: &SimWorld, outbox: &mut FromWorker) {
        let now = Instant::now();
        let ended = |r: &RunningJob| r.ends.as_ref().is_some_and(|(at, _)| *at <= now);
        let done: Vec<AttemptToken> = self.running.iter().filter(|(_, r)| ended(r)).map(|(t, _)| t.clone()).collect();
        for token in done {
            let Some(RunningJob { job_id, attempt, ends: Some((_, outcome)), .. }) = self.running.remove(&token) else {
                continue;
            };
            world.witness.saw_end(&job_id, attempt, &outcome);
            if let Outcome::Succeeded { result } = &outcome {
                world.ledger.lock().finished.insert((job_id.clone(), attempt), result.clone());
            }
            let report =
                ResultReport { job_id: job_id.clone(), token: token.clone(), outcome: outcome.clone(), began: None };
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
            began: None,
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
        // A returned attempt never started.
        let begun = |outcome: &Outcome| !matches!(outcome, Outcome::Revoked | Outcome::Interrupted);
        let ended = self.journal.iter().map(|(token, (job_id, outcome))| item(job_id, token, begun(outcome)));
        running.chain(waiting).chain(ended).collect()
    }
}
