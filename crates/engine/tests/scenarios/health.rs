//! What a process finds wrong with itself, as those see it who only scrape it.

use std::time::Duration;

use lockgate_engine::Trouble;
use lockgate_ports::memory::Dispatches;

use super::stage::{Hand, Stage, job, pass};

fn series(trouble: Trouble) -> String {
    format!("lockgate_health{{code=\"{}\"}}", trouble.code())
}

fn all(stage: &Stage) -> f64 {
    stage.number("lockgate_health")
}

/// Where there is a gateway somebody asks every five seconds; the gauges ask nobody.
async fn ask(stage: &Stage) {
    pass(Duration::from_secs(1)).await;
    assert!(stage.engine.health().await.is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_well_says_so_with_every_code() {
    let stage = Stage::new();
    for trouble in Trouble::ALL {
        stage.number(&series(trouble));
    }
    ask(&stage).await;
    pass(Duration::from_secs(2)).await;
    assert!(all(&stage).abs() < f64::EPSILON, "{:?}", stage.engine.health().await.findings);
}

/// No lease of a leader says when it last came round.
#[tokio::test(start_paused = true)]
async fn a_loop_that_hangs_and_has_no_leader_is_told_by_a_gauge() {
    let stage = Stage::new();
    ask(&stage).await;
    stage.store.set_dispatches(Dispatches::Wait);
    let _worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    stage.submit(job("t")).await;
    pass(Duration::from_secs(50)).await;
    assert!(all(&stage).abs() < f64::EPSILON, "a call may take its time");
    stage.until_number(&series(Trouble::LoopStuck), 1.0).await;
    let findings = stage.engine.health().await.findings;
    assert!(findings.len() == 1 && findings[0].detail.contains("sending for"), "{findings:?}");
    stage.store.set_dispatches(Dispatches::Go);
    stage.until_number("lockgate_health", 0.0).await;
}
