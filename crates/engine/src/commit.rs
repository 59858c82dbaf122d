//! Commit, then act. The only place where a decision becomes durable and its effects happen.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lockgate_core::edge::EdgeState;
use lockgate_core::ids::{JobId, JobSeq};
use lockgate_core::job::{Effect, Illegal, Input, Job, JobState, Transition};
use lockgate_core::policy::FailMode;
use lockgate_core::request::{Caller, JobRequest};
use lockgate_core::verdict::{Judgement, Verdict};
use lockgate_ports::{Bell, ChangeError, JobChange, Settlement, StoreError};

use crate::Inner;
use crate::damage::ReadRow;
use crate::error::ApiError;
use crate::health::{StoreCall, progress};
use crate::journal;
use crate::outgoing::senders;
use crate::service::to_the_end;
use crate::traces::{Lap, SubmitTimes};

/// A decision about a known job.
pub(crate) struct JobDecision {
    pub(crate) before: Arc<Job>,
    pub(crate) transition: Transition,
}

/// How many times one input is decided again after a conflict. Each conflict means that somebody else made progress.
const CONFLICTS_MAX: usize = 8;

impl Inner {
    /// Commits new jobs and offers them. Results in the order given.
    pub(crate) async fn commit_new(
        &self,
        transitions: Vec<Transition>,
        entry: SubmitTimes,
    ) -> Result<Vec<Result<Arc<Job>, ChangeError>>, StoreError> {
        let mut next: Vec<Job> = transitions.iter().map(|t| t.job.clone()).collect();
        let changes = transitions.into_iter().map(|transition| self.change(transition)).collect();
        let committing = self.traces.begin();
        let committed = self.commit_surely(changes, &next.iter().collect::<Vec<_>>()).await;
        self.watch.outcomes.told(StoreCall::Submit, &committed);
        let committed = committed?;
        let mut results = Vec::with_capacity(next.len());
        let mut offers = Vec::with_capacity(next.len());
        for (mut job, outcome) in next.drain(..).zip(committed) {
            if let Err(error) = &outcome {
                self.not_changed(&job.request.job_id, error);
            }
            results.push(outcome.map(|seq| {
                job.seq = seq;
                let job = Arc::new(job);
                if job.state() == JobState::Scheduled {
                    offers.push(job.clone());
                }
                self.metrics.entered(&job);
                journal::entered(&job);
                self.count_bypass(None, &job);
                // A saga hears of its jobs from their birth on.
                if let Some(part) = &job.request.run {
                    self.run_queue.wake([part.run.clone()]);
                }
                job
            }));
        }
        self.traces.born(entry, committing, results.iter().flatten());
        self.offer_due(offers).await;
        Ok(results)
    }

    /// Commits steps and acts on those that went through. The next jobs, in the order given.
    pub(crate) async fn commit(&self, steps: Vec<JobDecision>) -> Result<Vec<Result<Arc<Job>, ChangeError>>, StoreError> {
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        let mut changes = Vec::with_capacity(steps.len());
        let mut after = Vec::with_capacity(steps.len());
        for JobDecision { before, mut transition } in steps {
            let effects = std::mem::take(&mut transition.effects);
            after.push((before, Arc::new(transition.job.clone()), effects));
            changes.push(self.change(transition));
        }
        let next: Vec<&Job> = after.iter().map(|(_, job, _)| &**job).collect();
        let committing = self.traces.begin();
        let ends = next.iter().any(|job| job.state().is_terminal());
        let committed = self.commit_surely(changes, &next).await;
        self.watch.outcomes.told(if ends { StoreCall::Result } else { StoreCall::Claim }, &committed);
        let committed = committed?;
        let mut results = Vec::with_capacity(after.len());
        let mut done = Vec::with_capacity(after.len());
        for ((before, job, effects), outcome) in after.into_iter().zip(committed) {
            match &outcome {
                Ok(_) => done.push((before, job.clone(), effects)),
                Err(error) => self.not_changed(&job.request.job_id, error),
            }
            results.push(outcome.map(|_| job));
        }
        self.traces.moved(committing, &done);
        self.act(done).await;
        Ok(results)
    }

