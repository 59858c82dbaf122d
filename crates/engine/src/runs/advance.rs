//! Commit a step, then act. The only place where a decision about a run becomes durable and its effects happen.

use std::sync::Arc;

use lockgate_core::audit::AuditEntry;
use lockgate_core::dag::plan::RunTransition;
use lockgate_core::dag::{AnyRun, Closing, RunHead, RunState};
use lockgate_core::ids::{ActorId, JobId, JobSeq};
use lockgate_core::job::{Evidence, Failure, Input, Job, JobState, Transition, memoised, stillborn, submit};
use lockgate_core::request::JobRequest;
use lockgate_core::verdict::Judgement;
use lockgate_ports::{Bell, RunChange, RunKey, RunRefusal, StoreError};

use crate::Inner;
use crate::commit::Undriven;
use crate::damage::ReadRow;
use crate::journal;
use crate::metrics::EndedRuns;
use crate::outgoing::senders_of_runs;
use crate::traces::{Lap, SubmitTimes};

/// Who stops jobs of a run that does not go on.
const PLATFORM: &str = "lockgate";

/// A decision about one run, on its way.
pub(crate) struct Planned {
    /// As the decision leaves it.
    pub(crate) live: AnyRun,
    /// Before the decision.
    pub(crate) before: RunState,
    pub(crate) next: RunTransition,
    pub(crate) heard: Vec<i64>,
    pub(crate) key: Option<RunKey>,
    pub(crate) audit: Vec<AuditEntry>,
    /// Nodes that it ends.
    pub(crate) ended: EndedRuns,
}

impl Planned {
    pub(crate) fn step(live: impl Into<AnyRun>, before: RunState, next: RunTransition, heard: Vec<i64>) -> Self {
        Self { live: live.into(), before, next, heard, key: None, audit: Vec::new(), ended: EndedRuns::default() }
    }
}

pub(crate) type StepOutcome = Result<(), RunRefusal>;

/// What the Store made of a step: numbers for its jobs, or why it was refused.
type StepNumbers = Result<Vec<JobSeq>, RunRefusal>;

/// A step, and if earlier work stands for some of its jobs, the same with everything to be done.
type StepVariants = (RunChange, Option<RunChange>);

impl Inner {
    /// Commits decisions and acts on those that went through; answers in the order given. A step that lost against another
    /// is forgotten, and its run is called again.
    ///
    /// After an error nothing is remembered of these runs. If they were committed all the same, the re-offer loop finds
    /// their jobs, and the sweep whatever else was to be done.
    pub(crate) async fn advance(&self, mut planned: Vec<Planned>) -> Result<Vec<StepOutcome>, StoreError> {
        if planned.is_empty() {
            return Ok(Vec::new());
        }
        let began = self.traces.begin();
        let (drafts, verdict) = self.drafts(&mut planned).await;
        let committing = self.traces.begin();
        let (births, committed) = self.commit_drafts(drafts).await?;
        let mut answers = Vec::with_capacity(planned.len());
        let mut done = Vec::with_capacity(planned.len());
        for ((planned, jobs), outcome) in planned.into_iter().zip(births).zip(committed) {
            answers.push(match outcome {
                Ok(numbers) => {
                    let jobs: Vec<_> =
                        jobs.into_iter().zip(numbers).map(|(job, seq)| Arc::new(Job { seq, ..job })).collect();
                    self.traces.born(SubmitTimes { began, verdict }, committing, jobs.iter());
                    done.push((planned, jobs));
                    Ok(())
                }
                Err(refusal) => {
                    self.not_stepped(&planned.live.run().head.id, &refusal);
                    Err(refusal)
                }
            });
        }
        self.act_on_runs(done).await;
        Ok(answers)
    }

