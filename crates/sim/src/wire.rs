//! What becomes of the words of a worker on their way, and what it says that is not so.

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

/// How long a worker over NATS is given jobs although nothing is heard of it.
const QUIET_AFTER: Duration = Duration::from_secs(10);
/// How long a worker waits for an answer before it attaches elsewhere.
const UNANSWERED: Duration = Duration::from_secs(5);

/// Takes its time now and then. Whether somebody was there to hear it: a process that stands still for too long is left.
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

/// Tells some process of results, up to so many milliseconds late. Returns those that need not be told again.
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

/// No stream ends with a worker over NATS: its edge goes on to speak to nobody until it has been quiet for a while, or is attached
/// anew.
pub(crate) async fn linger(attachment: Attachment, mut inbound: Receiver<ToWorker>) {
    let unheard = async { while inbound.recv().await.is_some() {} };
    // Either way there is nobody left to speak to.
    let _ = tokio::time::timeout(QUIET_AFTER, unheard).await;
    drop(attachment);
}

/// Results before the beat that was said before them, and starts after both.
pub(crate) fn reordered(mut message: FromWorker) -> Vec<FromWorker> {
    let results = std::mem::take(&mut message.results);
    let beat = message.beat.take();
    vec![FromWorker { results, ..FromWorker::default() }, FromWorker { beat, ..FromWorker::default() }, message]
}

/// Claims to have begun and finished some job, with a token that nobody gave it.
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

/// What an edge would hear if it did not look at tokens.
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