    /// Commits, and reads back what became of a commit whose outcome is unknown: until known, nothing is released, sent
    /// or acknowledged.
    async fn commit_surely(
        &self,
        changes: Vec<JobChange>,
        next: &[&Job],
    ) -> Result<Vec<Result<JobSeq, ChangeError>>, StoreError> {
        progress();
        let senders = senders(&changes);
        let committed = self.ports.store.commit(changes).await;
        self.outbox.relay_soon(senders);
        if let Err(error) = &committed {
            self.health.cut_off(error);
        }
        let Err(StoreError::UnknownOutcome(text)) = committed else { return committed };
        let ids: Vec<_> = next.iter().map(|job| job.request.job_id.clone()).collect();
        let Ok(stored) = self.load_each(&ids).await else { return Err(StoreError::UnknownOutcome(text)) };
        let outcome = |(next, stored): (&&Job, ReadRow<Job>)| match stored {
            ReadRow::There(stored) if is_what_we_wrote(next, &stored) => Ok(stored.seq),
            _ => Err(ChangeError::Conflict),
        };
        Ok(next.iter().zip(stored).map(outcome).collect())
    }

    /// Idempotent; a crash in here is repaired by the re-offer loop and the session rules.
    async fn act(&self, done: Vec<(Arc<Job>, Arc<Job>, Vec<Effect>)>) {
        let now = self.ports.clock.now();
        let mut offers = Vec::new();
        let mut gone = Vec::new();
        let mut over = Vec::new();
        // What their workers have not let go of yet.
        let mut leaving = BTreeSet::new();
        let mut bells = Vec::with_capacity(done.len());
        for (before, job, effects) in done {
            self.metrics.moved(&before, &job);
            journal::moved(&before, &job);
            self.count_bypass(Some(&before), &job);
            self.families.moved(&before, &job, now);
            self.metrics.families.moved(&before, &job);
            if job.needs_scan() && !before.needs_scan() {
                self.wake.scan.notify_one();
            }
            if before.state() == JobState::Scheduled {
                gone.push(left(&before, &job));
                // Something was written down about it, and it waits on.
                if job.state() == JobState::Scheduled && !effects.contains(&Effect::Offer) {
                    offers.push(job.clone());
                }
            }
            for effect in effects {
                match effect {
                    Effect::Offer => offers.push(job.clone()),
                    Effect::Stop { session, token } => {
                        let stop = |edge: &mut EdgeState, now| edge.on_superseded(&session, &token, &job, now);
                        let (is_leaving, effects) = self.edge.step_with(stop);
                        self.perform(effects).await;
                        if is_leaving {
                            leaving.insert(token);
                        }
                    }
                    Effect::Settled { token, .. } if leaving.contains(&token) => {}
                    Effect::Settled { session, token } => {
                        let effects = self.edge.step(|edge, _| edge.on_settled(&session, &token));
                        self.perform(effects).await;
                        over.push(token);
                    }
                }
            }
            bells.push(Bell::Job(job.request.job_id.clone()));
            if job.state().is_terminal() {
                self.schedules.job_ended(&job.request.job_id);
                if job.request.job_id.as_str().starts_with(JobId::SCHEDULED_PREFIX) {
                    bells.push(Bell::ended(job.request.job_id.as_str()));
                }
            }
            if let Some(part) = job.request.run.as_ref().filter(|_| job.state().is_terminal()) {
                self.run_queue.wake([part.run.clone()]);
                bells.push(Bell::run(&part.run));
            }
        }
        if !gone.is_empty() {
            self.ports.lanes.settle(gone).await;
        }
        self.free_limits(over).await;
        self.offer_due(offers).await;
        self.ports.bus.ring(bells).await;
    }

    /// Decides one input for each job, commits, and decides again where somebody was faster.
    pub(crate) async fn drive(&self, jobs: Vec<(Arc<Job>, Input)>) -> Result<Vec<Driven>, StoreError> {
        self.drive_from(None, jobs).await
    }

