//! What the engine writes to its log about jobs and runs: always the same fields, so that a reader finds everything about one
//! of them by one name.
//!
//! | field | |
//! |---|---|
//! | `job_id`, `tenant`, `trace_id` | always, of a job |
//! | `attempt_id` | job and number of the attempt; the token is a secret |
//! | `run_id`, `node` | if it is part of a run |
//! | `worker_id` | if one has, or had, the attempt |
//! | `reason` | why, if something went wrong |
//! | `state_from`, `state_to` | of a step |
//!
//! Their targets are `lockgate::jobs` and `lockgate::runs`: `--log info,lockgate::jobs=debug` shows every step of every job.

use lockgate_core::dag::{RunHead, RunState};
use lockgate_core::job::{Job, JobState};

/// One line for a job, with whatever is known of it and of one of its attempts.
macro_rules! tell {
    ($level:ident, $job:expr, $attempt:expr, $from:expr, $reason:expr, $text:literal) => {{
        let (request, attempt) = (&$job.request, &$attempt);
        let part = request.run.as_ref();
        tracing::$level!(
            target: "lockgate::jobs",
            job_id = %request.job_id,
            attempt_id = %format_args!("{}#{}", request.job_id, attempt.no),
            run_id = part.map(|part| display(&part.run)),
            node = part.map(|part| part.node),
            worker_id = attempt.binding.as_ref().map(|binding| display(&binding.worker)),
            tenant = %request.tenant,
            topic = %request.topic,
            trace_id = %request.trace_name(),
            reason = $reason,
            state_from = $from,
            state_to = $job.state().as_str(),
            $text
        );
    }};
}

/// A new job.
pub(crate) fn entered(job: &Job) {
    tell!(debug, job, job.life.attempt, None::<&str>, reason(job), "a job came in");
}

/// A step of a known job. How jobs fare is their owners' affair, so that is told only to those who ask; what the platform lost
/// is the operator's.
pub(crate) fn moved(before: &Job, job: &Job) {
    let from = Some(before.state().as_str());
    let why = reason(job).filter(|_| job.life.last_error != before.life.last_error || job.state().is_terminal());
    if job.life.counters.infra_failures > before.life.counters.infra_failures {
        tell!(info, job, before.life.attempt, from, why, "an attempt was lost");
    } else {
        tell!(debug, job, job.life.attempt, from, why, "a job moved");
    }
}

fn reason(job: &Job) -> Option<&str> {
    let failure = job.life.last_error.as_ref().filter(|_| job.state() != JobState::Succeeded);
    failure.map(|failure| failure.reason.as_str())
}

/// A step of a run that changed its state.
pub(crate) fn stepped(before: RunState, head: &RunHead) {
    if before == head.state {
        return;
    }
    let reason = head.failure.as_ref().map(|failure| failure.reason.as_str());
    macro_rules! tell {
        ($level:ident, $text:literal) => {
            tracing::$level!(
                target: "lockgate::runs",
                run_id = %head.id,
                tenant = %head.tenant,
                dag = %head.dag.name,
                trace_id = head.trace.map(|trace| display(trace.trace)),
                reason,
                state_from = before.as_str(),
                state_to = head.state.as_str(),
                $text
            )
        };
    }
    // Somebody must look at it.
    if head.state == RunState::CompensationStuck {
        tell!(warn, "a run is stuck undoing its work");
    } else {
        tell!(debug, "a run moved");
    }
}
