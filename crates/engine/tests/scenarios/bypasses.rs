//! The safety kernel goes away and comes back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::breaker::BreakerState;
use lockgate_core::job::{JobState, Outcome};
use lockgate_core::output::{OutputStep, OutputVerdict};
use lockgate_core::policy::{Explanation, FailMode, InputPolicy, Policy};
use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::{Judgement, Verdict};
use lockgate_engine::{LocalKernel, Settings, ToWorker};
use lockgate_ports::{BreakerMove, BreakerView, Kernel, OutputContent, OutputMeta, Sharing};

use super::stage::{Hand, Stage, caller, job};

/// A topic that the kernel has no answer for, although it answers.
const PUZZLING: &str = "puzzling";

const FAIL_OPEN: &str = "lockgate_scheduler_input_fail_open_total";

/// A kernel that can be switched off.
pub(crate) struct Switched {
    pub(crate) kernel: LocalKernel,
    pub(crate) off: Arc<AtomicBool>,
    /// How long each scan takes.
    pub(crate) scans_take: Arc<Mutex<Duration>>,
    /// What its circuit breaker is said to have done.
    pub(crate) moves: Arc<Mutex<Vec<BreakerMove>>>,
}

#[async_trait]
impl Kernel for Switched {
    async fn judge(&self, requests: &[Arc<JobRequest>]) -> Vec<Judgement> {
        if self.off.load(Ordering::Relaxed) {
            return vec![Judgement::UNASKED; requests.len()];
        }
        let mut judged = self.kernel.judge(requests).await;
        for (request, judgement) in requests.iter().zip(&mut judged) {
            if request.topic.as_str() == PUZZLING {
                *judgement = Judgement::UNASKED;
            }
        }
        judged
    }

    async fn explain(&self, request: &JobRequest) -> Option<Explanation> {
        self.kernel.explain(request).await
    }

