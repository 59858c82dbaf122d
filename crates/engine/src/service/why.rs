//! "Why does it wait, and what would start it?"

use lockgate_core::breaker::BreakerState;
use lockgate_core::clock_guard::stamped_ahead;
use lockgate_core::dag::RunHead;
use lockgate_core::ids::{JobId, JobSeq, PoolName, WorkerId};
use lockgate_core::job::{Barrier, Counters, Job, JobState, OnTimeout, Reason};
use lockgate_core::lane::Shape;
use lockgate_core::output::OutputDecision;
use lockgate_core::placement::{PoolLook, Refusal, WorkerLook};
use lockgate_core::pools::{DispatchMode, Unrouted};
use lockgate_core::request::Caller;
use lockgate_core::retry::{PlacingTries, RetryPolicy};
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::Decision;
use lockgate_core::why_reason::WhyReason;
use lockgate_ports::{BreakerView, ChildQuery, Condition, INPUT_BREAKER, Kin, LimitView, StoreError};

use crate::error::ApiError;
use crate::{Engine, Inner};

/// The answer: a sentence for people, a code for machines, and the grounds.
#[derive(Clone, Debug)]
pub struct Why {
    pub state: JobState,
    pub reason: String,
    pub summary: String,
    /// What would start it, or what to do next.
    pub next_step: String,
    /// When it is looked at next, if a time is known.
    pub next_at: Option<Timestamp>,
    /// The policy snapshot and rule that it is where it is by: that of the result, if that holds it back, else that of the
    /// current attempt.
    pub rule: Option<String>,
    /// Pools of its route, first choice first, with their workers.
    pub pools: Vec<PoolConsidered>,
    /// Limits it must pass.
    pub limits: Vec<LimitView>,
    /// How often placing was tried, if nobody can ever take it as things are.
    pub tries: Option<PlacingTries>,
    /// Jobs of the same lane that wait.
    pub lane_waiting: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct PoolConsidered {
    pub pool: PoolName,
    pub dispatch: DispatchMode,
    /// Why the pool as a whole takes nothing.
    pub reason: Option<String>,
    pub workers: Vec<Considered>,
    /// Workers that are not listed.
    pub more: usize,
}

#[derive(Clone, Debug)]
pub struct Considered {
    pub worker: WorkerId,
    /// `fits`, `busy` or the reason code of the first check that failed.
    pub verdict: String,
    pub free_slots: u32,
}

impl Engine {
    pub async fn why(&self, caller: &Caller, id: &JobId) -> Result<Why, ApiError> {
        let job = self.inner.find(caller, id).await?;
        let mut why = self.inner.explain(&job, caller.sees_everyone).await;
        if let Some(barrier) = job.barrier() {
            let kin = self.inner.kin(&job).await?.unwrap_or_default();
            let latest = self.inner.name_of(&job, &kin).await?;
            why.waits_for_children(&job, barrier, &kin, latest.as_ref());
        }
        if let Some(saga) = self.inner.closed_saga(&job).await {
            why.closed(&saga);
        }
        // What was due and did not happen happens at no time that is known: the reason says what it waits for.
        let now = self.inner.ports.clock.now();
        why.next_at = why.next_at.filter(|at| *at > now);
        if !caller.sees_everyone {
            // Workers serve every tenant.
            why.pools.iter_mut().for_each(|pool| pool.workers.clear());
        }
        Ok(why)
    }
}

impl Inner {
    /// The child that was submitted last of those under way.
    async fn name_of(&self, parent: &Job, kin: &Kin) -> Result<Option<JobId>, StoreError> {
        let Some(latest) = kin.latest else { return Ok(None) };
        let (parent, life, after) = (parent.request.job_id.clone(), parent.life.no, JobSeq(latest.0 - 1));
        let found = self.ports.store.children(ChildQuery { parent, life, after, limit: 1, bytes: 0 }).await?.items.pop();
        Ok(found.map(|child| child.job.request.job_id.clone()))
    }

