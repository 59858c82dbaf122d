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

use super::{Lead, wait};
use crate::Inner;
use crate::commit::Undriven;
use crate::families::{BELIEVED_FOR, Calls};
use crate::health::moved;

/// Parents looked at by one statement, and children stopped in one commit.
const PAGE: usize = 256;
/// Who stops children.
const PLATFORM: &str = "lockgate";

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    // The first sweep at once: an earlier life may have left something.
    let (mut tick_at, mut sweep_at) = (Instant::now(), Instant::now());
    loop {
        let every = BELIEVED_FOR.min(inner.settings.families_every);
        if !wait(&mut stop, every, inner.families.called()).await {
            return;
        }
        let now = Instant::now();
        let ticked = now >= tick_at;
        if ticked {
            tick_at = now + every;
        }
        let swept = inner.settings.roles.scheduler && now >= sweep_at;
        if swept {
            sweep_at = now + inner.settings.families_every;
        }
        let called = inner.families_once(ticked).await;
        let swept = if swept && called.is_ok() { inner.sweep_families().await } else { Ok(()) };
        if let Err(error) = called.and(swept) {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("families");
            tracing::warn!(%error, "parents of jobs could not be looked at; trying again with the next tick");
        }
    }
}

impl Inner {
    /// What was called in this process.
    pub(crate) async fn families_once(&self, all: bool) -> Result<(), StoreError> {
        let Calls { gather, disown } = self.families.take(all);
        let mut done = self.gather(&gather).await;
        if done.is_ok() {
            done = self.disown_all(&disown).await;
        }
        if done.is_err() {
            self.families.put_back(Calls { gather, disown });
        }
        done
    }

    /// What nobody was there to call for.
    pub(crate) async fn sweep_families(&self) -> Result<(), StoreError> {
        if !self.leads(Lead::Families, self.settings.families_every).await? {
            return Ok(());
        }
        let mut after = JobSeq::default();
        loop {
            let jobs = self.ports.store.owing(Duty::Gather, after, PAGE).await?;
            let Some(last) = jobs.last() else { break };
            after = last.seq;
            self.open_barriers(jobs).await?;
        }
        let mut after = JobSeq::default();
        loop {
            let jobs = self.ports.store.owing(Duty::Disown, after, PAGE).await?;
            let Some(last) = jobs.last() else { return Ok(()) };
            after = last.seq;
            for job in jobs {
                self.disown(job).await?;
            }
        }
    }

    async fn gather(&self, parents: &[JobId]) -> Result<(), StoreError> {
        for page in parents.chunks(PAGE) {
            let jobs = self.ports.store.load(page).await?;
            self.open_barriers(jobs.into_iter().flatten().collect()).await?;
        }
        Ok(())
    }

    /// F-2: those go on that have no child under way. Nobody can submit one meanwhile: no attempt holds a parent that waits.
    /// The others are handed back as they are.
    pub(super) async fn open_barriers(&self, jobs: Vec<Job>) -> Result<Vec<Job>, StoreError> {
        moved();
        let (waiting, mut rest): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| job.owes(Duty::Gather));
        if waiting.is_empty() {
            return Ok(rest);
        }
        let lives: Vec<(JobId, u32)> = waiting.iter().map(|job| (job.request.job_id.clone(), job.life.no)).collect();
        let families = self.ports.store.family(&lives).await?;
        let now = self.ports.clock.now();
        let mut open = Vec::new();
        for (job, kin) in waiting.into_iter().zip(families) {
            match kin.latest {
                Some(child) => {
                    self.families.know(&job.request.job_id, child, now);
                    rest.push(job);
                }
                None => open.push((Arc::new(job), Input::Gathered)),
            }
        }
        self.drive(open).await?;
        Ok(rest)
    }

    async fn disown_all(&self, parents: &[JobId]) -> Result<(), StoreError> {
        for job in self.ports.store.load(parents).await?.into_iter().flatten() {
            self.disown(job).await?;
        }
        Ok(())
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
            moved();
            let page = self.ports.store.children(&parent.request.job_id, parent.life.no, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.job.seq;
            let live: Vec<JobId> =
                page.iter().filter(|child| !child.job.state().is_terminal()).map(|c| c.job.request.job_id.clone()).collect();
            // Lists leave payloads out; a step needs the job as it is.
            let jobs = if live.is_empty() { Vec::new() } else { self.ports.store.load(&live).await? };
            let cancel = |job| (Arc::new(job), Input::Cancel { actor: ActorId::from(PLATFORM), note: Some(note.clone()) });
            let driven = self.drive(jobs.into_iter().flatten().map(cancel).collect()).await?;
            // Work that is done and only waits for its check ends by itself.
            let over = |illegal: &Illegal| matches!(illegal, Illegal::Terminal(_) | Illegal::OutputCheck);
            all &= driven.iter().all(|one| match one {
                Ok(_) => true,
                Err(Undriven::Illegal(illegal)) => over(illegal),
                Err(Undriven::Contended) => false,
            });
        }
        if all {
            self.drive(vec![(Arc::new(parent), Input::Settled)]).await?;
        }
        Ok(())
    }
}
