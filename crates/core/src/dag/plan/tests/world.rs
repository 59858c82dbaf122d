//! What is around a run: a Store that keeps what was committed, and jobs that end when a test says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::super::super::{Dag, DagRef, JobTries, NodeKey, NodeRun, NodeState, Run, RunHead, RunState, UndoState};
use super::super::tally::RunTally;
use super::super::undo::UndoPlan;
use super::super::{Awaited, OrderRefusal, RunCommand, RunMessage, RunPlanner, RunTransition, Start, SubRun, begin};
use crate::ids::{ActorId, JobId, RunId};
use crate::job::{Failure, JobState, Reason};
use crate::request::{Caller, JobRequest, Json, RunRef};
use crate::time::Timestamp;

pub(super) struct World {
    pub(super) dag: Arc<Dag>,
    pub(super) live: RunPlanner,
    pub(super) committed: Run,
    pub(super) jobs: BTreeMap<JobId, Ordered>,
    pub(super) runs: BTreeMap<RunId, SubRun>,
    pub(super) stopped: BTreeSet<JobId>,
    pub(super) stopped_runs: BTreeSet<RunId>,
    pub(super) now: Timestamp,
    pub(super) last: RunTransition,
    /// Whether everything is checked after every commit, which costs as much as the run is large.
    careful: bool,
}

/// A job as the rest of the world knows it.
pub(super) struct Ordered {
    pub(super) request: Arc<JobRequest>,
    /// How it ended.
    pub(super) end: Option<JobState>,
    /// It was done all the same, by an attempt that no longer counted.
    pub(super) late: bool,
}

impl Ordered {
    /// How it ended, and that it was done if it was.
    pub(super) fn news(&self) -> Vec<RunMessage> {
        let part = self.request.run.clone().unwrap();
        let late = self.late.then(|| RunMessage::Late { part, output: Some(Json::trusted("1")) });
        self.end.into_iter().map(|state| news(&self.request, state)).chain(late).collect()
    }
}

impl World {
    pub(super) fn begin(dag: Dag) -> Self {
        let mut world = Self::begin_large(dag);
        world.careful = true;
        world.check_limits();
        world.settle();
        world
    }

    pub(super) fn begin_large(dag: Dag) -> Self {
        let dag = Arc::new(dag);
        let now = Timestamp::from_millis(1_000_000);
        let caller = Caller { actor_type: Some("agent".into()), ..Caller::new("acme", "ann") };
        let of = DagRef { name: dag.name.clone(), version: 1 };
        let start =
            Start { id: RunId::from("run-1"), of, params: json!({ "size": 1 }), parent: None, fresh: false, timeout: None };
        let (live, next) = begin(&dag, start, &caller, now);
        let mut head = next.head.clone();
        head.version = 0;
        let mut world = Self {
            committed: Run { head, nodes: BTreeMap::new() },
            jobs: BTreeMap::new(),
            runs: BTreeMap::new(),
            stopped: BTreeSet::new(),
            stopped_runs: BTreeSet::new(),
            last: next.clone(),
            dag,
            live,
            now,
            careful: false,
        };
        world.commit(next);
        world
    }

    /// What a Store does with a decision, and what the engine does after it.
    pub(super) fn commit(&mut self, next: RunTransition) {
        assert_eq!(next.head.version, self.committed.head.version + 1);
        for (key, row) in &next.nodes {
            check_change(self.committed.nodes.get(key), row);
            self.committed.nodes.insert(*key, row.clone());
        }
        let before = std::mem::replace(&mut self.committed.head, next.head.clone());
        for request in &next.jobs {
            self.check_insert(request, &before);
            let ordered = Ordered { request: request.clone(), end: None, late: false };
            assert!(self.jobs.insert(request.job_id.clone(), ordered).is_none(), "{} twice", request.job_id);
        }
        self.runs.extend(next.runs.iter().map(|run| (run.id.clone(), run.clone())));
        self.stopped.extend(next.stop_jobs.iter().cloned());
        self.stopped_runs.extend(next.stop_runs.iter().cloned());
        if self.careful {
            self.check_limits();
        }
        self.last = next;
    }