    /// Errors of other servers may name hosts and credentials, so only `with_errors` shows them: to those who see every tenant.
    async fn explain(&self, job: &Job, with_errors: bool) -> Why {
        let mut why = Why {
            state: job.state(),
            reason: String::new(),
            summary: String::new(),
            next_step: String::new(),
            next_at: None,
            rule: rule_of(job),
            pools: Vec::new(),
            limits: Vec::new(),
            tries: None,
            lane_waiting: None,
        };
        match job.state() {
            JobState::Scheduled if job.life.due_at > self.ports.clock.now() => {
                let retry = job.retry_policy(&self.settings.limits, &self.config.timeouts());
                why.delayed(job, &retry, self.ports.clock.now());
            }
            JobState::Scheduled => self.explain_waiting(job, with_errors, &mut why).await,
            JobState::Pending => self.explain_pending(job, with_errors, &mut why),
            JobState::ApprovalRequired => why.asked(job),
            JobState::Running if job.in_output_check() => {
                why.say(
                    WhyReason::OutputCheck,
                    "The work is done; its result is being checked.",
                    "It ends when the check is done.",
                );
            }
            JobState::Dispatched | JobState::Running => why.held(job),
            state => why.ended(job, state),
        }
        why.waits_for_its_worker(job, self.ports.clock.now());
        why
    }

    fn explain_pending(&self, job: &Job, with_errors: bool, why: &mut Why) {
        why.next_at = Some(job.life.due_at);
        let throttled = job.life.attempt.verdict.as_ref().filter(|verdict| verdict.decision == Decision::Throttle);
        let failing =
            self.ports.kernel.breakers().into_iter().find(|breaker| breaker.name == INPUT_BREAKER && breaker.failures > 0);
        match (throttled, failing) {
            (Some(verdict), _) => {
                why.say(WhyReason::Throttled, &format!("Policy slows it down: {}", verdict.reason), "It is judged again.");
            }
            (None, Some(breaker)) => {
                why.next_at = why.next_at.max(breaker.open_until);
                why.unjudged(&breaker, with_errors);
            }
            (None, None) if self.ports.kernel.ready() => {
                why.say(WhyReason::WaitingForVerdict, "The safety kernel has not decided yet.", "It is asked again.");
            }
            (None, None) => {
                let summary = "The policy in force cannot be read here, so nothing is judged.";
                let next = "Upgrade this server, or put a policy in force that it can read: `lockgate policy apply`.";
                why.say(WhyReason::SafetyKernelUnavailable, summary, next);
            }
        }
    }

