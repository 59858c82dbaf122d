//! One step for many runs.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::dag::plan::RunMessage;
use lockgate_core::dag::saga::Saga;
use lockgate_core::dag::{AnyRun, JobTries};
use lockgate_core::ids::RunId;
use lockgate_core::job::{Job, JobState};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_ports::{NewsRow, RunNews, StoreError};

use super::Planned;
use crate::Inner;

/// News heard in one round. What is left is heard in the next.
pub(super) const NEWS_MAX: usize = 5_000;

impl Inner {
    /// Tells these runs what they have not heard, and does what follows. A run that changed meanwhile is called again.
    pub(crate) async fn steps_once(&self, mut ids: Vec<RunId>) -> Result<(), StoreError> {
        // What one that cannot move has not heard must not be all that there is to hear, round after round.
        ids.retain(|id| !self.damage.runs.has(id));
        if ids.is_empty() {
            return Ok(());
        }
        let (mut lives, unreadable) = self.remembered(&ids).await?;
        // A saga that is there and cannot be read must not be begun again.
        ids.retain(|id| !unreadable.contains(id));
        let rows = self.ports.store.news(&ids, NEWS_MAX).await?;
        if rows.len() == NEWS_MAX {
            self.run_queue.wake(ids);
        }
        let now = self.ports.clock.now();
        lives.extend(begun(&rows, &lives, now));
        let mut heard = by_run(rows);
        let mut planned = Vec::new();
        for mut live in lives {
            let (numbers, news) = heard.remove(&live.run().head.id).unwrap_or_default();
            let before = live.run().head.state;
            let next = live.step(&news, now).or_else(|| (!numbers.is_empty()).then(|| live.acknowledge()));
            match next {
                Some(next) => planned.push(Planned::step(live, before, next, numbers)),
                None => self.remember(live),
            }
        }
        self.advance(planned).await?;
        Ok(())
    }
}

/// Sagas that are heard of for the first time.
fn begun(rows: &[NewsRow], lives: &[AnyRun], now: Timestamp) -> Vec<AnyRun> {
    let known: BTreeSet<&RunId> = lives.iter().map(|live| &live.run().head.id).collect();
    let mut sagas: BTreeMap<&RunId, AnyRun> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.run.is_saga() && !known.contains(&row.run)) {
        if let RunNews::Job { job, .. } = &row.what {
            sagas.entry(&row.run).or_insert_with(|| Saga::begin(&job.request, now).into());
        }
    }
    sagas.into_values().collect()
}

fn by_run(rows: Vec<NewsRow>) -> BTreeMap<RunId, (Vec<i64>, Vec<RunMessage>)> {
    let mut heard: BTreeMap<RunId, (Vec<i64>, Vec<RunMessage>)> = BTreeMap::new();
    for row in rows {
        let (numbers, news) = heard.entry(row.run).or_default();
        numbers.push(row.no);
        news.extend(told(row.what));
    }
    heard
}

fn told(what: RunNews) -> Vec<RunMessage> {
    match what {
        RunNews::Job { job, .. } if job.request.run.as_ref().is_some_and(|part| part.run.is_saga() && !part.undo) => {
            vec![RunMessage::Plain(job)]
        }
        RunNews::Job { job, result } => of_a_run(&job, result),
        RunNews::Run(head) => vec![RunMessage::Run(head)],
    }
}

/// How the job ended; and then, if it was done all the same, that it was.
fn of_a_run(job: &Job, result: Option<Json>) -> Vec<RunMessage> {
    let Some(part) = job.request.run.clone() else { return Vec::new() };
    let state = job.state();
    let failure = job.life.last_error.clone().filter(|_| state != JobState::Succeeded);
    let late = job.is_done_late();
    let (output, done) = if late { (None, result) } else { (result, None) };
    let (memo_of, leaving) = (job.memo_of().cloned(), job.leaving().cloned().collect());
    let tries = JobTries::of(job);
    let mut told = vec![RunMessage::Job { part: part.clone(), state, output, failure, memo_of, tries, leaving }];
    told.extend(late.then_some(RunMessage::Late { part, output: done }));
    told
}
