//! Opens the barriers of parents whose children have all ended, and stops children whose parent ended badly.
//!
//! Whether a barrier is open is read off the children's own rows, so nothing has to be counted down in the commits that end
//! them: a thousand ends are a few looks, and one commit.

use std::sync::Arc;

use lockgate_core::ids::{ActorId, JobId, JobSeq};
use lockgate_core::job::{Duty, Illegal, Input, Job};
use lockgate_ports::StoreError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::round::Round;
use super::{Lead, wait};
use crate::Inner;
use crate::commit::Undriven;
use crate::damage::ReadRow;
use crate::families::{BELIEVED_FOR, FamilyBatch};
use crate::health::{jittered, progress};

/// Parents looked at by one statement. Of each it may have to pass by all children that have ended.
const PAGE: usize = 64;
/// Children stopped in one commit.
const STOPPED: usize = 256;
/// Who stops children.
const PLATFORM: &str = "lockgate";

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let every = BELIEVED_FOR.min(inner.settings.families_every);
    // The first sweep with the first tick: an earlier life may have left something.
    let mut tick_at = Instant::now() + jittered(every);
    let mut sweep_at = tick_at;
    loop {
        // Until a moment and not for a span: calls must not put it off.
        let rest = tick_at.min(sweep_at).saturating_duration_since(Instant::now());
        if !wait(&mut stop, rest, inner.families.called()).await {
            return;
        }
        let now = Instant::now();
        let ticked = now >= tick_at;
        if ticked {
            tick_at = now + jittered(every);
        }
        let sweeps = now >= sweep_at;
        if sweeps {
            sweep_at = now + jittered(inner.settings.families_every);
        }
        let called = inner.families_once(ticked).await;
        let swept = if sweeps && inner.settings.roles.scheduler { inner.sweep_families(&stop).await } else { Ok(()) };
        if let Err(error) = called.and(swept) {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("families");
            tracing::warn!(%error, "parent jobs could not be checked; trying again with the next tick");
        }
    }
}

impl Inner {
    /// What was called in this process. Parents that cannot be looked at do not keep it from the others.
    pub(crate) async fn families_once(&self, all: bool) -> Result<(), StoreError> {
        let FamilyBatch { gather, disown } = self.families.take(all);
        let mut looked = Ok(());
        for page in gather.chunks(PAGE) {
            let done = self.gather(page).await;
            if done.is_err() {
                self.families.put_back(FamilyBatch { gather: page.to_vec(), ..FamilyBatch::default() });
            }
            looked = looked.and(done);
        }
        for page in disown.chunks(PAGE) {
            let done = self.disown_called(page).await;
            if done.is_err() {
                self.families.put_back(FamilyBatch { disown: page.to_vec(), ..FamilyBatch::default() });
            }
            looked = looked.and(done);
        }
        looked
    }

    /// What was missed while no process was there.
    pub(crate) async fn sweep_families(&self, stop: &watch::Receiver<bool>) -> Result<(), StoreError> {
        let every = self.settings.families_every;
        let Some(mut round) = Round::begin(&self.leadership, stop, Lead::Families, every).await? else { return Ok(()) };
        let opened = self.sweep_barriers(&mut round).await;
        opened.and(self.sweep_disowned(&mut round).await)
    }

    async fn sweep_barriers(&self, round: &mut Round<'_>) -> Result<(), StoreError> {
        let (mut after, mut swept) = (JobSeq::default(), Ok(()));
        while round.goes_on().await? {
            let jobs = self.ports.store.owing(Duty::Gather, after, PAGE).await?;
            let Some(last) = jobs.last() else { break };
            after = last.seq;
            swept = swept.and(self.open_barriers(jobs).await.1);
        }
        swept
    }

    async fn sweep_disowned(&self, round: &mut Round<'_>) -> Result<(), StoreError> {
        let (mut after, mut swept) = (JobSeq::default(), Ok(()));
        while round.goes_on().await? {
            let jobs = self.ports.store.owing(Duty::Disown, after, PAGE).await?;
            let Some(last) = jobs.last() else { break };
            after = last.seq;
            swept = swept.and(self.disown_all(jobs).await);
        }
        swept
    }