    async fn explain_waiting(&self, job: &Job, with_errors: bool, why: &mut Why) {
        let lane = job.lane();
        let depths = self.ports.lanes.depths(usize::MAX).await;
        why.lane_waiting = depths.iter().flatten().find(|depth| depth.lane == lane).map(|depth| depth.waiting);
        why.limits = self.ports.lanes.limits(&lane).await;
        why.limits.extend(self.pool_limit(&lane.shape));
        why.tries = self.placing_tries(job, &lane.shape);
        let placement = self.edge.look(|edge| edge.explain(&lane.shape));
        let change = placement.smallest_change(&lane.shape);
        why.pools = placement.pools.into_iter().map(PoolConsidered::from).collect();
        if self.config.is_unreadable() {
            let summary = "The pools in force were written by another version of Lockgate; this one cannot read them.";
            let next = "Upgrade this server, or put a file in force that it can read: `lockgate pools apply`.";
            return why.say(WhyReason::ConfigUnreadable, summary, next);
        }
        if let Condition::Away(reason) = &*self.lanes.lock() {
            let error = if with_errors { format!(": {reason}") } else { ".".to_owned() };
            let summary = format!("The lanes cannot be reached, so nothing can be claimed{error}");
            return why.say(
                WhyReason::LanesUnavailable,
                &summary,
                "It starts when Redis is back; `lockgate doctor` looks at it.",
            );
        }
        match placement.refusal {
            Some(Refusal::WorkersBusy) | None if why.limits.iter().any(|limit| limit.full) => why.limited(),
            Some(refusal) => {
                let summary = refused(&refusal, &lane.shape, why.lane_waiting.unwrap_or(0));
                why.say(WhyReason::from(&refusal), &summary, &change);
            }
            None => {
                why.say(WhyReason::Starting, "A fitting worker is free; the job is about to start.", "Nothing: look again.");
            }
        }
        if let Some(tries) = &why.tries {
            why.next_at = Some(self.ports.clock.now() + tries.next_in);
        }
    }
}

impl Inner {
    /// How much of what its first pool may run at once is used.
    fn pool_limit(&self, shape: &Shape) -> Option<LimitView> {
        let routing = self.routing();
        let route = routing.pools.route(shape).ok()?;
        let (name, max) = (route.first(), routing.pools.pool(route.first())?.max_concurrent?);
        let own = self.edge.survey(|edge, _| edge.views()).into_iter().filter(|view| view.profile.pool == *name);
        let held = u32::try_from(own.map(|view| view.busy).sum::<usize>()).unwrap_or(u32::MAX);
        Some(LimitView { key: format!("pool/{name}").into(), max: Some(max), held, again_at: None, full: held >= max })
    }
}

/// What let a job start says nothing about why its result does not come out.
fn rule_of(job: &Job) -> Option<String> {
    let named = |snapshot: &str, rule: &str, reason: &str| format!("{snapshot}#{rule} ({reason})");
    let withheld = job.life.output.as_ref().filter(|_| job.state() == JobState::OutputQuarantined);
    match (withheld.and_then(|check| check.verdict.as_deref()), job.life.attempt.verdict.as_deref()) {
        (Some(verdict), _) => Some(named(&verdict.snapshot, &verdict.rule, &verdict.reason)),
        (None, Some(verdict)) => Some(named(&verdict.snapshot, &verdict.rule, &verdict.reason)),
        (None, None) => None,
    }
}

/// One sentence for people.
fn refused(refusal: &Refusal, shape: &Shape, waiting: u64) -> String {
    match refusal {
        Refusal::Unrouted(Unrouted::NoMapping) => format!("No pool is configured for the topic {}.", shape.topic),
        Refusal::Unrouted(Unrouted::PreferredPool) => "Its preferred pool is not one of its topic's pools.".to_owned(),
        Refusal::Unrouted(Unrouted::AllowedPools) => "Policy allows none of its topic's pools.".to_owned(),
        Refusal::PoolPaused | Refusal::BehindPaused => "Its pool is paused.".to_owned(),
        Refusal::PoolDraining => "Its pool is being drained.".to_owned(),
        Refusal::NoWorkers => format!("No worker fits the job ({shape})."),
        Refusal::WorkersAway => "Every worker that fits is away.".to_owned(),
        Refusal::PoolOverloaded => "Every worker that fits is overloaded.".to_owned(),
        Refusal::WorkersBusy => format!("All fitting workers are busy; {waiting} job(s) wait in its lane."),
    }
}

impl From<PoolLook> for PoolConsidered {
    fn from(look: PoolLook) -> Self {
        let worker = |worker: WorkerLook| Considered {
            worker: worker.worker.clone(),
            verdict: worker.reason().map_or_else(|| "fits".to_owned(), |reason| reason.to_string()),
            free_slots: worker.capacity.saturating_sub(worker.active),
        };
        Self {
            pool: look.pool,
            dispatch: look.dispatch,
            reason: look.reason.map(|reason| reason.to_string()),
            workers: look.workers.into_iter().map(worker).collect(),
            more: look.rest.values().sum(),
        }
    }
}

/// What follows a failure or a loss, and how much of both is left.
fn next_attempt(spent: &Counters, retry: &RetryPolicy) -> String {
    let (failures, losses) = (spent.failures, spent.infra_failures);
    let Some(total) = retry.total else {
        return format!(
            "The next attempt starts by itself. Failures: {failures} of {}, losses: {losses} of {}.",
            retry.attempts, retry.losses
        );
    };
    format!(
        "The next attempt starts by itself. Failures: {failures} of {}, losses: {losses} of {}; none is planned for later than {total:?} \
         after the submit or the replay.",
        retry.attempts, retry.losses
    )
}

impl Why {
    fn say(&mut self, reason: WhyReason, summary: &str, next_step: &str) {
        self.reason = reason.as_str().to_owned();
        self.summary = summary.to_owned();
        self.next_step = next_step.to_owned();
    }

