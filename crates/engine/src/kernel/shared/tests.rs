//! Two replicas that judge by one policy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::breaker::{BreakerSettings, Ticket};
use lockgate_core::rate::{Rate, RateGrant};
use lockgate_core::request::{JobRequest, Json};
use lockgate_core::retry::RetrySettings;
use lockgate_core::scan::FindingKey;
use lockgate_core::verdict::{Decision, Judgement};
use lockgate_memory::MemoryCounters;
use lockgate_model::ManualClock;
use lockgate_ports::{
    BreakerAnswer, BreakerStanding, CallOutcome, Counters, CountersAway, Kernel, VelocityAsk, WorkersSnapshot,
};

use crate::LocalKernel;

/// Counters that can be away, and count how often they were asked.
struct CountingCounters {
    counters: MemoryCounters,
    away: AtomicBool,
    asked: AtomicUsize,
}

#[async_trait]
impl Counters for CountingCounters {
    async fn ask(
        &self,
        breaker: &str,
        settings: &BreakerSettings,
    ) -> Result<(BreakerAnswer, BreakerStanding), CountersAway> {
        self.counters.ask(breaker, settings).await
    }

    async fn tell(
        &self,
        breaker: &str,
        settings: &BreakerSettings,
        ticket: Ticket,
        outcome: CallOutcome,
    ) -> Result<BreakerStanding, CountersAway> {
        self.counters.tell(breaker, settings, ticket, outcome).await
    }

    async fn look(&self, breaker: &str, settings: &BreakerSettings) -> Result<BreakerStanding, CountersAway> {
        self.counters.look(breaker, settings).await
    }

    async fn add(&self, total: &str, by: u64) -> Result<(), CountersAway> {
        self.counters.add(total, by).await
    }

    async fn take(&self, buckets: &[(Arc<str>, Rate)], want: u32) -> Result<RateGrant, CountersAway> {
        self.counters.take(buckets, want).await
    }

    async fn hold(&self, locks: &[&str], holder: &str, ttl: Duration) -> Result<Vec<bool>, CountersAway> {
        self.counters.hold(locks, holder, ttl).await
    }

    async fn let_go(&self, locks: &[&str], holder: &str) -> Result<(), CountersAway> {
        self.counters.let_go(locks, holder).await
    }

    async fn keep_workers(&self, snapshot: &WorkersSnapshot) -> Result<(), CountersAway> {
        self.counters.keep_workers(snapshot).await
    }

    async fn kept_workers(&self) -> Result<Option<(WorkersSnapshot, Duration)>, CountersAway> {
        self.counters.kept_workers().await
    }

    async fn places(&self, asks: &[VelocityAsk]) -> Result<Vec<u64>, CountersAway> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match self.away.load(Ordering::Relaxed) {
            true => Err(CountersAway("switched off".into())),
            false => self.counters.places(asks).await,
        }
    }
}

struct Replicas {
    a: LocalKernel,
    b: LocalKernel,
    counters: Arc<CountingCounters>,
}

fn replicas(rules: &str) -> Replicas {
    let clock = Arc::new(ManualClock::default());
    let counters = MemoryCounters::new(clock.clone());
    let counters = Arc::new(CountingCounters { counters, away: AtomicBool::new(false), asked: AtomicUsize::new(0) });
    let text = format!("version: 1\ndefault: {{decision: allow, reason: fine}}\nrules:\n{rules}");
    let kernel = || {
        let kernel = LocalKernel::new(clock.clone(), FindingKey::new([7; 32]), None).sharing(Some(counters.clone()));
        kernel.adopt(&"policy".into(), &text).expect("a policy");
        kernel
    };
    Replicas { a: kernel(), b: kernel(), counters }
}

const TWO_A_MINUTE: &str = "
  - {id: burst, match: {topics: [mail], velocity: {max: 2, window: 1m}}, decision: throttle, reason: slow down}
";