    async fn gather(&self, parents: &[JobId]) -> Result<(), StoreError> {
        let jobs = self.load_each(parents).await?;
        self.open_barriers(jobs.into_iter().filter_map(ReadRow::there).collect()).await.1
    }

    async fn disown_called(&self, parents: &[JobId]) -> Result<(), StoreError> {
        let jobs = self.load_each(parents).await?;
        self.disown_all(jobs.into_iter().filter_map(ReadRow::there).collect()).await
    }

    /// F-2: those go on that have no child under way. The others are handed back as they are, without those that could not be
    /// looked at: nothing may be concluded about them.
    pub(super) async fn open_barriers(&self, jobs: Vec<Job>) -> (Vec<Job>, Result<(), StoreError>) {
        let (waiting, mut rest): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| job.owes(Duty::Gather));
        let mut looked = Ok(());
        for some in waiting.chunks(PAGE) {
            progress();
            match self.open_some(some).await {
                Ok(wait) => rest.extend(wait),
                Err(error) => looked = looked.and(Err(error)),
            }
        }
        (rest, looked)
    }

    /// Those that have to wait. No child can be submitted meanwhile: no attempt holds a parent that waits. One that somebody else
    /// opened meanwhile may have, and wait again: for that the token of the wait is named.
    async fn open_some(&self, waiting: &[Job]) -> Result<Vec<Job>, StoreError> {
        let lives: Vec<(JobId, u32)> = waiting.iter().map(|job| (job.request.job_id.clone(), job.life.no)).collect();
        let under_way = self.ports.store.under_way(&lives).await?;
        let now = self.ports.clock.now();
        let (mut open, mut wait) = (Vec::new(), Vec::new());
        for (job, child) in waiting.iter().zip(under_way) {
            match child {
                Some(child) => {
                    self.families.know(&job.request.job_id, child, now);
                    wait.push(job.clone());
                }
                None => {
                    let token = job.life.attempt.token.clone();
                    open.push((Arc::new(job.clone()), Input::Gathered { token }));
                }
            }
        }
        self.drive(open).await?;
        Ok(wait)
    }

    /// One whose children cannot be stopped now does not keep it from the others.
    async fn disown_all(&self, parents: Vec<Job>) -> Result<(), StoreError> {
        let mut done = Ok(());
        for parent in parents {
            done = done.and(self.disown(parent).await);
        }
        done
    }

    /// F-3: children under way are cancelled, then the parent is done with them. One that was missed because it kept changing is
    /// met by the next sweep.
    async fn disown(&self, parent: Job) -> Result<(), StoreError> {
        if !parent.owes(Duty::Disown) {
            return Ok(());
        }
        let note: Arc<str> = format!("its parent {} ended as {}", parent.request.job_id, parent.state()).into();
        let (mut after, mut all) = (JobSeq::default(), true);
        loop {
            progress();
            let live = self.ports.store.live_children(&parent.request.job_id, parent.life.no, after, STOPPED).await?;
            let Some((last, _)) = live.last() else { break };
            after = *last;
            let ids: Vec<JobId> = live.into_iter().map(|(_, id)| id).collect();
            let jobs = self.load_each(&ids).await?;
            // One that cannot be read is not stopped, and must not be forgotten.
            all &= !jobs.iter().any(|job| matches!(job, ReadRow::Unreadable));
            let cancel = |job| (Arc::new(job), Input::Cancel { actor: ActorId::from(PLATFORM), note: Some(note.clone()) });
            let driven = self.drive(jobs.into_iter().filter_map(ReadRow::there).map(cancel).collect()).await?;
            // Work that is done and only waits for its check ends by itself.
            let over = |illegal: &Illegal| matches!(illegal, Illegal::Terminal(_) | Illegal::OutputCheck);
            all &= driven.iter().all(|one| match one {
                Ok(_) => true,
                Err(Undriven::Illegal(illegal)) => over(illegal),
                Err(Undriven::Contended | Undriven::Refused(_)) => false,
            });
        }
        if all {
            let settled = Input::Settled { life: parent.life.no };
            self.drive(vec![(Arc::new(parent), settled)]).await?;
        }
        Ok(())
    }
}
