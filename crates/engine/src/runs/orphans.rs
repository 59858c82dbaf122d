//! Runs that nothing will ever move again are ended, once they have stood still for long enough.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::dag::plan::Awaited;
use lockgate_core::dag::{AnyRun, Run, RunHead, Standstill, Unmoved, end_without_plan, orphaned};
use lockgate_core::ids::{JobId, RunId};
use lockgate_core::job::Failure;
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use parking_lot::Mutex;

use super::Planned;
use super::step::NEWS_MAX;
use crate::Inner;

/// Runs that are remembered. One that is dropped is ended later.
const REMEMBERED_MAX: usize = 10_000;

/// Since when runs that no sweep could move have had their version. Whoever leads anew counts anew.
#[derive(Default)]
pub(super) struct Unmoving(Mutex<BTreeMap<RunId, (i64, Timestamp)>>);

impl Unmoving {
    fn age(&self, head: &RunHead, now: Timestamp) -> Duration {
        let mut runs = self.0.lock();
        let seen = runs.entry(head.id.clone()).or_insert((head.version, now));
        if seen.0 != head.version {
            *seen = (head.version, now);
        }
        let since = seen.1;
        if runs.len() > REMEMBERED_MAX {
            runs.pop_first();
        }
        now.since(since)
    }

    fn forget(&self, id: &RunId) {
        self.0.lock().remove(id);
    }
}

impl Inner {
    /// The end of a run that was planned anew in vain, if it is time for that.
    pub(super) fn orphan(&self, mut live: AnyRun) -> Option<Planned> {
        let (head, now, awaits) = (live.run().head.clone(), self.ports.clock.now(), !live.waits().is_empty());
        let failure = self.given_up(&head, Unmoved::NothingFollows, awaits, now)?;
        let next = live.orphaned(&failure, now)?;
        Some(Planned::step(live, head.state, next, Vec::new()))
    }

    /// Gives up a run whose definition is not there or cannot be read. News that it can never understand go with it.
    pub(super) async fn planless_orphan(&self, run: Run, why: Unmoved) -> Result<Option<Planned>, StoreError> {
        let (awaits, now) = (self.awaits_something(&run).await?, self.ports.clock.now());
        let Some(failure) = self.given_up(&run.head, why, awaits, now) else { return Ok(None) };
        let news = self.ports.store.news(std::slice::from_ref(&run.head.id), NEWS_MAX).await?;
        let before = run.head.state;
        let (flow, next) = end_without_plan(run, failure, now);
        Ok(Some(Planned::step(flow, before, next, news.into_iter().map(|row| row.no).collect())))
    }

    fn given_up(&self, head: &RunHead, why: Unmoved, awaits: bool, now: Timestamp) -> Option<Failure> {
        let (unmoving, after) = (&self.run_queue.cache.unmoving, self.settings.orphan_after);
        // What something will move is not even remembered.
        if orphaned(head, Standstill { why, awaits, age: Duration::MAX }, after).is_none() {
            unmoving.forget(&head.id);
            return None;
        }
        orphaned(head, Standstill { why, awaits, age: unmoving.age(head, now) }, after)
    }

    /// Whether a job or a run that its rows wait for has not ended.
    async fn awaits_something(&self, run: &Run) -> Result<bool, StoreError> {
        let (mut jobs, mut runs) = (Vec::<JobId>::new(), Vec::<RunId>::new());
        for (_, awaited) in run.waits() {
            match awaited {
                Awaited::Job(id) => jobs.push(id),
                Awaited::Run(id) => runs.push(id),
            }
        }
        let jobs = self.load_each(&jobs).await?;
        let runs = self.load_each_run(&runs).await?;
        let works = jobs.iter().any(|found| found.may_be(|job| !job.state().is_terminal()));
        Ok(works || runs.iter().any(|found| found.may_be(|run| !run.head.state.is_over())))
    }

    /// the version that stood still is in the statement. One that moved after all is called again.
    pub(super) async fn end_orphans(&self, orphans: Vec<Planned>) -> Result<(), StoreError> {
        let heads: Vec<RunHead> = orphans.iter().map(|orphan| orphan.next.head.clone()).collect();
        let ended = self.advance(orphans).await?;
        for (head, _) in heads.iter().zip(ended).filter(|(_, ended)| ended.is_ok()) {
            let why = head.failure.as_ref().map(|failure| &*failure.message).unwrap_or_default();
            tracing::error!(run_id = %head.id, dag = %head.dag.name, why, "run failed: its definition or parent is gone");
            self.metrics.orphan_reaped();
            self.run_queue.cache.unmoving.forget(&head.id);
        }
        Ok(())
    }
}