    /// Somebody could take it, but it is not yet its turn: something is used up.
    fn limited(&mut self) {
        let Some(limit) = self.limits.iter().find(|limit| limit.full).cloned() else { return };
        let used = limit.max.map_or_else(String::new, |max| format!(" ({} of {max} at once)", limit.held));
        let (reason, next) = match limit.key.split('/').next() {
            _ if limit.again_at.is_some() => (WhyReason::RateLimited, "It starts when the rate has room again."),
            Some("tenant") => {
                (WhyReason::TenantLimit, "It starts when another job of the tenant ends; a higher limit starts it sooner.")
            }
            Some("pool") => {
                (WhyReason::PoolLimit, "It starts when another job of the pool ends; a higher limit starts it sooner.")
            }
            _ => (WhyReason::LimitFull, "It starts when another job under the same limit ends."),
        };
        self.next_at = limit.again_at;
        self.say(reason, &format!("The limit {} is used up{used}.", limit.key), next);
    }

    /// The kernel elsewhere does not answer.
    fn unjudged(&mut self, breaker: &BreakerView, with_errors: bool) {
        let error = breaker.last_error.as_deref().unwrap_or("unreachable for another process");
        let circuit = if breaker.state == BreakerState::Closed { "" } else { " (circuit open)" };
        let error = if with_errors { format!(": {error}") } else { ".".to_owned() };
        let summary = format!("Safety kernel unavailable{circuit}{error}");
        let next = "It is judged when the kernel is back; `lockgate breaker` shows when that is tried.";
        self.say(WhyReason::SafetyKernelUnavailable, &summary, next);
    }

    fn delayed(&mut self, job: &Job, retry: &RetryPolicy, now: Timestamp) {
        self.next_at = Some(job.life.due_at);
        let ahead = stamped_ahead(job.life.began_at, now);
        match &job.life.last_error {
            _ if ahead.is_some() => {
                let summary = format!("A clock that was {} s ahead stamped it.", ahead.unwrap_or_default().as_secs());
                let next = "It is brought back by itself once the clock has been right for --clock-settle, and then starts.";
                self.say(WhyReason::ClockWasAhead, &summary, next);
            }
            Some(failure) if job.life.attempt.no > 1 => {
                let summary =
                    format!("Attempt {} ended ({}): {}", job.life.attempt.no - 1, failure.reason.as_str(), failure.message);
                let unsent = failure.reason == Reason::DispatchLost;
                let reason = if unsent { WhyReason::DispatchFailed } else { WhyReason::WaitingForRetry };
                self.say(reason, &summary, &next_attempt(&job.life.counters, retry));
            }
            _ => self.say(WhyReason::WaitingForTime, "It must not start before a set time.", "It starts by itself."),
        }
    }

    fn asked(&mut self, job: &Job) {
        let Some(asked) = &job.life.approval else { return };
        self.next_at = asked.expires_at();
        let (have, need) = (asked.votes.len(), asked.terms.approvers);
        let reason = job.life.attempt.verdict.as_ref().map_or("", |verdict| &verdict.reason);
        let summary = format!("Rule {} asks for a person's approval ({have} of {need} given): {reason}", asked.rule);
        let next =
            format!("Somebody other than {} runs `lockgate approvals approve {}`.", job.request.actor, job.request.job_id);
        self.say(WhyReason::WaitingForApproval, &summary, &next);
    }

    /// What it waits for, not the verdict that it gets afterwards.
    fn waits_for_children(&mut self, job: &Job, barrier: &Barrier, kin: &Kin, latest: Option<&JobId>) {
        self.next_at = Some(barrier.until);
        let id = &job.request.job_id;
        let Some(latest) = latest else {
            let summary = format!("All of its {} children have ended.", kin.total);
            return self.say(WhyReason::WaitingForChildren, &summary, "Nothing: it goes on in a moment.");
        };
        let summary = format!("It waits for {} of its {} children, such as {latest}.", kin.live, kin.total);
        let or_else = match barrier.on_timeout {
            OnTimeout::Fail => "it fails",
            OnTimeout::Review => "a person is asked whether it goes on without them",
        };
        let next = format!(
            "It goes on when they have ended; if they take too long, {or_else}. `lockgate jobs --parent {id}` lists them."
        );
        self.say(WhyReason::WaitingForChildren, &summary, &next);
    }