    /// G-6: if the policy moved under which earlier work was to stand for a job, the job is born as any other, and whoever
    /// dispatches it asks the policy of now. With what became of each, the jobs that it brought.
    async fn commit_drafts(&self, drafts: Vec<StepVariants>) -> Result<(Vec<Vec<Job>>, Vec<StepNumbers>), StoreError> {
        let (changes, plain): (Vec<RunChange>, Vec<Option<RunChange>>) = drafts.into_iter().unzip();
        let mut births: Vec<Vec<Job>> = changes.iter().map(jobs_of).collect();
        let mut committed = self.commit_steps(changes).await?;
        let refused = |place: usize| committed[place] == Err(RunRefusal::Conflict);
        let plain = plain.into_iter().enumerate().filter(|(place, _)| refused(*place));
        let (places, changes): (Vec<usize>, Vec<RunChange>) = plain.filter_map(|(at, plain)| Some((at, plain?))).unzip();
        if !places.is_empty() {
            let jobs: Vec<Vec<Job>> = changes.iter().map(jobs_of).collect();
            for ((place, jobs), stepped) in places.into_iter().zip(jobs).zip(self.commit_steps(changes).await?) {
                (births[place], committed[place]) = (jobs, stepped);
            }
        }
        Ok((births, committed))
    }

    async fn commit_steps(&self, changes: Vec<RunChange>) -> Result<Vec<StepNumbers>, StoreError> {
        let senders = senders_of_runs(&changes);
        let committed = self.ports.store.advance(changes).await;
        self.outbox.relay_soon(senders);
        if let Err(error) = &committed {
            self.health.store_failed(error);
        }
        committed
    }

    /// Judges the jobs of all of them at once.
    async fn drafts(&self, planned: &mut [Planned]) -> (Vec<StepVariants>, Lap) {
        let requests: Vec<Arc<JobRequest>> = planned.iter().flat_map(|planned| planned.next.jobs.iter().cloned()).collect();
        let (judged, verdict) = self.judge(&requests).await;
        let mut before = self.done_before(&requests, &judged).await;
        let mut judged = judged.into_iter().enumerate();
        let mut drafts = Vec::with_capacity(planned.len());
        for planned in planned {
            planned.ended = EndedRuns::of(&planned.live, &planned.next);
            let next = &mut planned.next;
            let birth = |request: Arc<JobRequest>| {
                let (at, judgement) = judged.next().unwrap_or((usize::MAX, Judgement::UNASKED));
                let (hash, env) = (request.hash(), self.env(judgement));
                let earlier = before.remove(&at);
                let stands = earlier.map(|earlier| under_its_policy(memoised(request.clone(), hash, earlier, &env)));
                (submit(request, hash, &env), stands)
            };
            let (plain, stand): (Vec<Transition>, Vec<Option<Transition>>) =
                std::mem::take(&mut next.jobs).into_iter().map(birth).unzip();
            let dead = |(request, failure): (Arc<JobRequest>, Failure)| {
                let hash = request.hash();
                stillborn(request, hash, failure, &self.env(Judgement::UNASKED))
            };
            let dead = std::mem::take(&mut next.dead).into_iter().map(dead);
            let jobs: Vec<Transition> = plain.into_iter().chain(dead).collect();
            let change = RunChange {
                head: next.head.clone(),
                nodes: std::mem::take(&mut next.nodes),
                outbox: self.letters_out(&jobs),
                jobs,
                heard: std::mem::take(&mut planned.heard),
                key: planned.key.take(),
                audit: std::mem::take(&mut planned.audit),
            };
            drafts.push(self.draft(change, stand));
        }
        (drafts, verdict)
    }

    /// `stand` are those of its first jobs for which earlier work stands.
    fn draft(&self, plain: RunChange, stand: Vec<Option<Transition>>) -> StepVariants {
        if stand.iter().all(Option::is_none) {
            return (plain, None);
        }
        let mut change = plain.clone();
        for (job, stands) in change.jobs.iter_mut().zip(stand) {
            if let Some(stands) = stands {
                *job = stands;
            }
        }
        change.outbox = self.letters_out(&change.jobs);
        (change, Some(plain))
    }

