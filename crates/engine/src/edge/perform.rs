//! Performs what the edge decided and what does not belong under its lock.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::edge::{EdgeEffect, LeftAttempt};
use lockgate_core::ids::{AttemptToken, JobId, SessionId};
use lockgate_core::job::{Evidence, Illegal, Input, Job, Reason};
use lockgate_ports::{Bell, StoreError};

use crate::Inner;
use crate::commit::{Driven, Undriven};
use crate::damage::ReadRow;

impl Inner {
    /// Performs effects that need no decision about jobs. Those that do are left, in their order: see [`Self::follow_up`]. Only what
    /// workers say, and the closing of sessions, leads to such.
    pub(crate) async fn perform(&self, effects: Vec<EdgeEffect>) -> Vec<EdgeEffect> {
        let mut rest = Vec::new();
        for effect in effects {
            match effect {
                // Performed under the lock.
                EdgeEffect::Tell { .. } | EdgeEffect::CloseStream { .. } | EdgeEffect::RingNews => {}
                EdgeEffect::WakeDispatch => self.wake.dispatch.notify_one(),
                EdgeEffect::FreeLimits(tokens) => self.free_limits(tokens).await,
                EdgeEffect::Started { job, at } => self.metrics.started(&job, at),
                EdgeEffect::Resized { grown } => self.metrics.pools.resized(grown),
                EdgeEffect::RingJobs(jobs) => self.ports.bus.ring(jobs.into_iter().map(Bell::Job).collect()).await,
                EdgeEffect::LetGo { .. }
                | EdgeEffect::Left(_)
                | EdgeEffect::Lose { .. }
                | EdgeEffect::Resend { .. }
                | EdgeEffect::AckBeat { .. }
                | EdgeEffect::Close { .. } => rest.push(effect),
            }
        }
        rest
    }

    /// Performs all effects of what a worker said, also those behind one that fails. The first failure: the worker says it again.
    pub(crate) async fn follow_up(&self, effects: Vec<EdgeEffect>) -> Result<(), StoreError> {
        let mut done = Ok(());
        for effect in self.perform(effects).await {
            match effect {
                EdgeEffect::LetGo { session, tokens } => self.let_go(&session, tokens).await,
                EdgeEffect::Left(left) => self.left(left).await,
                EdgeEffect::Lose { session, epoch, jobs } => {
                    let evidence = Evidence::Attached { session: session.clone(), epoch };
                    done = done.and(self.lose(&session, jobs, &evidence).await);
                }
                EdgeEffect::Resend { session, epoch, jobs } => done = done.and(self.resend(&session, epoch, jobs).await),
                EdgeEffect::AckBeat { session, epoch, number } => {
                    let effects = self.edge.step(|edge, now| edge.on_beat_done(&session, epoch, number, now));
                    self.perform(effects).await;
                }
                // Sessions are closed by the round that looks after silence, which bounds how many at once.
                _ => {}
            }
        }
        done
    }

