//! Submitting a load in batches, and following it by reading lists, over server restarts.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lockgate_proto::v1;
use tokio::time::Instant;
use v1::submit_jobs_response::item::Item;

use super::mix::LoadKind;
use super::pages::JobPages;
use super::report::{LoadReport, SeenJob};
use crate::error::CliError;
use crate::follow::{Patience, repeat_with};
use crate::output::Output;
use crate::session::CliSession;

/// Jobs sent in one call: large enough to share an fsync, small enough to show progress.
const BATCH_MAX: u32 = 500;
/// How often a limited rate is topped up.
const TOP_UP_EVERY: Duration = Duration::from_millis(20);
/// Pause between two looks at the jobs. A look takes a call for each page with a job that has not ended.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The shortest pause before refused jobs are sent again: the retry time of a rate is for the next job, not for all.
const BACK_IN_MIN: Duration = Duration::from_millis(200);
/// Marks the jobs of one load.
const LABEL: &str = "lockgate-load";

pub(super) struct LoadPlan {
    pub(super) jobs: u32,
    pub(super) rate: u32,
    /// Repeats over the jobs.
    pub(super) kinds: Vec<LoadKind>,
    pub(super) sleep: Duration,
    pub(super) give_up: Duration,
}

pub(super) async fn run(session: &mut CliSession, plan: &LoadPlan) -> Result<LoadReport, CliError> {
    let started = Instant::now();
    let label = load_id()?;
    let bars = Bars::new(session.out, plan.jobs);
    let seen = async {
        submit(session, plan, &label, &bars).await?;
        follow(session, plan, &label, &bars).await
    }
    .await;
    bars.clear();
    let seen: Vec<SeenJob> = seen?.into_values().collect();
    Ok(LoadReport::new(plan.jobs as usize, started.elapsed(), &seen))
}

fn load_id() -> Result<String, CliError> {
    let random = getrandom::u64().map_err(|error| CliError::Usage(format!("no randomness: {error}")))?;
    Ok(format!("{random:016x}"))
}

async fn submit(session: &mut CliSession, plan: &LoadPlan, label: &str, bars: &Bars) -> Result<(), CliError> {
    let started = Instant::now();
    let mut sent = 0;
    while sent < plan.jobs {
        let due = due(plan, started.elapsed());
        if due == sent {
            tokio::time::sleep(TOP_UP_EVERY).await;
            continue;
        }
        let end = due.min(sent + BATCH_MAX);
        let mut jobs: Vec<_> = (sent..end).map(|n| new_job(plan, label, n)).collect();
        // The ids make it safe to send a batch again whose answer was lost with the server.
        let accepted = repeat_with(Patience::with_busy(plan.give_up), session, async |session| {
            let response = session.client.submit_jobs(v1::SubmitJobsRequest { jobs: jobs.clone() }).await;
            without_room(&mut jobs, session.answer(response)?)
        });
        accepted.await?;
        sent = end;
        bars.submitted.set_position(u64::from(sent));
    }
    Ok(())
}

/// How many jobs should have been sent by now.
fn due(plan: &LoadPlan, elapsed: Duration) -> u32 {
    if plan.rate == 0 {
        return plan.jobs;
    }
    let due = elapsed.as_millis() * u128::from(plan.rate) / 1_000;
    u32::try_from(due).unwrap_or(u32::MAX).min(plan.jobs)
}

fn new_job(plan: &LoadPlan, label: &str, n: u32) -> v1::NewJob {
    let kind = plan.kinds[n as usize % plan.kinds.len()];
    v1::NewJob {
        job_id: format!("{label}-{n}"),
        topic: kind.topic(),
        payload_json: kind.payload(plan.sleep).into(),
        labels: [(LABEL.to_owned(), label.to_owned())].into(),
        ..v1::NewJob::default()
    }
}

/// Keeps the jobs for which there was no room in `jobs`, and returns when to send them again. Any other refusal ends the
/// load.
fn without_room(jobs: &mut Vec<v1::NewJob>, response: v1::SubmitJobsResponse) -> Result<(), CliError> {
    let mut back: Option<(Duration, String)> = None;
    let mut refused = response.jobs.into_iter().map(|item| match item.item {
        Some(Item::Error(error)) => Some(error),
        Some(Item::Job(_)) | None => None,
    });
    let mut left = Vec::new();
    for job in std::mem::take(jobs) {
        let Some(error) = refused.next().flatten() else { continue };
        let told = format!("a job was refused: {}: {}", error.code, error.message);
        let Some(wait) = error.retry_after_ms.map(Duration::from_millis) else { return Err(CliError::Server(told)) };
        let wait = wait.max(BACK_IN_MIN);
        // The longest wait counts, because a job sent before its own time would only be refused again.
        if back.as_ref().is_none_or(|(longest, _)| wait > *longest) {
            back = Some((wait, told));
        }
        left.push(job);
    }
    *jobs = left;
    back.map_or(Ok(()), |(wait, message)| Err(CliError::Busy { message, again_in: Some(wait) }))
}

