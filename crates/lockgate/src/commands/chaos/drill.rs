//! One fault under load: struck, noticed, recovered from, and the count of what became of every job.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::fault::{Fault, Notice, Part};
use super::ledger::{Tally, tally};
use super::load::Load;
use super::observer::Observer;
use super::proxy::Wire;
use super::stage::Stage;
use crate::error::CliError;

/// A fault that is not recovered from by then never is.
const PATIENCE: Duration = Duration::from_secs(90);
/// Who looks every few moments may be one look late.
const LAST_LOOK: Duration = Duration::from_millis(200);
/// Workers dial again at once after a stream that lasted, and later and later after short ones: nothing of the fault before
/// may be left.
const QUIET: Duration = Duration::from_secs(11);
/// Jobs before the fault and after recovery.
const AROUND: usize = 100;

/// One line of the recovery table. Times count from the moment of the blow.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) fault: String,
    pub(super) lasted_ms: u64,
    /// Absent when nobody outside could notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detected_ms: Option<u64>,
    /// Absent when it did not recover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recovered_ms: Option<u64>,
    pub(super) jobs: usize,
    pub(super) lost: usize,
    pub(super) doubled: usize,
    pub(super) repeated: usize,
    /// Why it was not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skipped: Option<&'static str>,
}

impl Row {
    pub(super) fn skipped(fault: Fault, why: &'static str) -> Self {
        Self::of(fault, Duration::ZERO, Tally::default(), (None, None), Some(why))
    }

    fn of(
        fault: Fault,
        lasted: Duration,
        tally: Tally,
        (detected, recovered): (Option<Duration>, Option<Duration>),
        skipped: Option<&'static str>,
    ) -> Self {
        let Tally { jobs, lost, doubled, repeated } = tally;
        Self {
            fault: fault.name(),
            lasted_ms: millis(lasted),
            detected_ms: detected.map(millis),
            recovered_ms: recovered.map(millis),
            jobs,
            lost,
            doubled,
            repeated,
            skipped,
        }
    }

    /// Whether the promises were kept.
    pub(super) fn is_good(&self) -> bool {
        self.skipped.is_some() || (self.lost == 0 && self.doubled == 0 && self.recovered_ms.is_some())
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Strikes once and counts.
pub(super) async fn drill(stage: &mut Stage, fault: Fault, quick: bool) -> Result<Row, CliError> {
    let halted = |what: &str| CliError::Server(format!("{}: {what}", fault.name()));
    if fault.part == Part::Gateway {
        stage.bring_worker_back().await?;
        let struck = Observer::at(stage.places(Part::Worker).swap_remove(0)).await?;
        let there = struck.until(Instant::now() + PATIENCE, async || struck.holds_worker().await).await;
        there.ok_or_else(|| halted("the worker did not attach to the gateway"))?;
    }
    let observer = match fault.part {
        Part::Worker => Observer::beside_worker(stage.places(fault.part)).await?,
        part => Observer::at(stage.places(part).swap_remove(0)).await?,
    };
    observer.until_complete(Instant::now() + PATIENCE).await.ok_or_else(|| halted("the workers did not attach"))?;
    let ways = stage.client_wires.iter().map(|wire| wire.url()).collect();
    // Ids are for the whole installation, which may have seen an earlier run.
    let random = getrandom::u32().map_err(|error| CliError::Usage(format!("no randomness: {error}")))?;
    let load = Load::start(observer.client(), ways, format!("{}-{random:08x}", fault.name()));
    load.go_on(AROUND).await?;

    if !quick && [Part::Worker, Part::Gateway].contains(&fault.part) {
        tokio::time::sleep(QUIET).await;
    }

    let watching = Watching::begin(stage, &observer, &load, fault).await;
    let (strikes, struck) = oneshot::channel();
    let work = async { tokio::join!(stage.suffer(fault, fault.lasts(quick), strikes), watching.recovered(struck)) };
    let ((suffered, recovered), detected) = both(work, watching.detected()).await;
    suffered?;
    let since = |at: Option<Instant>| at.map(|at| at.duration_since(watching.struck));
    let times = (since(detected), since(recovered));

    load.go_on(AROUND).await?;
    let acknowledged = load.acknowledged();
    drop(load);
    observer.until_ended(&acknowledged, Instant::now() + PATIENCE).await;
    let mut found = observer.found().await.ok_or_else(|| halted("the jobs could not be listed"))?;
    observer.read_ends(&mut found).await.ok_or_else(|| halted("the histories could not be read"))?;
    Ok(Row::of(fault, fault.lasts(quick), tally(&acknowledged, &found), times, None))
}

/// Does the work, and says what was detected until then: what nobody noticed by the end of it nobody will.
async fn both<T>(work: impl Future<Output = T>, detected: impl Future<Output = Option<Instant>>) -> (T, Option<Instant>) {
    tokio::pin!(work, detected);
    tokio::select! {
        biased;
        seen = &mut detected => (work.await, seen),
        done = &mut work => (done, tokio::time::timeout(LAST_LOOK, detected).await.ok().flatten()),
    }
}

/// What is known at the moment of the blow.
struct Watching<'a> {
    observer: &'a Observer,
    load: &'a Load,
    notice: Notice,
    struck: Instant,
    /// Jobs that had ended before.
    ended: BTreeSet<String>,
    session: Option<String>,
    wires: Vec<Arc<Wire>>,
    dialled: u64,
}

impl<'a> Watching<'a> {
    async fn begin(stage: &Stage, observer: &'a Observer, load: &'a Load, fault: Fault) -> Self {
        let session = observer.struck_session().await;
        let wires = stage.struck_worker_wires();
        let dialled = wires.iter().map(|wire| wire.dialled()).sum();
        // Most ended long ago.
        let found = observer.found().await.unwrap_or_default();
        let ended = found.into_iter().filter(|job| job.succeeded).map(|job| job.id).collect();
        Self { observer, load, notice: fault.notice(), struck: Instant::now(), ended, session, wires, dialled }
    }

    async fn detected(&self) -> Option<Instant> {
        let deadline = self.struck + PATIENCE;
        match self.notice {
            Notice::Nothing => None,
            Notice::Call => {
                self.observer.until(deadline, async || self.load.failed_since(self.struck).is_some()).await?;
                self.load.failed_since(self.struck)
            }
            Notice::Session => {
                let session = self.session.as_deref()?;
                self.observer.until(deadline, async || self.observer.is_detached(session).await).await
            }
            Notice::Redial => {
                let dialled = || self.wires.iter().map(|wire| wire.dialled()).sum::<u64>();
                self.observer.until(deadline, async || dialled() > self.dialled).await
            }
            Notice::Readiness => self.observer.until(deadline, async || self.observer.is_troubled().await).await,
        }
    }

    /// When everything acknowledged before the blow had ended, and something submitted after it too.
    async fn recovered(&self, struck: oneshot::Receiver<()>) -> Option<Instant> {
        // Without a blow there is nothing to recover from.
        struck.await.ok()?;
        let deadline = self.struck + PATIENCE;
        let before = self.load.acknowledged();
        for id in before.difference(&self.ended) {
            self.observer.until(deadline, async || self.observer.has_ended(id).await).await?;
        }
        let fresh = async || match self.load.acknowledged_since(self.struck) {
            Some(id) => self.observer.has_ended(&id).await,
            None => false,
        };
        self.observer.until(deadline, fresh).await
    }
}