    /// Sends attempts that never arrived, without those that the policy of now calls back. Asked after the session is known: a policy
    /// that comes later finds them there.
    async fn resend(&self, session: &SessionId, epoch: u64, jobs: Vec<Arc<Job>>) -> Result<(), StoreError> {
        let (mut allowed, stale): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| self.verdict_stands(job));
        let driven = self.drive(stale.iter().map(|job| (job.clone(), Input::Judged)).collect()).await?;
        let mut withheld = Vec::new();
        for (job, outcome) in stale.into_iter().zip(driven) {
            if matches!(outcome, Err(Undriven::Illegal(Illegal::NotDue))) {
                allowed.push(job);
            } else {
                withheld.push(job.life.attempt.token.clone());
            }
        }
        let allowed = self.traced(allowed);
        let effects = self.edge.step(|edge, _| edge.on_resent(session, epoch, allowed, &withheld));
        self.perform(effects).await;
        Ok(())
    }

    /// Declares attempts of a session lost, from the platform's budget. One that turns out to be over frees its place.
    pub(crate) async fn lose(&self, id: &SessionId, jobs: Vec<Arc<Job>>, evidence: &Evidence) -> Result<(), StoreError> {
        for some in jobs.chunks(self.settings.batch_max) {
            self.lose_some(id, some, evidence).await?;
        }
        Ok(())
    }

    async fn lose_some(&self, id: &SessionId, jobs: &[Arc<Job>], evidence: &Evidence) -> Result<(), StoreError> {
        let turns = self.turns.take(jobs.len());
        let lost = |(job, turn): (&Arc<Job>, Duration)| {
            let token = job.life.attempt.token.clone();
            (job.clone(), Input::Lost { token, reason: Reason::AgentLost, evidence: evidence.clone(), turn })
        };
        let driven = self.drive(jobs.iter().zip(turns).map(lost).collect()).await?;
        let mut over = Vec::new();
        for (job, outcome) in jobs.iter().zip(&driven) {
            match outcome {
                Ok(_) => self.metrics.reaped(Reason::AgentLost, 1),
                Err(Undriven::Illegal(_)) => {}
                Err(Undriven::Contended | Undriven::Refused(_)) => continue,
            }
            over.push(job.life.attempt.token.clone());
        }
        // No worker has these attempts, so no worker will confirm their end.
        self.let_go(id, over.clone()).await;
        self.free_limits(over).await;
        Ok(())
    }

    /// Attempts that their worker has nothing of any more: runs that wait for their end hear of it, and what they took is freed.
    pub(crate) async fn let_go(&self, session: &SessionId, mut tokens: Vec<AttemptToken>) {
        let untold = self.tell_left(self.edge.look(|edge| edge.letting_go(session, &tokens))).await;
        // They stay on their way out, and the worker's next beat says the same again.
        tokens.retain(|token| !untold.contains(token));
        let effects = self.edge.step(|edge, _| edge.on_over(session, &tokens));
        self.perform(effects).await;
    }

    /// Like [`Self::let_go`], for attempts that their session no longer lists as being stopped.
    pub(crate) async fn left(&self, left: Vec<LeftAttempt>) {
        let tokens = left.iter().map(|left| left.token.clone()).collect();
        // A run whose news could not be stored waits until its sweep sees the session closed, or for its time.
        self.tell_left(left).await;
        self.free_limits(tokens).await;
    }

    /// tells the jobs of runs that attempts which were taken from their workers are over. Those whose jobs could not be
    /// told.
    async fn tell_left(&self, left: Vec<LeftAttempt>) -> BTreeSet<AttemptToken> {
        let of_runs = left.into_iter().filter_map(|left| Some((left.job_of_run?, left.token)));
        let (ids, tokens): (Vec<JobId>, Vec<AttemptToken>) = of_runs.unzip();
        if ids.is_empty() {
            return BTreeSet::new();
        }
        match self.drive_left(&ids, &tokens).await {
            Ok(untold) => untold,
            Err(error) => {
                tracing::warn!(%error, "runs could not be told that attempts are over; trying again with the next beat");
                tokens.into_iter().collect()
            }
        }
    }

    async fn drive_left(&self, ids: &[JobId], tokens: &[AttemptToken]) -> Result<BTreeSet<AttemptToken>, StoreError> {
        let jobs = self.load_each(ids).await?.into_iter().map(ReadRow::there);
        let there: Vec<(Arc<Job>, &AttemptToken)> =
            jobs.zip(tokens).filter_map(|(job, token)| Some((Arc::new(job?), token))).collect();
        let inputs = there.iter().map(|(job, token)| (job.clone(), Input::LetGo { token: (*token).clone() })).collect();
        let driven = self.drive(inputs).await?;
        let untold = |outcome: &Driven| matches!(outcome, Err(Undriven::Contended | Undriven::Refused(_)));
        let undriven = there.into_iter().zip(driven).filter(|(_, outcome)| untold(outcome));
        Ok(undriven.map(|((_, token), _)| token.clone()).collect())
    }

    pub(crate) async fn free_limits(&self, tokens: Vec<AttemptToken>) {
        if !tokens.is_empty() && self.ports.lanes.release(tokens).await {
            self.wake.dispatch.notify_one();
        }
    }
}