fn job(topic: &str, id: &str) -> Arc<JobRequest> {
    Arc::new(JobRequest {
        job_id: id.into(),
        id_chosen: false,
        tenant: "acme".into(),
        actor: "ann".into(),
        actor_type: None,
        actor_verified: false,
        topic: topic.into(),
        payload: Json::null(),
        priority: None,
        labels: BTreeMap::new(),
        env: BTreeMap::new(),
        idempotency_key: None,
        concurrency_key: None,
        max_attempts: None,
        retry: RetrySettings::default(),
        timeout_ms: None,
        not_before: None,
        deadline_ms: None,
        requires: BTreeSet::new(),
        capability: None,
        risk_tags: BTreeSet::new(),
        trace_id: None,
        parent: None,
        workflow_id: None,
        compensation: None,
        run: None,
        child_of: None,
        gate: None,
        memo: None,
    })
}

/// The rule that decided each.
async fn rules(kernel: &LocalKernel, jobs: &[Arc<JobRequest>]) -> Vec<String> {
    let rule = |judgement| match judgement {
        Judgement::Decided(verdict) => verdict.rule.to_string(),
        Judgement::Unavailable(_) => panic!("no verdict"),
    };
    kernel.judge(jobs).await.into_iter().map(rule).collect()
}

async fn mail(kernel: &LocalKernel, id: &str) -> String {
    rules(kernel, &[job("mail", id)]).await.remove(0)
}

#[tokio::test]
async fn jobs_judged_by_any_replica_are_in_the_window_of_all() {
    let Replicas { a, b, .. } = replicas(TWO_A_MINUTE);
    assert_eq!([mail(&a, "1").await, mail(&b, "2").await], ["default", "default"]);
    assert_eq!([mail(&a, "3").await, mail(&b, "4").await], ["burst", "burst"]);
    assert_eq!(mail(&b, "1").await, "default", "one that was let in stays in");
}

#[tokio::test]
async fn a_batch_asks_once_and_one_without_windows_asks_nobody() {
    let Replicas { a, counters, .. } = replicas(TWO_A_MINUTE);
    let jobs = [job("mail", "1"), job("echo", "2"), job("mail", "3"), job("mail", "4")];
    assert_eq!(rules(&a, &jobs).await, ["default", "default", "default", "burst"]);
    assert_eq!(counters.asked.load(Ordering::Relaxed), 1);
    rules(&a, &[job("echo", "5"), job("echo", "6")]).await;
    assert_eq!(counters.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_job_enters_only_windows_that_its_verdict_came_by() {
    let both = "
  - {id: first, match: {velocity: {max: 1, window: 1m}}, decision: throttle, reason: slow down}
  - {id: second, match: {velocity: {max: 1, window: 1m}}, decision: deny, reason: stop}
";
    let Replicas { a, b, counters } = replicas(both);
    assert_eq!(mail(&a, "1").await, "default");
    assert_eq!(counters.asked.load(Ordering::Relaxed), 2, "a second window is known only after the first");
    assert_eq!([mail(&b, "2").await, mail(&a, "3").await], ["first", "first"]);
    let window = |rule: &str, visit| VelocityAsk {
        rule: rule.into(),
        key: "[]".into(),
        job_id: "x".into(),
        span: std::time::Duration::from_secs(60),
        visit,
    };
    let looks = [window("first", super::Visit::Look), window("second", super::Visit::Look)];
    assert_eq!(counters.places(&looks).await.expect("answered"), [4, 2], "the second holds the one that reached it");
}

#[tokio::test]
async fn while_the_counters_are_away_each_goes_by_what_it_judged_itself() {
    let Replicas { a, b, counters } = replicas(TWO_A_MINUTE);
    assert_eq!([mail(&a, "1").await, mail(&a, "2").await], ["default", "default"]);
    counters.away.store(true, Ordering::Relaxed);
    assert_eq!(mail(&a, "3").await, "burst", "its own windows were kept");
    assert_eq!([mail(&b, "4").await, mail(&b, "5").await, mail(&b, "6").await], ["default", "default", "burst"]);
    counters.away.store(false, Ordering::Relaxed);
    assert_eq!(mail(&b, "7").await, "burst");
}

#[tokio::test]
async fn explaining_looks_at_the_windows_of_all_and_enters_none() {
    let Replicas { a, b, .. } = replicas(TWO_A_MINUTE);
    mail(&a, "1").await;
    mail(&a, "2").await;
    for _ in 0..2 {
        let explained = b.explain(&job("mail", "3")).await.expect("explained");
        assert_eq!(explained.verdict.decision, Decision::Throttle);
    }
    assert_eq!(b.explain(&job("mail", "2")).await.expect("explained").verdict.decision, Decision::Allow);
}