    /// Nothing new starts in a run that does not go on, and nothing is undone before what came after it.
    fn check_insert(&self, request: &JobRequest, before: &RunHead) {
        let part = request.run.as_ref().unwrap();
        let head = &self.committed.head;
        if !part.undo {
            // A failure in the same step may close the run that the job was started in.
            assert!(before.closing.is_none() || head.closing.is_none(), "{} in a closed run", request.job_id);
            assert!(!head.paused, "{} in a paused run", request.job_id);
            return;
        }
        let mut after: BTreeSet<_> = self.dag.node(part.node).children.iter().copied().collect();
        while let Some(node) = after.pop_first() {
            let rows = self.committed.nodes.range(NodeKey::of(node)..=NodeKey::item(node, u32::MAX));
            for (key, row) in rows.filter(|(_, row)| self.dag.node(node).compensation.is_some() && self.is_known_done(row)) {
                let settled = row.undo.as_ref().is_some_and(|undo| undo.state.is_settled());
                // Retried and late ones are undone when they are heard of.
                assert!(settled || part.round > 0 || self.has_late(), "{} before {key:?}", request.job_id);
            }
            after.extend(&self.dag.node(node).children);
        }
    }

    fn has_late(&self) -> bool {
        self.committed.nodes.values().any(|row| row.undo.as_ref().is_some_and(|undo| undo.round > 0))
    }

    /// By what is known outside of the run.
    pub(super) fn was_done(&self, row: &NodeRun) -> bool {
        let job = row.job.as_ref().and_then(|id| self.jobs.get(id));
        let by_run = row.child.is_some() && row.state == NodeState::Succeeded;
        let done = |job: &Ordered| job.late || matches!(job.end, Some(JobState::Succeeded | JobState::OutputQuarantined));
        job.is_some_and(done) || by_run
    }

    fn is_known_done(&self, row: &NodeRun) -> bool {
        let given_up = row.failure.as_ref().is_some_and(|failure| failure.reason == Reason::Orphaned);
        self.was_done(row) && row.state.is_over() && !given_up && !self.is_unheard(row)
    }

    /// It was done late, and the run does not know yet.
    fn is_unheard(&self, row: &NodeRun) -> bool {
        let late = row.job.as_ref().and_then(|id| self.jobs.get(id)).is_some_and(|job| job.late);
        late && !row.late && row.state != NodeState::Succeeded
    }

    fn check_limits(&self) {
        let rows = &self.committed.nodes;
        let counted = |key: &NodeKey, row: &NodeRun| {
            let work = !matches!(self.dag.node(key.node).work, super::NodeWork::Approval(_));
            let forward = work && row.state == NodeState::Running && (row.job.is_some() || row.child.is_some());
            usize::from(forward) + usize::from(row.undo.as_ref().is_some_and(|undo| undo.state == UndoState::Running))
        };
        let at_work: usize = rows.iter().map(|(key, row)| counted(key, row)).sum();
        // A compensation that an operator retries starts at once, whether there is room or not.
        let most = self.dag.max_parallelism.map_or(usize::MAX, |most| most as usize);
        assert!(at_work <= most || self.has_late(), "{at_work} at work");
        for (at, node) in (0..).zip(&self.dag.nodes) {
            let Some(most) = node.for_each.as_ref().and_then(|each| each.concurrency) else { continue };
            let items = rows.range(NodeKey::item(at, 0)..=NodeKey::item(at, u32::MAX));
            assert!(items.filter(|(_, row)| row.state == NodeState::Running).count() <= most as usize);
        }
    }

