//! A drill: one fault under load, its detection, the recovery, and the outcome of every job.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::fault::{FaultTarget, Notice, PlannedFault};
use super::load::{AcknowledgedWork, BackgroundLoad, ids};
use super::observer::{Observer, is_troubled, leading, seen};
use super::proxy::Wire;
use super::stage::Installation;
use super::tally::{ChaosTally, tally};
use crate::error::CliError;

/// Without a recovery by then, the drill counts as not recovered.
const PATIENCE: Duration = Duration::from_secs(90);
/// An observer that reads at intervals may be one interval late.
const LAST_LOOK: Duration = Duration::from_millis(200);
/// Workers reconnect at once after a long stream, and with growing delays after short ones: these delays must be over before
/// the next fault.
const QUIET: Duration = Duration::from_secs(11);
/// Jobs after recovery.
const AROUND: usize = 100;
/// Jobs before the fault, enough to have some of every kind: some that wait for a time, and some that workers hold.
const BEFORE: usize = 300;
/// How often the leader, or the worker with most jobs, is determined.
const AIM_EVERY: Duration = Duration::from_millis(100);

/// One line of the recovery table. Times count from the moment of the blow.
#[derive(Debug, Serialize)]
pub(super) struct RecoveryRow {
    pub(super) fault: String,
    pub(super) lasted_ms: u64,
    /// None if no outside observer could notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detected_ms: Option<u64>,
    /// None if it did not recover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recovered_ms: Option<u64>,
    pub(super) jobs: usize,
    pub(super) lost: usize,
    pub(super) doubled: usize,
    pub(super) repeated: usize,
    /// Why the drill was not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skipped: Option<&'static str>,
    /// Why the drill failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) broken: Option<String>,
}

impl RecoveryRow {
    pub(super) fn skipped(fault: PlannedFault, why: &'static str) -> Self {
        Self { skipped: Some(why), ..Self::of(fault, Duration::ZERO, ChaosTally::default(), (None, None)) }
    }

    pub(super) fn broken(fault: PlannedFault, why: String) -> Self {
        Self { broken: Some(why), ..Self::of(fault, Duration::ZERO, ChaosTally::default(), (None, None)) }
    }

    fn of(
        fault: PlannedFault,
        lasted: Duration,
        tally: ChaosTally,
        (detected, recovered): (Option<Duration>, Option<Duration>),
    ) -> Self {
        let ChaosTally { jobs, lost, doubled, repeated } = tally;
        Self {
            fault: fault.name(),
            lasted_ms: millis(lasted),
            detected_ms: detected.map(millis),
            recovered_ms: recovered.map(millis),
            jobs,
            lost,
            doubled,
            repeated,
            skipped: None,
            broken: None,
        }
    }

