//! Random sequences of decisions, applied to an adapter and to the memory Store alike.
//!
//! The test draws words; each word is one operation, decoded here. Dropping a word leaves a valid sequence, so a
//! failing one shrinks well.

mod draw;
mod runs;
mod schedules;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::audit::{AuditAction, AuditEntry, Block};
use lockgate_core::ids::{EdgeId, JobId, SessionId};
use lockgate_core::job::{Job, Transition};
use lockgate_core::lane::Priority;
use lockgate_core::request::Json;
use lockgate_core::verdict::BUILTIN_ALLOW;

use super::runs_stage::audited;
use super::snapshot::{Known, snapshot};
use super::snapshots::activation;
use super::stage::{Found, Proof, StoreHarness, new_job, profile};
use draw::{Dice, Scene};
use lockgate_model::MemoryStore;
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{
    AuditStore, JobChange, JobStore, KEY_LIFE, Leases, LogLine, OutboxEntry, Sessions, SnapshotKind, Snapshots, Store,
    TenantStore, Upkeep,
};

/// Panics when the adapter and the memory Store answer differently.
pub fn agrees_with_memory<F: Future<Output = StoreHarness>>(harness: impl FnOnce() -> F, words: &[u64]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result =
        runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(async { compare(harness().await, words).await }));
    assert!(result.is_ok(), "{result:?}");
}

async fn compare(harness: StoreHarness, words: &[u64]) -> Proof {
    let model = MemoryStore::new(Arc::clone(&harness.clock) as Arc<dyn Clock>);
    let scene = Scene { epochs: BTreeMap::new(), policy: BUILTIN_ALLOW.into() };
    let mut pair = Pair { harness, model, staged: Vec::new(), ahead: BTreeMap::new(), scene };
    for n in 0..SESSIONS {
        pair.attach(format!("session-{n}").into(), "edge-0".into(), "worker-0").await?;
    }
    for word in words {
        pair.play(Dice(*word)).await?;
    }
    pair.flush().await
}

struct Pair {
    harness: StoreHarness,
    model: MemoryStore,
    /// Decided, not yet committed.
    staged: Vec<JobChange>,
    /// Jobs as they will be when what is staged is committed.
    ahead: BTreeMap<JobId, Job>,
    scene: Scene,
}

const JOBS: u64 = 5;
const SESSIONS: u64 = 3;
/// No session attaches to a closed edge, so there are more edges than needed.
const EDGES: u64 = 12;

impl Pair {
    async fn play(&mut self, mut dice: Dice) -> Proof {
        match dice.roll(38) {
            0..=4 => self.submit(&mut dice)?,
            5..=14 => self.decide(&mut dice).await?,
            15 | 16 => self.session(&mut dice).await?,
            17 => self.harness.advance_ms(dice.roll(50)),
            18 => self.harness.advance_ms(dice.roll(40_000)),
            19 => self.log(&mut dice).await?,
            20 => self.upkeep(&mut dice).await?,
            21 => self.lead(&mut dice).await?,
            22 => self.activate(&mut dice).await?,
            23 => self.audit(&mut dice).await?,
            24..=26 => self.advance(&mut dice).await?,
            27 => self.put_dag(&mut dice).await?,
            28..=30 => self.turn(&mut dice).await?,
            31 => self.credential(&mut dice).await?,
            32 => self.erase(&mut dice).await?,
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
        let judgement = self.scene.judgement(dice);
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
        let input = self.scene.input(&job, self.harness.clock.now(), dice);
        let transition = job.next(input, &self.harness.env(self.scene.judgement(dice)));
        if let Ok(transition) = transition {
            self.stage(transition, dice);
        }
        Ok(())
    }

    fn stage(&mut self, transition: Transition, dice: &mut Dice) {
        self.ahead.insert(transition.job.request.job_id.clone(), transition.job.clone());
        let entry = |n| OutboxEntry { sink: "sink".into(), body: Json::trusted(format!("{n}")) };
        let outbox = (0..dice.roll(4) / 2).map(entry).collect();
        self.staged.push(JobChange { transition, outbox });
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
        let all = Known { jobs, sessions, runs: runs::all(), schedules: schedules::all() };
        let expected = snapshot(&self.model, &all).await?;
        let found = snapshot(&*self.harness.store, &all).await?;
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(found, expected);
        }
        assert_eq!(found.len(), expected.len());
        Ok(())
    }