    /// what is kept in memory is what the rows say, and the sweep finds nothing that a step has left.
    pub(super) fn check(&self) {
        assert_eq!(self.live.run, self.committed);
        let mut fresh = RunPlanner::new(self.dag.clone(), self.committed.clone());
        assert_eq!(self.live.tally, fresh.tally);
        assert_eq!(self.live.tally, RunTally::of(&self.dag, &self.committed.nodes));
        if let Some(plan) = &self.live.undo {
            assert_eq!(*plan, UndoPlan::of(&self.dag, &self.committed.nodes));
        }
        let (next, _) = fresh.replan(self.now);
        assert!(next.is_none(), "the sweep found {next:?}");
        let over = self.committed.nodes.iter().filter(|(key, row)| key.item.is_none() && row.state.is_over()).count();
        assert_eq!(self.committed.head.done as usize, over);
    }

    /// Commits, and goes on while there is more to start at once.
    pub(super) fn take(&mut self, next: Option<RunTransition>) {
        let Some(next) = next else { return };
        self.commit(next);
        self.settle();
    }

    fn settle(&mut self) {
        while self.last.more {
            let next = self.live.step(&[], self.now);
            self.commit(next.expect("there was more"));
        }
        if self.careful {
            self.check();
        }
    }

    pub(super) fn hear(&mut self, news: &[RunMessage]) {
        let next = self.live.step(news, self.now);
        self.take(next);
    }

    pub(super) fn crash(&mut self) {
        self.live = RunPlanner::new(self.dag.clone(), self.committed.clone());
    }

    pub(super) fn wait(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
        self.hear(&[]);
    }

    pub(super) fn order(&mut self, order: RunCommand) -> Result<(), OrderRefusal> {
        let next = self.live.order(order, self.now)?;
        self.take(next);
        Ok(())
    }

    pub(super) fn cancel(&mut self, compensate: bool) -> Result<(), OrderRefusal> {
        self.order(RunCommand::Cancel { actor: ActorId::from("bob"), note: None, compensate })
    }

    pub(super) fn key(&self, name: &str) -> NodeKey {
        NodeKey::of(self.dag.index(name).unwrap())
    }

    pub(super) fn row(&self, name: &str) -> &NodeRun {
        &self.committed.nodes[&self.key(name)]
    }

    pub(super) fn state(&self, name: &str) -> NodeState {
        self.committed.nodes.get(&self.key(name)).map_or(NodeState::Pending, |row| row.state)
    }

    pub(super) fn run_state(&self) -> RunState {
        self.committed.head.state
    }

    pub(super) fn undo_state(&self, name: &str) -> Option<UndoState> {
        self.row(name).undo.as_ref().map(|undo| undo.state)
    }

    pub(super) fn news_of(&self, name: &str, state: JobState) -> RunMessage {
        self.news_at(self.key(name), state)
    }

    pub(super) fn news_at(&self, key: NodeKey, state: JobState) -> RunMessage {
        let row = &self.committed.nodes[&key];
        news(&self.jobs[row.job.as_ref().unwrap()].request, state)
    }

    pub(super) fn end_at(&mut self, key: NodeKey, state: JobState) {
        let id = self.committed.nodes[&key].job.clone().unwrap();
        self.end_job(&id, state);
    }

    pub(super) fn end_job(&mut self, id: &JobId, state: JobState) {
        let ordered = self.jobs.get_mut(id).unwrap();
        ordered.end = Some(state);
        let told = ordered.news();
        self.hear(&told);
    }

    pub(super) fn part_of(&self, name: &str) -> RunRef {
        let id = self.row(name).job.clone().unwrap();
        self.jobs[&id].request.run.clone().unwrap()
    }

    /// The job of a node, which ended some other way, was done all the same.
    pub(super) fn done_late(&mut self, name: &str) {
        let id = self.row(name).job.clone().unwrap();
        let ordered = self.jobs.get_mut(&id).unwrap();
        ordered.late = true;
        let told = ordered.news();
        self.hear(&told);
    }

    pub(super) fn end(&mut self, name: &str, state: JobState) {
        self.end_at(self.key(name), state);
    }

    pub(super) fn succeed(&mut self, name: &str) {
        self.end(name, JobState::Succeeded);
    }

    pub(super) fn fail(&mut self, name: &str) {
        self.end(name, JobState::Failed);
    }