    /// Whether the guarantees held.
    pub(super) fn is_good(&self) -> bool {
        let kept = self.lost == 0 && self.doubled == 0 && self.recovered_ms.is_some();
        self.skipped.is_some() || (self.broken.is_none() && kept)
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Does one drill.
pub(super) async fn drill(stage: &mut Installation, fault: PlannedFault, quick: bool) -> Result<RecoveryRow, CliError> {
    let observer = look_on(stage, fault.part).await?;
    let ways = stage.client_wires.iter().map(|wire| wire.url()).collect();
    // Ids are for the whole installation, which may have seen an earlier run.
    let random = getrandom::u32().map_err(|error| CliError::Usage(format!("no randomness: {error}")))?;
    let load = BackgroundLoad::start(observer.client(), ways, format!("{}-{random:08x}", fault.name())).await?;
    load.go_on(BEFORE).await?;

    if !quick && (fault.part == FaultTarget::Worker || fault.part.is_at_gateway()) {
        tokio::time::sleep(QUIET).await;
    }

    let observer = aim(stage, observer, fault.part).await?;
    let watching = Watching::begin(stage, &observer, &load, fault).await;
    let (strikes, struck) = oneshot::channel();
    let work = async { tokio::join!(stage.suffer(fault, fault.lasts(quick), strikes), watching.recovered(struck)) };
    let ((suffered, recovered), detected) = both(work, watching.detected()).await;
    suffered?;
    if fault.notice() == Notice::NoRoom && detected.is_none() {
        return Err(halted("the database never ran out of room"));
    }
    let since = |at: Option<Instant>| at.map(|at| at.duration_since(watching.struck));
    let times = (since(detected), since(recovered));

    load.go_on(AROUND).await?;
    let acknowledged = load.acknowledged();
    drop(load);
    observer.until_ended(&acknowledged, Instant::now() + PATIENCE).await;
    let mut found = observer.found().await.ok_or_else(|| halted("the jobs could not be listed"))?;
    observer.read_ends(&mut found).await.ok_or_else(|| halted("the histories could not be read"))?;
    found.extend(observer.found_runs(&acknowledged).await.ok_or_else(|| halted("the runs could not be read"))?);
    Ok(RecoveryRow::of(fault, fault.lasts(quick), tally(&ids(&acknowledged), &found), times))
}

/// An observer at a process that sees the fault, once all workers are attached.
async fn look_on(stage: &mut Installation, part: FaultTarget) -> Result<Observer, CliError> {
    if part.is_at_gateway() {
        stage.bring_worker_back().await?;
        let gateway = Observer::at(stage.places(FaultTarget::Worker).swap_remove(0)).await?;
        let first = async || gateway.held().await.iter().any(|(worker, _)| *worker == 0);
        let there = gateway.until(Instant::now() + PATIENCE, first).await;
        there.ok_or_else(|| halted("the worker did not attach to the gateway"))?;
    }
    let observer = Observer::at(stage.places(part).swap_remove(0)).await?;
    observer.until_complete(Instant::now() + PATIENCE).await.ok_or_else(|| halted("the workers did not attach"))?;
    Ok(observer)
}

fn halted(what: &str) -> CliError {
    CliError::Server(what.to_owned())
}

/// Among several processes of a kind, chooses the scheduler that leads or the worker that holds most jobs, because a fault
/// in an idle process shows nothing. The observer is placed where the fault shows first.
async fn aim(stage: &mut Installation, observer: Observer, part: FaultTarget) -> Result<Observer, CliError> {
    let deadline = Instant::now() + PATIENCE;
    match part {
        FaultTarget::Scheduler | FaultTarget::SchedulerRedis => {
            let schedulers = stage.schedulers();
            let leader = seen(deadline, AIM_EVERY, async || leading(&schedulers).await).await;
            stage.aim_at_scheduler(leader.ok_or_else(|| halted("no scheduler leads"))?);
            Ok(observer)
        }
        FaultTarget::Worker => {
            let observers: Vec<Observer> = stage.places(part).into_iter().map(|place| observer.moved_to(place)).collect();
            let most = seen(deadline, AIM_EVERY, async || holds_most(&observers).await).await;
            let (worker, beside) = most.ok_or_else(|| halted("no worker holds anything"))?;
            stage.aim_at_worker(worker);
            observers.into_iter().nth(beside).ok_or_else(|| halted("the installation has no gateway"))
        }
        _ => Ok(observer),
    }
}

/// The worker that holds most jobs, and which of these processes has its stream. None if no worker holds a job.
async fn holds_most(observers: &[Observer]) -> Option<(usize, usize)> {
    let mut held = Vec::new();
    for (beside, observer) in observers.iter().enumerate() {
        held.extend(observer.held().await.into_iter().map(|(worker, busy)| (busy, worker, beside)));
    }
    held.into_iter().max().filter(|(busy, ..)| *busy > 0).map(|(_, worker, beside)| (worker, beside))
}

/// Does the work, and returns what was detected by its end: what was not noticed by then will not be.
async fn both<T>(work: impl Future<Output = T>, detected: impl Future<Output = Option<Instant>>) -> (T, Option<Instant>) {
    tokio::pin!(work, detected);
    tokio::select! {
        biased;
        seen = &mut detected => (work.await, seen),
        done = &mut work => (done, tokio::time::timeout(LAST_LOOK, detected).await.ok().flatten()),
    }
}

/// The state at the moment of the fault.
struct Watching<'a> {
    observer: &'a Observer,
    load: &'a BackgroundLoad,
    notice: Notice,
    struck: Instant,
    /// Jobs that had ended before the fault.
    ended: BTreeSet<String>,
    session: Option<String>,
    leader: Option<String>,
    /// The process whose readiness is read.
    asked: String,
    wires: Vec<Arc<Wire>>,
    dialled: u64,
}

impl<'a> Watching<'a> {
    async fn begin(stage: &Installation, observer: &'a Observer, load: &'a BackgroundLoad, fault: PlannedFault) -> Self {
        let session = observer.session_of(&stage.struck_worker()).await;
        let leader = observer.leader().await;
        let asked = if fault.part == FaultTarget::SchedulerRedis { stage.struck_scheduler() } else { observer.api() };
        let wires = stage.struck_worker_wires();
        let dialled = wires.iter().map(|wire| wire.dialled()).sum();
        // Most ended long ago.
        let found = observer.found().await.unwrap_or_default();
        let ended = found.into_iter().filter(|job| job.well).map(|job| job.id).collect();
        let (notice, struck) = (fault.notice(), Instant::now());
        Self { observer, load, notice, struck, ended, session, leader, asked, wires, dialled }
    }