    async fn session(&mut self, dice: &mut Dice) -> Proof {
        let session = SessionId::from(dice.name("session", SESSIONS));
        let edge = EdgeId::from(dice.name("edge", EDGES));
        if dice.once_in(3) {
            let epoch = self.scene.epoch(&session) + dice.roll(4) / 3;
            let expected = self.model.close_session(&session, epoch).await?;
            assert_eq!(self.harness.store.close_session(&session, epoch).await?, expected, "close_session");
            return Ok(());
        }
        self.attach(session, edge, &dice.name("worker", 2)).await
    }

    async fn attach(&mut self, session: SessionId, edge: EdgeId, worker: &str) -> Proof {
        let worker = profile(worker);
        let attached = self.model.attach(&session, &edge, &worker).await?;
        assert_eq!(self.harness.store.attach(&session, &edge, &worker).await?, attached, "attach");
        self.scene.epochs.extend(attached.ok().map(|attached| (session, attached.epoch)));
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

    async fn erase(&mut self, dice: &mut Dice) -> Proof {
        let tenant = if dice.once_in(3) { "acme".into() } else { "other".into() };
        // More than there are: which of them go first is left to the Store.
        let (limit, audit) = (1_000, audited(&self.harness, "erased"));
        let expected = self.model.erase(&tenant, limit, &audit).await?;
        assert_eq!(self.harness.store.erase(&tenant, limit, &audit).await?, expected, "erase");
        Ok(())
    }

    async fn activate(&mut self, dice: &mut Dice) -> Proof {
        let in_force = self.model.active(SnapshotKind::Policy).await?.map_or(0, |active| active.version);
        let change = activation(&self.harness, &dice.name("policy", 3), in_force + dice.roll(4) / 3);
        let expected = self.model.activate(change.clone()).await?;
        assert_eq!(self.harness.store.activate(change.clone()).await?, expected, "activate");
        if expected.is_ok() {
            self.scene.policy = change.id;
        }
        Ok(())
    }

    /// Rows of their own, or a block over what has none.
    async fn audit(&mut self, dice: &mut Dice) -> Proof {
        if dice.once_in(3) {
            let entry = AuditEntry {
                at: self.harness.clock.now(),
                tenant: "acme".into(),
                actor: "ann".into(),
                action: AuditAction::OutputUnchecked,
                subject: dice.name("subject", 9).into(),
                detail: Json::null(),
            };
            let entries = vec![entry; usize::try_from(dice.roll(3))?];
            self.model.append_audit(entries.clone()).await?;
            return Ok(self.harness.store.append_audit(entries).await?);
        }
        let (rows_max, forged) = (1 + usize::try_from(dice.roll(4))?, dice.once_in(4));
        let expected = seal(&self.model, rows_max, forged, &self.harness).await?;
        assert_eq!(seal(&*self.harness.store, rows_max, forged, &self.harness).await?, expected, "seal");
        Ok(())
    }

    /// Edges and leases.
    async fn lead(&mut self, dice: &mut Dice) -> Proof {
        let (model, store) = (&self.model, &self.harness.store);
        let span = Duration::from_millis(dice.roll(20_000));
        let edge = EdgeId::from(dice.name("edge", EDGES));
        let (name, holder) = (dice.name("lease", 2), dice.name("holder", 2));
        match dice.roll(4) {
            0 => assert_eq!(store.renew_edge(&edge, span).await?, model.renew_edge(&edge, span).await?, "renew_edge"),
            1 => {
                let seen = model.open_edges().await?;
                assert_eq!(store.open_edges().await?, seen, "open_edges");
                let seen = &seen[..usize::try_from(dice.roll(4))?.min(seen.len())];
                assert_eq!(store.close_edges(seen, span).await?, model.close_edges(seen, span).await?, "close_edges");
            }
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
    let ids: Vec<i64> = store.outbox(0, Duration::ZERO, count).await?.into_iter().map(|row| row.id).collect();
    Ok(store.outbox_done(&ids).await?)
}

/// Each Store numbers its rows as it likes, so each gets a block over its own.
async fn seal(store: &dyn Store, rows_max: usize, forged: bool, harness: &StoreHarness) -> Found<Option<bool>> {
    let head = store.head().await?;
    let rows = store.audit(head.as_ref().map_or(0, |head| head.last), rows_max).await?;
    let Some(mut block) = Block::over(head.as_ref(), &rows, harness.clock.now()) else { return Ok(None) };
    if forged {
        block.previous.0[0] ^= 1;
    }
    Ok(Some(store.seal(&block).await?))
}
