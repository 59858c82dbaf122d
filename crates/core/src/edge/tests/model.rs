//! A model of all that an edge speaks with: a Store that knows who holds what, workers that have what arrived, and streams that
//! break. It keeps its own books, and compares them with the machine after every step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::{RULES, WALL, edge, env, job, profile};
use crate::edge::{
    Acknowledged, Arrival, Beat, Departed, EdgeEffect, EdgeState, FromWorker, Greeting, Hello, InventoryItem, Moment,
    Reconciled, ResultReport, ToWorker, Unplaced,
};
use crate::ids::{AttemptToken, SessionId};
use crate::job::{Job, Outcome};
use crate::limits::Limits;
use crate::placement::Unavailable;
use crate::pools::RoutingId;
use crate::request::Json;
use crate::time::Timestamp;
use crate::worker::Load;

const SLOTS: u32 = 2;

/// A dispatch that is being committed.
struct Ticket {
    session: usize,
    epoch: u64,
    job: Arc<Job>,
}

/// Results that are being committed.
struct Reported {
    session: usize,
    epoch: u64,
    batch: u64,
    tokens: Vec<AttemptToken>,
}

/// A worker process, and what the model knows of its session.
#[derive(Default)]
struct ModelWorker {
    /// By the Store.
    epoch: u64,
    /// The edge knows the session.
    known: bool,
    attached: bool,
    /// What was sent and not read.
    stream: VecDeque<ToWorker>,
    /// Attempts that it has, and whether they began.
    has: BTreeMap<AttemptToken, bool>,
    /// Attempts that it was told to stop and that it still has.
    stopping: BTreeSet<AttemptToken>,
    /// Attempts whose results it reported on this stream.
    reported: BTreeSet<AttemptToken>,
    highest: u64,
    drains: bool,
    /// The edge heard that it drains, on this stream.
    says_it_drains: bool,
    sent_away: bool,
    heard_at: Option<Moment>,
    /// The largest number that was sent on this stream.
    assigned: u64,
    /// It was told that nothing follows.
    dismissed: bool,
    /// What was sent to it, or what it came with, and has not ended by the Store.
    told: BTreeSet<AttemptToken>,
    /// Attempts on their way out.
    leaving: BTreeSet<AttemptToken>,
    /// Batches of results in the order in which they were reported on this stream.
    unacknowledged: VecDeque<(u64, BTreeSet<AttemptToken>)>,
}

pub(super) struct World {
    edge: EdgeState,
    now: Moment,
    minted: u64,
    workers: Vec<ModelWorker>,
    /// Attempts that sessions hold, by the Store.
    stored: BTreeMap<AttemptToken, (usize, Arc<Job>)>,
    dispatching: Vec<Ticket>,
    reporting: Vec<Reported>,
    /// Effects that the engine performs when the Store has answered.
    duties: VecDeque<EdgeEffect>,
}

fn id(worker: usize) -> SessionId {
    format!("s{worker}").into()
}

fn index(session: &SessionId) -> usize {
    session.as_str()[1..].parse().expect("a session of the model")
}

fn token(job: &Job) -> &AttemptToken {
    &job.life.attempt.token
}

