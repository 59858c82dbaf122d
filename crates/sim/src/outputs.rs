//! Output policies in the simulation: what each story's policy says about the results of each topic, and whether every
//! exposed result obeys it.
//!
//! The rules are part of every policy of such a story, from before its first process starts. Their meaning is repeated here,
//! so that the checks do not depend on the engine's reading of them.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::ids::JobId;
use lockgate_core::job::{Duty, EventKind, Job, JobEvent, JobState, Reason};
use lockgate_core::policy::{FailMode, Policy};
use lockgate_core::request::{Caller, JobRequest, Json};
use lockgate_ports::{Activation, DeadLetterQuery, JobDetail, JobStore, SnapshotKind, StoreError};
use tokio::time::Instant;

use crate::check::{Violation, ensure, tell};
use crate::people::operator;
use crate::world::SimWorld;

/// The text that no rule lets out.
pub(crate) const SECRET: &str = "4111 1111 1111 1111";
/// How many of a thousand attempts return it.
const SECRETIVE: u64 = 300;
const RULES: &str = "
  rules:
    - {id: hold, match: {topics: [sim.a], scan: [credit_card]}, decision: quarantine, reason: card numbers stay here, hold: true}
    - {id: late, match: {topics: [sim.b], scan: [credit_card]}, decision: quarantine, reason: card numbers stay here}
    - {id: cut, match: {topics: [sim.c], scan: [credit_card]}, decision: redact, reason: card numbers are cut out, hold: true}
";
/// The topic whose results are exposed before they are scanned.
const LATE: &str = "sim.b";
/// The topic whose results are redacted.
const CUT: &str = "sim.c";
/// Without faults every result is scanned within this time.
const SCANNED_WITHIN: Duration = Duration::from_secs(60);

/// The output rules of a story's policy, if it scans results.
pub(crate) fn rules(mode: Option<FailMode>) -> String {
    let mode = match mode {
        None => return String::new(),
        Some(FailMode::Closed) => "closed",
        Some(FailMode::Open) => "open",
    };
    format!("output:\n  fail_mode: {mode}{RULES}")
}

/// Activates a policy before the first process needs one.
pub(crate) async fn begin(world: &SimWorld, text: String) -> Result<(), Violation> {
    let unfit = |error: String| Violation::new("a policy of the simulator is in order", error);
    let policy = Policy::load("sim.yaml", &text).map_err(|errors| unfit(format!("{errors:?}")))?;
    let audit = AuditEntry {
        at: world.clock.now(),
        tenant: operator().tenant,
        actor: operator().actor,
        action: AuditAction::PolicyActivated,
        subject: policy.snapshot().clone(),
        detail: Json::null(),
    };
    let (kind, id, actor) = (SnapshotKind::Policy, policy.snapshot().clone(), operator().actor);
    let activation = Activation { kind, id, text: text.into(), actor, expected: 0, audit };
    let activated = world.witness.activate(activation).await.map_err(|error| unfit(error.to_string()))?;
    activated.map(drop).map_err(|outdated| unfit(outdated.to_string()))
}

/// Whether the attempt's result contains the secret. Results of runs and parents are only redacted, because later jobs read
/// them.
pub(crate) fn has_secret(world: &SimWorld, request: &JobRequest) -> bool {
    let plain = request.run.is_none() && request.child_of.is_none() && request.workflow_id.is_none();
    let looked_at = world.cast.outputs.is_some() && (plain || request.topic.as_str() == CUT);
    looked_at && world.faults.are_on() && world.faults.chance(SECRETIVE)
}

/// Reads other clients' results during the whole story (G-4).
pub(crate) async fn read(world: Arc<SimWorld>) {
    loop {
        tokio::time::sleep(world.faults.millis(1_000)).await;
        let id = {
            let ledger = world.ledger.lock();
            let at = world.faults.below(ledger.acknowledged.len().max(1) as u64);
            ledger.acknowledged.iter().nth(usize::try_from(at).unwrap_or(0)).cloned()
        };
        let (Some(id), process) = (id, world.process().await) else { continue };
        for tenant in ["tenant-0", "tenant-1"] {
            let caller = Caller::new(tenant, "reader");
            let view = tokio::select! {
                biased;
                () = process.lifeline.died() => break,
                view = process.engine.job(&caller, &id) => view,
            };
            let Ok(view) = view else { continue };
            let shown = view.result.as_ref().is_some_and(|result| result.as_str().contains(SECRET));
            let withheld = view.job.state() == JobState::OutputQuarantined;
            if shown && (withheld || !may_show(&world, &view.job)) {
                let seen = Violation::new("G-4 what must not come out is not shown", format!("{id} {:?}", view.job.life));
                world.ledger.lock().broken.push(seen);
            }
        }
    }
}

