//! Every decision about a run.
//!
//! [`RunPlanner::step`] looks at what the news touch and at nothing else; [`RunPlanner::replan`] looks at everything and must find
//! nothing that a step has left. Both decide by the same functions over the same rows, so a run can be dropped, loaded
//! and continued by anybody between any two commits.

mod close;
mod hear;
mod items;
mod join;
mod make;
mod order;
mod orphan;
mod rerun;
mod scope;
mod start;
mod step;
mod sweep;
mod tally;
#[cfg(test)]
mod tests;
mod undo;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{Dag, DagRef, NodeIx, NodeKey, NodeRun, NodeState, Run, RunHead, RunParent, RunState};
use crate::ids::{ActorId, JobId, RunId, SessionId};
use crate::job::{Failure, Job, JobState, Leaving, Reason};
use crate::request::{Caller, JobRequest, Json, RunRef};
use crate::time::Timestamp;
pub(super) use hear::or_in_words;
use items::Expanded;
pub use make::APPROVAL_TOPIC;
pub(super) use make::saga_marks;
use step::RunStep;
pub(super) use sweep::awaited;
pub use sweep::{Awaited, Implied};
use tally::RunTally;
use undo::UndoPlan;
pub(super) use undo::{waits_for_people, was_quarantined};

/// Jobs and runs that one step starts: bounds one commit. The next step goes on.
pub const STARTS_MAX: usize = 500;

/// A run in memory, with what can be counted off it. After a decision it is already as the decision says: whoever fails to
/// commit that must load it again.
#[derive(Clone, Debug)]
pub struct RunPlanner {
    dag: Arc<Dag>,
    run: Run,
    params: Arc<Value>,
    tally: RunTally,
    /// Counted when it is first needed.
    undo: Option<UndoPlan>,
    expanded: BTreeMap<NodeIx, Arc<Expanded>>,
    /// By node: `for_each` nodes that read its output, whose expansion in memory it outdates when it changes.
    readers: Arc<BTreeMap<NodeIx, Vec<NodeIx>>>,
    /// Nodes and edges looked at so far: the measure of what a step costs.
    #[cfg(test)]
    looked: usize,
}

/// Something a run has to hear. Repeats, and news of earlier rounds, change nothing.
#[derive(Clone, Debug)]
pub enum RunMessage {
    /// A job of the run ended, or what came of it changed since.
    Job {
        part: RunRef,
        state: JobState,
        output: Option<Json>,
        failure: Option<Failure>,
        memo_of: Option<JobId>,
        /// Workers that may still be at work on attempts that no longer count.
        leaving: Vec<Leaving>,
    },
    /// A job that ended otherwise was done all the same, by an attempt that no longer counted.
    Late { part: RunRef, output: Option<Json> },
    /// A run that a node waits for is over.
    Run(Box<RunHead>),
    /// A plain job of a saga, as it is now.
    Plain(Box<Job>),
}

impl RunMessage {
    /// Whether it tells of this life of a plain job.
    pub(in crate::dag) fn is_of(&self, job: &Job) -> bool {
        let of = |other: &Job| other.request.job_id == job.request.job_id && other.life.no == job.life.no;
        matches!(self, Self::Plain(other) if of(other))
    }
}

/// What people ask of a run.
#[derive(Clone, Debug)]
pub enum RunCommand {
    /// Nothing new starts and delays wait; what runs goes on, and so does the run's own timeout.
    Pause,
    Resume,
    Cancel {
        actor: ActorId,
        note: Option<Arc<str>>,
        compensate: bool,
    },
    /// These nodes and all that come after them once more, with these parameters where they are named; besides them what
    /// was cancelled, or failed and so ended the run. The types of the parameters were checked before.
    Rerun {
        from: Vec<NodeIx>,
        params: serde_json::Map<String, Value>,
        /// Nothing that was done before stands for it.
        fresh: bool,
    },
    /// A stuck undo is as good as done.
    Resolve {
        key: NodeKey,
        actor: ActorId,
    },
    /// A stuck undo once more.
    Retry {
        key: NodeKey,
    },
}