    async fn detected(&self) -> Option<Instant> {
        let deadline = self.struck + PATIENCE;
        match self.notice {
            Notice::Nothing => None,
            Notice::Call => {
                self.observer.until(deadline, async || self.load.failed_since(self.struck).is_some()).await?;
                self.load.failed_since(self.struck)
            }
            Notice::NoRoom => {
                self.observer.until(deadline, async || self.load.refused_since(self.struck).is_some()).await?;
                self.load.refused_since(self.struck)
            }
            Notice::Session => {
                let session = self.session.as_deref()?;
                self.observer.until(deadline, async || self.observer.is_detached(session).await).await
            }
            Notice::Redial => {
                let dialled = || self.wires.iter().map(|wire| wire.dialled()).sum::<u64>();
                self.observer.until(deadline, async || dialled() > self.dialled).await
            }
            Notice::Lead => {
                let before = self.leader.as_ref()?;
                let another = async || self.observer.leader().await.is_some_and(|leader| leader != *before);
                self.observer.until(deadline, another).await
            }
            Notice::Readiness => self.observer.until(deadline, async || is_troubled(&self.asked).await).await,
        }
    }

    /// When all work acknowledged before the fault had ended, except work that ended within its usual time, and some work
    /// submitted after it too.
    async fn recovered(&self, struck: oneshot::Receiver<Instant>) -> Option<Instant> {
        // Without a fault there is no recovery.
        let since = struck.await.ok()?;
        let (held_up, fresh) = tokio::join!(self.held_up_ended(), self.fresh_ended(since));
        let (held_up, fresh) = (held_up?, fresh?);
        Some(held_up.map_or(fresh, |held_up| held_up.max(fresh)))
    }

    /// When the last delayed job had ended, if any was delayed. None: some job never ended.
    async fn held_up_ended(&self) -> Option<Option<Instant>> {
        let mut before: Vec<AcknowledgedWork> = self.load.acknowledged();
        before.retain(|work| !self.ended.contains(&work.id));
        before.sort_by_key(AcknowledgedWork::in_time);
        let mut last = None;
        for work in before {
            tokio::time::sleep_until(work.in_time()).await;
            if self.observer.has_ended(&work).await {
                continue;
            }
            let deadline = self.struck + PATIENCE;
            last = Some(self.observer.until(deadline, async || self.observer.has_ended(&work).await).await?);
        }
        Some(last)
    }

    async fn fresh_ended(&self, since: Instant) -> Option<Instant> {
        let fresh = async || match self.load.acknowledged_since(since) {
            Some(work) => self.observer.has_ended(&work).await,
            None => false,
        };
        self.observer.until(self.struck + PATIENCE, fresh).await
    }
}
