//! Every live run planned anew, as if nothing were known of it: what a crash left undone is found here.

use std::collections::BTreeSet;

use lockgate_core::dag::plan::{Awaited, Implied};
use lockgate_core::dag::{AnyRun, Closing, NodeKey, RunHead};
use lockgate_core::ids::{JobId, RunId, SessionId};
use lockgate_ports::StoreError;

use super::Planned;
use super::advance::why_stopped;
use super::cache::ReadRuns;
use crate::Inner;
use crate::metrics::Swept;

/// Runs in memory at once.
const PAGE: usize = 64;

impl Inner {
    /// One page of live runs. Where the next one begins; None at the end.
    pub(crate) async fn sweep(&self, after: Option<&RunId>, counted: &mut Swept) -> Result<Option<RunId>, StoreError> {
        let ids = self.ports.store.live_runs(after, PAGE).await?;
        // What they have to hear comes first: it may be just what is missing.
        let mut page = Swept::default();
        let swept = match self.steps_once(ids.clone()).await {
            Ok(()) => self.replan(&ids, &mut page).await,
            failed => failed,
        };
        match swept {
            // What makes no sense makes none with the next try either: the pages behind it have their turn.
            Err(error) if error.is_damage() => {
                self.health.store_failed(&error);
                self.metrics.loops.failed("runs");
                tracing::error!(%error, "a page of runs could not be replanned; the sweep continues with the next page");
            }
            swept => swept?,
        }
        // A page that is tried again counts once.
        *counted += page;
        Ok(ids.last().filter(|_| ids.len() == PAGE).cloned())
    }

    async fn replan(&self, ids: &[RunId], counted: &mut Swept) -> Result<(), StoreError> {
        let (mut planned, mut orphans) = (Vec::new(), Vec::new());
        let ReadRuns { lives, planless, .. } = self.readable_runs(ids).await?;
        for mut live in lives {
            let before = live.run().head.clone();
            counted.add(before.state);
            let implied = live.implied();
            let absent = self.absent_runs(&live).await?;
            let begun = |id: &RunId| implied.runs.iter().any(|child| child.id == *id);
            let mut lost = self.lost_jobs(&live).await?;
            lost.extend(absent.iter().filter(|(_, id)| !begun(id)).map(|(key, _)| *key));
            let closed = self.closed_meanwhile(&live).await?;
            let now = self.ports.clock.now();
            let next = match (lost.is_empty(), closed.is_empty()) {
                (false, _) => live.lost(&lost, now),
                (true, false) => live.left(&closed, now),
                (true, true) => live.replan(now).0,
            };
            match next {
                // What follows from it is done when it is committed, and not before.
                Some(next) => {
                    tracing::info!(run_id = %before.id, "sweep moved a run that had received no message");
                    planned.push(Planned::step(live, before.state, next, Vec::new()));
                }
                None => {
                    self.act_on_implied(&before, implied, &absent).await;
                    orphans.extend(self.orphan(live));
                }
            }
        }
        for (run, why) in planless {
            counted.add(run.head.state);
            orphans.extend(self.planless_orphan(run, why).await?);
        }
        self.advance(planned).await?;
        self.end_orphans(orphans).await
    }

    async fn act_on_implied(&self, head: &RunHead, implied: Implied, absent: &[(NodeKey, RunId)]) {
        let undone = head.closing.is_some_and(Closing::undoes);
        let why = why_stopped(head);
        self.stop_jobs(implied.stop_jobs.into_iter().map(|id| (id, why.clone())).collect()).await;
        self.stop_runs(implied.stop_runs.into_iter().map(|id| (id, undone)).collect()).await;
        let missing = implied.runs.into_iter().filter(|child| absent.iter().any(|(_, id)| *id == child.id));
        self.begin_children(missing.map(|child| (head.clone(), child)).collect()).await;
    }

    /// Closed sessions of those whose workers it waits for before it undoes anything: the process that closed them could not say so.
    async fn closed_meanwhile(&self, live: &AnyRun) -> Result<BTreeSet<SessionId>, StoreError> {
        let mut waited: BTreeSet<SessionId> = live.leaving().into_iter().cloned().collect();
        if !waited.is_empty() {
            for open in self.ports.store.open_sessions().await? {
                waited.remove(&open.session);
            }
        }
        // A session may have reported before it closed. What the run has not heard yet counts first: it may be a result that waits
        // for its scan, so the next sweep looks again.
        if !waited.is_empty() && !self.ports.store.news(std::slice::from_ref(&live.run().head.id), 1).await?.is_empty() {
            waited.clear();
        }
        Ok(waited)
    }

    /// Nodes that wait for a run that does not exist.
    async fn absent_runs(&self, live: &AnyRun) -> Result<Vec<(NodeKey, RunId)>, StoreError> {
        let run = |(key, awaited)| if let Awaited::Run(id) = awaited { Some((key, id)) } else { None };
        let runs: Vec<(NodeKey, RunId)> = live.waits().into_iter().filter_map(run).collect();
        if runs.is_empty() {
            return Ok(runs);
        }
        let ids: Vec<RunId> = runs.iter().map(|(_, id)| id.clone()).collect();
        let found = self.load_each_run(&ids).await?;
        Ok(runs.into_iter().zip(found).filter(|(_, run)| run.is_gone()).map(|(awaited, _)| awaited).collect())
    }

    /// Nodes whose job does not exist. Their news can never come.
    async fn lost_jobs(&self, live: &AnyRun) -> Result<Vec<NodeKey>, StoreError> {
        let job = |(key, awaited)| if let Awaited::Job(id) = awaited { Some((key, id)) } else { None };
        let jobs: Vec<(NodeKey, JobId)> = live.waits().into_iter().filter_map(job).collect();
        let ids: Vec<JobId> = jobs.iter().map(|(_, id)| id.clone()).collect();
        let found = self.load_each(&ids).await?;
        Ok(jobs.into_iter().zip(found).filter(|(_, found)| found.is_gone()).map(|((key, _), _)| key).collect())
    }
}