/// A decision, ready to be committed against the version before.
#[derive(Clone, Debug)]
pub struct RunTransition {
    pub head: RunHead,
    /// Rows that changed, whole.
    pub nodes: Vec<(NodeKey, NodeRun)>,
    /// Jobs to insert in the same commit.
    pub jobs: Vec<Arc<JobRequest>>,
    /// Jobs to insert that can never run, and why: their dead letters tell of it.
    pub dead: Vec<(Arc<JobRequest>, Failure)>,
    /// Runs to begin after the commit, unless they are there.
    pub runs: Vec<SubRun>,
    /// Jobs to cancel after the commit. Told again by each `replan` while they are under way.
    pub stop_jobs: Vec<JobId>,
    /// Runs to cancel after the commit, undoing their work if `head.closing` undoes this run's.
    pub stop_runs: Vec<RunId>,
    /// More may start at once: take another step.
    pub more: bool,
    pub settled: Settled,
}

/// Rows of a step that were not so before it, for those who count. The rows themselves do not tell: one that ends and whose
/// undo begins in the same step looks like one that ended long ago.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Came to an end.
    pub ended: BTreeSet<NodeKey>,
    /// Had come to an end, and turn out to have done their work.
    pub done_late: BTreeSet<NodeKey>,
}

impl Settled {
    pub(in crate::dag) fn note(&mut self, key: NodeKey, before: Option<&NodeRun>, after: &NodeRun) {
        let done = |row: &NodeRun| row.late || row.state == NodeState::Succeeded;
        match before.filter(|row| row.state.is_over()) {
            None if after.state.is_over() => drop(self.ended.insert(key)),
            Some(before) if done(after) && !done(before) && !self.ended.contains(&key) => drop(self.done_late.insert(key)),
            _ => {}
        }
    }
}

/// A run inside of a run.
#[derive(Clone, Debug)]
pub struct SubRun {
    pub id: RunId,
    pub dag: Arc<str>,
    pub params: Value,
    pub parent: RunParent,
}