/// Whether a reader may see the result with its secret, now or at some time.
fn may_show(world: &SimWorld, job: &Job) -> bool {
    let before_the_scan = job.request.topic.as_str() == LATE || world.cast.outputs == Some(FailMode::Open);
    before_the_scan || was_released(world, job)
}

/// Whether a person tried to release the result of this life.
fn was_released(world: &SimWorld, job: &Job) -> bool {
    world.ledger.lock().released.contains(&(job.request.job_id.clone(), job.life.no))
}

/// Releases a quarantined result.
pub(crate) async fn release(world: &SimWorld, caller: &Caller) {
    let (tenant, reason) = (Some(caller.tenant.clone()), Some(Reason::OutputQuarantined));
    let query = DeadLetterQuery { tenant, reason, limit: 10, ..DeadLetterQuery::default() };
    let process = world.process().await;
    let released = async {
        let Ok(letters) = process.engine.dead_letters(caller, query).await else { return };
        let Some(letter) = letters.items.first() else { return };
        // Recorded before the call, because a call of unknown outcome may have succeeded.
        world.ledger.lock().released.insert((letter.job_id.clone(), letter.life));
        // Another person may have been faster, or the Store may fail; both are allowed.
        let _ = process.engine.release(caller, &letter.job_id, None).await;
    };
    tokio::select! {
        biased;
        () = process.lifeline.died() => {}
        () = released => {}
    }
}

/// Waits until no scan is owed. G-3: also after crashes.
pub(crate) async fn settle(world: &SimWorld) -> Result<(), Violation> {
    let unread = |error: StoreError| Violation::new("what is owed is read", error.to_string());
    let deadline = Instant::now() + SCANNED_WITHIN;
    loop {
        let owing = world.disk.owing(Duty::Scan, Default::default(), 1).await.map_err(unread)?;
        let Some(job) = owing.first() else { return Ok(()) };
        let in_time = Instant::now() < deadline;
        ensure(in_time, "G-3 what is owed to a result is done", || format!("{} {:?}", job.request.job_id, job.life))?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// The result of a job is its worker's, as far as the rules expose it.
pub(crate) fn check(world: &SimWorld, id: &JobId, detail: &JobDetail) -> Result<(), Violation> {
    let told = || format!("{id}: {:?} of {}", detail.result, tell(&detail.events));
    let secret = |text: &str| text.contains(SECRET);
    let error = detail.job.life.last_error.as_ref().map(|failure| &*failure.message);
    let mut texts = detail.events.iter().filter_map(|event| event.message.as_deref()).chain(error);
    ensure(!texts.any(secret), "G-4 no text has what must not come out", told)?;
    let (job, state) = (&detail.job, detail.job.state());
    let out = detail.result.as_ref().is_some_and(|result| secret(result.as_str()));
    if !matches!(state, JobState::Succeeded | JobState::OutputQuarantined) {
        // A late result that must not be exposed is not kept.
        return ensure(!out, "G-4 in the end nothing is out that must not be", told);
    }
    let said =
        result_of(&detail.events).and_then(|attempt| world.ledger.lock().finished.get(&(id.clone(), attempt)).cloned());
    let Some(said) = said else { return Err(Violation::new("S-8 a result is that of its attempt", told())) };
    if !secret(said.as_str()) {
        return ensure(
            state == JobState::Succeeded && detail.result == Some(said),
            "S-8 a result is that of its attempt",
            told,
        );
    }
    let cut = Json::trusted(said.as_str().replace(SECRET, "[REDACTED:credit_card]"));
    let kept = match state {
        JobState::Succeeded if job.request.topic.as_str() == CUT => detail.result == Some(cut),
        JobState::Succeeded => detail.result == Some(said) && was_released(world, job),
        _ => job.request.topic.as_str() != CUT,
    };
    ensure(kept, "G-4 in the end nothing is out that must not be", told)
}

/// The attempt that produced the result of the last life.
fn result_of(events: &[JobEvent]) -> Option<u32> {
    let life = events.rsplit(|event| event.kind == EventKind::Replayed).next()?;
    let ended = |kind| matches!(kind, EventKind::OutputHeld | EventKind::Succeeded | EventKind::OutputQuarantined);
    let end = life.iter().find(|event| ended(event.kind))?;
    Some(end.late_of.unwrap_or(end.attempt))
}
