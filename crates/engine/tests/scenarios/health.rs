//! What a process finds wrong with itself, as those see it who only scrape it.

use std::time::Duration;

use lockgate_core::request::Caller;
use lockgate_engine::{ApiError, ProblemKind};
use lockgate_model::{DispatchFault, HealthAnswer};
use lockgate_ports::{Pinned, StoreError};

use super::stage::{Hand, Stage, job, pass};

fn series(trouble: ProblemKind) -> String {
    format!("lockgate_health{{code=\"{}\"}}", trouble.code())
}

fn all(stage: &Stage) -> f64 {
    stage.number("lockgate_health")
}

/// As a load balancer asks.
async fn ask(stage: &Stage) {
    pass(Duration::from_secs(1)).await;
    assert!(stage.engine.health().await.is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_well_says_so_with_every_code() {
    let stage = Stage::new();
    for trouble in ProblemKind::ALL {
        stage.number(&series(trouble));
    }
    ask(&stage).await;
    pass(Duration::from_secs(2)).await;
    assert!(all(&stage).abs() < f64::EPSILON, "{:?}", stage.engine.health().await.findings);
}

#[tokio::test(start_paused = true)]
async fn what_pins_the_horizon_for_long_is_named_and_measured() {
    let stage = Stage::new();
    let pin = |seconds| Pinned {
        holder: "the transaction of pid 7 (\"report\", idle in transaction)".to_owned(),
        held_for: Some(Duration::from_secs(seconds)),
        transactions: 12,
        dead_rows: 4_000,
    };
    stage.store.pin(Some(pin(299)));
    stage.until_number("lockgate_store_horizon_held_seconds", 299.0).await;
    ask(&stage).await;
    assert_eq!(stage.engine.health().await.findings, [], "a report may take minutes");
    stage.store.pin(Some(pin(300)));
    stage.until_number(&series(ProblemKind::HorizonPinned), 1.0).await;
    let health = stage.engine.health().await;
    assert!(health.is_ready(), "every process has it alike");
    let detail = &health.findings[0].detail;
    assert!(detail.contains("pid 7 (\"report\"") && detail.contains("4000 dead rows"), "{detail}");
    let slot = Pinned { held_for: None, transactions: 1_000_000, ..pin(0) };
    stage.store.pin(Some(slot));
    stage.until_number("lockgate_store_horizon_held_seconds", 0.0).await;
    stage.until_number(&series(ProblemKind::HorizonPinned), 1.0).await;
    stage.store.pin(None);
    stage.until_number("lockgate_health", 0.0).await;
    stage.until_number("lockgate_store_horizon_dead_rows", 0.0).await;
}

/// Of a table that only results are written to, no submit notices anything.
#[tokio::test(start_paused = true)]
async fn a_damaged_store_is_noticed_before_anything_asks_about_it() {
    let stage = Stage::new();
    ask(&stage).await;
    stage.store.set_mood(HealthAnswer::Refuses(StoreError::Corrupt("jobs_done".to_owned())));
    stage.until_number(&series(ProblemKind::StoreDamaged), 1.0).await;
    let refused = stage.engine.submit(&Caller::new("default", "ann"), vec![job("t")]).await;
    assert!(matches!(&refused, Err(ApiError::Unavailable(why)) if why.contains("docs/backup.md")), "{refused:?}");
    stage.store.set_mood(HealthAnswer::Well);
    stage.until_number("lockgate_health", 0.0).await;
    stage.submit(job("t")).await;
}

/// No lease of a leader says when it last came round.
#[tokio::test(start_paused = true)]
async fn a_loop_that_hangs_and_has_no_leader_is_told_by_a_gauge() {
    let stage = Stage::new();
    ask(&stage).await;
    stage.store.set_dispatches(DispatchFault::Wait);
    let _worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    stage.submit(job("t")).await;
    pass(Duration::from_secs(50)).await;
    assert!(all(&stage).abs() < f64::EPSILON, "a call may take its time");
    stage.until_number(&series(ProblemKind::LoopStuck), 1.0).await;
    let findings = stage.engine.health().await.findings;
    assert!(findings.len() == 1 && findings[0].detail.contains("sending for"), "{findings:?}");
    stage.store.set_dispatches(DispatchFault::Go);
    stage.until_number("lockgate_health", 0.0).await;
}
