//! "Why does it wait, and what would start it?"

use lockgate_core::ids::{JobId, WorkerId};
use lockgate_core::job::{Job, JobState};
use lockgate_core::request::Caller;
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::Decision;

use crate::edge::SessionView;
use crate::error::ApiError;
use crate::{Engine, Inner};

/// The answer: a sentence for people, a code for machines, and the grounds.
#[derive(Clone, Debug)]
pub struct Why {
    pub state: JobState,
    pub reason: &'static str,
    pub summary: String,
    /// What would start it, or what to do next.
    pub next_step: String,
    /// When it is looked at next, if a time is known.
    pub next_at: Option<Timestamp>,
    /// The policy snapshot and rule of the current attempt.
    pub rule: Option<String>,
    pub workers: Vec<Considered>,
    /// Jobs of the same lane that wait.
    pub lane_waiting: Option<u64>,
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
        Ok(self.inner.explain(&job).await)
    }
}

impl Inner {
    async fn explain(&self, job: &Job) -> Why {
        let verdict = job.life.attempt.verdict.as_ref();
        let mut why = Why {
            state: job.state(),
            reason: "",
            summary: String::new(),
            next_step: String::new(),
            next_at: None,
            rule: verdict.map(|v| format!("{}#{} ({})", v.snapshot, v.rule, v.reason)),
            workers: Vec::new(),
            lane_waiting: None,
        };
        match job.state() {
            JobState::Scheduled if job.life.due_at > self.ports.clock.now() => why.delayed(job),
            JobState::Scheduled => self.explain_waiting(job, &mut why).await,
            JobState::Pending => self.explain_pending(job, &mut why),
            JobState::ApprovalRequired => why.asked(job),
            JobState::Running if job.in_output_check() => {
                why.say("output_check", "The work is done; its result is being checked.", "It ends when the check is done.");
            }
            JobState::Dispatched | JobState::Running => why.held(job),
            state => why.ended(job, state),
        }
        why
    }

    fn explain_pending(&self, job: &Job, why: &mut Why) {
        why.next_at = Some(job.life.due_at);
        let throttled = job.life.attempt.verdict.as_ref().filter(|verdict| verdict.decision == Decision::Throttle);
        match throttled {
            Some(verdict) => {
                why.say("throttled", &format!("Policy slows it down: {}", verdict.reason), "It is judged again.");
            }
            None if self.ports.kernel.ready() => {
                why.say("waiting_for_verdict", "The safety kernel has not decided yet.", "It is asked again.");
            }
            None => {
                let next = "It is judged when the kernel is back; `lockgate breaker` shows when that is tried.";
                why.say("safety_kernel_unavailable", "Safety kernel unavailable.", next);
            }
        }
    }

    async fn explain_waiting(&self, job: &Job, why: &mut Why) {
        let shape = job.request.shape();
        let lane = job.lane();
        let depths = self.ports.lanes.depths(usize::MAX).await;
        why.lane_waiting = depths.iter().find(|depth| depth.lane == lane).map(|depth| depth.waiting);
        let sessions = self.edge.views();
        why.workers = sessions.iter().map(|view| consider(view, &shape)).collect();
        let fits = |considered: &&Considered| matches!(considered.verdict.as_str(), "fits" | "busy");
        if sessions.is_empty() {
            let next = "Start one: `lockgate worker`, or run `lockgate serve` without `--no-worker`.";
            why.say("no_worker", "No worker is connected.", next);
        } else if !why.workers.iter().any(|c| fits(&c)) {
            let summary = format!("No connected worker fits the job ({shape}).");
            let next = format!("Start a worker that serves {shape}, or change the job's topic or `requires`.");
            why.say("no_fitting_worker", &summary, &next);
        } else if why.workers.iter().any(|c| c.verdict == "fits") {
            why.say("starting", "A fitting worker is free; the job is about to start.", "Nothing: look again.");
        } else {
            let ahead = why.lane_waiting.unwrap_or(0);
            let summary = format!("All fitting workers are busy; {ahead} job(s) wait in its lane.");
            why.say(
                "workers_busy",
                &summary,
                "It starts when its turn comes and a slot is free; more slots start it sooner.",
            );
        }
    }
}

fn consider(view: &SessionView, shape: &lockgate_core::lane::Shape) -> Considered {
    let free = view.profile.slots.saturating_sub(u32::try_from(view.busy).unwrap_or(u32::MAX));
    let verdict = match view.profile.check(shape) {
        Err(unfit) => unfit.to_string(),
        Ok(()) if !view.attached => "detached".into(),
        Ok(()) if view.draining => "draining".into(),
        Ok(()) if free == 0 => "busy".into(),
        Ok(()) => "fits".into(),
    };
    Considered { worker: view.profile.worker.clone(), verdict, free_slots: free }
}

impl Why {
    fn say(&mut self, reason: &'static str, summary: &str, next_step: &str) {
        self.reason = reason;
        self.summary = summary.to_owned();
        self.next_step = next_step.to_owned();
    }

    fn delayed(&mut self, job: &Job) {
        self.next_at = Some(job.life.due_at);
        match &job.life.last_error {
            Some(failure) if job.life.attempt.no > 1 => {
                let summary =
                    format!("Attempt {} ended ({}): {}", job.life.attempt.no - 1, failure.reason.as_str(), failure.message);
                self.say("waiting_for_retry", &summary, "The next attempt starts by itself.");
            }
            _ => self.say("waiting_for_time", "It must not start before a set time.", "It starts by itself."),
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
        self.say("waiting_for_approval", &summary, &next);
    }

    fn held(&mut self, job: &Job) {
        let Some(binding) = &job.life.attempt.binding else { return };
        let worker = &binding.worker;
        if job.state() == JobState::Running {
            self.next_at = Some(binding.timeout_at);
            self.say("running", &format!("Attempt {} runs on {worker}.", job.life.attempt.no), "Wait, or cancel it.");
        } else {
            self.next_at = Some(binding.start_by);
            let summary = format!("Attempt {} was sent to {worker}, which has not started it yet.", job.life.attempt.no);
            self.say("dispatched", &summary, "It is requeued if the worker does not start it in time.");
        }
    }

    fn ended(&mut self, job: &Job, state: JobState) {
        let why = job.life.last_error.as_ref().filter(|_| state != JobState::Succeeded);
        let summary = match why {
            Some(failure) => format!("It ended as {state} ({}): {}", failure.reason.as_str(), failure.message),
            None => format!("It ended as {state}."),
        };
        let verdict = job.life.attempt.verdict.as_ref().filter(|_| state == JobState::Denied);
        let remedy = verdict.and_then(|verdict| verdict.remediations.first());
        let next = match (state, remedy) {
            (_, Some(remedy)) => remedy.summary.as_ref().unwrap_or(&remedy.title).to_string(),
            (JobState::OutputQuarantined, _) => format!("Look at it, then `lockgate release {}`.", job.request.job_id),
            (state, _) if state.is_dead() => "Fix the cause, then `lockgate dlq replay`.".to_owned(),
            _ => "Nothing waits.".to_owned(),
        };
        self.say("ended", &summary, &next);
    }
}