    pub(super) fn end_with(&mut self, name: &str, output: &str) {
        let mut told = self.news_of(name, JobState::Succeeded);
        if let RunMessage::Job { output: kept, .. } = &mut told {
            *kept = Some(Json::trusted(output));
        }
        self.hear(&[told]);
    }

    pub(super) fn end_undo(&mut self, name: &str, state: JobState) {
        let id = self.row(name).undo.as_ref().unwrap().job.clone();
        self.end_job(&id, state);
    }

    pub(super) fn end_run(&mut self, name: &str, state: RunState) {
        let told = self.run_news(self.row(name).child.as_ref().unwrap(), state);
        self.hear(&[told]);
    }

    pub(super) fn run_news(&self, child: &RunId, state: RunState) -> RunMessage {
        let sub = &self.runs[child];
        let head = RunHead { id: child.clone(), state, parent: Some(sub.parent.clone()), ..self.committed.head.clone() };
        RunMessage::Run(Box::new(RunHead { tainted: false, failure: None, output: None, ..head }))
    }

    /// Ends everything that is under way, until the run is over: what was told to stop is cancelled, the rest succeeds.
    pub(super) fn drain(&mut self) {
        while !self.run_state().is_over() {
            let version = self.committed.head.version;
            if self.committed.head.paused {
                self.order(RunCommand::Resume).unwrap();
            }
            self.resolve_stuck();
            match self.live.waits().first() {
                Some((_, Awaited::Job(id))) => {
                    let id = id.clone();
                    let end = if self.stopped.contains(&id) { JobState::Cancelled } else { JobState::Succeeded };
                    self.end_job(&id, self.jobs[&id].end.unwrap_or(end));
                }
                Some((_, Awaited::Run(id))) => {
                    let end = if self.stopped_runs.contains(id) { RunState::Canceled } else { RunState::Succeeded };
                    let news = self.run_news(id, end);
                    self.hear(&[news]);
                }
                None if self.run_state().is_over() => {}
                None => self.wait(1_000_000),
            }
            assert!(self.committed.head.version > version, "the run is stuck: {:?}", self.committed);
        }
    }

    fn resolve_stuck(&mut self) {
        let is_stuck = |row: &NodeRun| row.undo.as_ref().is_some_and(|undo| undo.state == UndoState::Stuck);
        while let Some(key) = self.committed.nodes.iter().find(|(_, row)| is_stuck(row)).map(|(key, _)| *key) {
            self.order(RunCommand::Resolve { key, actor: ActorId::from("bob") }).unwrap();
        }
    }

    /// Jobs that have not ended.
    pub(super) fn open_jobs(&self) -> Vec<JobId> {
        self.jobs.iter().filter(|(_, ordered)| ordered.end.is_none()).map(|(id, _)| id.clone()).collect()
    }
}

pub(super) fn news(request: &JobRequest, state: JobState) -> RunMessage {
    let part: RunRef = request.run.clone().unwrap();
    let failure = (state != JobState::Succeeded).then(|| Failure::new(Reason::Failed, "it broke"));
    let output = (state == JobState::Succeeded).then(|| Json::trusted("1"));
    let tries = JobTries { attempts: 1, losses: 0 };
    RunMessage::Job { part, state, output, failure, memo_of: None, tries, leaving: Vec::new() }
}

/// What runs is never skipped, and what is over changes only in the ways that news may still change it.
fn check_change(old: Option<&NodeRun>, new: &NodeRun) {
    let Some(old) = old.filter(|old| old.round == new.round) else { return };
    let legal = match (old.state, new.state) {
        (NodeState::Running, NodeState::Skipped | NodeState::Ready) => false,
        (NodeState::Skipped, after) => after == NodeState::Skipped,
        (NodeState::Succeeded, after) => matches!(after, NodeState::Succeeded | NodeState::Failed | NodeState::Pending),
        (NodeState::Failed | NodeState::Canceled, after) => after.is_over() || after == NodeState::Pending,
        _ => true,
    };
    assert!(legal, "{:?} became {:?}", old.state, new.state);
}