    /// Idempotent; a crash in here is repaired by the re-offer loop and the sweep.
    async fn act_on_runs(&self, done: Vec<(Planned, Vec<Arc<Job>>)>) {
        let (mut offers, mut bells, mut stops) = (Vec::new(), Vec::new(), Vec::new());
        let (mut stop_runs, mut children) = (Vec::new(), Vec::new());
        for (Planned { live, before, next, ended, .. }, jobs) in done {
            let head = &next.head;
            self.metrics.runs.stepped(before, head, &ended);
            self.traces.run_stepped(before, head);
            journal::stepped(before, head);
            self.metrics.runs.undone(&live);
            bells.push(Bell::run(&head.id));
            for job in jobs {
                self.metrics.entered(&job);
                journal::entered(&job);
                self.count_bypass(None, &job);
                match job.state() {
                    JobState::Scheduled => offers.push(job),
                    // Denied at birth: the run has news already.
                    state if state.is_terminal() => self.run_queue.wake([head.id.clone()]),
                    _ => {}
                }
            }
            if head.state.is_over() {
                self.schedules.run_ended(&head.id);
                if head.parent.is_none() {
                    bells.push(Bell::ended(head.id.as_str()));
                }
            }
            if next.more {
                self.run_queue.wake([head.id.clone()]);
            }
            if let Some(parent) = head.parent.as_ref().filter(|_| head.state.is_over()) {
                self.run_queue.wake([parent.run.clone()]);
                bells.push(Bell::run(&parent.run));
            }
            stops.extend(next.stop_jobs.into_iter().map(|id| (id, why_stopped(head))));
            let undone = head.closing.is_some_and(Closing::undoes);
            stop_runs.extend(next.stop_runs.into_iter().map(|id| (id, undone)));
            children.extend(next.runs.into_iter().map(|child| (live.run().head.clone(), child)));
            self.remember(live);
        }
        self.offer_due(offers).await;
        self.ports.bus.ring(bells).await;
        self.stop_jobs(stops).await;
        self.stop_runs(stop_runs).await;
        self.begin_children(children).await;
    }

    /// What cannot be stopped now is told again by the sweep.
    pub(super) async fn stop_jobs(&self, stops: Vec<(JobId, Arc<str>)>) {
        if let Err(error) = self.surely_stop(stops).await {
            tracing::warn!(%error, "jobs of a run that does not go on could not be stopped; trying again with the next sweep");
        }
    }

    /// Those that have not ended by themselves are cancelled, or it is an error.
    pub(super) async fn surely_stop(&self, stops: Vec<(JobId, Arc<str>)>) -> Result<(), StoreError> {
        if stops.is_empty() {
            return Ok(());
        }
        let (ids, notes): (Vec<JobId>, Vec<Arc<str>>) = stops.into_iter().unzip();
        let jobs = self.load_each(&ids).await?;
        let unread = jobs.iter().filter(|job| matches!(job, ReadRow::Unreadable)).count();
        let jobs = jobs.into_iter().map(ReadRow::there).zip(notes);
        let live = jobs.filter_map(|(job, note)| Some((job.filter(|job| !job.state().is_terminal())?, note)));
        let stop = |(job, note)| (Arc::new(job), Input::Cancel { actor: ActorId::from(PLATFORM), note: Some(note) });
        let driven = self.drive(live.map(stop).collect()).await?;
        let refused = driven.iter().filter(|one| one.as_ref().is_err_and(Undriven::is_refused)).count();
        match (unread, refused) {
            (0, 0) => Ok(()),
            (0, jobs) => Err(StoreError::Refused(format!("{jobs} jobs cannot be written, so they were not stopped"))),
            (jobs, _) => Err(StoreError::Corrupt(format!("{jobs} jobs cannot be read, so they were not stopped"))),
        }
    }

    pub(super) fn platform() -> ActorId {
        ActorId::from(PLATFORM)
    }
}

fn jobs_of(change: &RunChange) -> Vec<Job> {
    change.jobs.iter().map(|birth| birth.job.clone()).collect()
}

/// It is not dispatched, so its birth must ask what a dispatch would have asked.
fn under_its_policy(mut birth: Transition) -> Transition {
    if let Some(verdict) = &birth.job.life.attempt.verdict {
        birth.evidence = Evidence::InForce(verdict.snapshot.clone());
    }
    birth
}

/// What a job is told that ends because its run does.
pub(super) fn why_stopped(head: &RunHead) -> Arc<str> {
    let why = head.failure.as_ref().filter(|_| head.id.is_saga());
    match why {
        Some(failure) => format!("workflow {} is closed: {}", head.dag.name, failure.message).into(),
        None => "its run does not go on".into(),
    }
}
