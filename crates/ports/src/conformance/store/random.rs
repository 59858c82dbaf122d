//! Random sequences of decisions, applied to an adapter and to the memory Store alike.
//!
//! The test draws words; each word is one operation, decoded here. Dropping a word leaves a valid sequence, so a
//! failing one shrinks well.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{EdgeId, JobId, SessionId};
use lockgate_core::job::{Dispatch, Evidence, Input, Job, Outcome, Reason, Report, Transition};
use lockgate_core::lane::Priority;
use lockgate_core::request::Json;
use lockgate_core::verdict::Judgement;

use super::snapshot::snapshot;
use super::stage::{Found, Proof, StoreHarness, allow, cancel, deny, new_job, profile, replay};
use crate::clock::Clock;
use crate::memory::MemoryStore;
use crate::store::{Change, Jobs, KEY_LIFE, Leases, LogLine, OutboxEntry, Sessions, Store, Upkeep};

/// Panics when the adapter and the memory Store answer differently.
pub fn agrees_with_memory(harness: StoreHarness, words: &[u64]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(compare(harness, words)));
    assert!(result.is_ok(), "{result:?}");
}

async fn compare(harness: StoreHarness, words: &[u64]) -> Proof {
    let model = MemoryStore::new(Arc::clone(&harness.clock) as Arc<dyn Clock>);
    let mut pair = Pair { harness, model, staged: Vec::new(), ahead: BTreeMap::new(), epochs: BTreeMap::new() };
    for word in words {
        pair.play(Dice(*word)).await?;
    }
    pair.flush().await
}

/// Draws small numbers from one word.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        let rolled = self.0 % sides;
        self.0 /= sides;
        rolled
    }

    fn once_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    fn name(&mut self, prefix: &str, sides: u64) -> String {
        format!("{prefix}-{}", self.roll(sides))
    }
}

struct Pair {
    harness: StoreHarness,
    model: MemoryStore,
    /// Decided, not yet committed.
    staged: Vec<Change>,
    /// Jobs as they will be when what is staged is committed.
    ahead: BTreeMap<JobId, Job>,
    epochs: BTreeMap<SessionId, u64>,
}

const JOBS: u64 = 12;
const SESSIONS: u64 = 3;

impl Pair {
    async fn play(&mut self, mut dice: Dice) -> Proof {
        match dice.roll(24) {
            0..=4 => self.submit(&mut dice)?,
            5..=14 => self.decide(&mut dice).await?,
            15 | 16 => self.session(&mut dice).await?,
            17 => self.harness.advance_ms(dice.roll(50)),
            18 => self.harness.advance_ms(dice.roll(40_000)),
            19 => self.log(&mut dice).await?,
            20 => self.upkeep(&mut dice).await?,
            21 => self.lead(&mut dice).await?,
            _ => self.flush().await?,
        }
        if self.staged.len() > 6 { self.flush().await } else { Ok(()) }
    }

    fn submit(&mut self, dice: &mut Dice) -> Proof {
        let id = dice.name("job", JOBS);
        let tenant = if dice.once_in(3) { "other" } else { "acme" };
        let mut new = new_job(&id);
        new.idempotency_key = dice.once_in(3).then(|| dice.name("key", 3));
        new.priority = Priority::ALL.into_iter().nth(usize::try_from(dice.roll(5))?);
        new.deadline_ms = dice.once_in(3).then(|| 1 + dice.roll(20_000));
        new.not_before = dice.once_in(3).then(|| self.harness.clock.now() + Duration::from_millis(dice.roll(20_000)));
        if dice.once_in(2) {
            new.labels.insert("team".to_owned(), "blue".to_owned());
        }
        let size = [0, 10, 1_020, 1_030, 9_000][usize::try_from(dice.roll(5))?];
        new.payload = Some(Json::trusted(format!("\"{}\"", "p".repeat(size))));
        let judgement = judgement(dice);
        let transition = self.harness.birth(tenant, new, judgement)?;
        self.stage(transition, dice);
        Ok(())
    }

    async fn decide(&mut self, dice: &mut Dice) -> Proof {
        let id = JobId::from(dice.name("job", JOBS));
        let stored = self.model.load(std::slice::from_ref(&id)).await?.pop().flatten();
        // One in four decides on what is stored although more is staged: it must conflict.
        let ahead = self.ahead.get(&id).filter(|_| !dice.once_in(4)).cloned();
        let Some(job) = ahead.or(stored) else { return Ok(()) };
        let input = self.input(&job, dice);
        let transition = job.next(input, &self.harness.env(judgement(dice)));
        if let Ok(transition) = transition {
            self.stage(transition, dice);
        }
        Ok(())
    }

    fn input(&self, job: &Job, dice: &mut Dice) -> Input {
        let token = job.life.attempt.token.clone();
        let session = SessionId::from(dice.name("session", SESSIONS));
        let epoch = self.epochs.get(&session).copied().unwrap_or(1) + dice.roll(8) / 7;
        match dice.roll(14) {
            0..=4 => Input::Dispatch(Dispatch { session, epoch, worker: "worker".into(), assignment: dice.roll(100) }),
            5 => Input::Started { token, at: self.harness.clock.now() },
            6..=8 => {
                let lost = job.life.lost.as_ref().map(|lost| lost.token.clone());
                let started_at = dice.once_in(2).then(|| self.harness.clock.now());
                let token = lost.filter(|_| dice.once_in(2)).unwrap_or(token);
                Input::Reported(Report { token, started_at, outcome: outcome(dice) })
            }
            9 => {
                let held_by = job.life.attempt.binding.as_ref().map_or(session, |binding| binding.session.clone());
                let epoch = self.epochs.get(&held_by).copied().unwrap_or(1);
                let evidence = Evidence::Closed { session: held_by, epoch };
                Input::Lost { token, reason: Reason::AgentLost, evidence }
            }
            10 => Input::Woken,
            11 => Input::Judged,
            12 => cancel(),
            _ => replay(),
        }
    }

