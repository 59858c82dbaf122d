//! The planner: every decision about a run.
//!
//! [`RunPlanner::step`] looks only at the nodes that a message touches; [`RunPlanner::replan`] looks at all nodes and must
//! find nothing that a step has missed. Both decide by the same functions from the same rows, so any process can drop, load
//! and continue a run between two commits.

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

use super::{Dag, DagRef, JobTries, NodeIx, NodeKey, NodeRun, NodeState, Run, RunHead, RunParent, RunState};
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

/// The most jobs and runs that one step starts, which bounds one commit. The next step continues.
pub const STARTS_MAX: usize = 500;

/// A run in memory, with counts derived from its rows. A decision updates it at once: a caller whose commit fails must load
/// the run again.
#[derive(Clone, Debug)]
pub struct RunPlanner {
    dag: Arc<Dag>,
    run: Run,
    params: Arc<Value>,
    tally: RunTally,
    /// Computed when first needed.
    undo: Option<UndoPlan>,
    expanded: BTreeMap<NodeIx, Arc<Expanded>>,
    /// For each node, the `for_each` nodes that read its output: their cached lists are dropped when the output changes.
    readers: Arc<BTreeMap<NodeIx, Vec<NodeIx>>>,
    /// Nodes and edges looked at so far; tests measure the cost of a step by it.
    #[cfg(test)]
    looked: usize,
}

/// A message that a run takes. Repeats and messages of earlier rounds change nothing.
#[derive(Clone, Debug)]
pub enum RunMessage {
    /// A job of the run ended, or its outcome changed afterwards.
    Job {
        part: RunRef,
        state: JobState,
        output: Option<Json>,
        failure: Option<Failure>,
        memo_of: Option<JobId>,
        tries: JobTries,
        /// Workers that may still be working on revoked attempts of the job.
        leaving: Vec<Leaving>,
    },
    /// A revoked attempt succeeded although its job had ended otherwise.
    Late { part: RunRef, output: Option<Json> },
    /// A sub-run that a node waits for is over.
    Run(Box<RunHead>),
    /// A plain job of a saga, in its present state.
    Plain(Box<Job>),
}

impl RunMessage {
    /// Whether the message is about this life of a plain job.
    pub(in crate::dag) fn is_of(&self, job: &Job) -> bool {
        let of = |other: &Job| other.request.job_id == job.request.job_id && other.life.no == job.life.no;
        matches!(self, Self::Plain(other) if of(other))
    }
}

/// A command that a person gives to a run.
#[derive(Clone, Debug)]
pub enum RunCommand {
    /// No node starts and delays wait. Running nodes continue, and the run's own timeout keeps counting.
    Pause,
    Resume,
    Cancel {
        actor: ActorId,
        note: Option<Arc<str>>,
        compensate: bool,
    },
    /// Runs these nodes and all their descendants again, with `params` replacing parameters by name, and with them every
    /// node that was cancelled or whose failure ended the run. The caller has checked the parameters' types.
    Rerun {
        from: Vec<NodeIx>,
        params: serde_json::Map<String, Value>,
        /// Run every job, without taking memoised results.
        fresh: bool,
    },
    /// Declare a stuck compensation resolved.
    Resolve {
        key: NodeKey,
        actor: ActorId,
    },
    /// Retry a stuck compensation.
    Retry {
        key: NodeKey,
    },
}

/// A decision, ready to be committed if the run still has the version before.
#[derive(Clone, Debug)]
pub struct RunTransition {
    pub head: RunHead,
    /// Rows that changed, complete.
    pub nodes: Vec<(NodeKey, NodeRun)>,
    /// Jobs to insert in this commit.
    pub jobs: Vec<Arc<JobRequest>>,
    /// Jobs that can never run, to be inserted as dead with the reason, so that their dead letters show it.
    pub dead: Vec<(Arc<JobRequest>, Failure)>,
    /// Sub-runs to begin after the commit, unless they exist.
    pub runs: Vec<SubRun>,
    /// Jobs to cancel after the commit. Each `replan` repeats them while they are under way.
    pub stop_jobs: Vec<JobId>,
    /// Sub-runs to cancel after the commit; they undo their work if `head.closing` undoes this run's.
    pub stop_runs: Vec<RunId>,
    /// Further nodes can start at once: take another step.
    pub more: bool,
    pub settled: Settled,
}

/// Rows that changed in a way that metrics and listeners count. Comparing rows cannot show it: a row that ends and whose
/// compensation begins in one step looks like one that ended long ago.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Rows that ended in this step.
    pub ended: BTreeSet<NodeKey>,
    /// Rows that had ended before, and whose work turned out to be done.
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

/// A run that a node of another run starts.
#[derive(Clone, Debug)]
pub struct SubRun {
    pub id: RunId,
    pub dag: Arc<str>,
    pub params: Value,
    pub parent: RunParent,
}

/// The command does not apply to the run in its present state. Nothing changes.
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

/// The input from which a run begins.
#[derive(Clone, Debug)]
pub struct Start {
    pub id: RunId,
    pub of: DagRef,
    /// Checked, with defaults filled in.
    pub params: Value,
    pub parent: Option<RunParent>,
    /// Run every job, without taking memoised results.
    pub fresh: bool,
    /// The run's timeout if its DAG has none.
    pub timeout: Option<Duration>,
}

/// A new run, with every node started that may start.
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
    /// Loads a run and computes all counts from its rows.
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

    /// Decides what follows from the messages and the time. None: nothing changes.
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

    /// The jobs or runs that these nodes wait for do not exist any more: the nodes fail, or their compensations are stuck.
    pub fn lost(&mut self, keys: &[NodeKey], now: Timestamp) -> Option<RunTransition> {
        let mut step = RunStep::of(self, now);
        for key in keys {
            step.give_up(*key, Failure::new(Reason::Orphaned, "what it waited for does not exist any more"));
        }
        step.go_on()
    }

    /// Sessions of workers that the run waits for before it undoes anything.
    pub fn leaving(&self) -> BTreeSet<&SessionId> {
        let rows =
            self.tally.leaving.iter().filter(|_| self.awaits_workers()).filter_map(|(_, key)| self.run.nodes.get(key));
        rows.flat_map(NodeRun::sessions_leaving).collect()
    }

    /// These sessions are closed, so no revoked attempt is under way in them any more.
    pub fn left(&mut self, closed: &BTreeSet<SessionId>, now: Timestamp) -> Option<RunTransition> {
        let mut step = RunStep::of(self, now);
        step.note_closed(closed);
        step.go_on()
    }

    /// The sub-run of this node could not begin: its DAG does not exist, or does not take the parameters.
    pub fn refused(&mut self, key: NodeKey, failure: Failure, now: Timestamp) -> Option<RunTransition> {
        let mut step = RunStep::of(self, now);
        step.give_up(key, failure);
        step.go_on()
    }

    /// A transition without changes, to be committed with messages that changed nothing, so that they are not read again.
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
