//! People who govern: policies and pools put in force, questions answered, schedules applied.

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
/// What the second policy denies, and the third asks people about.
pub(crate) const DENIED: &str = "sim.b";
pub(crate) const ASKED: &str = "sim.c";
/// How long a question waits for its answer.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(15);
const FEW_OF_C: &str = "
topics: {'sim.*': default}
pools: {default: {}}
limits:
  - {name: few, topics: [sim.c], per: [topic], max_concurrent: 2}
";
const FEW: usize = 2;
/// Claims of the dead run out, lanes are read anew, and what was let through too much has ended.
const PUT_RIGHT: Duration = Duration::from_secs(30);

/// Which of these parts a story has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    pub(crate) policies: bool,
    pub(crate) limits: bool,
    pub(crate) schedules: bool,
    pub(crate) operators: bool,
    /// Somebody looks at results; and what becomes of them while nobody can.
    pub(crate) outputs: Option<FailMode>,
    /// Jobs are so quick that workers are sent some ahead of a free slot.
    pub(crate) quick: bool,
}

impl Cast {
    pub(crate) fn draw(faults: &Faults) -> Self {
        let part = || faults.chance(300);
        let mode = || if faults.chance(500) { FailMode::Open } else { FailMode::Closed };
        let outputs = part().then(mode);
        Self { policies: part(), limits: part(), schedules: part(), operators: part(), quick: part(), outputs }
    }

    /// A policy with what every one of the story says of results.
    pub(crate) fn policy(&self, text: &str) -> String {
        format!("{text}{}", outputs::rules(self.outputs))
    }
}

pub(crate) fn operator() -> Caller {
    Caller::new("tenant-0", "operator")
}

/// Tells the witness what each policy means, so that nobody needs the engine to know it.
pub(crate) fn explain_policies(world: &SimWorld) {
    for (text, denied, asks) in [(ALLOW, None, None), (DENY_B, Some(DENIED), None), (ASK_C, None, Some(ASKED))] {
        if let Ok(policy) = Policy::load("policy.yaml", &world.cast.policy(text)) {
            world.witness.expect_policy(policy.snapshot(), denied, asks);
        }
    }
}

/// Changes the policy now and then, and answers questions, as long as the story goes on.
pub(crate) async fn govern(world: Arc<SimWorld>) {
    loop {
        tokio::time::sleep(world.faults.millis(12_000)).await;
        // Once faults have stopped, whatever was still on its way is put right: else what it denies could never end.
        let choices: &[&str] = if world.faults.are_on() { &[ALLOW, DENY_B, ASK_C] } else { &[ALLOW] };
        let text = choices[usize::try_from(world.faults.below(choices.len() as u64)).unwrap_or(0)];
        put_in_force(&world, SnapshotKind::Policy, &world.cast.policy(text)).await;
        answer_questions(&world).await;
    }
}

/// In the end everything is allowed again, so that everything can end.
pub(crate) async fn allow_everything(world: &SimWorld) {
    while !put_in_force(world, SnapshotKind::Policy, &world.cast.policy(ALLOW)).await {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

pub(crate) async fn limit(world: Arc<SimWorld>) {
    while !put_in_force(&world, SnapshotKind::Pools, FEW_OF_C).await {
        tokio::time::sleep(world.faults.millis(1_000)).await;
    }
    // Shared lanes that forget or miss something let a few more through until they are put right.
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

/// Most are approved. What is not answered in time is denied by itself.
async fn answer_some(world: &SimWorld, engine: &Engine, caller: &Caller) {
    let Ok((jobs, _)) = engine.approvals(caller, None, 100).await else { return };
    for job in jobs {
        let Some(asked) = &job.life.approval else { continue };
        let answer = match world.faults.below(8) {
            0 => continue,
            1 => Answer::Reject,
            _ => Answer::Approve,
        };
        // Said before it is sent: an answer of unknown outcome may count.
        match answer {
            Answer::Approve => world.witness.expect_approval(&job.request.job_id),
            Answer::Reject => {
                world.ledger.lock().rejected.insert(job.request.job_id.clone());
            }
        }
        let (job_id, request_hash, rule_hash) = (job.request.job_id.clone(), job.hash, asked.rule_hash.clone());
        // Too late, or the Store fails: both are part of the story.
        let _ = engine
            .answer(
                caller,
                ApprovalAnswer { job_id, answer, note: None, request_hash, rule_hash, acknowledge_hidden: false },
            )
            .await;
    }
}