impl World {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            edge: edge("topics: {'*': p}\npools: {p: {}}\n"),
            now: Moment::BEGAN,
            minted: 0,
            workers: (0..workers).map(|_| ModelWorker::default()).collect(),
            stored: BTreeMap::new(),
            dispatching: Vec::new(),
            reporting: Vec::new(),
            duties: VecDeque::new(),
        }
    }

    fn wall(&self) -> Timestamp {
        WALL + self.now.since(Moment::BEGAN)
    }

    pub(super) fn advance(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// Performs what belongs under the lock, and keeps the rest.
    fn perform(&mut self, effects: Vec<EdgeEffect>) {
        for effect in effects {
            match effect {
                EdgeEffect::Tell { session, message } => self.tell(index(&session), message),
                EdgeEffect::CloseStream { session } => self.lose_stream(index(&session)),
                EdgeEffect::AckBeat { session, epoch, number } => {
                    let effects = self.edge.on_beat_done(&session, epoch, number, self.now);
                    self.perform(effects);
                }
                EdgeEffect::Lose { ref session, ref jobs, .. } => {
                    self.check_losses(index(session), jobs);
                    self.duties.push_back(effect);
                }
                EdgeEffect::LetGo { .. } | EdgeEffect::Resend { .. } => self.duties.push_back(effect),
                _ => {}
            }
        }
    }

    fn tell(&mut self, at: usize, message: ToWorker) {
        let worker = &mut self.workers[at];
        assert!(worker.attached, "s{at} is told something without a stream: {message:?}");
        match &message {
            ToWorker::Assign(assignments) => {
                for assignment in assignments {
                    assert!(!worker.dismissed, "s{at} was dismissed and is sent {}", assignment.number);
                    assert!(assignment.number > worker.assigned, "s{at}: {} after {}", assignment.number, worker.assigned);
                    worker.assigned = assignment.number;
                    let stored = self.stored.get(token(&assignment.job)).is_some_and(|(session, _)| *session == at);
                    assert!(stored, "s{at} is sent {}, which is not committed", assignment.number);
                    worker.told.insert(token(&assignment.job).clone());
                }
            }
            ToWorker::Dismissed => worker.dismissed = true,
            ToWorker::Acks(acks) => {
                let (_, first) = worker.unacknowledged.pop_front().expect("results were reported");
                let acked: BTreeSet<AttemptToken> = acks.iter().map(|(token, _)| token.clone()).collect();
                assert_eq!(acked, first, "results of s{at} are acknowledged out of their order");
            }
            _ => {}
        }
        worker.stream.push_back(message);
    }

    fn lose_stream(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        worker.attached = false;
        worker.stream.clear();
        worker.unacknowledged.clear();
    }

    /// An attempt may be called lost if its worker neither has it nor will have it.
    fn check_losses(&self, at: usize, jobs: &[Arc<Job>]) {
        let worker = &self.workers[at];
        for lost in jobs {
            assert!(!worker.has.contains_key(token(lost)), "s{at} has {} and it is called lost", token(lost));
            let assigned = |message: &ToWorker| match message {
                ToWorker::Assign(list) => list.iter().any(|assignment| token(&assignment.job) == token(lost)),
                _ => false,
            };
            assert!(!worker.stream.iter().any(assigned), "{} is on its way to s{at} and called lost", token(lost));
            let committing = |ticket: &Ticket| token(&ticket.job) == token(lost) && ticket.epoch == worker.epoch;
            assert!(!self.dispatching.iter().any(committing), "{} is being committed and called lost", token(lost));
        }
    }

    // What workers do.

    fn inventory(&self, at: usize) -> Vec<InventoryItem> {
        let item = |(token, started): (&AttemptToken, &bool)| {
            let job_id = token.as_str().replace("token", "job").into();
            InventoryItem { job_id, token: token.clone(), started: *started }
        };
        self.workers[at].has.iter().map(item).collect()
    }

    /// Attaches: anew, if it was attached before.
    pub(super) fn attach(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        worker.epoch += 1;
        worker.reported.clear();
        let (epoch, drains, sent_away, highest) = (worker.epoch, worker.drains, worker.sent_away, worker.highest);
        let profile = profile(&format!("w{at}"), "p", SLOTS);
        let inventory = self.inventory(at);
        let hello = Hello { session: id(at), profile, prefetch: 2, inventory, highest_assignment: highest };
        let stored = self.stored.values().filter(|(session, _)| *session == at).map(|(_, job)| (**job).clone()).collect();
        let reconciled = Reconciled::new(&hello, stored);
        let strangers = reconciled.strangers(&hello);
        // The model's Store knows of no attempt that was lost and may still win.
        let arrival = Arrival { edge: self.edge.id().clone(), epoch, hello, sent_away, reconciled, over: strangers };
        let over: BTreeSet<AttemptToken> = arrival.over.iter().map(|item| item.token.clone()).collect();
        let Greeting::Welcome(effects) = self.edge.on_hello(arrival, self.now, self.wall()) else { panic!("not taken") };
        let bound = |token: &&AttemptToken| self.stored.get(*token).is_some_and(|(session, _)| *session == at);
        let number = |token: &AttemptToken| self.stored[token].1.life.attempt.binding.as_ref().map_or(0, |b| b.assignment);
        let told = |token: &&AttemptToken| self.workers[at].has.contains_key(*token) || number(token) <= highest;
        let told = self.stored.keys().filter(bound).filter(told).cloned().collect();
        let worker = &mut self.workers[at];
        worker.stream.clear();
        worker.unacknowledged.clear();
        (worker.attached, worker.known, worker.dismissed) = (true, true, false);
        worker.says_it_drains = false;
        (worker.leaving, worker.told, worker.assigned) = (over, told, highest);
        worker.heard_at = Some(self.now);
        self.perform(effects);
        if drains {
            self.say(at, FromWorker { draining: true, ..FromWorker::default() });
        }
    }

    pub(super) fn detach(&mut self, at: usize) {
        let effects = self.edge.on_stream_ended(&id(at), self.workers[at].epoch);
        self.perform(effects);
    }

    /// A worker that has no stream says nothing.
    fn say(&mut self, at: usize, message: FromWorker) {
        if !self.workers[at].attached {
            return;
        }
        let (session, epoch, wall) = (id(at), self.workers[at].epoch, self.wall());
        let effects = self.edge.on_message(&session, epoch, &message, self.now, wall);
        self.workers[at].heard_at = Some(self.now);
        self.workers[at].says_it_drains |= message.draining;
        self.perform(effects.expect("an attached session is known"));
        let effects = self.edge.on_let_go(&session, epoch, message.let_go);
        self.perform(effects);
        if let Some(beat) = message.beat {
            let effects = self.edge.on_beat(&session, epoch, beat, self.now, wall);
            self.perform(effects);
        }
    }

    pub(super) fn beat(&mut self, at: usize) {
        let beat = Beat {
            number: 1,
            highest_assignment: self.workers[at].highest,
            inventory: self.inventory(at),
            active_jobs: 0,
            load: Load::default(),
            slots: None,
        };
        self.say(at, FromWorker { beat: Some(beat), ..FromWorker::default() });
    }

    pub(super) fn drain(&mut self, at: usize) {
        self.workers[at].drains = true;
        self.say(at, FromWorker { draining: true, ..FromWorker::default() });
    }

    pub(super) fn send_away(&mut self, at: usize) {
        self.workers[at].sent_away = true;
        let effects = self.edge.on_sent_away(&[id(at)]);
        self.perform(effects);
    }

    /// Reads one message.
    pub(super) fn read(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        match worker.stream.pop_front() {
            Some(ToWorker::Assign(assignments)) => {
                for assignment in assignments {
                    worker.highest = assignment.number;
                    worker.has.insert(token(&assignment.job).clone(), false);
                }
            }
            Some(ToWorker::Stop { token, .. }) if worker.has.contains_key(&token) => {
                worker.stopping.insert(token);
            }
            Some(ToWorker::Acks(acks)) => {
                for (token, _) in acks {
                    worker.has.remove(&token);
                    worker.stopping.remove(&token);
                }
            }
            _ => {}
        }
    }

    pub(super) fn start(&mut self, at: usize, pick: usize) {
        let worker = &mut self.workers[at];
        let count = worker.has.len().max(1);
        let Some((token, begun)) = worker.has.iter_mut().nth(pick % count) else { return };
        *begun = true;
        let starts = vec![(token.as_str().replace("token", "job").into(), token.clone())];
        self.say(at, FromWorker { starts, ..FromWorker::default() });
    }

    /// Forgets attempts without a word: it crashed and came up again under its old name.
    pub(super) fn forget(&mut self, at: usize, pick: usize) {
        let worker = &mut self.workers[at];
        let count = worker.has.len().max(1);
        let Some(token) = worker.has.keys().nth(pick % count).cloned() else { return };
        worker.has.remove(&token);
        worker.stopping.remove(&token);
    }

    /// Lets go of what it was told to stop: says so, or leaves it to its beats.
    pub(super) fn let_go(&mut self, at: usize, says_so: bool) {
        let worker = &mut self.workers[at];
        let let_go: Vec<AttemptToken> = std::mem::take(&mut worker.stopping).into_iter().collect();
        for token in &let_go {
            worker.has.remove(token);
        }
        if says_so {
            self.say(at, FromWorker { let_go, ..FromWorker::default() });
        }
    }

    /// Reports results of what it has: one, or all at once.
    pub(super) fn report(&mut self, at: usize, pick: usize, all: bool) {
        let worker = &mut self.workers[at];
        let ready: Vec<_> = worker.has.keys().filter(|token| !worker.reported.contains(*token)).cloned().collect();
        if ready.is_empty() || !worker.attached {
            return;
        }
        let tokens = if all { ready } else { vec![ready[pick % ready.len()].clone()] };
        worker.reported.extend(tokens.iter().cloned());
        let epoch = worker.epoch;
        let batch = self.edge.on_results(&id(at), epoch).expect("an attached session is known");
        self.workers[at].unacknowledged.push_back((batch, tokens.iter().cloned().collect()));
        self.reporting.push(Reported { session: at, epoch, batch, tokens });
    }

    // What the Store decides.

    /// A claimed job takes a place in a session.
    pub(super) fn claim(&mut self, at: usize, of_run: bool) {
        self.minted += 1;
        let (job, limits) = (job(self.minted, of_run), Limits::default());
        let (session, epoch, env) = (id(at), self.workers[at].epoch, env(&limits, token(&job)));
        let placed = self.edge.reserve((&session, epoch), &RoutingId::default(), &job, &env, self.now);
        let worker = &self.workers[at];
        let open = worker.known && !worker.says_it_drains && !worker.sent_away;
        match placed {
            Ok((transition, effects)) => {
                assert!(open, "s{at} leaves and is given a job");
                self.perform(effects);
                self.dispatching.push(Ticket { session: at, epoch, job: Arc::new(transition.job) });
            }
            Err(why) => assert!(!open && why == Unplaced::Closed, "s{at} is open and refuses: {why:?}"),
        }
    }

    /// A commit of dispatches comes back, not always in the order in which they took their places. The evidence is the epoch.
    pub(super) fn commit(&mut self, pick: usize, applied: bool) {
        if self.dispatching.is_empty() {
            return;
        }
        let Ticket { session, epoch, job } = self.dispatching.swap_remove(pick % self.dispatching.len());
        let effects = if applied && self.workers[session].epoch == epoch {
            self.stored.insert(token(&job).clone(), (session, job.clone()));
            self.edge.on_dispatched(vec![(job, None)])
        } else {
            self.edge.on_undispatched(&id(session), epoch, token(&job))
        };
        self.perform(effects);
    }

    /// An attempt stops to count: a person cancelled it, or its time is over.
    pub(super) fn cancel(&mut self, pick: usize) {
        let count = self.stored.len().max(1);
        let Some((token, (at, job))) = self.stored.iter().nth(pick % count).map(|(t, held)| (t.clone(), held.clone()))
        else {
            return;
        };
        self.stored.remove(&token);
        self.stop(at, &token, &job);
    }

    fn stop(&mut self, at: usize, token: &AttemptToken, job: &Job) {
        let (is_leaving, effects) = self.edge.on_superseded(&id(at), token, job, self.now);
        let worker = &mut self.workers[at];
        let told = worker.told.remove(token);
        if worker.known {
            assert_eq!(is_leaving, told || job.request.run.is_some(), "{token}");
            if is_leaving {
                worker.leaving.insert(token.clone());
            }
        }
        self.perform(effects);
        if !is_leaving {
            let effects = self.edge.on_settled(&id(at), token);
            self.perform(effects);
        }
    }

    /// The commit of a batch of results comes back.
    pub(super) fn decide(&mut self, pick: usize) {
        if self.reporting.is_empty() {
            return;
        }
        let Reported { session: at, epoch, batch, tokens } = self.reporting.swap_remove(pick % self.reporting.len());
        let (mut acks, mut superseded) = (Vec::new(), Vec::new());
        let report = |token: &AttemptToken| ResultReport {
            job_id: token.as_str().replace("token", "job").into(),
            token: token.clone(),
            outcome: Outcome::Succeeded { result: Json::null() },
            began: None,
        };
        let known = self.edge.reported(&id(at), epoch, &tokens.iter().map(report).collect::<Vec<_>>(), self.now);
        for (token, known) in tokens.iter().zip(known) {
            let counts = self.stored.get(token).is_some_and(|(session, _)| *session == at);
            assert!(known.is_none() || counts, "{token} is over and still held");
            if counts {
                self.stored.remove(token);
                let effects = self.edge.on_settled(&id(at), token);
                self.perform(effects);
            } else {
                superseded.push(token.clone());
            }
            let ack = if counts { Acknowledged::Stored } else { Acknowledged::Superseded };
            acks.push((token.clone(), ack));
        }
        for token in &tokens {
            self.workers[at].told.remove(token);
            self.workers[at].leaving.remove(token);
        }
        let effects = self.edge.on_committed(&id(at), &tokens, superseded);
        self.perform(effects);
        let effects = self.edge.on_decided(&id(at), epoch, batch, acks);
        self.perform(effects);
    }

    /// The engine comes to the next of its duties.
    pub(super) fn follow(&mut self, allowed: bool) {
        match self.duties.pop_front() {
            Some(EdgeEffect::Lose { session, epoch, jobs }) => {
                let at = index(&session);
                if self.workers[at].epoch != epoch {
                    return;
                }
                for lost in jobs {
                    if self.stored.remove(token(&lost)).is_some() {
                        self.stop(at, token(&lost), &lost);
                    }
                    self.over(at, std::slice::from_ref(token(&lost)));
                }
            }
            Some(EdgeEffect::LetGo { session, tokens }) => self.over(index(&session), &tokens),
            Some(EdgeEffect::Resend { session, epoch, jobs }) => {
                let withheld: Vec<_> = jobs.iter().filter(|_| !allowed).map(|job| token(job).clone()).collect();
                let send = jobs.into_iter().filter(|_| allowed).map(|job| (job, None)).collect();
                let effects = self.edge.on_resent(&session, epoch, send, &withheld);
                self.perform(effects);
            }
            _ => {}
        }
    }

    fn over(&mut self, at: usize, tokens: &[AttemptToken]) {
        for token in tokens {
            self.workers[at].leaving.remove(token);
            self.workers[at].told.remove(token);
        }
        let effects = self.edge.on_over(&id(at), tokens);
        self.perform(effects);
    }

    /// The round that looks after silence. A worker is called gone exactly when it was not heard for too long, or left.
    pub(super) fn tick(&mut self) {
        let mut gone = BTreeSet::new();
        for effect in self.edge.on_tick(self.now) {
            let EdgeEffect::Close { session, epoch, how } = effect else { panic!("{effect:?}") };
            let at = index(&session);
            gone.insert(at);
            let worker = &self.workers[at];
            let silent = worker.heard_at.is_some_and(|heard| self.now.since(heard) > RULES.lost_after);
            let empty = worker.leaving.is_empty() && self.expected_held(at).is_empty();
            let left = worker.says_it_drains && empty && (!worker.attached || silent);
            assert!(if how == Departed::Left { left } else { silent && !left }, "s{at} is called {how:?}");
            self.close(at, epoch);
        }
        for at in (0..self.workers.len()).filter(|at| !gone.contains(at) && self.workers[*at].known) {
            let silent = self.workers[at].heard_at.is_none_or(|heard| self.now.since(heard) > RULES.lost_after);
            assert!(!silent, "s{at} is silent and not called so");
        }
    }

    fn close(&mut self, at: usize, epoch: u64) {
        let effects = self.edge.on_closed(&id(at), epoch);
        self.perform(effects);
        self.end_session(at);
        self.stored.retain(|_, (session, _)| *session != at);
    }

    fn end_session(&mut self, at: usize) {
        self.lose_stream(at);
        let worker = &mut self.workers[at];
        worker.known = false;
        worker.leaving.clear();
        worker.told.clear();
    }

    /// Another process closed this edge.
    pub(super) fn lose_lease(&mut self) {
        self.minted += 1;
        let effects = self.edge.on_lease_lost(format!("edge-{}", self.minted).into());
        self.perform(effects);
        for at in 0..self.workers.len() {
            assert!(!self.workers[at].attached, "s{at} has a stream of an edge that was closed");
            self.end_session(at);
        }
    }

    // What must hold.

    fn expected_held(&self, at: usize) -> BTreeSet<AttemptToken> {
        let stored = self.stored.iter().filter(|(_, (session, _))| *session == at).map(|(token, _)| token);
        let placed = self.dispatching.iter().filter(|ticket| ticket.session == at);
        let placed = placed.filter(|ticket| ticket.epoch == self.workers[at].epoch).map(|ticket| token(&ticket.job));
        stored.chain(placed).cloned().collect()
    }

    pub(super) fn check(&self) {
        for (at, worker) in self.workers.iter().enumerate() {
            let Some(session) = self.edge.sessions.get(&id(at)) else {
                assert!(!worker.known, "s{at} is forgotten");
                continue;
            };
            assert!(worker.known, "s{at} is not forgotten");
            let held: BTreeSet<AttemptToken> = session.held.keys().cloned().collect();
            assert_eq!(held, self.expected_held(at), "places of s{at}");
            let leaving: BTreeSet<AttemptToken> = session.leaving.keys().cloned().collect();
            assert_eq!(leaving, worker.leaving, "attempts on their way out of s{at}");
            assert!(held.is_disjoint(&leaving));
            assert_eq!(session.attached, worker.attached, "stream of s{at}");
            let known = self.edge.roster.get(&id(at)).expect("the roster knows every session");
            assert_eq!(known.active as usize, held.len() + leaving.len(), "the roster's count of s{at}");
            let leaves = worker.sent_away || worker.says_it_drains;
            let away = match (worker.attached, leaves) {
                (false, _) => Some(Unavailable::Detached),
                (true, true) => Some(Unavailable::Draining),
                (true, false) => None,
            };
            assert_eq!(known.away, away, "s{at} in the roster");
            let ahead = held.len() + leaving.len() > SLOTS as usize;
            assert_eq!(self.edge.ahead.contains(&id(at)), ahead, "s{at} holds more than it runs");
            let unsent: BTreeSet<_> = session.held.iter().filter(|(_, held)| held.is_unsent()).map(|(t, _)| t).collect();
            assert_eq!(session.unsent.values().collect::<BTreeSet<_>>(), unsent, "what waits to be sent to s{at}");
        }
    }

    /// Everything that is under way comes to its end, and no place stays taken.
    pub(super) fn come_to_rest(&mut self) {
        while !self.dispatching.is_empty() {
            self.commit(0, true);
        }
        for at in 0..self.workers.len() {
            self.attach(at);
        }
        for _ in 0..4 {
            while !self.duties.is_empty() {
                self.follow(true);
            }
            for at in 0..self.workers.len() {
                while !self.workers[at].stream.is_empty() {
                    self.read(at);
                }
                self.let_go(at, true);
                self.report(at, 0, true);
                while !self.reporting.is_empty() {
                    self.decide(0);
                }
                self.beat(at);
            }
            self.check();
        }
        assert!(self.stored.is_empty(), "never delivered: {:?}", self.stored.keys());
        for at in 0..self.workers.len() {
            assert_eq!(self.edge.sessions[&id(at)].taken(), 0, "s{at} has nothing, and places are taken");
        }
    }
}