    /// As `drive`, recording the caller's IP in the audit entry.
    pub(crate) async fn drive_from(
        &self,
        source: Option<IpAddr>,
        mut jobs: Vec<(Arc<Job>, Input)>,
    ) -> Result<Vec<Driven>, StoreError> {
        let mut results: Vec<Option<Driven>> = jobs.iter().map(|_| None).collect();
        let mut places: Vec<usize> = (0..jobs.len()).collect();
        for _ in 0..CONFLICTS_MAX {
            let (judgements, judging) = self.judge_next(&jobs).await;
            let mut steps = Vec::with_capacity(jobs.len());
            let mut tried = Vec::with_capacity(jobs.len());
            for (((job, input), judgement), place) in jobs.drain(..).zip(judgements).zip(places.drain(..)) {
                match job.next(input.clone(), &self.env(judgement)) {
                    Ok(mut transition) => {
                        transition.source = source;
                        steps.push(JobDecision { before: job.clone(), transition });
                        tried.push((place, job, input));
                    }
                    Err(illegal) => results[place] = Some(Err(Undriven::Illegal(illegal))),
                }
            }
            let (mut again, mut judged) = (Vec::new(), Vec::new());
            for ((place, job, input), outcome) in tried.into_iter().zip(self.commit(steps).await?) {
                match outcome {
                    Ok(next) => {
                        // The edge knows of a report when its attempt began and how long it ran.
                        if !matches!(input, Input::Reported(_)) {
                            self.metrics.cut_short(&job, &next, self.ports.clock.now());
                        }
                        judged.extend(newly_judged(&job, &next).then(|| next.clone()));
                        results[place] = Some(Ok(next));
                    }
                    Err(ChangeError::Refused(why)) => results[place] = Some(Err(Undriven::Refused(why))),
                    Err(_) => again.push((place, job, input)),
                }
            }
            self.traces.judged(judging, judged.iter());
            if again.is_empty() {
                break;
            }
            (jobs, places) = self.reload(again, &mut results).await?;
        }
        Ok(results.into_iter().map(|r| r.unwrap_or(Err(Undriven::Contended))).collect())
    }

    async fn reload(
        &self,
        again: Vec<(usize, Arc<Job>, Input)>,
        results: &mut [Option<Driven>],
    ) -> Result<(Vec<(Arc<Job>, Input)>, Vec<usize>), StoreError> {
        let ids: Vec<_> = again.iter().map(|(_, job, _)| job.request.job_id.clone()).collect();
        let fresh = self.load_each(&ids).await?;
        let mut jobs = Vec::new();
        let mut places = Vec::new();
        for ((place, before, input), job) in again.into_iter().zip(fresh) {
            match job {
                // The job did not move, so the evidence did not hold: deciding the same again would fail the same.
                ReadRow::There(job) if job.version == before.version => results[place] = Some(Err(Undriven::Contended)),
                ReadRow::Unreadable => results[place] = Some(Err(Undriven::Contended)),
                ReadRow::There(job) => {
                    jobs.push((Arc::new(job), input));
                    places.push(place);
                }
                ReadRow::Gone => results[place] = Some(Err(Undriven::Illegal(Illegal::Superseded))),
            }
        }
        Ok((jobs, places))
    }

    /// Judgements for the attempts these inputs may mint. Inputs that never mint one ask nobody.
    async fn judge_next(&self, jobs: &[(Arc<Job>, Input)]) -> (Vec<Judgement>, Lap) {
        let wanted: Vec<Arc<JobRequest>> =
            jobs.iter().filter(|(_, input)| mints(input)).map(|(job, _)| job.request.clone()).collect();
        let (judged, lap) = self.judge(&wanted).await;
        let mut judged = judged.into_iter();
        let next = |(_, input): &(_, Input)| match mints(input) {
            true => judged.next().unwrap_or(Judgement::UNASKED),
            false => Judgement::UNASKED,
        };
        (jobs.iter().map(next).collect(), lap)
    }

    /// Verdicts, and how long they took.
    pub(crate) async fn judge(&self, requests: &[Arc<JobRequest>]) -> (Vec<Judgement>, Lap) {
        if requests.is_empty() {
            return (Vec::new(), Lap::default());
        }
        let began = self.traces.begin();
        self.governed().await;
        let mut judgements = self.ports.kernel.judge(requests).await;
        self.metrics.judged(requests, &judgements);
        self.let_through(requests, &mut judgements);
        (judgements, self.traces.lap(began))
    }

    /// What happens to what nobody can check: as the operator says, else as the policy says.
    pub(crate) fn fail_mode(&self) -> FailMode {
        self.settings.fail_mode.unwrap_or_else(|| self.ports.kernel.input_policy()).fail_mode(self.ports.clock.now())
    }

    /// Fail open: what nobody judged runs, marked, counted once it is committed, audited, and judged later. What undoes work is
    /// let through in any case: leaving half of a saga standing is the greater harm.
    fn let_through(&self, requests: &[Arc<JobRequest>], judgements: &mut [Judgement]) {
        let open = self.fail_mode() == FailMode::Open;
        for (request, judgement) in requests.iter().zip(judgements) {
            let undoes = request.run.as_ref().is_some_and(|part| part.undo);
            let Judgement::Unavailable(why) = judgement else { continue };
            if open || undoes {
                let (ready, snapshot) = (self.ports.kernel.ready(), self.recalled.lock().clone());
                let why = why.as_deref().unwrap_or("the safety kernel did not answer");
                let verdict = if ready { Verdict::unanswered(why, snapshot) } else { Verdict::bypass(why, snapshot) };
                *judgement = Judgement::Decided(Arc::new(verdict));
            }
        }
    }