    fn simulate(&self, policy: &Policy, request: &JobRequest) -> Arc<Verdict> {
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

    fn adopt_builtin(&self) {
        self.kernel.adopt_builtin();
    }

    async fn check_outputs(&self, outputs: &[OutputMeta]) -> Vec<OutputStep> {
        self.kernel.check_outputs(outputs).await
    }

    fn breakers(&self) -> Vec<BreakerView> {
        let (state, failures, last_error) = if self.off.load(Ordering::Relaxed) {
            (BreakerState::Open, 3, Some("10.0.0.7:9000: connection refused".into()))
        } else {
            (BreakerState::Closed, 0, None)
        };
        let (open_until, sharing) = (None, Sharing::Alone);
        vec![BreakerView { name: "input", state, failures, open_until, last_error, sharing }]
    }

    fn breaker_moves(&self) -> Vec<BreakerMove> {
        std::mem::take(&mut self.moves.lock().expect("no test panicked"))
    }

    fn scans(&self) -> bool {
        !self.off.load(Ordering::Relaxed)
    }

    fn output_fail_mode(&self, request: &JobRequest) -> FailMode {
        self.kernel.output_fail_mode(request)
    }

    async fn scan(&self, output: &OutputContent) -> Option<OutputVerdict> {
        if self.off.load(Ordering::Relaxed) {
            return None;
        }
        let take = *self.scans_take.lock().expect("no test panicked");
        if !take.is_zero() {
            tokio::time::sleep(take).await;
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
    assert_eq!(why.summary, "Safety kernel unavailable (circuit open): 10.0.0.7:9000: connection refused");
    let of_one_tenant = Caller { sees_everyone: false, ..caller() };
    let why = stage.engine.why(&of_one_tenant, &good).await.expect("explained");
    assert_eq!(why.summary, "Safety kernel unavailable (circuit open).", "a tenant learns nothing of our hosts");
    let version = stage.job(&good).await.version;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let waits = stage.job(&good).await;
    assert_eq!((waits.state(), waits.version), (JobState::Pending, version), "waiting costs no write");
    let why = stage.engine.why(&caller(), &good).await.expect("explained");
    assert!(why.next_at.is_none_or(|at| at > stage.clock.now()), "nothing happens in the past: {why:?}");

    let mut worker = Hand::attach(&stage.engine, "w", &["t", "bad"], 4).await;
    stage.kernel_off.store(false, Ordering::Relaxed);
    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, good);
    assert_eq!(assignment.job.life.counters.infra_failures, 0);
    stage.until(&bad, |job| job.state() == JobState::Denied).await;
}

const OPEN: InputPolicy = InputPolicy { mode: FailMode::Open, until: None };

#[tokio::test(start_paused = true)]
async fn an_operators_open_mode_closes_by_itself_at_its_time() {
    let closes_at = Stage::with(Settings::default()).clock.now() + Duration::from_secs(60);
    let stage =
        Stage::with(Settings { fail_mode: Some(InputPolicy { until: Some(closes_at), ..OPEN }), ..Settings::default() });
    stage.kernel_off.store(true, Ordering::Relaxed);
    let before = stage.submit(job("t")).await;
    assert!(stage.job(&before).await.life.bypass.is_some(), "it runs unjudged");
    tokio::time::sleep(Duration::from_secs(61)).await;
    let after = stage.submit(job("t")).await;
    let waits = stage.job(&after).await;
    assert_eq!((waits.state(), waits.life.bypass.as_ref()), (JobState::Pending, None));
}

#[tokio::test(start_paused = true)]
async fn fail_open_everything_runs_marked_and_the_ledger_drains_to_zero() {
    let stage = Stage::with(Settings { fail_mode: Some(OPEN), ..Settings::default() });
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
    assert!((stage.number(FAIL_OPEN) - 2.0).abs() < f64::EPSILON);
    assert!(stage.number("lockgate_bypass_refused_total") >= 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_job_for_which_a_kernel_has_no_answer_is_let_through_once() {
    let stage = Stage::with(Settings { fail_mode: Some(OPEN), ..Settings::default() });
    let mut worker = Hand::attach(&stage.engine, "w", &[PUZZLING], 4).await;
    let id = stage.submit(job(PUZZLING)).await;
    let assignment = worker.take().await;
    worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
    let done = stage.until(&id, |job| job.state() == JobState::Succeeded).await;
    assert_eq!(done.life.attempt.no, 1, "it is not judged over and over on its way");
    assert!(done.needs_rejudging(), "the ledger still asks");
}

#[tokio::test(start_paused = true)]
async fn what_is_let_through_is_in_the_total_of_all_replicas_too() {
    let stage = Stage::with(Settings { fail_mode: Some(OPEN), ..Settings::default() });
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

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_as_let_through_and_not_how_often_somebody_asked() {
    let stage = Stage::with(Settings { fail_mode: Some(OPEN), ..Settings::default() });
    let mut worker = Hand::attach(&stage.engine, "w", &[PUZZLING], 1).await;
    stage.submit(job(PUZZLING)).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    let late = stage.submit(NewJob { deadline_ms: Some(2_000), ..job("nobody") }).await;
    stage.kernel_off.store(true, Ordering::Relaxed);
    let ends = stage.submit(NewJob { deadline_ms: Some(2_000), ..job("nobody") }).await;
    for id in [&late, &ends] {
        let ended = stage.until(id, |job| job.state().is_terminal()).await;
        assert_eq!(ended.state(), JobState::Timeout);
    }
    stage.kernel_off.store(false, Ordering::Relaxed);
    for _ in 0..20 {
        worker.beat().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }

    assert!((stage.number(FAIL_OPEN) - 2.0).abs() < f64::EPSILON, "{}", stage.number(FAIL_OPEN));
    assert_eq!(stage.counters.total("scheduler:input_fail_open_total"), 2);
}

const OPEN_BY_POLICY: &str = "
version: 1
default: {decision: allow, reason: fine}
input_policy: {fail_mode: open}
output: {fail_mode: open, rules: [{id: cards, match: {scan: [credit_card]}, decision: quarantine, reason: a card, hold: true}]}
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

#[tokio::test(start_paused = true)]
async fn a_kernel_that_is_back_is_asked_about_so_many_jobs_a_second_and_no_more() {
    let stage = Stage::with(Settings { release_rate: 10, ..Settings::default() });
    stage.apply(DENY_SOME).await;
    stage.kernel_off.store(true, Ordering::Relaxed);
    let mut ids = Vec::new();
    for _ in 0..35 {
        ids.push(stage.submit(job("t")).await);
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    stage.kernel_off.store(false, Ordering::Relaxed);
    let mut released = Vec::new();
    while released.last() != Some(&ids.len()) {
        assert!(released.len() < 10, "they are not released: {released:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut count = 0;
        for id in &ids {
            count += usize::from(stage.job(id).await.state() != JobState::Pending);
        }
        let before = released.last().copied().unwrap_or_default();
        assert!(count - before <= 10, "{count} after {released:?}");
        released.push(count);
    }
    assert!(released.len() >= 4, "{released:?}");
}

#[tokio::test(start_paused = true)]
async fn what_ran_unjudged_is_judged_at_the_same_rate() {
    let settings = Settings { fail_mode: Some(OPEN), release_rate: 10, ..Settings::default() };
    let stage = Stage::with(settings);
    stage.apply(DENY_SOME).await;
    stage.kernel_off.store(true, Ordering::Relaxed);
    let mut ids = Vec::new();
    for _ in 0..35 {
        ids.push(stage.submit(job("t")).await);
    }
    // Between two ticks, so that each look sees one.
    tokio::time::sleep(Duration::from_millis(30_500)).await;
    stage.kernel_off.store(false, Ordering::Relaxed);
    let mut judged = Vec::new();
    while judged.last() != Some(&ids.len()) {
        assert!(judged.len() < 10, "they are not judged: {judged:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut count = 0;
        for id in &ids {
            count += usize::from(!stage.job(id).await.needs_rejudging());
        }
        let before = judged.last().copied().unwrap_or_default();
        assert!(count - before <= 10, "{count} after {judged:?}");
        judged.push(count);
    }
}

#[tokio::test(start_paused = true)]
async fn bypasses_without_an_answer_are_asked_about_in_turns_and_keep_no_other_from_its_own() {
    let stage = Stage::with(Settings { fail_mode: Some(OPEN), batch_max: 5, ..Settings::default() });
    for _ in 0..12 {
        stage.submit(job(PUZZLING)).await;
    }
    stage.kernel_off.store(true, Ordering::Relaxed);
    let answered = stage.submit(job("t")).await;
    stage.kernel_off.store(false, Ordering::Relaxed);
    stage.until(&answered, |job| !job.needs_rejudging()).await;

    let asked = || stage.number("lockgate_policy_unavailable_total");
    let before = asked();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(asked() > before, "they are not forgotten");
    assert!(asked() - before <= 55.0, "one page a second, and not all of them: {}", asked() - before);
}

#[tokio::test(start_paused = true)]
async fn every_move_of_a_breaker_is_counted_and_on_record() {
    let stage = Stage::new();
    let steps = [BreakerState::Closed, BreakerState::Open, BreakerState::HalfOpen, BreakerState::Closed];
    let moves = steps.windows(2).map(|step| BreakerMove {
        at: Timestamp::from_millis(1),
        breaker: "input",
        from: step[0],
        to: step[1],
        error: Some("no answer".into()),
    });
    stage.breaker_moves.lock().expect("no test panicked").extend(moves);
    tokio::time::sleep(Duration::from_secs(5)).await;
    stage.until_number("lockgate_breaker_transitions_total", 3.0).await;
    let rows = stage.engine.audit(&caller(), 0, 100).await.expect("read").0;
    let told: Vec<_> =
        rows.iter().map(|row| (row.entry.action.as_str(), &*row.entry.subject, row.entry.detail.as_str())).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!((told[0].0, told[0].1), ("breaker_moved", "input"));
    assert!(told[1].2.contains(r#""to":"half_open""#) && told[1].2.contains("no answer"), "{told:?}");
}