    fn held(&mut self, job: &Job) {
        let Some(binding) = &job.life.attempt.binding else { return };
        let worker = &binding.worker;
        if job.state() == JobState::Running {
            self.next_at = Some(binding.timeout_at);
            self.say(
                WhyReason::Running,
                &format!("Attempt {} runs on {worker}.", job.life.attempt.no),
                "Wait, or cancel it.",
            );
        } else {
            self.next_at = Some(binding.start_by);
            let summary = format!("Attempt {} was sent to {worker}, which has not started it yet.", job.life.attempt.no);
            self.say(WhyReason::Dispatched, &summary, "It is requeued if the worker does not start it in time.");
        }
    }

    /// Its workflow does not go on: what waits will be cancelled, what was done is undone.
    fn closed(&mut self, saga: &RunHead) {
        let (workflow, state) = (&saga.dag.name, saga.state.as_str());
        let why = saga.failure.as_ref().map_or("", |failure| &*failure.message);
        self.summary = format!("{} Its workflow {workflow} is closed ({state}): {why}", self.summary);
        self.next_step = format!("`lockgate saga show {workflow}` tells what is undone.");
        if !self.state.is_terminal() {
            self.reason = WhyReason::WaitingForRollback.as_str().to_owned();
        }
    }

    /// the job is over and its attempt may not be.
    fn waits_for_its_worker(&mut self, job: &Job, now: Timestamp) {
        let until = job.leaving().map(|leaving| leaving.until).max().filter(|until| *until > now);
        let Some(until) = until.filter(|_| job.state().is_terminal()) else { return };
        if job.leaving().any(|leaving| leaving.scan) {
            self.reason = WhyReason::OutputCheck.as_str().to_owned();
            self.summary =
                format!("{} Its worker finished the work all the same, and the result is being checked.", self.summary);
            self.next_step = "If its run is rolled back, nothing is undone until the check is done, or an operator resolves the node: `lockgate dag resolve`.".into();
            return;
        }
        self.next_at = Some(until);
        self.reason = WhyReason::WaitingForWorker.as_str().to_owned();
        self.summary = format!("{} Its worker has not said yet how the attempt went.", self.summary);
        self.next_step =
            "If its run is rolled back, nothing is undone until the worker says so, is lost, or had its time.".into();
    }

    fn ended(&mut self, job: &Job, state: JobState) {
        let why = job.life.last_error.as_ref().filter(|_| state != JobState::Succeeded);
        let unreleased = job.life.output.as_ref().filter(|check| check.released_by.is_none());
        let verdict = unreleased.and_then(|check| check.verdict.as_deref());
        let redacted = verdict.filter(|verdict| verdict.decision == OutputDecision::Redact);
        let summary = match (why, redacted) {
            (Some(failure), _) => format!("It ended as {state} ({}): {}", failure.reason.as_str(), failure.message),
            (None, Some(verdict)) => {
                format!("It ended as {state}. Rule {} redacted its result: {}", verdict.rule, verdict.reason)
            }
            (None, None) => format!("It ended as {state}."),
        };
        let verdict = job.life.attempt.verdict.as_ref().filter(|_| state == JobState::Denied);
        let remedy = verdict.and_then(|verdict| verdict.remediations.first());
        let next = match (state, remedy) {
            (_, Some(remedy)) => remedy.summary.as_ref().unwrap_or(&remedy.title).to_string(),
            (JobState::OutputQuarantined, _) => format!("Look at it, then `lockgate release {}`.", job.request.job_id),
            (state, _) if state.is_dead() && job.life.discarded.is_some() => {
                "Nothing waits: an operator discarded its dead letter.".to_owned()
            }
            (state, _) if state.is_dead() => "Fix the cause, then `lockgate dlq replay`.".to_owned(),
            _ => "Nothing waits.".to_owned(),
        };
        let reason = if state == JobState::Denied { WhyReason::SafetyDenied } else { WhyReason::Ended };
        self.say(reason, &summary, &next);
    }
}