    /// Attempts are counted and not questions: one job may be asked about every second, and another may end before it gets to
    /// an attempt.
    pub(crate) fn count_bypass(&self, before: Option<&Job>, job: &Job) {
        let attempt = |job: &Job| job.life.bypass.as_ref().map(|bypass| bypass.attempt);
        if attempt(job).is_some() && before.and_then(attempt) != attempt(job) {
            tracing::warn!(job_id = %job.request.job_id, "input policy fail-open: safety kernel unreachable");
            self.metrics.topics.let_through(&job.request.topic);
            self.bypassed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One input for one job by a caller, driven to its end even if they go away.
    pub(crate) async fn drive_one(
        self: Arc<Self>,
        caller: &Caller,
        job: Arc<Job>,
        input: Input,
    ) -> Result<Arc<Job>, ApiError> {
        let (id, source) = (job.request.job_id.clone(), caller.source);
        let driven = to_the_end(async move { self.drive_from(source, vec![(job, input)]).await }).await??.pop();
        driven.map_or_else(|| Err(ApiError::NotFound(id)), |driven| driven.map_err(ApiError::from))
    }
}

/// The next job, or why there is none.
pub(crate) type Driven = Result<Arc<Job>, Undriven>;

/// Why an input was not taken.
#[derive(Clone, Debug)]
pub(crate) enum Undriven {
    /// It no longer applies.
    Illegal(Illegal),
    /// Not decided: its evidence did not hold, others were faster too often, or what it is now cannot be read. Nothing may be
    /// concluded from it.
    Contended,
    /// The Store does not take it. The job is as it was, and would be after the next try.
    Refused(String),
}

impl Undriven {
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

impl From<Undriven> for ApiError {
    fn from(undriven: Undriven) -> Self {
        match undriven {
            Undriven::Illegal(illegal) => Self::State(illegal),
            Undriven::Contended => Self::Unavailable("the job keeps changing; try again".into()),
            Undriven::Refused(why) => Self::refused("the job", &why),
        }
    }
}

/// A new job is ours if it asks for the same; a step is ours if it left the very life we decided.
fn is_what_we_wrote(next: &Job, stored: &Job) -> bool {
    match next.version {
        1 => stored.hash == next.hash && stored.request.tenant == next.request.tenant,
        version => stored.version == version && stored.life == next.life,
    }
}

/// The verdict that was asked for is about an attempt that is there.
fn newly_judged(before: &Job, next: &Job) -> bool {
    let (old, new) = (&before.life.attempt, &next.life.attempt);
    new.verdict.is_some() && (new.no != old.no || old.verdict.is_none())
}

fn mints(input: &Input) -> bool {
    use lockgate_core::job::Outcome;
    match input {
        Input::Judged | Input::Lost { .. } | Input::Woken | Input::Vote(_) | Input::Rejudged | Input::Replay { .. } => true,
        Input::Gathered { .. } => true,
        Input::Spawned { .. } | Input::Settled { .. } | Input::LetGo { .. } | Input::Restamped { .. } => false,
        Input::Dispatch(_) | Input::Started { .. } | Input::Checked { .. } | Input::Cancel { .. } => false,
        Input::Scanned(_) | Input::LetOut(_) | Input::Release { .. } | Input::GivenUp { .. } => false,
        Input::Discard { .. } | Input::Hasten { .. } => false,
        Input::Reported(report) => match report.outcome {
            Outcome::Succeeded { .. } | Outcome::FailedFatal { .. } | Outcome::Cancelled { .. } => false,
            // Judged when it goes on.
            Outcome::AwaitChildren { .. } => false,
            Outcome::FailedRetryable { .. } | Outcome::TimedOut | Outcome::Snooze { .. } => true,
            Outcome::Interrupted | Outcome::Revoked => true,
        },
    }
}

/// A waiting job left its lane: to a worker, who now holds what the claim took of limits, or some other way.
fn left(before: &Job, job: &Job) -> Settlement {
    let (lane, key) = (before.lane(), before.ready_key());
    match job.state() {
        JobState::Dispatched => Settlement::Sent { lane, key, token: job.life.attempt.token.clone() },
        _ => Settlement::Gone { lane, key, claim: None },
    }
}
