//! The safety kernel goes away and comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::job::{JobState, Outcome};
use lockgate_core::output::{OutputStep, OutputVerdict};
use lockgate_core::policy::{Explanation, FailMode, InputPolicy, Policy};
use lockgate_core::request::{JobRequest, Json};
use lockgate_core::verdict::{Judgement, Verdict};
use lockgate_engine::{LocalKernel, Settings, ToWorker};
use lockgate_ports::{Kernel, OutputContent, OutputMeta};

use super::stage::{Hand, Stage, caller, job};

/// A kernel that can be switched off.
pub(crate) struct Switched {
    pub(crate) kernel: LocalKernel,
    pub(crate) off: Arc<AtomicBool>,
}

#[async_trait]
impl Kernel for Switched {
    async fn judge(&self, requests: &[Arc<JobRequest>]) -> Vec<Judgement> {
        if self.off.load(Ordering::Relaxed) {
            return vec![Judgement::Unavailable; requests.len()];
        }
        self.kernel.judge(requests).await
    }

    async fn explain(&self, request: &JobRequest) -> Option<Explanation> {
        self.kernel.explain(request).await
    }

    fn simulate(&self, policy: &Policy, request: &JobRequest) -> Verdict {
        self.kernel.simulate(policy, request)
    }

    fn snapshot(&self) -> Arc<str> {
        self.kernel.snapshot()
    }

    fn ready(&self) -> bool {
        !self.off.load(Ordering::Relaxed)
    }

    fn input_policy(&self) -> InputPolicy {
        self.kernel.input_policy()
    }

    fn adopt(&self, id: &Arc<str>, text: &str) -> Result<(), Vec<String>> {
        self.kernel.adopt(id, text)
    }

    async fn check_outputs(&self, outputs: &[OutputMeta]) -> Vec<OutputStep> {
        self.kernel.check_outputs(outputs).await
    }

    async fn scan(&self, output: &OutputContent) -> Option<OutputVerdict> {
        if self.off.load(Ordering::Relaxed) {
            return None;
        }
        self.kernel.scan(output).await
    }

    fn clean(&self, request: &JobRequest, text: Arc<str>) -> Arc<str> {
        self.kernel.clean(request, text)
    }
}

const DENY_SOME: &str = "
version: 1
default: {decision: allow, reason: fine}
rules:
  - {id: no-bad, match: {topics: ['bad*']}, decision: deny, reason: never}
";

#[tokio::test(start_paused = true)]
async fn fail_closed_nothing_runs_and_nothing_is_lost_until_the_kernel_is_back() {
    let stage = Stage::new();
    stage.apply(DENY_SOME).await;
    stage.kernel_off.store(true, Ordering::Relaxed);
    let good = stage.submit(job("t")).await;
    let bad = stage.submit(job("bad")).await;
    let why = stage.engine.why(&caller(), &good).await.expect("explained");
    assert_eq!(why.reason, "safety_kernel_unavailable");
    let version = stage.job(&good).await.version;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let waits = stage.job(&good).await;
    assert_eq!((waits.state(), waits.version), (JobState::Pending, version), "waiting costs no write");

    let mut worker = Hand::attach(&stage.engine, "w", &["t", "bad"], 4).await;
    stage.kernel_off.store(false, Ordering::Relaxed);
    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, good);
    assert_eq!(assignment.job.life.counters.infra_failures, 0);
    stage.until(&bad, |job| job.state() == JobState::Denied).await;
}

#[tokio::test(start_paused = true)]
async fn fail_open_everything_runs_marked_and_the_ledger_drains_to_zero() {
    let stage = Stage::with(Settings { fail_mode: Some(FailMode::Open), ..Settings::default() });
    stage.apply(DENY_SOME).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t", "bad"], 4).await;
    stage.kernel_off.store(true, Ordering::Relaxed);
    let good = stage.submit(job("t")).await;
    let first = worker.take().await;
    worker.report(&first, Outcome::Succeeded { result: Json::null() }).await;
    let bad = stage.submit(job("bad")).await;
    let running = worker.take().await;
    worker.start(&running).await;
    for id in [&good, &bad] {
        let bypass = stage.job(id).await.life.bypass.expect("in the ledger");
        assert!(bypass.judged.is_none() && bypass.reason.contains("fail-open"), "{bypass:?}");
    }

    stage.kernel_off.store(false, Ordering::Relaxed);
    let agreed = stage.until(&good, |job| !job.needs_rejudging()).await;
    assert!(!agreed.life.bypass.expect("kept for the record").wrong);
    let refused = stage.until(&bad, |job| job.state() == JobState::Denied).await;
    assert!(refused.life.bypass.expect("kept for the record").wrong);
    assert!(matches!(worker.next().await, ToWorker::Stop { .. }), "what still ran is stopped");
    let actions = stage.engine.audit(&caller(), 0, 100).await.expect("read").0;
    let actions: Vec<_> = actions.iter().map(|row| row.entry.action.as_str()).collect();
    assert_eq!(actions, ["policy_activated", "safety_bypassed", "safety_bypassed", "bypass_refused", "job_denied"]);
    assert!(stage.number("lockgate_scheduler_input_fail_open_total") >= 2.0);
    assert!(stage.number("lockgate_bypass_refused_total") >= 1.0);
}

#[tokio::test(start_paused = true)]
async fn what_is_let_through_is_in_the_total_of_all_replicas_too() {
    let stage = Stage::with(Settings { fail_mode: Some(FailMode::Open), ..Settings::default() });
    stage.kernel_off.store(true, Ordering::Relaxed);
    stage.submit(job("t")).await;
    let counters = stage.counters.clone();
    let total = || counters.total("scheduler:input_fail_open_total");
    assert_eq!(total(), 0, "nobody waits for it");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(total(), 1);
    stage.submit(job("t")).await;
    stage.stop().await;
    assert_eq!(total(), 2, "the last ones are not forgotten");
}

const OPEN_BY_POLICY: &str = "
version: 1
default: {decision: allow, reason: fine}
input_policy: {fail_mode: open}
output: {fail_mode: closed, rules: [{id: cards, match: {scan: [credit_card]}, decision: quarantine, reason: a card, hold: true}]}
";

#[tokio::test(start_paused = true)]
async fn the_policy_itself_may_let_jobs_and_results_pass_and_both_are_checked_later() {
    let stage = Stage::new();
    stage.apply(OPEN_BY_POLICY).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    stage.kernel_off.store(true, Ordering::Relaxed);
    let id = stage.submit(job("t")).await;
    let assignment = worker.take().await;
    let card = Json::parse(r#""4111 1111 1111 1111""#).expect("JSON");
    worker.report(&assignment, Outcome::Succeeded { result: card }).await;
    let out = stage.job(&id).await;
    assert!(out.state() == JobState::Succeeded && out.needs_scan() && out.needs_rejudging(), "{out:?}");

    stage.kernel_off.store(false, Ordering::Relaxed);
    let taken_back = stage.until(&id, |job| job.state() == JobState::OutputQuarantined && !job.needs_rejudging()).await;
    assert!(!taken_back.needs_scan());
    let actions = stage.engine.audit(&caller(), 0, 100).await.expect("read").0;
    assert!(actions.iter().any(|row| row.entry.action.as_str() == "output_unchecked"), "{actions:?}");
}
