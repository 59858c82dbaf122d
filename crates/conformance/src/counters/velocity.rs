//! Velocity windows that replicas share.

use std::time::Duration;

use super::Stage;
use lockgate_ports::counters::{Counters, VelocityAsk, Visit};

const LONG: Duration = Duration::from_secs(600);
/// Short enough to wait for in real time.
const SPAN: Duration = Duration::from_millis(400);

fn entering(job_id: &str, span: Duration) -> VelocityAsk {
    VelocityAsk { rule: "r".into(), key: r#"["acme"]"#.into(), job_id: job_id.into(), span, visit: Visit::Enter }
}

fn looking(job_id: &str) -> VelocityAsk {
    VelocityAsk { visit: Visit::Look, ..entering(job_id, LONG) }
}

async fn places(counters: &dyn Counters, asks: &[VelocityAsk]) -> Vec<u64> {
    counters.places(asks).await.expect("the counters answer")
}

async fn place(counters: &dyn Counters, ask: VelocityAsk) -> u64 {
    places(counters, &[ask]).await[0]
}

pub async fn a_job_counts_once_over_all_handles(stage: Stage) {
    assert_eq!(place(&*stage.a, entering("one", LONG)).await, 1);
    assert_eq!(place(&*stage.b, entering("one", LONG)).await, 1);
    assert_eq!(place(&*stage.b, entering("two", LONG)).await, 2);
    assert_eq!(place(&*stage.a, entering("three", LONG)).await, 3);
    assert_eq!(place(&*stage.a, entering("two", LONG)).await, 2, "it keeps its place");
}

pub async fn jobs_of_one_batch_take_their_places_in_order(stage: Stage) {
    // Names whose own order is another one.
    let asks: Vec<_> = (0..20).rev().map(|n| entering(&format!("job-{n}"), LONG)).collect();
    let expected: Vec<u64> = (1..=20).collect();
    assert_eq!(places(&*stage.a, &asks).await, expected);
    assert_eq!(places(&*stage.b, &asks).await, expected);
}

pub async fn a_job_leaves_after_the_span_and_those_behind_move_up(stage: Stage) {
    assert_eq!(place(&*stage.a, entering("one", SPAN)).await, 1);
    stage.pass(SPAN / 2);
    assert_eq!(place(&*stage.b, entering("two", SPAN)).await, 2);
    stage.pass(SPAN / 2);
    let now = [entering("two", SPAN), entering("three", SPAN), entering("one", SPAN)];
    assert_eq!(places(&*stage.a, &now).await, [1, 2, 3]);
    stage.pass(SPAN);
    assert_eq!(place(&*stage.b, entering("four", SPAN)).await, 1);
}

pub async fn other_rules_and_keys_have_other_windows(stage: Stage) {
    let asks = [
        entering("one", LONG),
        VelocityAsk { rule: "s".into(), ..entering("two", LONG) },
        VelocityAsk { key: r#"["umbrella"]"#.into(), ..entering("three", LONG) },
        VelocityAsk { rule: r#"r["acme"]"#.into(), key: "[]".into(), ..entering("four", LONG) },
        entering("five", LONG),
    ];
    assert_eq!(places(&*stage.a, &asks).await, [1, 1, 1, 1, 2]);
}

pub async fn looking_enters_nothing(stage: Stage) {
    assert_eq!(place(&*stage.a, looking("one")).await, 1);
    assert_eq!(place(&*stage.a, entering("two", LONG)).await, 1);
    assert_eq!(places(&*stage.b, &[looking("one"), looking("three"), looking("two")]).await, [2, 2, 1]);
}

pub async fn nothing_asked_is_nothing_answered(stage: Stage) {
    assert_eq!(places(&*stage.a, &[]).await, [0; 0]);
}
