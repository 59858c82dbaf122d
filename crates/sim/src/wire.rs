//! The wire between workers and processes: delayed, lost and doubled messages, and false reports.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId, SessionId};
use lockgate_core::job::Outcome;
use lockgate_core::request::Json;
use lockgate_engine::{Attachment, FromWorker, ResultReport, ToWorker};
use lockgate_ports::{JobStore, Mint};
use tokio::sync::mpsc::Receiver;

use crate::faults::Fault;
use crate::planted::Bug;
use crate::process::SimProcess;
use crate::world::SimWorld;

/// How long a silent worker over NATS is still sent jobs.
const QUIET_AFTER: Duration = Duration::from_secs(10);
/// How long a worker waits for an answer before it attaches elsewhere.
const UNANSWERED: Duration = Duration::from_secs(5);

/// Delivers a message, sometimes late. False if the process did not receive it: a worker leaves a process that stalls for
/// too long.
pub(crate) async fn deliver(world: &SimWorld, process: &SimProcess, attachment: &Attachment, message: FromWorker) -> bool {
    if world.faults.inject(20, Fault::MessageDelayed) {
        tokio::time::sleep(world.faults.millis(4_000)).await;
    }
    if tokio::time::timeout(UNANSWERED, process.link.thawed()).await.is_err() {
        return false;
    }
    world.witness.hear(attachment.session(), process.edge().as_ref(), message.draining);
    attachment.receive(message).await;
    true
}

/// Reports results to some process, with a random delay. Returns those that need not be sent again.
pub(crate) async fn report(
    world: Arc<SimWorld>,
    session: SessionId,
    results: Vec<ResultReport>,
    late_ms: u64,
) -> Vec<AttemptToken> {
    tokio::time::sleep(world.faults.millis(late_ms)).await;
    if world.faults.inject(20, Fault::MessageDelayed) {
        tokio::time::sleep(world.faults.millis(4_000)).await;
    }
    let results = forged(&world, FromWorker { results, ..FromWorker::default() }).await.results;
    let process = world.process().await;
    let answered = tokio::select! {
        biased;
        () = process.lifeline.died() => return Vec::new(),
        answered = process.engine.report(&session, results) => answered,
    };
    answered.unwrap_or_default().into_iter().map(|(token, _)| token).collect()
}

/// A worker over NATS has no stream that ends: its edge keeps sending until the worker has been silent for a while, or
/// attaches elsewhere.
pub(crate) async fn linger(attachment: Attachment, mut inbound: Receiver<ToWorker>) {
    let unheard = async { while inbound.recv().await.is_some() {} };
    // In both cases no receiver is left.
    let _ = tokio::time::timeout(QUIET_AFTER, unheard).await;
    drop(attachment);
}

/// Reorders a message: results before the beat that preceded them, and starts after both.
pub(crate) fn reordered(mut message: FromWorker) -> Vec<FromWorker> {
    let results = std::mem::take(&mut message.results);
    let beat = message.beat.take();
    vec![FromWorker { results, ..FromWorker::default() }, FromWorker { beat, ..FromWorker::default() }, message]
}

/// Reports that some job was started and finished, with an invented token.
pub(crate) fn lie(world: &SimWorld, outbox: &mut FromWorker) {
    if !world.faults.inject(10, Fault::ReportForged) {
        return;
    }
    let known: Vec<JobId> = world.ledger.lock().acknowledged.iter().cloned().collect();
    let Some(job_id) = known.get(usize::try_from(world.faults.below(known.len() as u64)).unwrap_or(0)) else { return };
    let token = world.entropy.attempt_token();
    outbox.starts.push((job_id.clone(), token.clone()));
    let outcome = Outcome::Succeeded { result: Json::trusted("0") };
    outbox.results.push(ResultReport { job_id: job_id.clone(), token, outcome, began: None });
}

/// The message as an edge would read it without checking tokens.
pub(crate) async fn forged(world: &SimWorld, mut message: FromWorker) -> FromWorker {
    if world.planted.is(Bug::FenceIgnored) {
        for report in &mut message.results {
            let now =
                world.disk.load(std::slice::from_ref(&report.job_id)).await.ok().and_then(|mut jobs| jobs.pop().flatten());
            report.token = now.map_or_else(|| report.token.clone(), |job| job.life.attempt.token);
        }
    }
    message
}
