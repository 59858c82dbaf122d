//! People who govern: they activate policies and pools, answer approvals and apply schedules.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::job::Answer;
use lockgate_core::policy::{FailMode, Policy};
use lockgate_core::request::Caller;
use lockgate_engine::{ApprovalAnswer, ConfigText, Engine};
use lockgate_ports::SnapshotKind;

use crate::faults::Faults;
use crate::outputs;
use crate::world::SimWorld;

pub(crate) const ALLOW: &str = "version: 1\ndefault: {decision: allow, reason: fine}\n";
const DENY_B: &str = "
version: 1
default: {decision: allow, reason: fine}
rules:
  - {id: no-b, match: {topics: [sim.b]}, decision: deny, reason: an emergency}
";
const ASK_C: &str = "
version: 1
default: {decision: allow, reason: fine}
rules:
  - {id: ask-c, match: {topics: [sim.c]}, decision: require_approval, reason: somebody must look, approval: {approvers: 1, request_expiry: 15s}}
";
/// The topic that the second policy denies, and the one for which the third requires approval.
pub(crate) const DENIED: &str = "sim.b";
pub(crate) const ASKED: &str = "sim.c";
/// How long an approval may stay unanswered.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(15);
const FEW_OF_C: &str = "
topics: {'sim.*': default}
pools: {default: {}}
limits:
  - {name: few, topics: [sim.c], per: [topic], max_concurrent: 2}
";
const FEW: usize = 2;
/// By then claims of dead processes have expired, lanes were read again, and jobs admitted beyond a limit have ended.
const PUT_RIGHT: Duration = Duration::from_secs(30);

/// Which of these parts a story has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    pub(crate) policies: bool,
    pub(crate) limits: bool,
    pub(crate) schedules: bool,
    pub(crate) operators: bool,
    /// The fail mode of output scans, if results are scanned.
    pub(crate) outputs: Option<FailMode>,
    /// Jobs are so quick that workers get some ahead of a free slot.
    pub(crate) quick: bool,
}

impl Cast {
    pub(crate) fn draw(faults: &Faults) -> Self {
        let part = || faults.chance(300);
        let mode = || if faults.chance(500) { FailMode::Open } else { FailMode::Closed };
        let outputs = part().then(mode);
        Self { policies: part(), limits: part(), schedules: part(), operators: part(), quick: part(), outputs }
    }

    /// A policy text with the story's output rules.
    pub(crate) fn policy(&self, text: &str) -> String {
        format!("{text}{}", outputs::rules(self.outputs))
    }
}

pub(crate) fn operator() -> Caller {
    Caller::new("tenant-0", "operator")
}

/// Tells the witness what each policy means, so that it does not depend on the engine's reading.
pub(crate) fn explain_policies(world: &SimWorld) {
    for (text, denied, asks) in [(ALLOW, None, None), (DENY_B, Some(DENIED), None), (ASK_C, None, Some(ASKED))] {
        if let Ok(policy) = Policy::load("policy.yaml", &world.cast.policy(text)) {
            world.witness.expect_policy(policy.snapshot(), denied, asks);
        }
    }
}

/// Changes the policy from time to time, and answers approvals, during the whole story.
pub(crate) async fn govern(world: Arc<SimWorld>) {
    loop {
        tokio::time::sleep(world.faults.millis(12_000)).await;
        // Once faults have stopped, only the permissive policy is activated: a job that a policy denies could never end.
        let choices: &[&str] = if world.faults.are_on() { &[ALLOW, DENY_B, ASK_C] } else { &[ALLOW] };
        let text = choices[usize::try_from(world.faults.below(choices.len() as u64)).unwrap_or(0)];
        put_in_force(&world, SnapshotKind::Policy, &world.cast.policy(text)).await;
        answer_questions(&world).await;
    }
}

/// In the end everything must be allowed, so that every job can end.
pub(crate) async fn allow_everything(world: &SimWorld) {
    while !put_in_force(world, SnapshotKind::Policy, &world.cast.policy(ALLOW)).await {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

pub(crate) async fn limit(world: Arc<SimWorld>) {
    while !put_in_force(&world, SnapshotKind::Pools, FEW_OF_C).await {
        tokio::time::sleep(world.faults.millis(1_000)).await;
    }
    // Shared lanes that forget or miss a call may admit a few jobs too many until they are rebuilt.
    if world.ground.shared.is_some() {
        while world.faults.are_on() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(PUT_RIGHT).await;
    }
    world.witness.expect_limit("sim.c", FEW);
}

/// Whether it was acknowledged.
async fn put_in_force(world: &SimWorld, kind: SnapshotKind, text: &str) -> bool {
    let (process, caller) = (world.process().await, operator());
    let new = ConfigText { file: "sim.yaml".into(), text: text.into(), expected: None };
    tokio::select! {
        biased;
        () = process.lifeline.died() => false,
        activated = process.engine.activate_config(&caller, kind, new) => activated.is_ok(),
    }
}

async fn answer_questions(world: &SimWorld) {
    let process = world.process().await;
    for tenant in ["tenant-0", "tenant-1"] {
        let caller = Caller::new(tenant, "approver");
        tokio::select! {
            biased;
            () = process.lifeline.died() => return,
            () = answer_some(world, &process.engine, &caller) => {}
        }
    }
}

/// Most approvals are granted. An unanswered one expires and denies the job.
async fn answer_some(world: &SimWorld, engine: &Engine, caller: &Caller) {
    let Ok((jobs, _)) = engine.approvals(caller, None, 100).await else { return };
    for job in jobs {
        let Some(asked) = &job.life.approval else { continue };
        let answer = match world.faults.below(8) {
            0 => continue,
            1 => Answer::Reject,
            _ => Answer::Approve,
        };
        // Recorded before the call, because an answer of unknown outcome may have succeeded.
        match answer {
            Answer::Approve => world.witness.expect_approval(&job.request.job_id),
            Answer::Reject => {
                world.ledger.lock().rejected.insert(job.request.job_id.clone());
            }
        }
        let (job_id, request_hash, rule_hash) = (job.request.job_id.clone(), job.hash, asked.rule_hash.clone());
        // The answer may be late, or the Store may fail; both are allowed.
        let _ = engine
            .answer(
                caller,
                ApprovalAnswer { job_id, answer, note: None, request_hash, rule_hash, acknowledge_hidden: false },
            )
            .await;
    }
}