    fn stage(&mut self, transition: Transition, dice: &mut Dice) {
        self.ahead.insert(transition.job.request.job_id.clone(), transition.job.clone());
        let entry = |n| OutboxEntry { sink: "sink".into(), body: Json::trusted(format!("{n}")) };
        let outbox = (0..dice.roll(4) / 2).map(entry).collect();
        self.staged.push(Change { transition, outbox });
    }

    /// Commits what is staged to both, and compares every answer.
    async fn flush(&mut self) -> Proof {
        let changes = std::mem::take(&mut self.staged);
        self.ahead.clear();
        let expected = self.model.commit(changes.clone()).await?;
        let results = self.harness.store.commit(changes).await?;
        let plain = |results: Vec<Result<_, _>>| results.into_iter().map(|result| result.map(|_| ())).collect::<Vec<_>>();
        assert_eq!(plain(results), plain(expected), "commit");
        let jobs: Vec<JobId> = (0..JOBS).map(|n| format!("job-{n}").into()).collect();
        let sessions: Vec<SessionId> = (0..SESSIONS).map(|n| format!("session-{n}").into()).collect();
        let expected = snapshot(&self.model, &jobs, &sessions).await?;
        let found = snapshot(&*self.harness.store, &jobs, &sessions).await?;
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(found, expected);
        }
        assert_eq!(found.len(), expected.len());
        Ok(())
    }

    async fn session(&mut self, dice: &mut Dice) -> Proof {
        let session = SessionId::from(dice.name("session", SESSIONS));
        let edge = EdgeId::from(dice.name("edge", 2));
        if dice.once_in(3) {
            let epoch = self.epochs.get(&session).copied().unwrap_or(1) + dice.roll(4) / 3;
            let expected = self.model.close_session(&session, epoch).await?;
            assert_eq!(self.harness.store.close_session(&session, epoch).await?, expected, "close_session");
            return Ok(());
        }
        let worker = profile(&dice.name("worker", 2));
        let epoch = self.model.attach(&session, &edge, &worker).await?;
        assert_eq!(self.harness.store.attach(&session, &edge, &worker).await?, epoch, "attach");
        self.epochs.insert(session, epoch);
        Ok(())
    }

    async fn log(&mut self, dice: &mut Dice) -> Proof {
        let id = JobId::from(dice.name("job", JOBS));
        let at = self.harness.clock.now();
        let line = |n| LogLine { job_id: id.clone(), attempt: 1, at, line: format!("line {n}").into() };
        let lines: Vec<LogLine> = (0..dice.roll(4)).map(line).collect();
        self.model.append_logs(lines.clone()).await?;
        Ok(self.harness.store.append_logs(lines).await?)
    }

    async fn upkeep(&mut self, dice: &mut Dice) -> Proof {
        if dice.once_in(2) {
            let count = usize::try_from(dice.roll(5))?;
            acknowledge(&self.model, count).await?;
            return acknowledge(&*self.harness.store, count).await;
        }
        if dice.once_in(4) {
            self.harness.clock.advance(KEY_LIFE);
        }
        let (keep, limit) = (Duration::from_millis(dice.roll(20_000)), usize::try_from(dice.roll(4))?);
        let expected = self.model.prune(keep, limit).await?;
        assert_eq!(self.harness.store.prune(keep, limit).await?, expected, "prune");
        Ok(())
    }

    /// Edges and leases.
    async fn lead(&mut self, dice: &mut Dice) -> Proof {
        let (model, store) = (&self.model, &self.harness.store);
        let span = Duration::from_millis(dice.roll(20_000));
        let edge = EdgeId::from(dice.name("edge", 2));
        let (name, holder) = (dice.name("lease", 2), dice.name("holder", 2));
        match dice.roll(4) {
            0 => assert_eq!(store.renew_edge(&edge, span).await?, model.renew_edge(&edge, span).await?, "renew_edge"),
            1 => assert_eq!(store.close_edges(span).await?, model.close_edges(span).await?, "close_edges"),
            2 => {
                let expected = model.acquire(&name, &holder, span).await?;
                assert_eq!(store.acquire(&name, &holder, span).await?, expected, "acquire");
            }
            _ => {
                model.release(&name, &holder).await?;
                store.release(&name, &holder).await?;
            }
        }
        Ok(())
    }
}

async fn acknowledge(store: &dyn Store, count: usize) -> Found<()> {
    let ids: Vec<i64> = store.outbox(count).await?.into_iter().map(|row| row.id).collect();
    Ok(store.outbox_done(&ids).await?)
}

fn judgement(dice: &mut Dice) -> Judgement {
    match dice.roll(10) {
        0 => Judgement::Unavailable,
        1 => deny(),
        _ => allow(),
    }
}

fn outcome(dice: &mut Dice) -> Outcome {
    match dice.roll(7) {
        0 | 1 => Outcome::Succeeded { result: Json::trusted("[1]") },
        2 => Outcome::FailedRetryable { error: "again".into(), retry_after: None },
        3 => Outcome::FailedFatal { error: "broken".into() },
        4 => Outcome::Snooze { delay: Duration::from_millis(dice.roll(100)) },
        5 => Outcome::TimedOut,
        _ => Outcome::Interrupted,
    }
}