/// The order does not fit the run as it is. Nothing changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderRefusal {
    #[error("the run is over: it is {0}")]
    Over(&'static str),
    #[error("the run is {0}: only one that is over, and whose work was not undone, can be rerun")]
    NotAgain(&'static str),
    #[error("the run is about to end: nothing new starts any more")]
    Closing,
    #[error("the run is undoing its work and cannot be cancelled; resolve or retry an undo that is stuck")]
    Compensating,
    #[error("run {0} waits for this one: rerun that run from the node that started this one")]
    Child(RunId),
    #[error("name one or more nodes of the DAG to start from")]
    NoSuchNode,
    #[error("{0}")]
    Params(String),
    #[error("nothing is stuck at this node")]
    NotStuck,
    #[error("it has no plan: a workflow of plain jobs can be cancelled or rolled back, and nothing else")]
    NoPlan,
}

/// What a run begins with.
#[derive(Clone, Debug)]
pub struct Start {
    pub id: RunId,
    pub of: DagRef,
    /// They were checked, and defaults are in.
    pub params: Value,
    pub parent: Option<RunParent>,
    /// Nothing that was done before stands for what its nodes are to do.
    pub fresh: bool,
    /// How long it may take if its DAG does not say.
    pub timeout: Option<Duration>,
}

/// A new run with everything started that may start.
pub fn begin(dag: &Arc<Dag>, start: Start, caller: &Caller, now: Timestamp) -> (RunPlanner, RunTransition) {
    let Start { id, of, params, parent, fresh, timeout } = start;
    let timeout = timeout.filter(|_| dag.timeout_ms.is_none());
    let head = RunHead {
        id,
        version: 0,
        dag: of,
        tenant: caller.tenant.clone(),
        actor: caller.actor.clone(),
        actor_type: caller.actor_type.clone(),
        actor_verified: caller.verified,
        params: Json::trusted(params.to_string()),
        state: RunState::Running,
        began_at: now,
        ended_at: None,
        deadline_at: dag.timeout_ms.map(Duration::from_millis).or(timeout).map(|span| now + span),
        timeout_ms: timeout.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
        wakes_at: None,
        paused: false,
        failure: None,
        closing: None,
        tainted: false,
        output: None,
        parent,
        trace: caller.trace,
        fresh,
        reruns: 0,
        done: 0,
        total: u32::try_from(dag.nodes.len()).unwrap_or(u32::MAX),
    };
    let mut live = RunPlanner::with(dag.clone(), Run { head, nodes: BTreeMap::new() }, params);
    let mut step = RunStep::of(&mut live, now);
    let roots = (0..).zip(&dag.nodes).filter(|(_, node)| node.needs.is_empty()).map(|(at, _)| at);
    step.touch(roots);
    let next = step.go_on().unwrap_or_else(|| RunTransition::bare(&mut live));
    (live, next)
}

impl RunPlanner {
    /// Counts everything anew from the rows.
    pub fn new(dag: Arc<Dag>, run: Run) -> Self {
        let params = run.head.params.value().unwrap_or_default();
        Self::with(dag, run, params)
    }

    fn with(dag: Arc<Dag>, run: Run, params: Value) -> Self {
        let tally = RunTally::of(&dag, &run.nodes);
        let readers = Arc::new(items::readers(&dag));
        Self {
            dag,
            run,
            params: Arc::new(params),
            tally,
            undo: None,
            expanded: BTreeMap::new(),
            readers,
            #[cfg(test)]
            looked: 0,
        }
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    pub fn dag(&self) -> &Arc<Dag> {
        &self.dag
    }

    /// What follows from the news and from the time. None: nothing changes.
    pub fn step(&mut self, news: &[RunMessage], now: Timestamp) -> Option<RunTransition> {
        let mut step = RunStep::of(self, now);
        for news in news {
            step.hear(news);
        }
        step.go_on()
    }

    pub fn order(&mut self, order: RunCommand, now: Timestamp) -> Result<Option<RunTransition>, OrderRefusal> {
        let mut step = RunStep::of(self, now);
        step.obey(order)?;
        Ok(step.go_on())
    }

    /// What these nodes wait for does not exist any more: they failed, or their undo is stuck.
    pub fn lost(&mut self, keys: &[NodeKey], now: Timestamp) -> Option<RunTransition> {
        let mut step = RunStep::of(self, now);
        for key in keys {
            step.give_up(*key, Failure::new(Reason::Orphaned, "what it waited for does not exist any more"));
        }
        step.go_on()
    }

    /// Sessions of workers that it waits for before it undoes anything.
    pub fn leaving(&self) -> BTreeSet<&SessionId> {
        let rows =
            self.tally.leaving.iter().filter(|_| self.awaits_workers()).filter_map(|(_, key)| self.run.nodes.get(key));
        rows.flat_map(NodeRun::sessions_leaving).collect()
    }

    /// These sessions are closed: nothing of what was taken from them is under way any more.
    pub fn left(&mut self, closed: &BTreeSet<SessionId>, now: Timestamp) -> Option<RunTransition> {
        let mut step = RunStep::of(self, now);
        step.note_closed(closed);
        step.go_on()
    }

    /// What this node waits for could not begin: its DAG does not exist, or does not take the parameters.
    pub fn refused(&mut self, key: NodeKey, failure: Failure, now: Timestamp) -> Option<RunTransition> {
        let mut step = RunStep::of(self, now);
        step.give_up(key, failure);
        step.go_on()
    }

    /// A decision that changes nothing, to be committed with news that changed nothing.
    pub fn acknowledge(&mut self) -> RunTransition {
        RunTransition::bare(self)
    }

    fn total(&self) -> u32 {
        self.run.head.total
    }

    fn state(&self, node: NodeIx) -> NodeState {
        self.run.nodes.get(&NodeKey::of(node)).map_or(NodeState::Pending, |row| row.state)
    }

    fn undoes(&self) -> bool {
        self.run.head.closing.is_some_and(super::Closing::undoes)
    }

    fn awaits_workers(&self) -> bool {
        self.run.head.awaits_workers()
    }

    fn undo_plan(&mut self) -> &UndoPlan {
        let Self { dag, run, undo, .. } = self;
        undo.get_or_insert_with(|| UndoPlan::of(dag, &run.nodes))
    }

    fn items_of(node: NodeIx) -> RangeInclusive<NodeKey> {
        NodeKey::item(node, 0)..=NodeKey::item(node, u32::MAX)
    }

    fn rows_of(node: NodeIx) -> RangeInclusive<NodeKey> {
        NodeKey::of(node)..=NodeKey::item(node, u32::MAX)
    }

    #[cfg(test)]
    fn look(&mut self, at: usize) {
        self.looked += at;
    }
}

impl RunTransition {
    fn bare(live: &mut RunPlanner) -> Self {
        live.run.head.version += 1;
        Self {
            head: live.run.head.clone(),
            nodes: Vec::new(),
            jobs: Vec::new(),
            dead: Vec::new(),
            runs: Vec::new(),
            stop_jobs: Vec::new(),
            stop_runs: Vec::new(),
            more: live.could_start(),
            settled: Settled::default(),
        }
    }
}