/// The jobs by id, once all have ended or the time is up.
async fn follow(
    session: &mut CliSession,
    plan: &LoadPlan,
    label: &str,
    bars: &Bars,
) -> Result<BTreeMap<String, SeenJob>, CliError> {
    let deadline = Instant::now() + plan.give_up;
    let mut seen = BTreeMap::new();
    let mut pages = JobPages::new(LABEL, label, plan.jobs);
    loop {
        pages.look(session, &mut seen).await?;
        bars.show(&seen);
        let ended = seen.values().filter(|job| job.took.is_some()).count();
        if ended >= plan.jobs as usize || Instant::now() >= deadline {
            return Ok(seen);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// One bar per outcome, only where a person watches.
struct Bars {
    all: MultiProgress,
    submitted: ProgressBar,
    succeeded: ProgressBar,
    failed: ProgressBar,
    other: ProgressBar,
}

impl Bars {
    fn new(out: Output, jobs: u32) -> Self {
        let target = if out.is_live() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let all = MultiProgress::with_draw_target(target);
        let style = ProgressStyle::with_template("{prefix:>10} {bar:40} {pos:>7}/{len}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = |name| {
            let bar = all.add(ProgressBar::new(u64::from(jobs)).with_style(style.clone()));
            bar.set_prefix(name);
            bar
        };
        let [submitted, succeeded, failed, other] = ["submitted", "succeeded", "failed", "other ends"].map(bar);
        Self { all, submitted, succeeded, failed, other }
    }

    fn show(&self, seen: &BTreeMap<String, SeenJob>) {
        let ended =
            |wanted: fn(&str) -> bool| seen.values().filter(|job| job.took.is_some() && wanted(job.state)).count() as u64;
        self.succeeded.set_position(ended(|state| state == "SUCCEEDED"));
        self.failed.set_position(ended(|state| state == "FAILED"));
        self.other.set_position(ended(|state| !matches!(state, "SUCCEEDED" | "FAILED")));
    }

    fn clear(&self) {
        for bar in [&self.submitted, &self.succeeded, &self.failed, &self.other] {
            bar.finish_and_clear();
        }
        // Clearing the lines of the bars may fail, which does not matter.
        let _ = self.all.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(rate: u32) -> LoadPlan {
        let second = Duration::from_secs(1);
        LoadPlan { jobs: 1_000, rate, kinds: vec![LoadKind::Noop, LoadKind::Flaky], sleep: second, give_up: second }
    }

    #[test]
    fn a_rate_spreads_the_jobs_over_time() {
        assert_eq!(due(&plan(0), Duration::ZERO), 1_000);
        assert_eq!(due(&plan(100), Duration::from_millis(250)), 25);
        assert_eq!(due(&plan(100), Duration::from_secs(3_600)), 1_000);
    }

    #[test]
    fn kinds_repeat_over_the_jobs_which_carry_the_label_and_ids_that_can_be_sent_again() {
        assert_eq!(new_job(&plan(0), "x", 7).job_id, "x-7");
        let topics = [0, 1, 2].map(|n| new_job(&plan(0), "x", n).topic);
        assert_eq!(topics, ["job.noop", "job.flaky", "job.noop"]);
        assert_eq!(new_job(&plan(0), "x", 0).labels.get(LABEL).map(String::as_str), Some("x"));
    }

    fn answer(items: Vec<Option<v1::ItemError>>) -> v1::SubmitJobsResponse {
        let item =
            |error: Option<v1::ItemError>| error.map_or_else(|| Item::Job(v1::SubmitJobResponse::default()), Item::Error);
        let items = items.into_iter().map(|error| v1::submit_jobs_response::Item { item: Some(item(error)) });
        v1::SubmitJobsResponse { jobs: items.collect() }
    }

    fn refusal(retry_after_ms: Option<u64>) -> Option<v1::ItemError> {
        Some(v1::ItemError { code: "resource_exhausted".to_owned(), message: "no room".to_owned(), retry_after_ms })
    }

    #[test]
    fn jobs_without_room_come_back_when_the_server_said() {
        let mut jobs: Vec<_> = (0..4).map(|n| new_job(&plan(0), "x", n)).collect();
        let busy = without_room(&mut jobs, answer(vec![None, refusal(Some(200)), None, refusal(Some(700))]));
        assert!(matches!(busy, Err(CliError::Busy { again_in: Some(wait), .. }) if wait.as_millis() == 700), "{busy:?}");
        assert_eq!(jobs.iter().map(|job| job.job_id.as_str()).collect::<Vec<_>>(), ["x-1", "x-3"]);
        assert!(without_room(&mut jobs, answer(vec![None, None])).is_ok());
        assert!(jobs.is_empty());
    }

    #[test]
    fn a_refused_job_stops_the_load() {
        let mut jobs = vec![new_job(&plan(0), "x", 0)];
        assert!(matches!(without_room(&mut jobs, answer(vec![refusal(None)])), Err(CliError::Server(_))));
    }
}
