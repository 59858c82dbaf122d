//! Planted bugs in changes on their way to the disk, and in what is read back.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::{EventKind, Evidence, Job, JobState, LostAttempt, Transition};
use lockgate_core::request::Json;
use lockgate_ports::{JobChange, NewsRow, RunNews};

use super::picked;
use crate::check::is_end;

/// The first attempt of each life that was declared lost.
pub(super) type Lost = BTreeMap<(JobId, u32), LostAttempt>;

fn says(change: &JobChange, kind: EventKind) -> bool {
    change.transition.events.iter().any(|event| event.kind == kind)
}

pub(super) fn charge_losses(changes: &mut [JobChange]) {
    for change in changes.iter_mut().filter(|change| says(change, EventKind::AttemptLost)) {
        change.transition.job.life.counters.failures += 1;
    }
}

pub(super) fn note_losses(known: &mut Lost, changes: &[JobChange]) {
    for job in changes.iter().map(|change| &change.transition.job) {
        if let Some(lost) = &job.life.lost {
            known.entry((job.request.job_id.clone(), job.life.no)).or_insert_with(|| lost.clone());
        }
    }
}

/// Once per loss, because a job that is never seen running would never end.
pub(super) fn keep_guess(known: &mut Lost, job: &mut Job) {
    if job.life.state != JobState::Running {
        return;
    }
    if let Some(lost) = known.remove(&(job.request.job_id.clone(), job.life.no)) {
        job.life.state = JobState::Scheduled;
        job.life.attempt.binding = None;
        job.life.lost = Some(lost);
    }
}

pub(super) fn omit_evidence(changes: &mut [JobChange]) {
    for evidence in changes.iter_mut().map(|change| &mut change.transition.evidence) {
        if matches!(evidence, Evidence::Reached(_) | Evidence::Attached { .. } | Evidence::Closed { .. }) {
            *evidence = Evidence::Version;
        }
    }
}

pub(super) fn assume_states(changes: &mut [JobChange], now: &Arc<str>) {
    for evidence in changes.iter_mut().map(|change| &mut change.transition.evidence) {
        if let Evidence::Allowed { routing, .. } = evidence {
            routing.states = now.clone();
        }
    }
}

/// Schedules new jobs that came without a verdict.
pub(super) fn assume_verdicts(changes: &mut [JobChange]) {
    for job in changes.iter_mut().map(|change| &mut change.transition.job).filter(|job| job.version == 1) {
        if job.life.state == JobState::Pending && job.life.attempt.verdict.is_none() {
            job.life.state = JobState::Scheduled;
        }
    }
}

/// Ends a job again, with an event that must not end it: its children were stopped, or a late result came.
pub(super) fn end_again(changes: &mut [JobChange]) {
    for transition in changes.iter_mut().map(|change| &mut change.transition) {
        let ends = transition.events.iter().any(|event| is_end(event.kind));
        let life = &mut transition.job.life;
        if life.state.is_terminal() && !ends {
            life.state = if life.state == JobState::Cancelled { JobState::Failed } else { JobState::Cancelled };
        }
    }
}

/// Reports a completed job of a DAG as cancelled.
pub(super) fn call_cancelled(news: &mut NewsRow) {
    let RunNews::Job { job, result } = &mut news.what else { return };
    let of_a_dag = job.request.run.as_ref().is_some_and(|part| !part.undo && !part.run.is_saga());
    if of_a_dag && job.state() == JobState::Succeeded && picked(job.request.job_id.as_str()) {
        (job.life.state, *result) = (JobState::Cancelled, None);
    }
}

pub(super) fn keep_first_results(first: &mut BTreeMap<JobId, Json>, changes: &mut [JobChange]) {
    for Transition { job, result, .. } in changes.iter_mut().map(|change| &mut change.transition) {
        if let Some(result) = result {
            *result = first.entry(job.request.job_id.clone()).or_insert_with(|| result.clone()).clone();
        }
    }
}

/// Removes from a message the workers that may still be working on the job.
pub(super) fn believe_cancels(news: &mut NewsRow) {
    if let RunNews::Job { job, .. } = &mut news.what {
        job.life.taken.iter_mut().for_each(|taken| taken.leaving = None);
    }
}
